"""A policy that says that it compiles is taken by torch.compile whole, without a break in its steps."""

from __future__ import annotations

import pytest
import torch

from routelearn import policies
from routelearn.decoding.rollout import advance, begin, look, rollout
from routelearn.policies.base import shape_of
from routelearn.policies.kernels.select import backend
from routelearn.problems import DeviceRng, get
from routelearn.problems.contract.host_sync import no_host_sync

CASES = [*(("tsp", kind) for kind in ("attention", "ean", "nowak", "dai")), ("cvrp", "nazari"), ("sdvrp", "nazari")]


def prepared(name, kind):
    problem = get(name)
    policy = policies.build(kind, shape_of(problem), {"width": 16}).eval()
    x = problem.sample(DeviceRng(), 3, 6)
    return problem, policy, x


@pytest.mark.parametrize(("name", "kind"), CASES)
@torch.no_grad()
def test_a_step_is_compiled_in_one_piece_and_chooses_the_same(name, kind):
    problem, policy, x = prepared(name, kind)
    assert policy.compiles
    compiled = torch.compile(advance, backend="aot_eager", fullgraph=True, dynamic=False)
    with backend("reference"):
        cache = policy.encode(problem.features(x))
        live = begin(problem, policy, cache, x, 2)
        seen = look(problem, x, live)
        for _ in range(3):
            _, choice, _ = compiled(problem, policy, cache, x, live, seen, 0.0, None, False)
            live, expected, seen = advance(problem, policy, cache, x, live, seen, 0.0, None, False)
            assert torch.equal(choice.nodes, expected.nodes)
            torch.testing.assert_close(choice.log_prob, expected.log_prob)


@pytest.mark.parametrize(("name", "kind"), [("tsp", "pointer"), *CASES[1:]])
def test_nothing_is_read_on_the_host_from_encoding_to_scoring(name, kind):
    problem, policy, x = prepared(name, kind)
    with no_host_sync():
        cache = policy.encode(problem.features(x))
        with torch.no_grad():
            rolled = rollout(problem, policy, cache, x, solutions=2, steps=8, temperature=1.0, record=True)
        policy.score(cache, rolled.trajectory).sum().backward()
