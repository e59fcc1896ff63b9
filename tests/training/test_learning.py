"""Training learns: a minute's work in small."""

from __future__ import annotations

import pytest
import torch
from train_cases import CPU, run, tiny

from routelearn import policies, problems
from routelearn.models import model_file
from routelearn.policies.base import shape_of
from routelearn.training.validation import validate, validation_set


def learned(config, tmp_path):
    """Validation cost before and after."""
    problem, n = problems.get(config.problem), config.sizes[0]
    torch.manual_seed(config.seed)
    fresh = policies.build(config.policy, shape_of(problem), config.policy_options())
    x = validation_set(problem, config, n, CPU)
    before = float(validate(problem, fresh, x, "float32").mean())
    run(config, tmp_path)
    best = model_file.load(tmp_path / "best.safetensors").policy
    return before, float(validate(problem, best, x, "float32").mean())


def test_sixty_steps_of_tsp10_with_the_shared_baseline(tmp_path):
    config = tiny(sizes=(10,), solutions=8, batch=(64,), epochs=2, epoch_steps=30, rate=3e-3, validation_instances=200)
    before, after = learned(config, tmp_path)
    assert after < 0.9 * before
    assert after < 3.6  # the optimum is about 2.87


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({"baseline": "rollout", "solutions": 1, "norm": "batch", "batch": (256,)}, 0.9),
        ({"baseline": "critic", "solutions": 1, "norm": "batch", "batch": (256,)}, 0.95),
        ({"baseline": "exponential", "solutions": 1, "batch": (256,)}, 0.95),
        ({"loss": "preference", "solutions": 8, "batch": (64,)}, 0.9),
        ({"multistart": True, "solutions": 8, "batch": (64,)}, 0.9),
        ({"problem": "cvrp", "solutions": 8, "batch": (64,)}, 0.95),
        ({"problem": "op-dist", "solutions": 8, "batch": (64,)}, 1.3),  # a cost below 0: more of it is better
    ],
    ids=["rollout", "critic", "exponential", "preference", "multistart", "cvrp", "op-dist"],
)
def test_every_way_of_training_learns(tmp_path, changes, share):
    config = tiny(sizes=(10,), epochs=4, epoch_steps=30, rate=2e-3, validation_instances=200, **changes)
    before, after = learned(config, tmp_path)
    assert after < share * before
