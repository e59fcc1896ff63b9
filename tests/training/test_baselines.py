"""Every baseline's value and loss against cases worked out by hand, and the t-test against scipy's."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from train_cases import CPU, make_step, parts_of, tiny

from routelearn import policies
from routelearn.decoding.decode import decode
from routelearn.policies.base import shape_of
from routelearn.problems import DeviceRng, get
from routelearn.problems.base import take
from routelearn.training.baselines import (
    CriticBaseline,
    ExponentialBaseline,
    NoBaseline,
    RolloutBaseline,
    SharedBaseline,
)
from routelearn.training.baselines.rollout import paired_p_value, student_tail
from routelearn.training.state import make_baseline

COST = torch.tensor([[1.0, 2.0, 6.0], [4.0, 4.0, 7.0]])


def test_no_baseline_is_zero():
    assert NoBaseline().value(None, COST).item() == 0
    assert NoBaseline().loss(None, COST) is None


def test_exponential_average_starts_at_the_first_cost_and_then_decays():
    baseline = ExponentialBaseline(0.8)
    assert baseline.value(None, COST).item() == pytest.approx(4.0)  # mean of the batch
    assert baseline.value(None, COST + 6).item() == pytest.approx(0.8 * 4 + 0.2 * 10)
    assert baseline.value(None, COST - 4).item() == pytest.approx(0.8 * 5.2 + 0.2 * 0)


def test_value_of_the_exponential_average_does_not_change_behind_the_callers_back():
    baseline = ExponentialBaseline(0.5)
    first = baseline.value(None, COST)
    baseline.value(None, COST + 100)
    assert first.item() == 4.0


def test_shared_value_is_the_mean_of_the_other_solutions():
    value = SharedBaseline().value(None, COST)
    torch.testing.assert_close(value, torch.tensor([[4.0, 3.5, 1.5], [5.5, 5.5, 4.0]]))
    torch.testing.assert_close((COST - value).mean(1), torch.zeros(2))
    changed = COST.clone()
    changed[0, 1] = 50.0
    assert SharedBaseline().value(None, changed)[0, 1] == value[0, 1], "a solution's own cost moved its baseline"


# ------------------------------------------------------------------------------------------------ critic


@pytest.mark.parametrize("recurrent", [False, True])
def test_critic_learns_the_mean_squared_error_and_nothing_is_broadcast_over_the_batch(recurrent):
    problem = get("tsp")
    critic = CriticBaseline(problem.feature_dims, 32, 2, 32, "batch", recurrent)
    x = problem.sample(DeviceRng(), 4, 6)
    cost = torch.rand(4, 3)
    prepared = critic.prepare(x, problem.features(x))
    assert prepared.shape == (4, 1)
    value = critic.value(prepared, cost)
    assert not value.requires_grad
    assert (cost - value).shape == (4, 3)
    by_hand = sum((prepared[b, 0] - cost[b, s]) ** 2 for b in range(4) for s in range(3)) / 12
    loss = critic.loss(prepared, cost)
    torch.testing.assert_close(loss, by_hand)
    loss.backward()
    assert all(p.grad is not None for p in critic.parameters())


def test_critic_and_policy_learn_only_from_their_own_loss():
    config = tiny(baseline="critic", solutions=1, gradient_norm=1e9)
    problem = get("tsp")
    critic = CriticBaseline(problem.feature_dims, 32, 2, 32, "layer")
    step = make_step(config, critic, dtype=torch.float64)
    policy, twin, state = copy.deepcopy(step.policy), copy.deepcopy(critic), torch.get_rng_state()
    step()

    class Constant(NoBaseline):
        """Gives the critic's own values without a critic."""

        def value(self, prepared, cost):
            return values

    torch.set_rng_state(state)
    x = problem.sample(DeviceRng(CPU, torch.float64), config.batch_of(6), 6)
    prepared = twin.prepare(x, problem.features(x))
    values = prepared.detach()
    torch.set_rng_state(state)
    alone = make_step(config, Constant(), dtype=torch.float64)
    alone.policy.load_state_dict(policy.state_dict())
    torch.set_rng_state(state)
    costs = {}
    alone.cost = lambda x, tour: costs.setdefault("cost", problem.cost(x, tour))
    alone()
    for mine, reference in zip(step.policy.parameters(), alone.policy.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, reference.grad, rtol=0, atol=1e-12)
    twin.loss(prepared, costs["cost"]).backward()
    for mine, reference in zip(critic.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, reference.grad, rtol=0, atol=1e-12)


def test_critic_estimates_in_full_precision_under_autocast():
    problem = get("tsp")
    critic = CriticBaseline(problem.feature_dims, 32, 2, 32, "layer")
    x = problem.sample(DeviceRng(), 4, 6)
    with torch.autocast("cpu", torch.bfloat16):
        prepared = critic.prepare(x, problem.features(x))
    assert prepared.dtype == torch.float32
    assert (prepared != prepared.bfloat16().float()).any(), "the estimate was rounded to bfloat16"


# ----------------------------------------------------------------------------------------------- rollout


class Coin:
    """A stand-in for a policy whose costs a test chooses."""

    def __init__(self, cost):
        self.cost, self.training = cost, True
        self.weight = torch.tensor([cost])

    def requires_grad_(self, flag):
        return self

    def eval(self):
        self.training = False
        return self

    def train(self, mode):
        self.training = mode
        return self

    def state_dict(self):
        return {"weight": self.weight}


def coin_baseline(significance=0.05, noise=0.1):
    """A rollout baseline over `Coin`s; `drawn` lists the sets of evaluation instances asked for."""
    drawn = []

    def draw(which):
        drawn.append(which)
        return [torch.randn(50, generator=torch.Generator().manual_seed(which)) * noise]

    def evaluate(policy, x):
        assert not policy.training, "the policy is compared in evaluation mode"
        return (policy.weight + x * policy.weight)[:, None]

    def rollout_costs(policy, x):
        return policy.weight.expand(2, 1)

    # Modules hold modules only: a Coin is kept as a plain attribute.
    baseline = RolloutBaseline(Coin(5.0), rollout_costs, evaluate, draw, significance=significance)
    return baseline, drawn


def test_rollout_baseline_is_replaced_only_when_the_t_test_says_so():
    baseline, drawn = coin_baseline()
    assert baseline.end_epoch(Coin(5.5), 0) is None
    assert baseline.end_epoch(Coin(5.0), 1) is None
    assert (baseline.frozen.weight.item(), drawn) == (5.0, [0])
    candidate = Coin(4.0)
    assert "replaced" in baseline.end_epoch(candidate, 2)
    assert candidate.training, "the policy was left in evaluation mode"
    assert baseline.frozen.weight.item() == 4.0
    assert drawn == [0, 1], "a new policy is tested on fresh instances"
    assert baseline.end_epoch(Coin(4.5), 3) is None
    assert drawn == [0, 1]


def test_rollout_baseline_is_not_replaced_by_luck():
    """The candidate is better on average, but by less than chance explains."""
    difference = torch.randn(50, generator=torch.Generator().manual_seed(3))
    difference = difference - difference.mean() - 0.1  # t = -0.7
    baseline = RolloutBaseline(
        Coin(0.0), lambda p, x: x, lambda p, x: (x * p.weight)[:, None], lambda which: [difference], significance=0.05
    )
    assert baseline.end_epoch(Coin(1.0), 0) is None
    baseline.significance = 0.5
    assert baseline.end_epoch(Coin(1.0), 0) is not None


def test_rollout_baseline_warms_up_with_the_exponential_average():
    baseline, _ = coin_baseline()
    assert baseline.phase(0) != baseline.phase(1)
    baseline.phase(0)
    assert baseline.prepare(None, ()) is None
    assert baseline.value(None, COST).item() == pytest.approx(4.0)
    assert baseline.value(None, COST + 6).item() == pytest.approx(5.2)
    baseline.phase(1)
    prepared = baseline.prepare(None, ())
    assert baseline.value(prepared, COST).tolist() == [[5.0], [5.0]]


@pytest.mark.parametrize("name", ["tsp", "cvrp", "op-dist"])
def test_rollout_value_is_the_greedy_cost_of_the_frozen_policy(name):
    problem, config = get(name), tiny(problem=name, sizes=(7,), baseline="rollout", norm="batch")
    policy = policies.build("attention", shape_of(problem), config.policy_options())
    bound = {7: problem.max_steps(problem.sample(DeviceRng(), 64, 7))}
    baseline = make_baseline(parts_of(config, policy, bound))
    frozen = copy.deepcopy(policy).eval()
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(torch.randn_like(parameter))  # training goes on; the frozen one stays
    baseline.phase(1)
    x = problem.sample(DeviceRng(), 9, 7)
    value = baseline.value(baseline.prepare(x, problem.features(x)), torch.zeros(9, 2))
    assert value.shape == (9, 1)
    assert not value.requires_grad
    one_by_one = [decode(problem, frozen, take(x, slice(i, i + 1)), "greedy").cost for i in range(9)]
    torch.testing.assert_close(value[:, 0], torch.cat(one_by_one), rtol=0, atol=1e-5)


def test_rollout_value_is_infinite_where_the_frozen_policy_does_not_finish():
    problem, config = get("cvrp"), tiny(problem="cvrp", sizes=(7,), baseline="rollout")
    policy = policies.build("attention", shape_of(problem), config.policy_options())
    baseline = make_baseline(parts_of(config, policy, {7: 6}))
    baseline.phase(1)
    x = problem.sample(DeviceRng(), 5, 7)
    assert baseline.prepare(x, problem.features(x)).isinf().all()


# ------------------------------------------------------------------------------------------------ t-test


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 9, 30, 99, 500, 2000])
@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 1.645, 2.5, 4.0])
def test_student_tail_is_scipys(freedom, t):
    stats = pytest.importorskip("scipy.stats")
    assert student_tail(t, freedom) == pytest.approx(stats.t.sf(t, freedom), rel=1e-6, abs=1e-10)


def test_student_tail_of_thousands_is_normal_to_a_thousandth():
    stats = pytest.importorskip("scipy.stats")
    for t in (0.5, 1.645, 2.33):
        assert student_tail(t, 9999) == pytest.approx(stats.t.sf(t, 9999), rel=1e-3)
        assert student_tail(t, 2001) == pytest.approx(stats.t.sf(t, 2001), rel=5e-3)


@pytest.mark.parametrize("count", [2, 3, 10, 64, 1000, 10_000])
def test_p_value_is_scipys_one_sided_paired_t_test(count):
    stats = pytest.importorskip("scipy.stats")
    generator = torch.Generator().manual_seed(count)
    incumbent = torch.rand(count, generator=generator, dtype=torch.float64) * 3 + 4
    noise = torch.randn(count, generator=generator, dtype=torch.float64)
    noise = noise - noise.mean()
    for shift in (0.1, 1.0, 2.0):  # in standard errors
        candidate = incumbent + noise - shift * float(noise.std()) / math.sqrt(count)
        expected = stats.ttest_rel(candidate.numpy(), incumbent.numpy(), alternative="less").pvalue
        assert paired_p_value(candidate, incumbent) == pytest.approx(expected, rel=1e-3)
    worse = incumbent + noise + 0.1
    assert stats.ttest_rel(worse.numpy(), incumbent.numpy(), alternative="less").pvalue > 0.5
    assert paired_p_value(worse, incumbent) > 0.5


def test_p_value_of_a_certain_difference():
    costs = torch.tensor([4.0, 5.0, 6.0], dtype=torch.float64)
    assert paired_p_value(costs - 0.5, costs) == 0.0
    assert paired_p_value(costs, costs) == 1.0
    assert paired_p_value(costs + 0.5, costs) == 1.0
