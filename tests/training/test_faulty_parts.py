"""Policies, losses and baselines that do not keep their promises are refused in one line."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import nn
from train_cases import make_step, tiny

import routelearn
from routelearn.errors import InputError
from routelearn.models import model_file
from routelearn.policies.attention import AttentionPolicy
from routelearn.policies.base import ByLogits, picked, shape_of
from routelearn.problems import DeviceRng, NumpyRng, get
from routelearn.problems.cvrp import CVRP
from routelearn.problems.tsp import TSP
from routelearn.training.baselines import Baseline
from routelearn.training.losses import Loss

SMALL = {"width": 16, "heads": 1, "layers": 1, "hidden": 16, "batch": (4,), "epochs": 1, "epoch_steps": 2}
SMALL |= {"validation_instances": 4, "evaluation_instances": 4, "device": "cpu", "solutions": 2}


class Unmasked(AttentionPolicy):
    def logits(self, cache, seen):
        return torch.zeros(seen.feasible.shape) + cache.keys.sum() * 0


class Flattened(AttentionPolicy):
    def logits(self, cache, seen):
        return super().logits(cache, seen).sum(0)


class Divided(AttentionPolicy):
    def logits(self, cache, seen):
        return super().logits(cache, seen) / 0


class NoGradient(AttentionPolicy):
    @torch.no_grad()
    def score(self, cache, trajectory):
        return super().score(cache, trajectory)


class PlainCache(AttentionPolicy):
    def encode(self, features, adjacent=None):
        return super().encode(features, adjacent).keys


class Late(AttentionPolicy):
    def logits(self, cache, seen):
        if not hasattr(self, "weight"):
            self.weight = nn.Parameter(torch.ones(()))
        return super().logits(cache, seen) * self.weight


class Mistyped(AttentionPolicy):
    def query(self, cache, nodes, scalars):
        return super().query(cache, nodes, scalar)  # noqa: F821


class NoShape(AttentionPolicy):
    def __init__(self, width=16, heads=1, layers=1, hidden=16):
        super().__init__(shape_of(get("tsp")), width, heads, layers, hidden)


class Forgetful(ByLogits, nn.Module):
    """Counts steps in what it carries, and scores a record as if every step were the first."""

    compiles = False

    def __init__(self, shape, width=16, heads=1, layers=1, hidden=16):
        super().__init__()
        self.embed = nn.Linear(2, width)

    def encode(self, features):
        return Encoded(self.embed(features[0]))

    def begin(self, cache, solutions):
        return (torch.zeros(len(cache.nodes), solutions),)

    def step(self, cache, carry, seen):
        logits = cache.nodes.sum(-1)[:, None] * (1 + carry[0][..., None])
        return logits.masked_fill(~seen.feasible, -torch.inf), (carry[0] + 1,)

    def recorded_logits(self, cache, trajectory):
        return cache.nodes.sum(-1)[:, None, None].masked_fill(~trajectory.seen.feasible, -torch.inf)


class Encoded(NamedTuple):
    nodes: torch.Tensor


class Nothing(Loss):
    def __call__(self, scored):
        return None


class Plain(Loss):
    def __call__(self, scored):
        return 1.0


class Flat(Baseline):
    def value(self, prepared, cost):
        return cost.mean(1)


class Learning(Baseline):
    """Its estimate carries a gradient, which must not reach it through the policy's loss."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def value(self, prepared, cost):
        return self.weight * cost.mean()

    def loss(self, prepared, cost):
        return (self.weight - 1.25) ** 2


class ManyLosses(Learning):
    def loss(self, prepared, cost):
        return self.weight * cost.mean(1)


class Number(Baseline):
    def value(self, prepared, cost):
        return cost.mean().item()


class Stuck(CVRP):
    name = "stuck"

    def feasible(self, x, s):
        return super().feasible(x, s) & (s.last[..., None] == 0)


class Summed(TSP):
    name = "summed"

    def cost(self, x, tour):
        return super().cost(x, tour).sum(1, keepdim=True)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (Stuck(), "stuck: the mask is never empty: no node is feasible at step 1"),
        (Summed(), r"summed: cost: the cost is torch.float32 \[16, 1\]; expected torch.float32 \[16, 6\]"),
    ],
)
def test_a_problem_that_breaks_the_contract_is_refused_before_it_is_trained(problem, words, tmp_path):
    with pytest.raises(InputError, match=f"{words}.*as routelearn.check_problem says"):
        routelearn.train(problem, 6, out=tmp_path / "run", **SMALL)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policy": Unmasked}, r"step 1: a node that is not feasible has a chance of 0.17; logits must be -inf where"),
        (
            {"policy": Flattened},
            r"'Flattened': step 0: logits are torch.float32 \[2, 6\]; floats \[3, 2, 6\] are needed",
        ),
        ({"policy": Divided}, "policy 'Divided': step 0: a logit is NaN or infinity"),
        ({"policy": NoGradient}, "policy 'NoGradient': score: no weight gets a gradient from it"),
        ({"policy": PlainCache}, "policy 'PlainCache': encode: it gives a Tensor; a NamedTuple of tensors is needed"),
        ({"policy": Late}, "policy 'Late': parameters: weight comes only with the first step"),
        ({"policy": Mistyped}, r"step 0: test_faulty_parts.py, line \d+: NameError: name 'scalar' is not defined"),
        ({"policy": NoShape}, "policy NoShape is made of a Shape and its settings by name, but: multiple values"),
        ({"policy": Forgetful}, r"'Forgetful': score: step 1 has log-probability .* when drawn; a policy that carries"),
        ({"loss": Nothing}, "loss 'Nothing' gave NoneType; it must be one number"),
        ({"loss": Plain}, "loss 'Plain' gave float; it must be one number"),
        (
            {"baseline": Flat},
            r"baseline 'Flat' gave a value of shape \[4\]; it must be a tensor of one number, \[4, 1\] or",
        ),
        (
            {"baseline": ManyLosses},
            r"baseline 'ManyLosses' as its own loss gave a tensor of shape \[4\]; it must be one",
        ),
        ({"baseline": Number}, "baseline 'Number' gave a float; it must be a tensor of one number"),
    ],
)
def test_a_part_that_breaks_its_promise_is_named(options, words):
    with pytest.raises(InputError, match=words):
        routelearn.train("tsp", 6, **SMALL | options)


def test_a_trial_of_the_policy_changes_nothing(monkeypatch):
    class Mine(AttentionPolicy):
        pass

    tried = routelearn.train("tsp", 6, policy=Mine, **SMALL)
    monkeypatch.setattr("routelearn.training.state.try_policy", lambda *arguments: None)
    plain = routelearn.train("tsp", 6, policy=Mine, **SMALL)
    for ours, theirs in zip(tried.model.policy.parameters(), plain.model.policy.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_baseline_learns_by_its_own_loss_alone():
    step = make_step(tiny(), Learning())
    step()
    assert step.baseline.weight.grad.item() == -0.5


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

        def score(self, cache, trajectory):
            return picked(AttentionPolicy.recorded_logits(self, cache, trajectory), trajectory.actions)

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
