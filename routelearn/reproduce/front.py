"""The front of time and cost: mean gap against seconds an instance, ours beside classical solvers.

Seconds on a CPU are those of one core: searches have one each, and a batch that all cores share counts for all of them.
On a GPU they are those of the machine, divided by the instances that it decodes at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from routelearn import models
from routelearn.data import generate
from routelearn.data.generate import of_set
from routelearn.errors import InputError
from routelearn.evaluation.evaluate import gaps, standard_error
from routelearn.plots.front import Point, front
from routelearn.plots.saving import save
from routelearn.problems.base import take
from routelearn.reproduce.running import Watch, evaluated, silent
from routelearn.reproduce.tables import check_limit
from routelearn.runtime.compiling import best_device
from routelearn.solvers import get as get_solver
from routelearn.solvers.adapters.runner import worker_count
from routelearn.solvers.farm.running import solve_instances

SETS = {"tsp": 100, "cvrp": 100, "op-dist": 100, "pctsp": 100}
STRATEGIES = (
    "greedy", "augment:8", "augment:8+sample:16", "augment:8+sample:160", "augment:8+guided:4", "augment:8+active:20",
    "augment:8+active:100",
)  # fmt: skip
SOLVERS = ("lkh3", "elkai", "hygese", "pyvrp", "ortools", "scip")
SECONDS = (0.1, 1.0, 10.0)
CPU = torch.device("cpu")
POLICY, SEARCH, ACTIVE, GUIDED = "policy, rollouts", "policy and search", "policy, active search", "policy, guided beam"


@dataclass(frozen=True)
class Options:
    limit: int = 100  # the first instances of each test set
    sets: dict[str, int] = field(default_factory=lambda: dict(SETS))
    strategies: tuple[str, ...] = STRATEGIES
    seconds: tuple[float, ...] = SECONDS  # of searches
    model_files: tuple[Path, ...] = ()  # used before those that ship
    seed: int = 1234
    device: torch.device = field(default_factory=best_device)

    def __post_init__(self) -> None:
        check_limit(self.limit)
        if not self.seconds or not all(0 < seconds <= 3600 for seconds in self.seconds):
            raise InputError("seconds must be numbers above 0, at most 3600, joined by commas, such as 0.1,1,10")


@dataclass(frozen=True)
class Measured:
    """One method on one set."""

    method: str
    setting: str
    seconds: float  # an instance
    costs: Tensor  # [B]; NaN where there is no valid answer


def named_sets(text: str) -> dict[str, int]:
    """`tsp,cvrp` -> those sets of the figure."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in SETS:
            raise InputError(f"the front has no {name!r}; the choices are {', '.join(SETS)}")
    return {name: SETS[name] for name in names} or dict(SETS)


def method_of(strategy: str, device: torch.device) -> str:
    kind = ACTIVE if "active" in strategy else GUIDED if "guided" in strategy else POLICY
    return f"{kind}, on a GPU" if device.type == "cuda" else kind


def measure(name: str, n: int, out: Path, options: Options, watch: Watch) -> tuple[list[Measured], list[str]]:
    """Every method on the first instances of one set, and what is missing here."""
    problem, limit = of_set(name), options.limit
    x = take(generate(name, n), slice(0, limit))
    devices = list(dict.fromkeys((CPU, options.device)))
    workers = worker_count()
    cores = min(workers, limit)  # that work at once
    own = [model for path in options.model_files if (model := models.load_model(path=path)).problem == problem.name]
    model = own[0] if own else models.load_model(problem.name, n)
    found: list[Measured] = []
    missing: list[str] = []

    def stored(what: str) -> Path:
        """Each measurement has a file of its own: whoever stops goes on where it was."""
        return out / f"front-{name}{n}-{what.replace(':', '').replace(' ', '')}-{workers}workers.jsonl"

    planned = [(where, method_of(one, where), one, one) for where in devices for one in options.strategies]
    planned += [(CPU, SEARCH, f"{seconds:g} s", f"greedy+improve:{seconds:g}") for seconds in options.seconds]
    for device, method, setting, strategy in planned:
        made = evaluated(
            stored(f"{strategy}-{device.type}"), problem, x, model, strategy, device=device, seed=options.seed,
            precision="auto", watching=watch(f"{name}{n} {strategy} on {device.type}", limit),
            warm=strategy.partition("+improve")[0],
        )  # fmt: skip
        found.append(Measured(method, setting, made.seconds * (cores if device == CPU else 1) / limit, made.costs))
    for solver_name in SOLVERS:
        solver = get_solver(solver_name)
        if problem.name not in solver.problems:
            continue
        if reason := solver.unavailable():
            missing.append(f"not run: {solver_name}: {reason}")
            continue
        for seconds in options.seconds if solver.anytime or solver.exact else options.seconds[-1:]:
            setting = f"{seconds:g} s"
            with watch(f"{name}{n} {solver_name}, {setting}", limit) as progress:
                solved = solve_instances(
                    problem, x, solver, seconds=seconds, seed=options.seed, store=stored(f"{solver_name}-{setting}"),
                    progress=progress,
                )  # fmt: skip
            spent = seconds if solver.anytime else solved.seconds * cores / limit
            found.append(Measured(solver_name, setting, spent, solved.costs))
    for one in found:
        if unsolved := int(one.costs.isnan().sum()):
            missing.append(f"{one.method}, {one.setting}: no valid answer to {unsolved} of {limit}, which are left out")
    return found, missing


def points_of(found: Sequence[Measured]) -> list[Point]:
    """Gaps to the cheapest solution of each instance that any method found."""
    stacked = torch.stack([one.costs for one in found])
    best = stacked.nan_to_num(nan=torch.inf).amin(0)
    points = []
    for one in found:
        known = gaps(one.costs, best)
        known = 100 * known[~known.isnan()]
        if len(known):
            cost = float(one.costs[~one.costs.isnan()].mean())
            error = standard_error(known)
            points.append(Point(one.method, one.setting, one.seconds, cost, float(known.mean()), error))
    return points


def reproduce_front(out: Path, options: Options, watch: Watch = silent) -> list[Path]:
    """front.md, front.png and front.svg in the folder, made from what is stored there and what is not yet."""
    panels: dict[str, list[Point]] = {}
    notes: list[str] = []
    for name, n in options.sets.items():
        found, missing = measure(name, n, out, options, watch)
        panels[f"{name}, n = {n}"] = points_of(found)
        notes += [f"{name}: {line}" for line in missing]
    lines = [
        f"First {options.limit} test instances of each set. Gap to the best solution that any of these methods found, "
        "standard error in brackets. Seconds are of one core, or of a GPU.\n",
    ]
    for panel, points in panels.items():
        lines.append(f"| {panel} | | seconds an instance | mean cost | gap |\n|---|---|---|---|---|")
        for point in sorted(points, key=lambda point: point.seconds):
            gap = f"{point.gap:.3f} % ({point.error:.3f})"
            lines.append(f"| {point.method} | {point.setting} | {point.seconds:.2g} | {point.cost:.4f} | {gap} |")
        lines.append("")
    lines += [f"- {note}" for note in notes]
    table = out / "front.md"
    table.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    title = f"First {options.limit} test instances, gap to the best found"
    return [table, *save(front(panels, title), out / "front")]
