"""The logits of a whole record are those of its steps, and entropies of them are exact where nodes are infeasible."""

from __future__ import annotations

import math

import pytest
import torch

from routelearn import policies
from routelearn.decoding.rollout import Live, begin, look, rollout
from routelearn.policies.base import entropies, leave_out_given, picked, shape_of
from routelearn.problems import DeviceRng, get

LAYERS = {"width": 32, "heads": 2, "layers": 1, "hidden": 32, "norm": "layer"}
SMALL = {"attention": LAYERS, "ean": LAYERS}
SMALL |= {kind: {"width": 32} for kind in ("pointer", "nazari", "nowak", "dai")}
OTHERS = [("tsp", "pointer"), ("tsp", "ean"), ("cvrp", "nazari"), ("sdvrp", "nazari"), ("tsp", "nowak"), ("tsp", "dai")]


def recorded(name, kind, prefix=None):
    problem = get(name)
    policy = policies.build(kind, shape_of(problem), SMALL[kind]).double()
    x = problem.sample(DeviceRng(dtype=torch.float64), 5, 6)
    cache = policy.encode(problem.features(x))
    steps = problem.max_steps(x)
    return problem, policy, x, cache, rollout(
        problem, policy, cache, x, solutions=3, steps=steps, temperature=1.0, record=True, prefix=prefix
    )  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), [("tsp", "attention"), ("sdvrp", "attention"), *OTHERS])
def test_logits_of_a_record_are_those_of_its_steps(name, kind):
    problem, policy, x, cache, rolled = recorded(name, kind)
    logits = policy.recorded_logits(cache, rolled.trajectory)
    live = begin(problem, policy, cache, x, 3)
    for t in range(rolled.tour.shape[2]):
        one, carry = policy.step(cache, live.carry, look(problem, x, live))
        torch.testing.assert_close(logits[:, :, t], one)
        live = Live(problem.step(x, live.state, rolled.tour[..., t]), carry, rolled.tour[..., t])


@pytest.mark.parametrize(("name", "kind"), [("cvrp", "attention"), *OTHERS])
def test_what_is_picked_from_the_logits_is_what_score_gives(name, kind):
    _, policy, _, cache, rolled = recorded(name, kind, prefix=torch.full((5, 3, 1), 2))
    chosen = picked(policy.recorded_logits(cache, rolled.trajectory), rolled.tour)
    scored = policy.score(cache, rolled.trajectory)
    torch.testing.assert_close(leave_out_given(chosen, rolled.trajectory.given), scored)


def test_entropy_by_hand_and_zero_without_a_choice():
    logits = torch.tensor([[0.0, 0.0, -math.inf], [1.0, -math.inf, -math.inf], [0.0, math.log(3.0), -math.inf]])
    expected = [math.log(2), 0.0, -0.25 * math.log(0.25) - 0.75 * math.log(0.75)]
    assert entropies(logits).tolist() == pytest.approx(expected)
    assert entropies(logits)[1] == 0


def test_entropys_gradient_is_finite_beside_infeasible_nodes():
    logits = torch.tensor([[0.3, -0.2, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    masked = logits.masked_fill(torch.tensor([[False, False, True], [False, True, True]]), -math.inf)
    entropies(masked).sum().backward()
    assert logits.grad.isfinite().all()
    p = logits[0, :2].detach().softmax(0)
    entropy = -(p * p.log()).sum()
    torch.testing.assert_close(logits.grad[0, :2], -p * (p.log() + entropy))
    assert not logits.grad[1].any()
    assert not logits.grad[0, 2]
