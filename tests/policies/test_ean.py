"""EAN beside its formulas written out, and what turning places onto their axes promises."""

from __future__ import annotations

import math

import pytest
import torch

from routelearn import policies
from routelearn.decoding.rollout import Live, begin, look, rollout
from routelearn.errors import InputError
from routelearn.policies.base import shape_of
from routelearn.policies.ean import upright
from routelearn.problems import DeviceRng, get

OPTIONS = {"width": 16, "heads": 2, "layers": 1, "hidden": 16, "norm": "layer", "query_width": 12, "pointer_width": 10}


@pytest.fixture
def parts():
    problem = get("tsp")
    policy = policies.build("ean", shape_of(problem), OPTIONS).double().eval()
    return problem, policy, problem.sample(DeviceRng(dtype=torch.float64), 3, 6)


@torch.no_grad()
def test_every_step_is_what_the_formulas_say(parts):
    """q = ReLU(W1 a(t) + W2 a(t-1) + W3 a(t-2)), u = v . tanh(W_ref a + W_q q), p = softmax(C tanh u)."""
    problem, policy, x = parts
    cache = policy.encode(problem.features(x))
    tour = rollout(problem, policy, cache, x, solutions=2, steps=6, temperature=1.0).tour
    h = policy.encoder((upright(x.xy),))
    queries = policy.recent.weight.split(12)
    pointer, live = policy.pointer, begin(problem, policy, cache, x, 2)
    for t in range(6):
        logits, carry = policy.step(cache, live.carry, look(problem, x, live))
        for b in range(3):
            for s in range(2):
                before = tour[b, s, :t].tolist()[::-1][:3]
                q = sum((w @ h[b, node] for w, node in zip(queries, before, strict=False)), torch.zeros(12)).relu()
                for node in range(6):
                    if node in tour[b, s, :t]:
                        assert logits[b, s, node] == -math.inf
                        continue
                    against = pointer.reference(h[b, node]) + pointer.query.weight @ q.double()
                    u = pointer.score.weight[0] @ torch.tanh(against)
                    assert float(logits[b, s, node]) == pytest.approx(10 * math.tanh(float(u)), abs=1e-12)
        live = Live(problem.step(x, live.state, tour[..., t]), carry, tour[..., t])


@pytest.mark.parametrize("angle", [0.3, 1.2])
def test_a_turned_and_moved_instance_looks_the_same(parts, angle):
    _, _, x = parts
    turn = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]).double()
    one, other = upright(x.xy), upright(x.xy @ turn + 0.2)
    half_turns = (one * other).sum((1, 2)).sign()[:, None, None]  # an axis has two directions
    torch.testing.assert_close(one, other * half_turns)


def test_places_stand_along_their_axes():
    xy = upright(torch.rand(5, 9, 2, dtype=torch.float64))
    torch.testing.assert_close(xy.mean(1), torch.zeros(5, 2, dtype=torch.float64))
    covariance = xy.transpose(1, 2) @ xy
    assert covariance[:, 0, 1].abs().max() < 1e-12
    assert (covariance[:, 0, 0] >= covariance[:, 1, 1]).all()


def test_it_is_not_built_for_problems_with_a_state():
    with pytest.raises(InputError, match="EAN reads one kind of node and no state"):
        policies.build("ean", shape_of(get("cvrp")), {})
