"""How a run is judged while it trains: greedy costs of the paper's validation instances, and whether passes agree."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from routelearn.decoding.decode import decode
from routelearn.decoding.rollout import rollout
from routelearn.evaluation.evaluate import paired_gap
from routelearn.problems.base import NumpyRng, Problem, take, to_device, to_single
from routelearn.runtime.compiling import autocast
from routelearn.training.config import TrainConfig


def validation_set(problem: Problem, config: TrainConfig, n: int, device: torch.device) -> Any:
    """The first instances of the paper's validation set (its draws are made for 10,000 at once)."""
    count = max(10_000, config.validation_instances)
    x = to_single(problem.sample(NumpyRng(config.validation_seed), count, n))
    return to_device(take(x, slice(0, config.validation_instances)), device)


def settling_set(problem: Problem, config: TrainConfig, device: torch.device) -> list[Any]:
    """Instances of every size to take statistics from, apart from those that train and those that judge."""
    rng = NumpyRng((config.seed + 104_729) % 2**32)  # with the default seed itself these would be the test set's first
    return [to_device(to_single(problem.sample(rng, 512, n)), device) for n in sorted(set(config.sizes))]


@contextlib.contextmanager
def evaluating(policy: Any) -> Iterator[None]:
    """The policy in evaluation mode, and back in its own afterwards."""
    training = policy.training
    policy.eval()
    try:
        yield
    finally:
        policy.train(training)


@torch.no_grad()
def settle(problem: Problem, policy: Any, instances: list[Any], precision: str) -> None:
    """Take running statistics anew, from these instances and for the weights as they are.

    Those that training leaves average over steps whose weights were others: far off at a high rate (docs/training.md).
    Wu and Johnson, Rethinking "Batch" in BatchNorm, 2021, section 3. Nothing happens to a policy without any.
    """
    norms = [module for module in policy.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta, training = [norm.momentum for norm in norms], policy.training
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # an average in which every batch counts alike
    policy.train()
    for x in instances:
        with autocast(x.xy.device, precision):
            policy.encode(problem.features(x))
    policy.train(training)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum


def validate(problem: Problem, policy: Any, x: Any, precision: str) -> Tensor:
    """Greedy costs [B] in evaluation mode."""
    with evaluating(policy):
        return decode(problem, policy, x, "greedy", precision=precision).cost


@torch.no_grad()
def mismatch(problem: Problem, policy: Any, x: Any, config: TrainConfig, precision: str) -> float:
    """Mean distance between a tour's log-probability when drawn and when its record is scored from nothing.

    It draws as training does, but not from training's stream of random numbers.
    """
    few, device = take(x, slice(0, 64)), x.xy.device
    apart = torch.random.fork_rng([device] if device.type == "cuda" else [])
    with evaluating(policy), apart, autocast(device, precision):
        cache = policy.encode(problem.features(few))
        rolled = rollout(
            problem, policy, cache, few, solutions=config.solutions, steps=problem.max_steps(few), temperature=1.0,
            record=True,
        )  # fmt: skip
        assert rolled.trajectory is not None
        scored = policy.score(cache, rolled.trajectory._replace(kept=())).sum(-1)
    return float((scored - rolled.log_prob).abs().mean())


def gaps(costs: dict[int, Tensor], reference: dict[int, Tensor]) -> dict[str, float]:
    """Per size, the paired gap to reference costs, of as many instances as there are any for."""
    known = {n: reference[n] for n in costs if n in reference}
    return {str(n): paired_gap(costs[n][: len(theirs)], theirs)[0] for n, theirs in known.items()}
