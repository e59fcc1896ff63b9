"""The two-pass step's gradient against decoding under autograd, one step after another, in double precision."""

from __future__ import annotations

import copy

import pytest
import torch
from train_cases import make_step, tiny

from routelearn.decoding.rollout import Live, begin, look
from routelearn.problems import PROBLEMS
from routelearn.training import step as step_module

BATCH, SIZE, SOLUTIONS = 5, 7, 3
TOLERANCE = 1e-9


def step_by_step(problem, policy, x, tour, prefix):
    """Log-probability [B, S] of the tours, decoded under autograd; forced first nodes are no decision."""
    cache = policy.encode(problem.features(x))
    live, total = begin(problem, policy, cache, x, tour.shape[1]), 0.0
    for t in range(tour.shape[2]):
        logits, carry = policy.step(cache, live.carry, look(problem, x, live))
        log_prob = logits.log_softmax(-1).gather(-1, tour[..., t, None])[..., 0]
        live = Live(problem.step(x, live.state, tour[..., t]), carry, tour[..., t])
        given = prefix is not None and t < prefix.shape[2]
        total = total + (torch.where(prefix[..., t] >= 0, 0.0, log_prob) if given else log_prob)
    return total


def check_gradient(monkeypatch, size=SIZE, **changes):
    config = tiny(sizes=(size,), batch=(BATCH,), solutions=SOLUTIONS, gradient_norm=1e9, **changes)
    step = make_step(config, dtype=torch.float64)
    before, seen = copy.deepcopy(step.policy), {}
    rollout = step_module.rollout

    def spy(problem, policy, cache, x, **options):
        rolled = rollout(problem, policy, cache, x, **options)
        seen.update(x=x, tour=rolled.tour, prefix=options["prefix"])
        return rolled

    monkeypatch.setattr(step_module, "rollout", spy)
    step()
    x, tour, prefix = seen["x"], seen["tour"], seen["prefix"]
    assert (prefix is not None) == config.multistart
    step.problem.check(x, tour)

    cost = step.problem.cost(x, tour)
    others = (cost.sum(1, keepdim=True) - cost) / (SOLUTIONS - 1)
    log_prob = step_by_step(step.problem, before, x, tour, prefix)
    ((cost - others) * log_prob).mean().backward()

    largest = 0.0
    for (name, mine), reference in zip(step.policy.named_parameters(), before.parameters(), strict=True):
        if reference.grad is None:
            assert mine.grad is None or not mine.grad.any(), f"{name} has no gradient in the reference"
            continue
        assert (mine.grad - reference.grad).abs().max() <= TOLERANCE, name
        largest = max(largest, float(reference.grad.abs().max()))
    assert largest > 1e-3, "the comparison would pass for no gradient at all"
    for mine, reference in zip(step.policy.buffers(), before.buffers(), strict=True):
        torch.testing.assert_close(mine, reference)  # running statistics saw the batch exactly once


@pytest.mark.parametrize("multistart", [False, True])
@pytest.mark.parametrize("name", list(PROBLEMS))
def test_gradient_of_the_attention_policy_is_that_of_decoding_under_autograd(monkeypatch, name, multistart):
    check_gradient(monkeypatch, problem=name, multistart=multistart)


@pytest.mark.parametrize("norm", ["batch", "layer", "rms"])
@pytest.mark.parametrize("name", ["tsp", "sdvrp"])
def test_gradient_is_exact_under_every_normalisation(monkeypatch, name, norm):
    check_gradient(monkeypatch, problem=name, norm=norm)


@pytest.mark.parametrize("multistart", [False, True])
@pytest.mark.parametrize(
    ("policy", "name"),
    [
        *((kind, "tsp") for kind in ("pointer", "ean", "nazari", "nowak", "dai")),
        *(("nazari", name) for name in ("cvrp", "sdvrp")),
    ],
)
def test_gradient_of_the_other_policies_is_that_of_decoding_under_autograd(monkeypatch, policy, name, multistart):
    size = 9 if policy == "dai" else SIZE  # of few nodes every order of insertion gives the same tour
    check_gradient(monkeypatch, size, policy=policy, problem=name, multistart=multistart)


def test_gradient_is_exact_with_messages_from_neighbours_only(monkeypatch):
    check_gradient(monkeypatch, neighbours=3)
