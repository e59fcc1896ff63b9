"""The compiled scoring pass on a CPU gives the log-probabilities and gradients of the generic one."""

from __future__ import annotations

import pytest
import torch

from routelearn import policies, problems
from routelearn.decoding.rollout import rollout
from routelearn.policies.attention import AttentionPolicy, Cache
from routelearn.policies.base import Seen, Trajectory, shape_of
from routelearn.policies.kernels.cpu import score as cpu_score
from routelearn.problems import DeviceRng


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setattr(cpu_score, "WORTH", 0)


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def recorded(
    name: str, n: int, solutions: int, prefix: bool = False, heads: int = 2
) -> tuple[AttentionPolicy, Cache, Trajectory]:
    """A policy, a cache whose attention is far from uniform, and a rollout on it."""
    problem = problems.get(name)
    torch.manual_seed(n)
    options = {"width": 16 * heads, "heads": heads, "hidden": 32, "layers": 1}
    policy = policies.build("attention", shape_of(problem), options)
    x = problem.sample(DeviceRng(torch.device("cpu")), 5, n)
    with torch.no_grad():
        cache = Cache(*(2 * field for field in policy.encode(problem.features(x))))
        given = torch.full((5, solutions, 2), -1)
        given[:, ::2, 0] = 1  # every other solution has its first step forced
        rolled = rollout(
            problem, policy, cache, x, solutions=solutions, steps=problem.max_steps(x), temperature=1.0, record=True,
            prefix=given if prefix else None,
        )  # fmt: skip
    return policy, cache, rolled.trajectory


def gradients(policy: AttentionPolicy, cache: Cache, trajectory: Trajectory, dtype: torch.dtype) -> list[torch.Tensor]:
    """Scores, and the gradient of a sum of them with random factors in every field of the cache that is used."""
    leaves = Cache(*(field.to(dtype).requires_grad_() for field in cache))
    log_prob = policy.score(leaves, trajectory)
    torch.manual_seed(0)
    loss = (log_prob * torch.randn(log_prob.shape, dtype=torch.float64).to(dtype)).sum()
    return [log_prob.detach(), *torch.autograd.grad(loss, [leaf for leaf in leaves if leaf.numel()])]


def same(found: list[torch.Tensor], right: list[torch.Tensor]) -> None:
    for mine, other in zip(found, right, strict=True):
        assert mine.dtype == torch.float32
        assert (mine.double() - other).norm() <= 2e-5 * other.norm()


@pytest.mark.parametrize(("n", "solutions"), [(5, 1), (16, 4), (37, 1)])
@pytest.mark.parametrize("name", ["tsp", "cvrp", "sdvrp", "op-dist", "pctsp"])
def test_scores_and_gradients_equal_the_generic_ones_in_double_precision(name, n, solutions, threads):
    policy, cache, trajectory = recorded(name, n, solutions)
    same(gradients(policy, cache, trajectory, torch.float32), gradients(policy, cache, trajectory, torch.float64))


@pytest.mark.parametrize("name", ["tsp", "cvrp"])
def test_forced_steps_have_no_score_and_no_gradient(name):
    policy, cache, trajectory = recorded(name, 9, 3, prefix=True)
    assert trajectory.given is not None
    found = gradients(policy, cache, trajectory, torch.float32)
    assert (found[0][:, ::2, 0] == 0).all()
    assert (found[0][:, 1, 0] < 0).all()
    same(found, gradients(policy, cache, trajectory, torch.float64))


def test_more_context_and_step_features_than_any_problem_has():
    torch.manual_seed(1)
    batch, heads, nodes, queries, slots, measures, groups = 3, 1, 11, 18, 3, 2, 2
    shapes = (batch, nodes, heads, 16), (batch, nodes, heads, 16), (batch, nodes, 16), (batch, slots, nodes, 16)
    common = (batch, slots, 16), (measures, 16), (3, groups, 16)
    cache = Cache(*(torch.randn(shape) for shape in (*shapes, *common)))
    shape = type(shape_of(problems.get("tsp")))((2,), slots, measures, groups)
    policy = policies.build("attention", shape, {"width": 16, "heads": heads, "hidden": 16, "layers": 1})
    feasible = torch.rand(batch, 1, queries, nodes) < 0.5
    feasible[..., 4] = True
    seen = Seen(
        torch.randint(-1, nodes, (batch, 1, queries, slots)), torch.randn(batch, 1, queries, measures), feasible,
        torch.randn(batch, 1, queries, nodes, groups), torch.zeros(batch, 1, queries, dtype=torch.long), None,
    )  # fmt: skip
    trajectory = Trajectory(torch.full((batch, 1, queries), 4), seen)
    found = gradients(policy, cache, trajectory, torch.float32)
    wide = Trajectory(trajectory.actions, seen._replace(scalars=seen.scalars.double()))
    same(found, gradients(policy, cache, wide, torch.float64))


def test_large_scores_of_nodes_that_are_shut_do_not_matter():
    policy, cache, trajectory = recorded("tsp", 20, 1)
    cache = cache._replace(keys=cache.keys * 40)  # the weights of most nodes vanish
    found = gradients(policy, cache, trajectory, torch.float32)
    assert all(part.isfinite().all() for part in found)
    right = gradients(policy, cache, trajectory, torch.float64)
    assert (found[0].double() - right[0]).abs().max() < 1e-3


def test_a_node_that_was_not_feasible_is_impossible():
    policy, cache, trajectory = recorded("tsp", 20, 1)
    before = trajectory.actions.roll(1, -1)  # from the second step on, where the tour is already
    log_prob = policy.score(cache, trajectory._replace(actions=before))
    assert log_prob[..., 0].isfinite().all()
    assert (log_prob[..., 1:] == -torch.inf).all()


def test_bits_do_not_depend_on_the_number_of_threads():
    policy, cache, trajectory = recorded("sdvrp", 12, 2)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 2):
            torch.set_num_threads(threads)
            found.append(gradients(policy, cache, trajectory, torch.float32))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


def test_other_cases_take_the_generic_way(monkeypatch):
    _, cache, trajectory = recorded("tsp", 6, 1)
    pairs = trajectory.seen.feasible.numel()
    assert cpu_score.usable(cache, pairs)
    with torch.no_grad():
        assert not cpu_score.usable(cache, pairs)
    with torch.autocast("cpu", torch.bfloat16):
        assert not cpu_score.usable(cache, pairs)
    assert not cpu_score.usable(Cache(*(field.double() for field in cache)), pairs)
    assert not cpu_score.usable(cache._replace(keys=cache.keys.unflatten(3, (2, 8)).flatten(2, 3)), pairs)
    monkeypatch.setattr(cpu_score, "WORTH", pairs + 1)
    assert not cpu_score.usable(cache, pairs)
