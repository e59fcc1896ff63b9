"""How a run is judged while it trains: greedy costs of the paper's validation instances, and whether passes agree."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from routelearn.decoding.decode import decode, evaluating
from routelearn.decoding.rollout import rollout
from routelearn.errors import Infeasible, InputError
from routelearn.evaluation.evaluate import means_by_variant, paired_gap
from routelearn.problems.base import NumpyRng, Problem, take, to_device, to_single
from routelearn.runtime.compiling import autocast
from routelearn.training import distributed

if TYPE_CHECKING:
    from routelearn.training.config import TrainConfig
    from routelearn.training.log import Tally
    from routelearn.training.state import RunState

# A run of so many minutes is validated so often at least, but not while validating would take a tenth of the time.
LOOKS, PATIENCE = 20, 10
CHECKED = 64  # solutions of a validation


def validation_set(problem: Problem, config: TrainConfig, n: int, device: torch.device) -> Any:
    """The first instances of the paper's validation set (its draws are made for 10,000 at once)."""
    count = max(10_000, config.validation_instances)
    x = to_single(problem.sample(NumpyRng(config.validation_seed), count, n))
    return to_device(take(x, slice(0, config.validation_instances)), device)


def settling_set(problem: Problem, config: TrainConfig, device: torch.device) -> list[Any]:
    """Instances of every size to take statistics from, apart from those that train and those that judge."""
    rng = NumpyRng((config.seed + 104_729) % 2**32)  # with the default seed itself these would be the test set's first
    return [to_device(to_single(problem.sample(rng, 512, n)), device) for n in sorted(set(config.sizes))]


@torch.no_grad()
def settle(problem: Problem, policy: Any, instances: list[Any], precision: str) -> None:
    """Take running statistics anew, from these instances and for the weights as they are.

    Those that training leaves average over steps with other weights: far off at a high rate (docs/notes/batch_norm.md).
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
    """Greedy costs [B] in evaluation mode. The first solutions are checked: a policy may forget the mask."""
    with evaluating(policy):
        found = decode(problem, policy, x, "greedy", precision=precision)
    try:
        problem.check(take(x, slice(0, CHECKED)), found.tour[:CHECKED])
    except Infeasible as broken:
        where = f"validation instance {broken.row}: {broken.reason}"
        raise InputError(
            f"the policy broke a rule ({where}); its logits must be -inf where seen.feasible is not"
        ) from None
    return found.cost


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


class Judge:
    """Validates a run: on which instances, and when next."""

    def __init__(self, state: RunState, reference: dict[int, Tensor]):
        self.problem, self.precision, self.reference = state.problem, state.precision, reference
        self.sets = {n: validation_set(state.problem, state.config, n, state.device) for n in state.config.sizes}
        self.settling = settling_set(state.problem, state.config, state.device)
        self.interval = state.limit / LOOKS
        self.step, self.due = -1, state.elapsed + self.interval  # validated last at this step; due again at this time

    def __call__(self, state: RunState, tally: Tally) -> dict[int, float]:
        """Mean costs by size of the policy as it is; the tally hears of them."""
        began = state.elapsed
        settle(self.problem, state.policy, self.settling, self.precision)
        costs, tally.gap, tally.by_variant = self.costs(state.policy)
        tally.validation = {str(n): cost for n, cost in costs.items()}
        tally.mismatch = max(
            mismatch(self.problem, state.policy, x, state.config, self.precision) for x in self.sets.values()
        )
        self.step, now = state.step, state.elapsed
        self.due = now + max(self.interval, PATIENCE * (now - began))
        return costs

    def costs(self, policy: Any) -> tuple[dict[int, float], dict[str, float], dict[str, dict[str, float]]]:
        """Mean costs by size, the same on all ranks; gaps to the reference; where instances vary, means by variant."""
        costs = {n: validate(self.problem, policy, x, self.precision) for n, x in self.sets.items()}
        means = distributed.largest(*(float(cost.mean()) for cost in costs.values()))
        by_variant = {str(n): means_by_variant(self.problem, self.sets[n], cost) for n, cost in costs.items()}
        by_variant = {n: found for n, found in by_variant.items() if len(found) > 1}
        return dict(zip(costs, means, strict=True)), gaps(costs, self.reference), by_variant

    def settled(self, policy: Any, weights: dict[str, Tensor]) -> Any:
        """A copy of the policy with these weights, fit to be judged."""
        made = copy.deepcopy(policy)  # building one would draw from the generator that training draws from
        made.load_state_dict(weights)
        settle(self.problem, made, self.settling, self.precision)
        return made


def better(costs: dict[int, float], best: dict[int, float]) -> bool:
    """Whether a validation beats the best one: by the mean over sizes of its change, each as a share of its own."""
    if not best:
        return all(map(math.isfinite, costs.values()))
    return sum((cost - best[n]) / max(abs(best[n]), 1e-9) for n, cost in costs.items()) < 0


def astray(costs: dict[int, float], best: dict[int, float], share: float) -> bool:
    """Whether some size is worse than in the best validation by more than this share, or has no cost at all."""
    return any(not cost <= best.get(n, math.inf) + share * abs(best.get(n, 0.0)) for n, cost in costs.items())
