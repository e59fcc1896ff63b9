"""Policies, losses and baselines are made from the fields and settings that their constructors name."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from train_cases import TINY, parts_of, run, tiny

from routelearn import policies
from routelearn.errors import InputError
from routelearn.policies.attention import AttentionPolicy
from routelearn.problems import get
from routelearn.training.baselines import BASELINES, Baseline
from routelearn.training.config import TrainConfig, name_of
from routelearn.training.losses import LOSSES, PolicyGradient
from routelearn.training.state import make_baseline, make_loss, make_policy


class Scaled(PolicyGradient):
    def __init__(self, beta: float = 0.3, sharpness: float = 2.0, mode: str = "plain"):
        self.beta, self.sharpness, self.mode = beta, sharpness, mode

    def __call__(self, scored):
        return self.sharpness * super().__call__(scored)


class Fixed(Baseline):
    def __init__(self, level: float = 4.0, whole: bool = False):
        super().__init__()
        self.level = level

    def value(self, prepared, cost):
        return torch.full_like(cost, self.level)


@pytest.fixture
def _registered(monkeypatch):
    """As a plugin would, but only for this test."""
    monkeypatch.setitem(LOSSES, "mine", Scaled)
    monkeypatch.setitem(BASELINES, "mine", Fixed)


@pytest.mark.usefixtures("_registered")
def test_fields_and_settings_arrive_by_name_and_the_rest_keeps_its_default():
    made = tiny(loss="mine", baseline="mine", beta=0.6, settings={"sharpness": 5, "level": 3.5})
    loss = make_loss(made)
    assert (loss.beta, loss.sharpness, loss.mode) == (0.6, 5, "plain")
    baseline = make_baseline(parts_of(made, None, {}))
    assert baseline.level == 3.5
    assert TrainConfig.from_dict(json.loads(made.to_json())) == made


@pytest.mark.usefixtures("_registered")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sharpnes": 1.0}, "'sharpnes', which is none of .*could be given are sharpness, mode, level, whole"),
        ({"beta": 0.5}, "'beta', which is none of .*beta is an option of its own"),
        ({"sharpness": "very"}, "setting sharpness is 'very'; it must be a finite number"),
        ({"whole": 1}, "setting whole is 1; it must be true or false"),
    ],
)
def test_a_setting_that_nobody_takes_is_refused_in_one_line(settings, words):
    with pytest.raises(InputError, match=words) as caught:
        tiny(loss="mine", baseline="mine", settings=settings)
    assert "\n" not in str(caught.value)


def test_where_nothing_can_be_set_the_refusal_says_so():
    with pytest.raises(InputError, match="these have none"):
        tiny(settings={"sharpness": 1.0})


@pytest.mark.usefixtures("_registered")
def test_a_run_does_not_go_on_with_other_settings(tmp_path):
    made = tiny(loss="mine", epochs=1, settings={"sharpness": 5.0})
    run(made, tmp_path)
    with pytest.raises(InputError, match=r"was trained with sharpness 5.0, not 2.0"):
        run(replace(made, settings={}), tmp_path, resume=True)


@pytest.mark.usefixtures("_registered")
def test_what_a_plugin_registers_is_a_choice_from_then_on(capsys):
    from routelearn.cli import main

    with pytest.raises(SystemExit):
        main(["train", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "(reinforce, preference, entropy, leader, best-of, supervised, q-learning, mine)" in told
    assert "ean: the last three nodes ask" in told
    with pytest.raises(InputError, match=r"baseline is 'yours'; the choices are none, .*, mine"):
        tiny(baseline="yours")


def test_every_policys_options_are_those_that_models_have_recorded():
    assert list(TINY.policy_options()) == ["width", "heads", "layers", "hidden", "norm", "clip", "neighbours"]
    assert tiny(policy="pointer").policy_options() == {"width": 32, "clip": 10.0}


def test_a_constructor_that_needs_more_is_told_what():
    class Needy(Baseline):
        def __init__(self, depth: int):
            super().__init__()

    with pytest.raises(InputError, match="Needy needs depth; give each a default value"):
        make_baseline(parts_of(tiny(baseline=Needy), None, {}))


@pytest.mark.parametrize(("part", "name"), [("loss", "preference"), ("loss", "mine"), ("baseline", "shared")])
@pytest.mark.usefixtures("_registered")
def test_a_comparison_of_solutions_needs_several(part, name):
    if name == "mine":
        TrainConfig(loss="mine", solutions=1)
    else:
        with pytest.raises(InputError, match=f"{part} '{name}' compares an instance's solutions"):
            TrainConfig(**{"baseline": "none", "solutions": 1} | {part: name})


# ----------------------------------------------------------------------------------------------- objects


def test_a_registered_class_is_recorded_by_its_name():
    assert name_of("policy", AttentionPolicy) == "attention"
    assert name_of("loss", PolicyGradient()) == "reinforce"
    assert tiny(problem=get("cvrp")).problem == "cvrp"


def test_a_class_or_an_object_stands_for_itself():
    found = tiny(loss=Scaled)
    assert (found.loss, type(make_loss(found))) == ("Scaled", Scaled)
    loss = Scaled(sharpness=7.0)
    assert make_loss(tiny(loss=loss)) is loss
    assert "objects" not in json.loads(found.to_json())
    other = replace(found, loss="reinforce")
    assert (other.loss, other.objects) == ("reinforce", {})
    assert replace(found, rate=1.0).chosen("loss") is Scaled


def test_a_strange_problem_may_not_take_a_known_name():
    class Other(type(get("cvrp"))):
        name = "tsp"

    with pytest.raises(InputError, match="the problem name 'tsp' belongs to another problem"):
        tiny(problem=Other())


def test_a_policy_object_must_be_what_the_settings_describe():
    policy = policies.build("attention", make_policy(TINY).shape, TINY.policy_options())
    assert make_policy(tiny(policy=policy)) is policy
    with pytest.raises(InputError, match=r"the policy given was not built with width=32.* layers=2"):
        make_policy(tiny(layers=2, policy=policy))
