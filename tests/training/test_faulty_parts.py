"""Policies, losses and baselines that do not keep their promises are refused in one line."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import routelearn
from routelearn.errors import InputError
from routelearn.models import model_file
from routelearn.policies.attention import AttentionPolicy
from routelearn.policies.base import shape_of
from routelearn.problems import DeviceRng, NumpyRng, get
from routelearn.training.baselines import Baseline
from routelearn.training.losses import Loss

SMALL = {"width": 16, "heads": 1, "layers": 1, "hidden": 16, "batch": (4,), "epochs": 1, "epoch_steps": 2}
SMALL |= {"validation_instances": 4, "evaluation_instances": 4, "device": "cpu", "solutions": 2}


class Unmasked(AttentionPolicy):
    def logits(self, cache, seen):
        return torch.zeros(seen.feasible.shape) + cache.keys.sum() * 0


class Nothing(Loss):
    def __call__(self, scored):
        return None


class Plain(Loss):
    def __call__(self, scored):
        return 1.0


class Flat(Baseline):
    def value(self, prepared, cost):
        return cost.mean(1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policy": Unmasked}, r"broke a rule \(validation instance 0: node .*-inf where seen.feasible is not"),
        ({"loss": Nothing}, "loss 'Nothing' gave NoneType; it must be one number"),
        ({"loss": Plain}, "loss 'Plain' gave float; it must be one number"),
        ({"baseline": Flat}, r"baseline 'Flat' gave a value of shape \[4\]; it must be a number, \[4, 1\] or \[4, 2\]"),
    ],
)
def test_a_part_that_breaks_its_promise_is_named(options, words):
    with pytest.raises(InputError, match=words):
        routelearn.train("tsp", 6, **SMALL | options)


def test_a_run_that_cannot_take_its_first_step_leaves_its_folder_free(tmp_path):
    with pytest.raises(InputError, match="it must be one number"):
        routelearn.train("tsp", 6, loss=Plain, out=tmp_path, **SMALL)
    assert routelearn.train("tsp", 6, out=tmp_path, **SMALL).step == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"entropy_weight": 5.0}, "entropy_weight is read by loss entropy only"),
        ({"preference_scale": 9.0}, "preference_scale is read by loss preference only"),
        ({"beta": 0.1, "baseline": "shared"}, "beta is read by baseline exponential, baseline rollout only"),
    ],
)
def test_a_setting_that_nobody_reads_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        routelearn.train("tsp", 6, **SMALL | options)


def test_a_policy_object_must_be_what_the_configuration_says():
    with pytest.raises(InputError, match="the policy given has heads 2, not 1; say heads=2"):
        routelearn.train("tsp", 6, policy=AttentionPolicy(shape_of(get("tsp")), 16, 2, 1, 16), **SMALL)


@pytest.mark.parametrize("sizes", ["10", 10.0, (10.0,)])
def test_sizes_are_whole_numbers(sizes):
    with pytest.raises(InputError, match="give a whole number, or several"):
        routelearn.train("tsp", sizes, **SMALL)


def test_the_class_of_a_problem_will_do():
    assert routelearn.train(type(get("tsp")), 6, **SMALL).step == 2


def test_entropies_need_logits_of_a_record():
    class Scoring(AttentionPolicy):
        recorded_logits = property()

    with pytest.raises(InputError, match="asks for entropies, but policy 'Scoring' has no recorded_logits"):
        routelearn.train("tsp", 6, policy=Scoring, loss="entropy", **SMALL)


@pytest.mark.usefixtures("_registries")
def test_tied_weights_and_buffers_that_are_not_saved_survive_a_file(tmp_path):
    @routelearn.register(name="tied")
    class Tied(AttentionPolicy):
        def __init__(self, shape, **options):
            super().__init__(shape, **options)
            self.pointer = self.key
            self.register_buffer("steps", torch.arange(3.0), persistent=False)

    policy = Tied(shape_of(get("tsp")), width=16, heads=1, layers=1, hidden=16).eval()
    options = {"width": 16, "heads": 1, "layers": 1, "hidden": 16}
    model_file.save(tmp_path / "m.safetensors", model_file.Model(policy, "tsp", "tied", options))
    loaded = model_file.load(tmp_path / "m.safetensors").policy
    assert loaded.steps.tolist() == [0.0, 1.0, 2.0]
    features = get("tsp").features(get("tsp").sample(DeviceRng(), 2, 5))
    assert all(torch.equal(a, b) for a, b in zip(loaded.encode(features), policy.encode(features), strict=True))


@pytest.fixture
def _registries():
    from routelearn import plugins

    before = set(map(id, plugins.loaded()))
    yield
    for plugin in plugins.loaded():
        if id(plugin) not in before:
            plugins.forget(plugin)


def test_instances_in_double_precision_are_shown_in_the_policys():
    x = get("tsp").sample(NumpyRng(1), 4, 20)
    assert x.xy.dtype == torch.float64
    assert routelearn.evaluate("tsp-20", x, problem="tsp").infeasible == 0


def test_a_policy_without_a_width_decodes():
    class Own(nn.Module):
        compiles = False

        def __init__(self):
            super().__init__()
            self.inner = AttentionPolicy(shape_of(get("tsp")), 16, 1, 1, 16)
            for name in ("encode", "begin", "step", "choose", "score"):
                setattr(self, name, getattr(self.inner, name))

    assert len(routelearn.decode(Own(), ("tsp", 5), problem="tsp", limit=3)) == 3
