"""One training step: its forced starts, and the steps that are not applied."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from train_cases import make_step, tiny

from routelearn.problems import PROBLEMS, DeviceRng, get
from routelearn.training.baselines import CriticBaseline, ExponentialBaseline
from routelearn.training.optimiser import OPTIMISERS
from routelearn.training.step import forced_starts


def whole_state(step):
    modules = {**step.policy.state_dict(), **step.baseline.state_dict(prefix="baseline.")}
    modules = {name: part for name, part in modules.items() if "num_batches_tracked" not in name}  # nobody reads it
    return copy.deepcopy((modules | {"usual": step.norm_average}, step.optimiser.state_dict()["state"]))


def same(a, b):
    """Bitwise equality of two states: what the modules hold, and the optimiser."""
    weights = all(torch.equal(a[0][name], b[0][name]) for name in a[0])
    return weights and all(torch.equal(a[1][i][key], b[1][i][key]) for i in a[1] for key in a[1][i])


def test_preference_step_learns(monkeypatch):
    step = make_step(tiny(loss="preference", solutions=4))
    before = whole_state(step)
    step()
    assert not same(before, whole_state(step))
    assert step.meter.read()["skipped"] == 0


# --------------------------------------------------------------------------------------- forced first nodes


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_forced_starts_are_legal_and_different(name):
    problem = get(name)
    x = problem.sample(DeviceRng(), 200, 6)
    starts = forced_starts(problem, x, 4)[..., 0]
    legal = problem.starts(x)
    assert (starts >= 0).any()
    for row, allowed in zip(starts.tolist(), legal.tolist(), strict=True):
        forced = [node for node in row if node >= 0]
        assert len(set(forced)) == len(forced) == min(4, sum(allowed))
        assert all(allowed[node] for node in forced)


def test_too_few_legal_first_nodes_leave_the_choice_to_the_policy():
    problem = get("op-const")
    x = problem.sample(DeviceRng(), 3, 6)._replace(max_length=torch.tensor([1e-6, 0.5, 9.0]))
    starts = forced_starts(problem, x, 5)[..., 0]
    assert (starts[0] == -1).all()
    assert (starts[2] >= 1).all()


# ------------------------------------------------------------------------------- steps that are not applied


def test_an_ordinary_step_is_applied():
    step = make_step(tiny())
    step()
    before = whole_state(step)
    step()
    assert not same(before, whole_state(step))
    read = step.meter.read()
    assert (read["steps"], read["skipped"], read["unfinished"]) == (2, 0, 0)
    assert read["cost"] > 0
    assert read["longest"] == 6


def made_baseline(name):
    if name == "critic":
        return CriticBaseline(get("cvrp").feature_dims, 16, 2, 16, "batch")
    return {"exponential": ExponentialBaseline(), "shared": None}[name]


@pytest.mark.parametrize(
    ("norm", "baseline", "before"), [("layer", "shared", 1), ("batch", "exponential", 1), ("batch", "critic", 1),
    ("batch", "exponential", 0)],
)  # fmt: skip
def test_a_step_with_an_unfinished_rollout_changes_nothing(norm, baseline, before):
    solutions = 4 if baseline == "shared" else 1
    config = tiny(problem="cvrp", sizes=(8,), norm=norm, baseline=baseline, solutions=solutions)
    step = make_step(config, made_baseline(baseline))
    for _ in range(before):
        step()
    state = whole_state(step)
    step.steps = 8  # eight customers of mean demand 5 do not fit one vehicle
    step()
    assert same(state, whole_state(step))
    read = step.meter.read()
    assert (read["steps"], read["skipped"], read["unfinished"]) == (before + 1, 1, 1)


def test_the_critic_is_clipped_by_itself():
    """A critic's gradient, however large, takes nothing from the policy's step."""
    alone, beside = (
        make_step(tiny(problem="cvrp", sizes=(8,), baseline="critic", solutions=1, gradient_norm=1e-3),
                    made_baseline("critic")) for _ in range(2)
    )  # fmt: skip
    beside.policy.load_state_dict(alone.policy.state_dict())
    beside.baseline.load_state_dict(alone.baseline.state_dict())
    for parameter in beside.baseline.parameters():
        parameter.register_hook(lambda gradient: 1000 * gradient)
    for step in (alone, beside):
        torch.manual_seed(1)
        step()
    for mine, other in zip(alone.policy.parameters(), beside.policy.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=0, atol=0)


def test_a_baseline_that_did_not_finish_is_an_unfinished_rollout():
    class Endless(torch.nn.Module):
        def prepare(self, x, features):
            return torch.full((x.xy.shape[0], 1), torch.inf)

        def value(self, prepared, cost):
            return prepared

        def loss(self, prepared, cost):
            return None

    step = make_step(tiny(), Endless())
    before = whole_state(step)
    step()
    assert same(before, whole_state(step))
    read = step.meter.read()
    assert (read["skipped"], read["unfinished"]) == (1, 1)
    assert all(math.isfinite(number) for number in read.values())


@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_a_gradient_that_is_not_finite_is_skipped_and_counted(optimiser, poison):
    step = make_step(tiny(optimiser=optimiser))
    step()
    before, usual = whole_state(step), step.norm_average.clone()
    handles = [
        parameter.register_hook(lambda gradient: torch.full_like(gradient, poison))
        for parameter in (next(step.policy.parameters()), step.policy.pointer.weight)
    ]
    step()
    assert same(before, whole_state(step))
    assert torch.equal(step.norm_average, usual)
    for handle in handles:
        handle.remove()
    step()
    assert not same(before, whole_state(step)), "the step after it must work again"
    read = step.meter.read()
    assert (read["steps"], read["skipped"], read["unfinished"]) == (3, 1, 0)
    assert all(math.isfinite(number) for number in read.values())


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_an_exploding_gradient_is_skipped_and_moves_the_usual_norm_as_far_as_it_may_go(optimiser):
    step = make_step(tiny(explosion=30.0, optimiser=optimiser))
    step()
    usual = step.norm_average.clone()
    before = whole_state(step)
    before[0]["usual"] = usual * (1 + 0.01 * 29)
    parameter = next(step.policy.parameters())
    handle = parameter.register_hook(lambda gradient: gradient + 1000 * usual)
    step()
    torch.testing.assert_close(step.norm_average, before[0]["usual"])
    before[0]["usual"] = step.norm_average.clone()
    assert same(before, whole_state(step))
    handle.remove()
    step()
    assert not same(before, whole_state(step))
    assert step.meter.read()["skipped"] == 1


def test_gradients_that_stay_large_become_the_usual_ones():
    step = make_step(tiny(explosion=30.0))
    step()
    step.norm_average.div_(1e4)  # as after a first gradient that was nearly nothing
    for _ in range(60):
        step()
    assert 1 < step.meter.read()["skipped"] < 40


def test_a_critic_that_is_not_a_number_is_a_wild_step_and_no_unfinished_rollout():
    config = tiny(baseline="critic", solutions=1)
    critic = CriticBaseline(get(config.problem).feature_dims, config.width, config.heads, config.hidden, config.norm)
    with torch.no_grad():
        critic.estimate[2].bias.fill_(float("nan"))
    step = make_step(config, critic)
    step()
    read = step.meter.read()
    assert (read["skipped"], read["unfinished"]) == (1, 0)


def test_the_gradient_is_clipped_to_its_norm():
    step = make_step(tiny(gradient_norm=1e-3))
    step()
    norm = torch.stack([p.grad.norm() for p in step.parameters if p.grad is not None]).norm()
    assert norm.item() == pytest.approx(1e-3, rel=1e-3)
    assert step.meter.read()["gradient_norm"] > 1e-2, "the norm before clipping is reported"
