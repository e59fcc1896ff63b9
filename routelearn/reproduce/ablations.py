"""The training runs behind the table of ablations (appendix B.5) and figures 3 and 6, and that table.

Every run has its own folder and is trained once: a stopped command goes on where it was, within a run too. Runs
that the repository keeps (docs/runs) are read where the folder of results has none. The number of instances is
spread over the paper's 100 epochs, so that a rate that falls with the epochs falls as far.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from routelearn import problems
from routelearn.data import generate
from routelearn.data.generate import TEST_SEED
from routelearn.errors import InputError
from routelearn.evaluation.evaluate import evaluate
from routelearn.models import model_file
from routelearn.problems.base import take
from routelearn.reproduce.running import Watch, silent
from routelearn.reproduce.tables import Grid, check_limit, figure, hardware, package_csv, percent, write_tables
from routelearn.runtime.atomic import write_text
from routelearn.runtime.compiling import best_device
from routelearn.solvers import get as get_solver
from routelearn.solvers.farm.running import solve_instances
from routelearn.training import log, recipes
from routelearn.training.config import TrainConfig
from routelearn.training.loop import run as train

INSTANCES = 6_400_000  # of one run
FULL_INSTANCES = 128_000_000  # the paper's: 100 epochs of 2,500 batches of 512
EPOCHS = 100
SEEDS = (1234, 1235)
LAYERS = (0, 1, 2, 3, 5, 8)
LOW, HIGH = "1e-4", "1e-3 x 0.96^epoch"  # the two schedules of the table
LOW_DECAY, HIGH_CONSTANT = "1e-4 x 0.96^epoch", "1e-3"  # the other two of figure 6
RATES = {LOW: (1e-4, "constant"), HIGH: (1e-3, "decay"), LOW_DECAY: (1e-4, "decay"), HIGH_CONSTANT: (1e-3, "constant")}
POLICIES = {"AM": "attention", "PN": "pointer"}
BASELINES = {"Exponential": "exponential", "Critic": "critic", "Rollout": "rollout"}
SHARED_SOLUTIONS = 4  # of an instance, which the shared baseline compares: about the work of the rollout baseline
BEYOND = {f"Shared, {SHARED_SOLUTIONS} solutions": "shared", "None": "none"}  # of figure 3; the paper has them not
REFERENCES = ("concorde", "lkh3", "elkai", "scip", "cpsat")  # TSP solvers whose answers count as optimal
REFERENCE_SECONDS = 60.0
KEPT = Path(__file__).resolve().parents[2] / "docs" / "runs"  # in a checkout: runs made before


@dataclass(frozen=True)
class Options:
    """What decides the runs and the table."""

    instances: int = INSTANCES  # a run
    sizes: tuple[int, ...] = (20,)  # of TSP; layers and baselines are compared at 20, as in the paper
    limit: int = 10_000  # instances of the test set, the validation set and the baseline's test
    seeds: tuple[int, ...] = SEEDS  # of the runs that are trained and shown
    minutes: float = 0.0  # for all training of one command; what is not done then is left for the next (0: no limit)
    device: torch.device = field(default_factory=best_device)

    def __post_init__(self) -> None:
        if self.instances < 512:
            raise InputError(f"{self.instances} instances per run; one batch has 512")
        if not self.sizes or not set(self.sizes) <= {20, 50, 100}:
            raise InputError(f"sizes are {', '.join(map(str, self.sizes))}; the paper has 20, 50 and 100")
        check_limit(self.limit, 2)
        if not self.seeds or not set(self.seeds) <= set(SEEDS):
            raise InputError(
                f"seeds are {', '.join(map(str, self.seeds))}; the paper's two runs are 1234 and 1235 here"
            )
        if self.minutes < 0:
            raise InputError(f"{self.minutes:g} minutes of training; it must be 0 (no limit) or more")


@dataclass(frozen=True)
class Run:
    """One training run. Rows of the table share runs: TSP20, N = 3 and AM / Rollout are one."""

    policy: str
    n: int
    layers: int
    baseline: str
    rate: str
    seed: int

    @property
    def folder(self) -> str:
        encoder = f"-{self.layers}layers" if self.policy == "attention" else ""
        rate = self.rate.replace(" x 0.96^epoch", "decay")
        return f"tsp{self.n}-{self.policy}{encoder}-{self.baseline}-{rate}-seed{self.seed}"

    def config(self, options: Options) -> TrainConfig:
        config = recipes.paper("tsp", self.n)
        steps = options.instances // config.batch[0]
        epochs = min(EPOCHS, steps)
        rate, schedule = RATES[self.rate]
        return replace(
            config,
            policy=self.policy,
            layers=self.layers,
            baseline=self.baseline,
            solutions=SHARED_SOLUTIONS if self.baseline == "shared" else 1,
            rate=rate,
            schedule=schedule,
            seed=self.seed,
            epochs=epochs,
            epoch_steps=steps // epochs,
            validation_instances=options.limit,
            evaluation_instances=options.limit,
        )


def rows(sizes: Sequence[int]) -> dict[str, dict[tuple[str, int], Run]]:
    """The table's rows in the paper's order, each with its runs by rate and seed."""

    def runs(policy: str = "attention", n: int = 20, layers: int = 3, baseline: str = "rollout") -> dict[Any, Run]:
        rates = (LOW,) if n == 100 else (LOW, HIGH)
        return {(rate, seed): Run(policy, n, layers, baseline, rate, seed) for rate in rates for seed in SEEDS}

    table = {f"TSP{n}": runs(n=n) for n in sizes}
    if 20 in sizes:
        table |= {f"N = {layers}": runs(layers=layers) for layers in LAYERS}
        for title, policy in POLICIES.items():
            table |= {f"{title} / {name}": runs(policy, baseline=baseline) for name, baseline in BASELINES.items()}
    return table


def baseline_runs(seeds: Sequence[int] = SEEDS) -> dict[Run, str]:
    """Figure 3: models and baselines on TSP20, with their labels; all of the first seed first."""
    runs = {}
    for seed in seeds:
        for title, policy in POLICIES.items():
            for name, baseline in (BASELINES | BEYOND if policy == "attention" else BASELINES).items():
                runs[Run(policy, 20, 3, baseline, HIGH, seed)] = f"{title} / {name}"
    return runs


def schedule_runs(n: int, seeds: Sequence[int] = SEEDS) -> dict[Run, str]:
    """Figure 6: four schedules, with their labels; all of the first seed first."""
    return {Run("attention", n, 3, "rollout", rate, seed): rate for seed in seeds for rate in RATES}


def all_runs(sizes: Sequence[int], seeds: Sequence[int] = SEEDS) -> list[Run]:
    """Every run of the table, once."""
    runs = dict.fromkeys(run for of_row in rows(sizes).values() for run in of_row.values() if run.seed in seeds)
    return sorted(runs, key=lambda run: run.seed)


def optimal_mean(n: int, seed: int, limit: int, out: Path, watch: Watch) -> float | None:
    """Mean length of optimal tours of the test or validation set; None if no solver for them is usable."""
    best = optimal_costs(n, seed, limit, out, watch)
    return None if best is None else float(best[1].mean())


def optimal_costs(n: int, seed: int, limit: int, out: Path, watch: Watch) -> tuple[str, Tensor] | None:
    """A solver's name and its TSP costs [limit] of the test or validation set; None if no such solver is usable."""
    name = next((name for name in REFERENCES if get_solver(name).unavailable() is None), None)
    if name is None:
        return None
    x = take(generate("tsp", n, seed=seed), slice(0, limit))
    stored = out / "results" / f"tsp{n}-set{seed}-first{limit}-{name}-reference.jsonl"
    with watch(f"TSP n={n}: optimal tours by {name}", limit) as progress:
        result = solve_instances(
            problems.get("tsp"), x, get_solver(name), seconds=REFERENCE_SECONDS, store=stored, progress=progress
        )
    return None if result.infeasible else (name, result.costs)


def folder_of(run: Run, out: Path) -> Path:
    """The folder of a run: among the results, else among the kept runs, else where it will be trained."""
    own, kept = out / "ablations" / run.folder, KEPT / run.folder
    return kept if (kept / "config.json").is_file() and not (own / "config.json").is_file() else own


def config_of(folder: Path) -> TrainConfig | None:
    """The settings of the run in that folder, without its time limit; None if there is no run."""
    described = folder / "config.json"
    if not described.is_file():
        return None
    return replace(TrainConfig.from_dict(json.loads(described.read_text())), minutes=0.0)


def finished(run: Run, options: Options, out: Path) -> dict[str, Any] | None:
    """The result of a run that is done with these settings; a kept run of others does not count."""
    folder, config = folder_of(run, out), run.config(options)
    if config_of(folder) not in (None, config):
        if folder.parent == KEPT:
            return None
        raise InputError(f"{folder}: holds a run with other settings; name another --out or remove it")
    result = folder / "result.json"
    return json.loads(result.read_text()) if result.is_file() else None


def complete(run: Run, options: Options, out: Path, end: float, report: Callable[[dict[str, Any]], None]) -> bool:
    """Train a run from wherever it stands and measure it on the test set by greedy decoding.

    False if the time `end` (of time.monotonic) came first; the run can be resumed.
    """
    folder, config = out / "ablations" / run.folder, run.config(options)
    resume = (folder / "checkpoint.pt").is_file()
    limited = config
    if end < math.inf:
        seen = log.read(folder / log.METRICS) if resume else []
        before = float(seen[-1]["elapsed"]) if seen else 0.0  # seconds of training
        limited = replace(config, minutes=(before + max(1.0, end - time.monotonic())) / 60)
    last = train(
        limited, folder, device=options.device, resume=resume, report=lambda row: report({"run": run.folder, **row})
    )
    if last.stopped:
        raise KeyboardInterrupt
    if last.step < config.epochs * config.epoch_steps:
        return False
    policy = model_file.load(folder / "last.safetensors", options.device).policy
    x = take(generate("tsp", run.n, seed=TEST_SEED), slice(0, options.limit))
    measured = evaluate(problems.get("tsp"), policy, x, device=options.device, precision="float32")
    row = {
        **asdict(run),
        "instances": last.instances,
        "epoch_seconds": 60 * last.minutes / config.epochs,
        "objective": measured.mean,
        "infeasible": measured.infeasible,
        "hardware": hardware(),
    }
    (folder / "config.json").write_text(config.to_json() + "\n")  # it ended by its epochs
    write_text(folder / "result.json", json.dumps(row, indent=2) + "\n")
    return True


def train_runs(
    runs: Iterable[Run], options: Options, out: Path, *, report: Callable[[dict[str, Any]], None] = lambda row: None
) -> list[Run]:
    """Train the missing ones of these runs, one after another; returns those still missing."""
    end = time.monotonic() + 60 * options.minutes if options.minutes else math.inf
    missing = [run for run in runs if finished(run, options, out) is None]
    return [run for run in missing if time.monotonic() >= end or not complete(run, options, out, end, report)]


def clock(seconds: float) -> str:
    """As the paper writes epoch times: 5:30; seconds alone where there are few."""
    return f"{seconds:.1f}s" if seconds < 60 else f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def record_of(title: str, rate: str, seed: int, result: Any, gap: float | None, fact: Any) -> dict[str, object]:
    """One line of the CSV file: a run's result and the paper's fact, each None where there is none."""
    return {
        "row": title,
        "rate": rate,
        "seed": seed,
        "instances": result["instances"] if result else "",
        "objective": f"{result['objective']:.6f}" if result else "",
        "gap_percent": f"{100 * gap:.4f}" if gap is not None else "",
        "epoch_seconds": f"{result['epoch_seconds']:.3f}" if result else "",
        "paper_objective": fact["objective"] if fact else "",
        "paper_gap_percent": fact["gap_percent"] if fact else "",
        "paper_epoch_time": fact["epoch_time"] if fact else "",
        "hardware": result["hardware"] if result else "",
    }


def table_of(options: Options, out: Path, watch: Watch) -> tuple[Grid, list[dict[str, object]]]:
    """What is done so far, beside the paper's figures."""
    paper = {(fact["row"], fact["rate"], int(fact["seed"])): fact for fact in package_csv("paper_ablations.csv")}
    optimal = cache(lambda n: optimal_mean(n, TEST_SEED, options.limit, out, watch))
    grid_rows, records, missing = [], [], []
    for title, runs in rows(options.sizes).items():
        cells, epochs, epoch_paper = [], [], "-"
        for rate in (LOW, HIGH):
            for seed in SEEDS:
                fact, gap = paper.get((title, rate, seed)), None
                run = runs.get((rate, seed)) if seed in options.seeds else None
                result = None if run is None else finished(run, options, out)
                if run is not None and result is None:
                    missing.append(run.folder)
                if run is not None and result is not None:
                    epochs.append(result["epoch_seconds"])
                    best = optimal(run.n)
                    gap = None if best is None else result["objective"] / best - 1
                epoch_paper = fact["epoch_time"] if fact else epoch_paper
                cells += [
                    "-" if result is None else f"{figure(result['objective'])} ({percent(gap)})",
                    "-" if fact is None else f"{fact['objective']} ({fact['gap_percent']} %)",
                ]
                records.append(record_of(title, rate, seed, result, gap, fact))
        grid_rows.append((title, clock(sum(epochs) / len(epochs)) if epochs else "-", epoch_paper, *cells))
    heading = [f"{rate}, {seed}, {who}" for rate in (LOW, HIGH) for seed in SEEDS for who in ("here", "paper")]
    notes = [f"not trained yet (--train does): {', '.join(dict.fromkeys(missing))}"] if missing else []
    absent = [f"TSP{n}" for n in (20, 50, 100) if n not in options.sizes]
    notes += [f"left out: {', '.join(absent)} (ask for them with --sizes)"] if absent else []
    unasked = [str(seed) for seed in SEEDS if seed not in options.seeds]
    notes += [f"left out: the runs with seed {', '.join(unasked)} (ask for them with --seeds)"] if unasked else []
    return Grid("TSP, greedy", ("row", "epoch, here", "epoch, paper", *heading), grid_rows, notes), records


def table_ablations(out: Path, options: Options, *, watch: Watch = silent) -> list[Path]:
    """Write the table of all runs that are done."""
    steps = options.instances // 512
    epochs = min(EPOCHS, steps)
    legend = [
        f"Here: {options.instances:,} instances a run in {epochs} epochs of {steps // epochs:,} batches of 512; "
        f"costs on the first {options.limit} test instances, gaps to optimal tours.",
        "Paper: 128,000,000 instances a run in 100 epochs of 2,500 batches of 512; epoch times on one GTX 1080 Ti "
        "(TSP100: on two).",
    ]
    grid, records = table_of(options, out, watch)
    machines = dict.fromkeys(str(record["hardware"]) for record in records if record["hardware"])
    legend += [f"Trained on {machine}." for machine in machines]
    return write_tables(out, "table-ablations", "Layers, rates, baselines, models", [grid], records, legend)
