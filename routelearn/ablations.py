"""The paper's table of ablations (appendix B.5): layers, learning rates, baselines and the Pointer Network, trained.

Every run has its own folder and is trained once: a stopped table goes on where it was, within a run too. The
number of instances is spread over the paper's 100 epochs, so that a rate that falls with the epochs falls as far.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from routelearn import model_file, problems, recipes
from routelearn.config import TrainConfig
from routelearn.data import generate
from routelearn.data.generate import TEST_SEED, VALIDATION_SEED
from routelearn.engine import solve_instances
from routelearn.errors import InputError
from routelearn.evaluate import evaluate
from routelearn.problems.base import take
from routelearn.reproduce import Watch, silent
from routelearn.solvers import get as get_solver
from routelearn.tables import Grid, figure, hardware, package_csv, percent, write_tables
from routelearn.train import train

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
REFERENCES = ("concorde", "lkh3", "elkai", "scip", "cpsat")  # TSP solvers whose answers count as optimal
REFERENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Options:
    """What decides the table."""

    instances: int = INSTANCES  # a run
    sizes: tuple[int, ...] = (20,)  # of TSP; layers and baselines are compared at 20, as in the paper
    limit: int = 10_000  # instances of the test set, the validation set and the baseline's test
    device: torch.device = field(default_factory=lambda: torch.device("cuda" if torch.cuda.is_available() else "cpu"))

    def __post_init__(self) -> None:
        if self.instances < 512:
            raise InputError(f"{self.instances} instances a run; a batch alone has 512")
        if not self.sizes or not set(self.sizes) <= {20, 50, 100}:
            raise InputError(f"sizes are {', '.join(map(str, self.sizes))}; the paper has 20, 50 and 100")
        if not 2 <= self.limit <= 10_000:
            raise InputError(f"a limit of {self.limit} instances; a test set has 2 to 10000")


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


def schedule_runs(n: int) -> list[Run]:
    """Figure 6: four schedules, two seeds."""
    return [Run("attention", n, 3, "rollout", rate, seed) for rate in RATES for seed in SEEDS]


def all_runs(sizes: Sequence[int]) -> list[Run]:
    """Every run of the table and of figure 6, once."""
    of_table = [run for runs in rows(sizes).values() for run in runs.values()]
    return list(dict.fromkeys([*of_table, *(run for n in sizes if n != 100 for run in schedule_runs(n))]))


# ---------------------------------------------------------------------------------------------- running


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


def finished(folder: Path, config: TrainConfig) -> dict[str, Any] | None:
    """The result of a run that is done; a folder with a run of other settings is refused."""
    described = folder / "config.json"
    if described.is_file() and TrainConfig.from_dict(json.loads(described.read_text())) != config:
        raise InputError(f"{folder}: holds a run with other settings; name another --out or remove it")
    result = folder / "result.json"
    return json.loads(result.read_text()) if result.is_file() else None


def complete(
    run: Run,
    options: Options,
    out: Path,
    optimal: Callable[[int, int], tuple[str, Tensor] | None],
    report: Callable[[dict[str, Any]], None],
) -> None:
    """Train a run to its end, from wherever it stands, and measure it on the test set by greedy decoding.

    `optimal` gives the reference of a size and a seed.
    """
    folder, config = out / "ablations" / run.folder, run.config(options)
    if finished(folder, config) is not None:
        return
    validation = optimal(run.n, VALIDATION_SEED)
    last = train(
        config,
        folder,
        device=options.device,
        resume=(folder / "checkpoint.pt").is_file(),
        reference=None if validation is None else {run.n: validation[1]},
        report=lambda row: report({"run": run.folder, **row}),
    )
    if last["stopped"]:
        raise KeyboardInterrupt
    policy = model_file.load(folder / "last.safetensors", options.device).policy
    x = take(generate("tsp", run.n, seed=TEST_SEED), slice(0, options.limit))
    measured = evaluate(problems.get("tsp"), policy, x, device=options.device, precision="float32")
    best = optimal(run.n, TEST_SEED)
    row = {
        **asdict(run),
        "instances": last["instances"],
        "epoch_seconds": last["elapsed"] / config.epochs,
        "objective": measured.mean,
        "gap": None if best is None else measured.gap(best[1])[0],
        "infeasible": measured.infeasible,
        "hardware": hardware(),
    }
    temporary = folder / ".result.json"
    temporary.write_text(json.dumps(row, indent=2) + "\n")
    temporary.replace(folder / "result.json")


# ------------------------------------------------------------------------------------------------ table


def clock(seconds: float) -> str:
    """As the paper writes epoch times: 5:30; seconds alone where there are few."""
    return f"{seconds:.1f}s" if seconds < 60 else f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def table_of(options: Options, out: Path) -> tuple[Grid, list[dict[str, object]]]:
    """What is done so far, beside the paper's figures."""
    paper = {(fact["row"], fact["rate"], int(fact["seed"])): fact for fact in package_csv("paper_ablations.csv")}
    grid_rows, records, missing = [], [], []
    for title, runs in rows(options.sizes).items():
        cells, epochs, epoch_paper = [], [], "-"
        for rate in (LOW, HIGH):
            for seed in SEEDS:
                fact, run = paper.get((title, rate, seed)), runs.get((rate, seed))
                result = None if run is None else finished(out / "ablations" / run.folder, run.config(options))
                if run is not None and result is None:
                    missing.append(run.folder)
                if result is not None:
                    epochs.append(result["epoch_seconds"])
                epoch_paper = fact["epoch_time"] if fact else epoch_paper
                cells += [
                    "-" if result is None else f"{figure(result['objective'])} ({percent(result['gap'])})",
                    "-" if fact is None else f"{fact['objective']} ({fact['gap_percent']} %)",
                ]
                records.append(
                    {
                        "row": title,
                        "rate": rate,
                        "seed": seed,
                        "instances": result["instances"] if result else "",
                        "objective": f"{result['objective']:.6f}" if result else "",
                        "gap_percent": f"{100 * result['gap']:.4f}" if result and result["gap"] is not None else "",
                        "epoch_seconds": f"{result['epoch_seconds']:.3f}" if result else "",
                        "paper_objective": fact["objective"] if fact else "",
                        "paper_gap_percent": fact["gap_percent"] if fact else "",
                        "paper_epoch_time": fact["epoch_time"] if fact else "",
                        "hardware": result["hardware"] if result else "",
                    }
                )
        grid_rows.append((title, clock(sum(epochs) / len(epochs)) if epochs else "-", epoch_paper, *cells))
    heading = [f"{rate}, {seed}, {who}" for rate in (LOW, HIGH) for seed in SEEDS for who in ("here", "paper")]
    notes = [f"not trained yet: {', '.join(dict.fromkeys(missing))}"] if missing else []
    absent = [f"TSP{n}" for n in (20, 50, 100) if n not in options.sizes]
    notes += [f"left out: {', '.join(absent)} (ask for them with --sizes)"] if absent else []
    return Grid("TSP, greedy", ("row", "epoch, here", "epoch, paper", *heading), grid_rows, notes), records


def table_ablations(
    out: Path,
    options: Options,
    *,
    only: Sequence[Run] | None = None,
    watch: Watch = silent,
    report: Callable[[dict[str, Any]], None] = lambda row: None,
) -> list[Path]:
    """Train all runs (or only those given), one after another, and write the table after each."""
    steps = options.instances // 512
    epochs = min(EPOCHS, steps)
    legend = [
        f"Here: {options.instances:,} instances a run in {epochs} epochs of {steps // epochs:,} batches of 512; "
        f"costs on the first {options.limit} test instances, gaps to optimal tours; {hardware()}.",
        "Paper: 128,000,000 instances a run in 100 epochs of 2,500 batches of 512; epoch times on one GTX 1080 Ti "
        "(TSP100: on two).",
    ]
    optimal = cache(lambda n, seed: optimal_costs(n, seed, options.limit, out, watch))
    paths: list[Path] = []
    for run in all_runs(options.sizes) if only is None else only:
        complete(run, options, out, optimal, report)
        grid, records = table_of(options, out)
        paths = write_tables(out, "table-ablations", "Layers, rates, baselines, models", [grid], records, legend)
    return paths
