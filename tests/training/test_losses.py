"""Every loss against values and gradients worked out by hand, in a step, and in a run of its own."""

from __future__ import annotations

import copy
import math
from itertools import combinations

import pytest
import torch
from train_cases import make_step, run, tiny

from routelearn.decoding.rollout import Live, begin, look
from routelearn.errors import InputError
from routelearn.problems.base import closed_length
from routelearn.training import step as step_module
from routelearn.training.losses import (
    LOSSES,
    BestOf,
    EntropyBonus,
    LeaderReward,
    Loss,
    PolicyGradient,
    Preference,
    QLearning,
    Scored,
)
from routelearn.training.losses.base import Values

COST = torch.tensor([[3.0, 5.0]])


def in_steps(*totals):
    """Log-probabilities [1, S, 2] of two steps with these sums, with gradients."""
    total = torch.tensor([totals])
    return torch.stack((0.25 * total, 0.75 * total), -1).requires_grad_()


def test_the_policy_gradient_by_hand():
    log_prob = in_steps(-2.0, -1.0)
    loss = PolicyGradient()(Scored(COST, torch.tensor([[4.0]]), log_prob, None))
    assert loss.item() == pytest.approx((2.0 - 1.0) / 2)
    loss.backward()
    assert log_prob.grad.tolist() == [[[-0.5, -0.5], [0.5, 0.5]]]  # (L - b) / (B S) at every step


def test_the_entropy_bonus_by_hand():
    """Of four steps one left no choice: the mean is over three."""
    log_prob = in_steps(-2.0, -1.0)
    entropy = torch.tensor([[[0.5, 0.0], [1.0, 0.3]]], requires_grad=True)
    loss = EntropyBonus(entropy_weight=0.2)(Scored(COST, torch.tensor([[4.0]]), log_prob, entropy))
    assert loss.item() == pytest.approx(0.5 - 0.2 * 1.8 / 3)
    loss.backward()
    assert log_prob.grad.tolist() == [[[-0.5, -0.5], [0.5, 0.5]]]
    assert entropy.grad.flatten().tolist() == pytest.approx([-0.2 / 3] * 4)


def test_the_entropy_bonus_without_any_choice_is_the_policy_gradient():
    scored = Scored(COST, torch.tensor(4.0), in_steps(-2.0, -1.0), torch.zeros(1, 2, 2))
    assert EntropyBonus()(scored).item() == PolicyGradient()(scored).item()


def test_the_preference_loss_by_hand():
    cost = torch.tensor([[3.0, 1.0, 1.0], [2.0, 4.0, 3.0]])
    log_prob = torch.tensor([[-1.0, -2.0, -4.0], [-3.0, -3.5, -1.0]])[..., None]

    def lose(gap):
        return math.log1p(math.exp(-0.5 * gap))

    # First row: solutions 1 and 2 beat 0, and tie with each other. Second: 0 beats 1 and 2, 2 beats 1.
    first = lose(-2 + 1) + lose(-4 + 1)
    second = lose(-3 + 3.5) + lose(-3 + 1) + lose(-1 + 3.5)
    loss = Preference(preference_scale=0.5)(Scored(cost, torch.zeros(()), log_prob, None))
    assert loss.item() == pytest.approx((first + second) / 2 / 3)


def test_the_preference_loss_raises_the_better_and_lowers_the_worse():
    log_prob = torch.tensor([[[-3.0], [-3.0]]], requires_grad=True)
    Preference(0.05)(Scored(torch.tensor([[1.0, 2.0]]), torch.zeros(()), log_prob, None)).backward()
    # One pair at even odds: slope of -log sigmoid at 0 is 1/2, times the scale, over S.
    assert log_prob.grad.flatten().tolist() == pytest.approx([-0.5 * 0.05 / 2, 0.5 * 0.05 / 2])


def test_the_leader_reward_by_hand():
    """Of two equally good solutions, one is the leader."""
    cost = torch.tensor([[3.0, 1.0, 5.0], [2.0, 2.0, 5.0]])
    log_prob = torch.zeros(2, 3, 2, requires_grad=True)
    LeaderReward(leader_weight=4.0)(Scored(cost, torch.tensor([[3.0], [3.0]]), log_prob, None)).backward()
    slopes = (6 * log_prob.grad[..., 0]).tolist()  # times B S
    assert slopes[0] == pytest.approx([0, -8, 2])
    assert sorted(slopes[1]) == pytest.approx([-4, -1, 2])
    assert torch.equal(log_prob.grad[..., 0], log_prob.grad[..., 1])


def test_a_leader_without_extra_weight_is_the_policy_gradient():
    scored = Scored(COST, torch.tensor(4.0), in_steps(-2.0, -1.0), None)
    assert LeaderReward(1.0)(scored).item() == PolicyGradient()(scored).item()


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_best_of_k_by_counting_all_groups(k):
    cost = torch.tensor([[3.0, 1.0, 7.0, 4.0, 4.5], [2.0, 2.0, 5.0, 1.0, 1.0]], dtype=torch.float64)
    log_prob = torch.zeros(2, 5, 2, dtype=torch.float64, requires_grad=True)
    BestOf(best_of=k)(Scored(cost, torch.zeros(()), log_prob, None)).backward()

    def mean_best(groups):
        return sum(min(group) for group in groups) / len(groups)

    for b, costs in enumerate(cost.tolist()):
        for i, own in enumerate(costs):
            others = costs[:i] + costs[i + 1 :]
            beside = [(own, *group) for group in combinations(others, k - 1)]
            advantage = mean_best(beside) - mean_best(list(combinations(others, k)))
            assert 10 * log_prob.grad[b, i, 0].item() == pytest.approx(advantage, abs=1e-12)


def test_the_best_of_one_is_the_policy_gradient_with_the_shared_baseline():
    cost, log_prob = torch.rand(4, 6), torch.rand(4, 6, 3, requires_grad=True)
    others = (cost.sum(1, keepdim=True) - cost) / 5
    (slope,) = torch.autograd.grad(PolicyGradient()(Scored(cost, others, log_prob, None)), log_prob)
    (own,) = torch.autograd.grad(BestOf(best_of=1)(Scored(cost, others, log_prob, None)), log_prob)
    assert torch.allclose(own, slope, atol=1e-6)


def test_q_learning_by_hand():
    """Three steps that add 1, 2 and 3; Q is minus a logit over the sharpness, 10."""
    chosen = torch.tensor([[[-55.0, -52.0, -28.0]]], requires_grad=True)
    values = Values(chosen, torch.tensor([[[-50.0, -45.0, 10.0]]]), torch.tensor([[[1.0, 2.0, 3.0]]]))
    scored = Scored(COST[:, :1], torch.tensor(0.0), chosen * 0, None, values)
    for returns, discount, targets in (
        (1, 1.0, [1 + 4.5, 2 + 0.0, 3]),  # nothing is left that costs less than nothing
        (2, 1.0, [1 + 2 + 0.0, 2 + 3, 3]),
        (3, 1.0, [6, 5, 3]),
        (1, 0.5, [1 + 2.25, 2, 3]),
        (5, 0.5, [1 + 1 + 0.75, 2 + 1.5, 3]),
    ):
        errors = [abs(q - target) for q, target in zip((5.5, 5.2, 2.8), targets, strict=True)]
        expected = sum(e - 0.05 if e >= 0.1 else e * e / 0.2 for e in errors) / 3
        loss = QLearning(returns, discount, sharpness=10.0)(scored)
        assert loss.item() == pytest.approx(expected, rel=1e-5), (returns, discount)
    (gradient,) = torch.autograd.grad(QLearning(3, sharpness=10.0)(scored), chosen)
    assert gradient.flatten().tolist() == pytest.approx([1 / 30, -1 / 30, 1 / 30])  # towards 6, 5 and 3


# ------------------------------------------------------------------------------------------- in a step


class Watched(EntropyBonus):
    """Keeps what it was given."""

    def __call__(self, scored):
        self.scored = scored
        return super().__call__(scored)


@pytest.mark.parametrize("multistart", [False, True])
@pytest.mark.parametrize(("name", "policy"), [("tsp", "attention"), ("cvrp", "attention"), ("tsp", "pointer")])
def test_a_step_gives_a_loss_the_entropies_of_its_record(monkeypatch, name, policy, multistart):
    config = tiny(problem=name, policy=policy, sizes=(6,), batch=(4,), solutions=3, multistart=multistart)
    step, rollout, seen = make_step(config, dtype=torch.float64), step_module.rollout, {}
    step.loss = Watched()

    def spy(problem, policy, cache, x, **options):
        seen.update(x=x, cache=cache, prefix=options["prefix"])
        seen["rolled"] = rollout(problem, policy, cache, x, **options)
        return seen["rolled"]

    monkeypatch.setattr(step_module, "rollout", spy)
    before = {key: value.clone() for key, value in step.policy.state_dict().items()}
    step()
    step.policy.load_state_dict(before)
    problem, x, cache, tour = step.problem, seen["x"], seen["cache"], seen["rolled"].tour
    live = begin(problem, step.policy, cache, x, 3)
    with torch.no_grad():
        for t in range(tour.shape[2]):
            logits, carry = step.policy.step(cache, live.carry, look(problem, x, live))
            for b in range(4):
                for s in range(3):
                    p = [q for q in logits[b, s].softmax(-1).tolist() if q > 0]
                    given = t == 0 and multistart and seen["prefix"][b, s, 0] >= 0
                    entropy = 0.0 if given else -sum(q * math.log(q) for q in p)
                    chosen = 0.0 if given else logits[b, s].log_softmax(-1)[tour[b, s, t]].item()
                    assert step.loss.scored.entropy[b, s, t].item() == pytest.approx(entropy, abs=1e-9)
                    assert step.loss.scored.log_prob[b, s, t].item() == pytest.approx(chosen, abs=1e-9)
            live = Live(problem.step(x, live.state, tour[..., t]), carry, tour[..., t])


@pytest.mark.parametrize("name", ["cvrp", "op-dist"])  # costs above and below zero
def test_a_relative_loss_sees_shares_of_an_instances_mean_cost(name):
    def scored(relative):
        torch.manual_seed(5)
        step = make_step(tiny(problem=name, batch=(4,), solutions=3, relative=relative), dtype=torch.float64)
        step.loss = Watched()
        step()
        return step.loss.scored

    plain, shares = scored(False), scored(True)
    mean = plain.cost.mean(1, keepdim=True).abs().clamp_min(1e-6)  # a prize of nothing stays nothing
    assert torch.allclose(shares.cost, plain.cost / mean)
    assert torch.allclose(shares.value, plain.value / mean)
    assert torch.equal(shares.log_prob, plain.log_prob)


def test_a_large_entropy_weight_keeps_the_policy_undecided(tmp_path):
    """Two runs from the same weights: the one with the bonus ends with more entropy."""

    def entropy_after(weight):
        torch.manual_seed(3)
        step = make_step(tiny(loss="entropy", entropy_weight=weight, batch=(32,), solutions=4, rate=3e-3))
        step.loss = Watched(weight)
        for _ in range(30):
            step()
        assert step.meter.read()["skipped"] == 0
        return step.loss.scored.entropy.mean().item()

    assert entropy_after(10.0) > entropy_after(1e-9) + 0.05


def test_the_gradient_of_q_learning_is_that_of_decoding_under_autograd():
    config = tiny(policy="dai", loss="q-learning", baseline="none", solutions=1, sizes=(7,), gradient_norm=1e9)
    step, seen = make_step(config, dtype=torch.float64), {}
    before, loss = copy.deepcopy(step.policy), step.loss

    class Spy(QLearning):
        def __call__(self, scored):
            seen.update(scored=scored)
            return loss(scored)

    step.loss, draw = Spy(), step.draw
    step.draw = lambda: (seen.setdefault("x", draw()[0]), None)
    step()
    values, x, problem = seen["scored"].values, seen["x"], step.problem
    cache = before.encode(problem.features(x))
    live, chosen, best, added, length = begin(problem, before, cache, x, 1), [], [], [], 0.0
    for t in range(7):
        logits, carry = before.step(cache, live.carry, look(problem, x, live))
        node = (logits - values.chosen[..., t, None]).abs().argmin(-1)  # what was taken then
        chosen.append(logits.gather(-1, node[..., None])[..., 0])
        best.append(logits.detach().amax(-1))
        live = Live(problem.step(x, live.state, node), carry, node)
        now = closed_length(x, before.joined(cache, carry, node)[0][..., : t + 1])
        added.append(now - length)
        length = now
    by_hand = Values(*(torch.stack(part, 2) for part in (chosen, best, added)))
    for mine, theirs in zip(values, by_hand, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(seen["scored"].cost, length)
    loss(seen["scored"]._replace(values=by_hand)).backward()
    for (name, mine), reference in zip(step.policy.named_parameters(), before.parameters(), strict=True):
        assert (mine.grad - reference.grad).abs().max() <= 1e-9, name


def test_entropies_are_computed_for_a_loss_that_needs_them_only(monkeypatch):
    step = make_step(tiny())
    monkeypatch.setattr("routelearn.training.step.entropies", lambda *_: pytest.fail("computed for nobody"))
    step()


# Q-learning takes hundreds of steps to help; its targets and its gradient are tested above.
@pytest.mark.parametrize("name", [name for name, one in LOSSES.items() if not (one.needs_tours or one.needs_values)])
def test_every_loss_trains(tmp_path, name):
    before = run(tiny(loss=name, epochs=1, rate=1e-12), tmp_path / "still").validation
    config = tiny(loss=name, solutions=8, batch=(32,), epochs=2, epoch_steps=20, rate=3e-3)
    assert sum(run(config, tmp_path / "moving").validation.values()) < sum(before.values())


# ------------------------------------------------------------------------------------------ at fault


class Broken(Loss):
    """Not a number from its third call on."""

    def __init__(self):
        self.calls = 0

    def __call__(self, scored):
        self.calls += 1
        loss = PolicyGradient()(scored)
        return loss * math.nan if self.calls >= 3 else loss


def test_a_loss_that_is_not_a_number_ends_the_run_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"^loss 'Broken' gave nan in step 3 \(n = 6\)") as caught:
        run(tiny(loss=Broken()), tmp_path)
    assert "\n" not in str(caught.value)


def test_a_policy_that_is_not_a_number_is_not_blamed_on_the_loss():
    step = make_step(tiny())
    with torch.no_grad():
        step.policy.context.weight.fill_(math.nan)
    step()
    read = step.meter.read()
    assert (read["skipped"], read["loss"]) == (1, 0)


@pytest.mark.parametrize(
    ("give", "words"),
    [
        (lambda scored: scored.log_prob.sum(-1), r"a tensor of shape \[8, 2\]"),
        (lambda scored: scored.cost.mean(), "a number without gradient"),
    ],
)
def test_a_loss_that_gives_something_else_is_told_what_it_must_be(give, words):
    step = make_step(tiny())
    step.loss = type("Odd", (Loss,), {"__call__": lambda self, scored: give(scored)})()
    with pytest.raises(InputError, match=f"loss 'reinforce' gave {words}; it must be one number made from log_prob"):
        step()
