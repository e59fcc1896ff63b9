"""Reproduce the paper's figures: measure here what they show; plots/ draws them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from routelearn import models, problems
from routelearn.data import generate
from routelearn.data.generate import TEST_SEED
from routelearn.errors import InputError
from routelearn.evaluation.evaluate import evaluate
from routelearn.models.model_file import Model
from routelearn.plots.cvrp_examples import cvrp_examples
from routelearn.plots.generalisation import GENERAL, LEARNED, SEARCH, Series, generalisation
from routelearn.plots.learning_curves import Curve, learning_curves, rate_schedules, read_run
from routelearn.plots.saving import save
from routelearn.problems.base import take
from routelearn.reproduce import ablations
from routelearn.reproduce.ablations import Run
from routelearn.reproduce.running import Watch, silent
from routelearn.reproduce.tables import check_limit
from routelearn.solvers import get as get_solver
from routelearn.solvers.farm.running import solve_instances

GENERAL_SIZES = (5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 100, 125)
HEURISTICS = {
    "nearest-insertion": ("Nearest Insertion", GENERAL),
    "random-insertion": ("Random Insertion", GENERAL),
    "farthest-insertion": ("Farthest Insertion", GENERAL),
    "nearest-neighbour": ("Nearest Neighbor", GENERAL),
    "christofides+2opt": ("Christofides + 2OPT", SEARCH),
}
QUICK_SECONDS = 60.0  # constructions stop by themselves
EXAMPLES = 6
WITHOUT_MODEL = "random-savings+2opt"  # draws the CVRP examples where no model ships


@dataclass(frozen=True)
class Options:
    limit: int = 1_000  # test instances for each size of figure 5
    sizes: tuple[int, ...] = GENERAL_SIZES  # of figure 5
    model_files: tuple[Path, ...] = ()  # beside those that ship
    seed: int = 1234  # of solvers and sampling
    rate_sizes: tuple[int, ...] = (20, 50)  # of figure 6
    run_seeds: tuple[int, ...] = ablations.SEEDS  # of the training runs in figures 3 and 6

    def __post_init__(self) -> None:
        check_limit(self.limit)


@dataclass(frozen=True)
class Drawn:
    """What came of one figure: its files, or why there are none; `note` says what stands in for what."""

    name: str
    paths: list[Path]
    note: str = ""


def tsp_models(options: Options) -> dict[str, Model]:
    """Every TSP model that ships or was named, by label."""
    found = {
        name: models.load_model(path=name) for name, entry in models.shipped().items() if entry["problem"] == "tsp"
    }
    for path in options.model_files:
        model = models.load_model(path=path)
        if model.problem == "tsp":
            found[path.stem] = model
    return found


def generalisation_series(out: Path, options: Options, watch: Watch) -> tuple[list[Series], str]:
    """Gaps to optimal tours at every size: models by greedy decoding, and the constructions."""
    tsp, learned = problems.get("tsp"), tsp_models(options)
    gaps: dict[str, dict[int, float]] = {label: {} for label in (*learned, *HEURISTICS)}
    reference = ""
    for n in options.sizes:
        best = ablations.optimal_costs(n, TEST_SEED, options.limit, out, watch)
        if best is None:
            raise InputError('no solver for optimal tours is usable here; pip install "routelearn[lkh]"')
        reference, optimum = best
        x = take(generate("tsp", n), slice(0, options.limit))
        for label, model in learned.items():
            found = evaluate(tsp, model.policy, x, device=torch.device("cpu"))
            gaps[label][n] = 100 * found.gap(optimum)[0]
        for name in HEURISTICS:
            result = solve_instances(tsp, x, get_solver(name), seconds=QUICK_SECONDS, seed=options.seed)
            gaps[name][n] = 100 * result.gap(optimum)[0]
    series = [
        Series(f"AM {label} (greedy)", LEARNED, gaps[label], tuple(model.card.get("sizes", ())))
        for label, model in learned.items()
    ]
    series += [Series(title, kind, gaps[name]) for name, (title, kind) in HEURISTICS.items()]
    return series, reference


def figure5(out: Path, options: Options, watch: Watch) -> tuple[Figure, str]:
    series, reference = generalisation_series(out, options, watch)
    table = {one.label: {str(n): round(gap, 4) for n, gap in one.gaps.items()} for one in series}
    (out / "figure5-generalisation.json").write_text(json.dumps(table, indent=2) + "\n")
    note = "" if any(one.kind == LEARNED for one in series) else "no TSP model yet: heuristics only"
    title = f"TSP, first {options.limit} test instances of each size, gap to {reference}"
    return generalisation(series, title), note


def curves_of(out: Path, runs: dict[Run, str], watch: Watch) -> tuple[list[Curve], str]:
    """The available learning curves, with gaps if optimal tours can be computed, and what is missing."""
    curves: list[Curve] = []
    missing = []
    optimal = cache(lambda n, seed, limit: ablations.optimal_mean(n, seed, limit, out, watch))
    for run, label in runs.items():
        folder = ablations.folder_of(run, out)
        config = ablations.config_of(folder)
        if config is None or not (folder / "metrics.jsonl").is_file():
            missing.append(run.folder)
            continue
        best = optimal(run.n, config.validation_seed, config.validation_instances)
        curves += [curve if best is None else curve.against(best) for curve in read_run(folder, label)]
    return curves, f"{len(missing)} of {len(runs)} runs are missing ({missing[0]}, ...)" if missing else ""


def figure3(out: Path, options: Options, watch: Watch) -> tuple[Figure, str]:
    curves, missing = curves_of(out, ablations.baseline_runs(options.run_seeds), watch)
    if not curves:
        raise InputError(f"{missing}; train them: reproduce figure3 --train")
    return learning_curves(curves, along="instances", title="TSP20: models and baselines"), missing


def figure6(out: Path, options: Options, watch: Watch) -> tuple[Figure, str]:
    runs = {
        run: rate for n in options.rate_sizes for run, rate in ablations.schedule_runs(n, options.run_seeds).items()
    }
    curves, missing = curves_of(out, runs, watch)
    if not curves:
        sizes = ",".join(map(str, options.rate_sizes))
        raise InputError(f"{missing}; train them: reproduce figure6 --train --sizes {sizes}")
    return rate_schedules(curves), missing


def figure7(out: Path, options: Options, watch: Watch) -> tuple[Figure, str]:
    cvrp = problems.get("cvrp")
    x = take(generate("cvrp", 100), slice(0, EXAMPLES))
    try:
        model = models.load_model("cvrp", 100)
    except InputError:
        tours = solve_instances(cvrp, x, get_solver(WITHOUT_MODEL), seconds=QUICK_SECONDS, seed=options.seed).tours
        note = f"no model for the CVRP yet: drawn with {WITHOUT_MODEL}"
        return cvrp_examples(x, tours, f"CVRP, n = 100, by {WITHOUT_MODEL}"), note
    tours = evaluate(cvrp, model.policy, x, device=torch.device("cpu")).tours
    return cvrp_examples(x, tours, "CVRP, n = 100, greedy solutions of the attention model"), ""


FIGURES: dict[str, tuple[str, Callable[[Path, Options, Watch], tuple[Figure, str]]]] = {
    "figure3": ("learning-curves", figure3),
    "figure5": ("generalisation", figure5),
    "figure6": ("rates", figure6),
    "figure7": ("cvrp-examples", figure7),
}


def draw_figures(
    out: Path, options: Options, *, only: Sequence[str] = (), watch: Watch = silent, report: Any = None
) -> list[Drawn]:
    """Every figure (or only those named) as PNG and SVG; if runs or solvers are missing, the reason is given."""
    out.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name in only or FIGURES:
        title, make = FIGURES[name]
        try:
            figure, note = make(out, options, watch)
            drawn.append(Drawn(name, save(figure, out / f"{name}-{title}"), note))
        except InputError as error:
            drawn.append(Drawn(name, [], str(error)))
        if report is not None:
            report(drawn[-1])
    return drawn
