"""`routelearn.train`: names and objects in, a small result out; what cannot work is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import routelearn
from routelearn import policies
from routelearn.decoding.decode import decode
from routelearn.errors import InputError
from routelearn.models import model_file
from routelearn.models.model_file import Model
from routelearn.policies.attention import AttentionPolicy
from routelearn.policies.base import shape_of
from routelearn.problems import DeviceRng, get
from routelearn.problems.tsp import TSP
from routelearn.training import recipes
from routelearn.training.losses import Loss, PolicyGradient, Scored
from routelearn.training.train import plan

SHAPE = {"width": 32, "heads": 2, "layers": 1, "hidden": 32}
SMALL = {**SHAPE, "solutions": 2, "batch": (8,), "epochs": 2, "epoch_steps": 3, "validation_instances": 20}


def small(*given, **options):
    return routelearn.train(*given, device="cpu", **{**SMALL, **options})


def test_a_result_holds_model_history_and_folder(tmp_path):
    heard = []
    result = small("tsp", 6, out=tmp_path / "run", report=heard.append)
    assert isinstance(result, routelearn.TrainingResult)
    assert (result.folder, result.step, result.instances, result.stopped) == (tmp_path / "run", 6, 48, False)
    assert result.history == heard
    assert result.validation == {6: heard[-1]["validation"]["6"]}
    assert 0 < result.minutes < 5
    stored = model_file.load(tmp_path / "run" / "best.safetensors")
    assert result.model.card == stored.card
    assert not result.model.policy.training
    for name, weight in stored.policy.state_dict().items():
        assert torch.equal(weight, result.model.policy.state_dict()[name])


def test_without_a_folder_the_run_is_in_a_temporary_one_that_stays():
    result = small("tsp", 6, epochs=1)
    assert (result.folder / "best.safetensors").is_file()
    assert result.folder.name.startswith("routelearn-")


def test_a_result_and_its_model_are_shown_in_a_line():
    result = small("tsp", (6, 7), epochs=1, batch=(4,))
    assert repr(result).startswith(f"TrainingResult(attention for tsp in {result.folder}: validation ")
    assert "\n" not in repr(result)
    assert repr(result.model).startswith("Model(attention for tsp, ")


def test_a_model_is_no_file_to_start_from():
    result = small("tsp", 6, epochs=1)
    with pytest.raises(InputError, match="a Model where a model's file is needed"):
        small("tsp", 6, warm_start=result.model)


class Sharper(AttentionPolicy):
    """With a setting of its own, which is no field of the configuration."""

    def __init__(self, *shape, sharpness: float = 1.0, **options):
        super().__init__(*shape, **options)
        self.sharpness = sharpness


def test_a_warm_start_is_built_as_the_model_was_but_for_what_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(policies.POLICIES, "sharper", Sharper)
    first = small("tsp", 6, epochs=1, policy="sharper", norm="instance", clip=7.0, settings={"sharpness": 2.5})

    def begun(**changes):
        return plan(
            "tsp", (6,), changes, out=tmp_path / "next", warm_start=first.folder / "last.safetensors",
            device=torch.device("cpu"),
        ).config  # fmt: skip

    def shape(**changes):
        found = begun(**changes)
        return found.policy, found.width, found.heads, found.layers, found.norm, found.clip, found.settings

    assert shape() == ("sharper", 32, 2, 1, "instance", 7.0, {"sharpness": 2.5})
    assert shape(layers=2, norm="batch") == ("sharper", 32, 2, 2, "batch", 7.0, {"sharpness": 2.5})
    assert shape(settings={"sharpness": 1.5})[-1] == {"sharpness": 1.5}
    assert shape(policy="attention") == ("attention", 32, 2, 1, "instance", 7.0, {})
    assert shape(policy=AttentionPolicy) == shape(policy="attention")
    assert begun().rate < recipes.cpu("tsp", (6,)).rate
    assert begun(rate=0.5).rate == 0.5


def test_a_result_is_plotted(tmp_path):
    result = small("tsp", (6, 7), out=tmp_path / "run")
    (axes,) = result.plot(tmp_path / "curve.png").axes
    assert len(axes.lines) == 2
    assert (tmp_path / "curve.png").stat().st_size > 1000
    assert (tmp_path / "curve.svg").is_file()


def test_a_run_is_resumed_with_more_epochs(tmp_path):
    small("tsp", 6, out=tmp_path)
    again = routelearn.train(out=tmp_path, resume=True, epochs=3, device="cpu")
    assert (again.step, [row["step"] for row in again.history if row.get("validation")]) == (9, [3, 6, 9])


def test_a_problem_that_nobody_registered_is_trained_and_named_on_the_card(tmp_path):
    class MySalesman(TSP):
        name = "my-salesman"

    result = small(MySalesman(), 6, out=tmp_path)
    assert result.model.problem == "my-salesman"
    assert result.model.card["config"]["problem"] == "my-salesman"
    problem = MySalesman()
    x = problem.sample(DeviceRng(), 4, 6)
    assert decode(problem, result.model.policy, x, "greedy").cost.isfinite().all()
    again = routelearn.train(MySalesman(), out=tmp_path, resume=True, epochs=3, device="cpu")
    assert again.step == 9
    with pytest.raises(InputError, match="my-salesman"):
        routelearn.train(out=tmp_path, resume=True, epochs=4, device="cpu")


def test_a_policy_class_of_ones_own_is_built_and_trained():
    class Wide(AttentionPolicy):
        pass

    result = small("tsp", 6, policy=Wide)
    assert (type(result.model.policy), result.model.kind) == (Wide, "Wide")
    assert result.model.options == SHAPE | {"norm": "batch", "clip": 10.0, "neighbours": 0}


def test_a_ready_policy_is_trained_on_from_its_weights():
    options = {**SHAPE, "norm": "instance"}
    policy = policies.build("attention", shape_of(get("tsp")), options)
    before = {name: value.clone() for name, value in policy.state_dict().items()}
    result = small("tsp", 6, policy=policy, norm="instance", rate=1e-12)
    for name, value in result.model.policy.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=1e-9)
    assert result.model.kind == "attention"
    with pytest.raises(InputError, match="name the settings that it was built with"):
        small("tsp", 6, policy=policy, norm="instance", layers=2)


def test_a_loss_of_ones_own_is_used():
    calls = []

    class Counted(PolicyGradient):
        def __call__(self, scored):
            calls.append(scored.log_prob.shape)
            return super().__call__(scored)

    assert small("tsp", 6, loss=Counted, baseline="shared").model.card["config"]["loss"] == "Counted"
    assert calls == [(8, 2, 6)] * 6


def test_the_loss_that_the_documentation_shows_trains():
    page = (Path(__file__).parents[2] / "docs" / "guides" / "extend.md").read_text()
    shown = page[page.index("class Leader(Loss)") :].split("```")[0]
    names = {"Loss": Loss, "Scored": Scored, "Tensor": torch.Tensor}
    exec(shown, names)
    result = small("tsp", 6, loss=names["Leader"], solutions=4, settings={"sharpness": 2.0})
    assert (result.step, result.skipped) == (6, 0)
    with pytest.raises(InputError, match="set solutions to 2 or more"):
        small("tsp", 6, loss=names["Leader"], solutions=1, baseline="none")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"learning_rate": 1.0}, "unknown setting learning_rate; known are baseline"),
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"backend": "fast"}, "unknown backend 'fast'; the choices are auto, reference"),
        ({"recipe": "quick"}, "unknown recipe 'quick'"),
        ({"settings": {"mine": 1}}, "settings name 'mine'"),
        ({"resume": True}, "name the folder"),
        ({"policy": "transformer"}, "policy is 'transformer'; the choices are attention"),
        (
            {"policy": Model(None, "tsp", "attention", {})},
            "the policy is a Model; give .* derived from torch.nn.*Module",
        ),
        ({"loss": lambda scored: scored.cost.mean()}, "the loss is a function; give a name, or .* derived from .*Loss"),
        ({"baseline": PolicyGradient}, "the baseline is a PolicyGradient; give .* derived from .*Baseline"),
        (
            {"problem": Model(None, "tsp", "attention", {})},
            "the problem is a Model; give a name, or what .*check_problem",
        ),
        ({"reference": torch.ones(5)}, r"reference must hold costs by size, \{6: costs\}"),
        ({"reference": {7: torch.ones(5)}}, r"reference must hold costs by size, \{6: costs\}"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(options, words):
    with pytest.raises(InputError, match=words) as caught:
        routelearn.train(**{"problem": "tsp", "sizes": 6, "device": "cpu", **options})
    assert "\n" not in str(caught.value)


def test_the_default_recipe_goes_by_the_device(tmp_path):
    for kind, name in (("cpu", "cpu"), ("cuda", "fast")):
        planned = plan("tsp", (20,), {}, out=tmp_path / kind, device=torch.device(kind))
        assert planned.config == recipes.make(name, "tsp", (20,))
        assert planned.recipe == name


def test_the_cpu_recipe_has_small_batches_and_ramps_by_share():
    config = recipes.cpu("cvrp", (20, 50), minutes=2.0)
    assert config.minutes == 2
    assert max(config.batch) * config.solutions <= 2048
    assert (config.ramp_steps, config.schedule) == (0, "cosine")
    assert 0 < config.ramp < 0.2
    assert config.width < recipes.fast("cvrp", (20, 50)).width


def test_settings_given_on_the_command_line_reach_the_configuration():
    from routelearn.commands.train import changes_of, parse_setting

    assert [parse_setting(text) for text in ("a=1", "b=0.5", "c=true", "d=soft", "e=x=y")] == [
        ("a", 1), ("b", 0.5), ("c", True), ("d", "soft"), ("e", "x=y")
    ]  # fmt: skip
    assert changes_of({"rate": None, "batch": "8,4"}, ["a=1"]) == {"batch": (8, 4), "settings": {"a": 1}}
    with pytest.raises(InputError, match="write it as name=value"):
        parse_setting("a")


@pytest.mark.parametrize(("count", "shown"), [(0, "0"), (41_984, "41,984"), (999_999, "999,999"), (2_310_000, "2.31M")])
def test_instances_are_shown_in_full_below_a_million(count, shown):
    from routelearn.commands.train import counted

    assert counted(count) == shown


def test_configurations_from_before_load():
    old = recipes.fast("tsp", (20,)).to_dict()
    for name in ("entropy_weight", "ramp", "settings"):
        del old[name]
    kept = Path(__file__).parents[2] / "docs" / "runs"
    for values in (old, *(json.loads(path.read_text()) for path in sorted(kept.glob("*/config.json")))):
        assert routelearn.training.config.TrainConfig.from_dict(values).ramp == values.get("ramp", 0)
