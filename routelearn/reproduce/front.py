"""The front of time and cost: mean gap against seconds an instance, ours beside classical solvers.

Seconds on a CPU are those of one core: searches have one each, and a batch that all cores share counts for all of them.
On a GPU they are those of the machine, divided by the instances that it decodes at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from routelearn import models
from routelearn.data import generate
from routelearn.data.generate import of_set
from routelearn.errors import InputError
from routelearn.evaluation.evaluate import evaluate, gaps, standard_error
from routelearn.evaluation.referee import judge
from routelearn.plots.front import Point, front
from routelearn.plots.saving import save
from routelearn.problems.base import Problem, take
from routelearn.reproduce.running import Watch, silent
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
        if not 1 <= self.limit <= 10_000:
            raise InputError(f"a limit of {self.limit} instances; a test set has 1 to 10000")
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


class Sheet:
    """What is measured on one set, each as soon as it is there in a file: whoever stops goes on where it was."""

    def __init__(self, path: Path, settings: dict[str, Any]):
        self.path, self.rows = path, []
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            first, *lines = path.read_text().splitlines()
            if json.loads(first) != settings:
                raise InputError(f"{path}: measured with other settings ({first}); name another folder by --out")
            self.rows = [json.loads(line) for line in lines]
        else:
            path.write_text(json.dumps(settings) + "\n")

    def find(self, method: str, setting: str) -> Measured | None:
        for row in self.rows:
            if (row["method"], row["setting"]) == (method, setting):
                costs = torch.tensor([float("nan") if c is None else c for c in row["costs"]], dtype=torch.float64)
                return Measured(method, setting, row["seconds"], costs)
        return None

    def keep(self, one: Measured) -> Measured:
        costs = [None if cost != cost else cost for cost in one.costs.tolist()]
        row = {"method": one.method, "setting": one.setting, "seconds": one.seconds, "costs": costs}
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        return one


def measure(name: str, n: int, out: Path, options: Options, watch: Watch) -> tuple[list[Measured], list[str]]:
    """Every method on the first instances of one set, and what is missing here."""
    problem, limit = of_set(name), options.limit
    x = take(generate(name, n), slice(0, limit))
    devices = list(dict.fromkeys((torch.device("cpu"), options.device)))
    settings = {"set": name, "n": n, "limit": limit, "seed": options.seed, "cores": worker_count()}
    settings["models"] = [str(path) for path in options.model_files]
    sheet = Sheet(out / f"front-{name}{n}.jsonl", settings)
    own = [model for path in options.model_files if (model := models.load_model(path=path)).problem == problem.name]
    policy = (own[0] if own else models.load_model(problem.name, n)).policy
    found: list[Measured] = []
    missing: list[str] = []
    for device in devices:
        for strategy in options.strategies:
            method = method_of(strategy, device)
            one = sheet.find(method, strategy)
            if one is None:
                cores = worker_count() if device.type == "cpu" else 1
                evaluate(problem, policy, take(x, slice(0, 2)), strategy, device=device)  # compiled code is loaded
                with watch(f"{name}{n} {strategy} on {device.type}", limit) as progress:
                    made = evaluate(problem, policy, x, strategy, device=device, seed=options.seed, progress=progress)
                costs = judge(problem, x, made.tours)
                one = sheet.keep(Measured(method, strategy, made.seconds * cores / limit, costs))
            found.append(one)
    policy.cpu()
    for seconds in options.seconds:
        setting = f"{seconds:g} s"
        one = sheet.find(SEARCH, setting) or sheet.keep(_searched(problem, policy, x, seconds, setting, options, watch))
        found.append(one)
    for solver_name in SOLVERS:
        solver = get_solver(solver_name)
        if problem.name not in solver.problems:
            continue
        if reason := solver.unavailable():
            missing.append(f"not run: {solver_name}: {reason}")
            continue
        for seconds in options.seconds if solver.anytime or solver.exact else options.seconds[-1:]:
            setting = f"{seconds:g} s"
            one = sheet.find(solver_name, setting)
            if one is None:
                with watch(f"{name}{n} {solver_name}, {setting}", limit) as progress:
                    solved = solve_instances(problem, x, solver, seconds=seconds, seed=options.seed, progress=progress)
                spent = seconds if solver.anytime else solved.seconds * min(worker_count(), limit) / limit
                one = sheet.keep(Measured(solver_name, setting, spent, solved.costs))
            found.append(one)
    for one in found:
        if unsolved := int(one.costs.isnan().sum()):
            missing.append(f"{one.method}, {one.setting}: no valid answer to {unsolved} of {limit}, which are left out")
    return found, missing


def _searched(
    problem: Problem, policy: Any, x: Any, seconds: float, setting: str, options: Options, watch: Watch
) -> Measured:
    """The greedy solutions, then the search on one core for each instance."""
    from routelearn.search import improve

    began = time.perf_counter()
    greedy = evaluate(problem, policy, x, device=torch.device("cpu"))
    decoding = (time.perf_counter() - began) * worker_count() / options.limit
    with watch(f"{problem.name} policy and search, {setting}", options.limit) as progress:
        tours = improve(
            problem, x, greedy.tours, seconds=max(0.0, seconds - decoding), seed=options.seed, threads=worker_count()
        )
        progress(options.limit)
    return Measured(SEARCH, setting, max(seconds, decoding), judge(problem, x, tours))


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
