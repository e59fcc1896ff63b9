"""Evaluating a policy: solutions by a decoding strategy, every one checked, and what they cost."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from routelearn.data.convert import for_policy
from routelearn.decoding import decode as decoding
from routelearn.decoding.rollout import advance
from routelearn.errors import InputError
from routelearn.evaluation.referee import double, judge
from routelearn.policies.base import shape_of
from routelearn.problems.base import Problem, Varies, take, to_device, to_single
from routelearn.runtime.compiling import compiled, compiled_encoder, resolve_precision

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST = 3600  # seconds of search an instance
WORTH_COMPILING = 100_000  # encoded instances from which compiling pays on a GPU: it takes half a minute


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What came of it. Costs as the problem states them: minimised, so prizes are negative."""

    tours: Tensor  # [B, 1, T]; a row of -1 where a solver found nothing
    costs: Tensor  # [B] float64; NaN where a solver gave no valid answer
    infeasible: int
    seconds: float
    decode: str  # the decoding strategy, or the solver
    device: str
    problem: str = ""
    nodes: int = 0  # of each instance

    @property
    def solved(self) -> Tensor:
        """The costs of the instances that have one."""
        return self.costs[~self.costs.isnan()]

    @property
    def mean(self) -> float:
        return float(self.solved.mean())

    @property
    def standard_error(self) -> float:
        return standard_error(self.solved)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean over instances of this kind."""
        reach = 1.96 * self.standard_error
        return self.mean - reach, self.mean + reach

    def __repr__(self) -> str:
        low, high = self.interval
        what = f"{len(self.costs)} instances of {self.problem}" if self.problem else f"{len(self.costs)} instances"
        return (
            f"Evaluation({self.decode}, {what}: mean cost {self.mean:.5f} (95 % interval {low:.5f} to {high:.5f}), "
            f"infeasible {self.infeasible}, {self.seconds:.2f} s on {self.device})"
        )

    def gap(self, reference: Tensor) -> tuple[float, float]:
        """`paired_gap` of these costs."""
        return paired_gap(self.costs, reference)

    def plot(self, path: str | Path | None = None, reference: Tensor | None = None) -> Figure | None:
        """A histogram of the costs, or of the gaps to `reference` costs [B] in per cent.

        A matplotlib figure; with a path, a file instead: .png, .svg or .pdf.
        """
        from routelearn.plots.costs import histogram
        from routelearn.plots.saving import drawn

        title = f"{self.problem or 'instances'}, {self.decode}: {len(self.costs)} instances"
        if reference is None:
            return drawn(path, lambda: histogram(self.costs, title))
        shares = 100 * gaps(self.costs, reference)
        return drawn(path, lambda: histogram(shares, title, "gap to the reference, %"))

    def to_dict(self) -> dict[str, Any]:
        return {
            "mean_cost": self.mean,
            "standard_error": self.standard_error,
            "costs": self.costs.tolist(),
            "infeasible": self.infeasible,
            "seconds": self.seconds,
            "decode": self.decode,
            "device": self.device,
        }


def standard_error(values: Tensor) -> float:
    """Of the mean."""
    return float(values.std() / math.sqrt(len(values))) if len(values) > 1 else 0.0


def paired_gap(costs: Tensor, reference: Tensor) -> tuple[float, float]:
    """Mean difference to reference costs, instance by instance, as a share of their mean; and its standard error.

    Positive is worse, of prizes (negative costs), too. Instances without a solution or a reference (NaN) are left out.
    """
    difference = gaps(costs, reference)
    difference = difference[~difference.isnan()]
    return float(difference.mean()), standard_error(difference) if len(difference) else math.nan


def means_by_variant(problem: Problem, x: Any, costs: Tensor) -> dict[str, float]:
    """Mean costs [B] of each variant among the instances, by name; empty where a problem has no variants."""
    if not isinstance(problem, Varies):
        return {}
    kinds = problem.variant_of(x).to(costs.device)
    return {problem.variant_names[kind]: float(costs[kinds == kind].nanmean()) for kind in kinds.unique().tolist()}


def gaps(costs: Tensor, reference: Tensor) -> Tensor:
    """[B]: each cost's difference to its reference cost as a share of their mean; NaN where one of them is missing."""
    reference = torch.as_tensor(reference)
    if len(reference) < len(costs):
        raise InputError(f"{len(reference)} reference costs for {len(costs)} instances; give one for each")
    costs, reference = costs.cpu().double(), reference[: len(costs)].cpu().double()
    difference = costs - reference
    return difference / reference[~difference.isnan()].mean().abs()


class Improvement(NamedTuple):
    """What follows decoding: local search, or the whole search for so many seconds an instance."""

    seconds: float | None


def parse(text: str) -> tuple[decoding.Strategy, Improvement | None]:
    """A decoding strategy, and the search that follows it: `augment:8+improve`, `greedy+improve:0.5`."""
    if not isinstance(text, str):
        raise InputError(f"the decoding strategy is {text!r}; give its name, such as 'augment:8'")
    base, plus, last = text.rpartition("+")
    search = re.fullmatch(r"improve(?::(\d*\.?\d+))?", last.strip())
    built = (base if plus else "greedy") if search else text
    if any(part.strip().partition(":")[0] == "improve" for part in built.split("+")):
        raise InputError(
            f"{text!r}: improve stands once, at the end: greedy+improve, or greedy+improve:0.5 for half a second"
        )
    if search is None:
        return decoding.parse(built), None
    if search[1] and not 0 < float(search[1]) <= LONGEST:
        raise InputError(f"{last.strip()!r}: the seconds must be above 0 and at most {LONGEST}")
    return decoding.parse(built), Improvement(float(search[1]) if search[1] else None)


class _Improving:
    """The search on all processors, for solutions as they come, in a thread of its own."""

    def __init__(
        self, problem: Problem, x: Any, seconds: float | None, seed: int, progress: Callable[[int], None] | None
    ):
        self.problem, self.x, self.seconds, self.seed, self.progress = problem, x, seconds, seed, progress
        self.pool = ThreadPoolExecutor(1)  # the search shares its rows among the processors itself
        self.parts: list[Future[Tensor]] = []

    def __enter__(self) -> _Improving:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)

    def hear(self, first: int, decoded: decoding.Decoded) -> None:
        from routelearn.search import improve

        tours = decoded.tour.cpu()
        x = take(self.x, slice(first, first + len(tours)))
        search = partial(improve, seconds=self.seconds, seed=self.seed, progress=self.progress)
        self.parts.append(self.pool.submit(search, self.problem, x, tours))

    def tours(self) -> Tensor:
        parts = [part.result() for part in self.parts]
        longest = max(part.shape[2] for part in parts)
        return torch.cat([decoding.pad_tour(self.problem, part, longest) for part in parts])


def evaluate(
    problem: Problem,
    policy: Any,
    x: Any,
    strategy: str = "greedy",
    *,
    device: torch.device,
    seed: int = 0,
    precision: str = "auto",
    compile: bool | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Solve every instance of x with the strategy and judge the answers on the CPU, in double precision.

    The policy sees instances of any units in those that it was trained in; costs are in their own.

    On a GPU, where there is enough work, encoder and step are compiled first; a CPU has compiled loops of its own.
    """
    parsed, improvement = parse(strategy)
    policy = policy.to(device)
    precision = resolve_precision(precision, device)
    work = x.xy.shape[0] * parsed.augment
    if compile is None:
        compile = work >= WORTH_COMPILING and device.type == "cuda"
    encode, step = policy.encode, advance
    if compile and policy.compiles:
        encode = compiled_encoder(policy, device)
        step = compiled(advance, device) if device.type == "cuda" else advance
    if getattr(policy, "shape", None) not in (None, shape_of(problem)):
        raise InputError(f"the policy was built for another problem than {problem.name}; its inputs are others")
    kind = next((p.dtype for p in policy.parameters()), torch.float32)
    shown = for_policy(problem, x)
    on_device = to_device(shown if kind == torch.float64 else to_single(shown), device)
    improves: contextlib.AbstractContextManager[_Improving | None] = contextlib.nullcontext()
    if improvement is not None:
        from routelearn.search import load_kernels

        load_kernels(problem, x)  # compiled or read from disk, which is nobody's time
        improves = _Improving(problem, x, improvement.seconds, seed, progress)
        progress = None  # the search, which is after it, tells of it
    started = time.perf_counter()
    with decoding.evaluating(policy), improves as improving:
        meanwhile = improving is not None and device.type == "cuda"  # a CPU has no processors to spare for it
        decoded = decoding.decode(
            problem, policy, on_device, parsed, seed=seed, precision=precision, encode=encode, step=step,
            progress=progress, found=improving.hear if improving is not None and meanwhile else None,
        )  # fmt: skip
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        tours = decoded.tour.cpu()
        if improving is not None:
            if not meanwhile:
                improving.hear(0, decoded)
            tours = improving.tours()
    seconds = time.perf_counter() - started
    valid = judge(problem, x, tours)
    costs = problem.cost(double(x), tours)[:, 0]  # of rule breakers too: `infeasible` counts them
    return Evaluation(
        tours, costs, int(valid.isnan().sum()), seconds, strategy, str(device), problem.name, x.xy.shape[1]
    )
