"""The greedy rollout of the best policy so far (section 4, algorithm 1), after a warm-up epoch."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from routelearn.decoding.decode import evaluating
from routelearn.decoding.rollout import Advance, advance, rollout
from routelearn.problems.attributes import first_customer
from routelearn.problems.base import NumpyRng, Problem, to_device, to_single
from routelearn.runtime.compiling import compiled, compiled_encoder
from routelearn.training.baselines.base import Baseline
from routelearn.training.baselines.exponential import ExponentialBaseline
from routelearn.training.distributed import agree
from routelearn.training.making import made
from routelearn.training.validation import validate

GreedyCosts = Callable[[Any, Any], Tensor]  # policy, instances -> costs [B, 1], on the device, no gradient
Draw = Callable[[int], list[Any]]  # the k-th set of evaluation instances, one batch per size


class RolloutBaseline(Baseline):
    """b(s) is the cost of the frozen policy's greedy solution of s.

    After an epoch the frozen policy is replaced if the current one is better by a one-sided paired t-test
    on held-aside instances, which are then drawn anew. Until `warmup_epochs` have passed, an exponential
    average stands in.
    """

    def __init__(
        self,
        policy: Any,
        rollout_costs: GreedyCosts,
        evaluate_costs: GreedyCosts,
        draw: Draw,
        *,
        beta: float = 0.8,
        warmup_epochs: int = 1,
        significance: float = 0.05,
    ):
        super().__init__()
        self.frozen = copy.deepcopy(policy).requires_grad_(False).eval()
        self.warmup = ExponentialBaseline(beta)
        self.warmup_epochs, self.significance = warmup_epochs, significance
        self.rollout_costs = rollout_costs  # inside a training step: a fixed number of steps
        self.evaluate_costs = evaluate_costs  # after an epoch: as many steps as it takes
        self.draw = draw
        self.epoch = 0
        self.replaced = 0  # times; also which set of evaluation instances is in use
        self.instances = draw(0)
        self.frozen_costs: list[Tensor] | None = None

    @classmethod
    def make(cls, run: Any) -> RolloutBaseline:
        config, problem, device = run.config, run.problem, run.device
        compiles = run.compile and run.policy.compiles
        step = compiled(advance, device) if compiles else advance
        encoders: dict[int, Any] = {}

        def rollout_costs(frozen: Any, x: Any) -> Tensor:
            if id(frozen) not in encoders:
                encoders[id(frozen)] = compiled_encoder(frozen, device) if compiles else frozen.encode
            bound = run.rollout_steps[x.xy.shape[1] - first_customer(problem, x)]
            return truncated_greedy_costs(problem, frozen, x, bound, encode=encoders[id(frozen)], step=step)

        def evaluate_costs(candidate: Any, x: Any) -> Tensor:
            return validate(problem, candidate, x, run.precision)[:, None]

        def draw(which: int) -> list[Any]:
            sizes = dict.fromkeys(config.sizes)  # each once, however often its turn comes
            share = -(-config.evaluation_instances // len(sizes))
            seed = (config.seed + 7_919 * (which + 1)) % 2**32
            return [to_device(to_single(problem.sample(NumpyRng(seed), share, n)), device) for n in sizes]

        return made(
            cls, config, policy=run.policy, rollout_costs=rollout_costs, evaluate_costs=evaluate_costs, draw=draw
        )

    def phase(self, epoch: int) -> str:
        self.epoch = epoch
        return "warm-up" if epoch < self.warmup_epochs else "rollout"

    def prepare(self, x: Any, features: tuple[Tensor, ...]) -> Tensor | None:
        return None if self.epoch < self.warmup_epochs else self.rollout_costs(self.frozen, x)

    def value(self, prepared: Tensor | None, cost: Tensor) -> Tensor:
        return self.warmup.value(None, cost) if prepared is None else prepared

    def end_epoch(self, policy: Any, epoch: int) -> str | None:
        if self.frozen_costs is None:
            self.frozen_costs = [self.evaluate_costs(self.frozen, x)[:, 0] for x in self.instances]
        with evaluating(policy):
            now = [self.evaluate_costs(policy, x)[:, 0] for x in self.instances]
        p_value = paired_p_value(torch.cat(now).double(), torch.cat(self.frozen_costs).double())
        if not agree(p_value < self.significance):
            return None
        with torch.no_grad():
            for mine, theirs in zip(self.frozen.state_dict().values(), policy.state_dict().values(), strict=True):
                mine.copy_(theirs)  # in place: a captured graph reads these very tensors
        self.replaced += 1
        self.instances, self.frozen_costs = self.draw(self.replaced), None
        return f"baseline policy replaced (p = {p_value:.2g})"

    def get_extra_state(self) -> dict[str, int]:
        return {"epoch": self.epoch, "replaced": self.replaced}

    def set_extra_state(self, state: dict[str, int]) -> None:
        self.epoch, self.replaced = state["epoch"], state["replaced"]
        self.instances, self.frozen_costs = self.draw(self.replaced), None


def truncated_greedy_costs(
    problem: Problem, policy: Any, x: Any, steps: int, *, encode: Callable[..., Any], step: Advance
) -> Tensor:
    """Greedy costs [B, 1] within a fixed number of steps; infinite where a solution did not finish."""
    with torch.no_grad():
        rolled = rollout(problem, policy, encode(problem.features(x)), x, steps=steps, step=step)
        return torch.where(rolled.done, problem.cost(x, rolled.tour), torch.inf)


def paired_p_value(candidate: Tensor, incumbent: Tensor) -> float:
    """One-sided paired t-test that the candidate's costs are lower: the p-value. [M] each.

    With M in the thousands Student's t is normal to far below the precision that matters; for few
    instances the exact distribution is integrated.
    """
    difference = candidate - incumbent
    count = difference.numel()
    mean, deviation = float(difference.mean()), float(difference.std())
    if mean >= 0:
        return 1.0
    if deviation == 0:
        return 0.0
    return student_tail(-mean / (deviation / math.sqrt(count)), count - 1)


def student_tail(t: float, freedom: int) -> float:
    """P(T > t) for Student's t with `freedom` degrees of freedom, t >= 0.

    By the substitution tan(u) = x / sqrt(freedom) the density becomes cos(u)^(freedom - 1) on a finite
    interval, integrated by Simpson's rule.
    """
    if freedom > 2000:
        return 0.5 * math.erfc(t / math.sqrt(2))
    pieces = 4000
    low, high = math.atan(t / math.sqrt(freedom)), math.pi / 2
    width = (high - low) / pieces
    heights = [math.cos(low + i * width) ** (freedom - 1) for i in range(pieces)] + [0.0 ** (freedom - 1)]
    area = (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])) * width / 3
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(math.pi)
    return math.exp(log_scale) * area
