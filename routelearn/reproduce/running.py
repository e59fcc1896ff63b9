"""Reproduce the paper's tables: every row that can be run, on the same instances, beside the paper's own figures."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from routelearn import models, problems
from routelearn.data import generate
from routelearn.errors import InputError
from routelearn.evaluation.evaluate import Evaluation, evaluate, parse
from routelearn.models import model_file
from routelearn.models.model_file import Model
from routelearn.problems.base import Problem, take
from routelearn.reproduce import rows as table
from routelearn.reproduce.layout import Cell, grid_of, legend
from routelearn.reproduce.rows import SIZES, TITLES, Row
from routelearn.reproduce.tables import check_limit, duration, write_tables
from routelearn.runtime.compiling import best_device
from routelearn.solvers import get as get_solver
from routelearn.solvers.adapters.runner import SolverError, worker_count
from routelearn.solvers.farm import running as farm
from routelearn.solvers.farm.running import Progress

SAMPLES_CPU, SAMPLES_GPU = 320, 1280  # rollouts of AM (sampling); the paper draws 1280
AUGMENT = 8  # of those, the symmetries of the square they are spread over
QUICK_ROW_SECONDS = 0.5  # a construction's row: writing, reading and judging included
ROLLOUT_SECONDS = 2e-7  # of one core, times n squared, for one rollout
TRUST = 30.0  # seconds of cells run before their speed counts as much as the expectation

Watch = Callable[[str, int], AbstractContextManager[Progress]]  # (label, instances) -> something to tell of progress


@contextlib.contextmanager
def silent(label: str, total: int) -> Iterator[Progress]:
    yield lambda count: None


@dataclass(frozen=True)
class Options:
    """What decides a table."""

    limit: int = 10_000  # the first instances of each test set
    paper_limits: bool = False
    sizes: tuple[int, ...] = SIZES
    rows: tuple[str, ...] = ()  # those of these names; empty: all
    samples: int | None = None  # rollouts of AM (sampling); None: 320 on a CPU, 1280 on a GPU or with paper_limits
    model_files: tuple[Path, ...] = ()  # used before those that ship
    on: str = "local"
    seed: int = 1234
    device: torch.device = field(default_factory=best_device)

    def __post_init__(self) -> None:
        check_limit(self.limit)
        if not self.sizes or not set(self.sizes) <= set(SIZES):
            raise InputError(f"sizes are {', '.join(map(str, self.sizes))}; the paper has {', '.join(map(str, SIZES))}")
        if self.samples is not None and (self.samples < AUGMENT or self.samples % AUGMENT):
            raise InputError(
                f"{self.samples} samples; give a multiple of {AUGMENT}: they are spread over as many symmetries"
            )

    @property
    def rollouts(self) -> int:
        if self.samples is not None:
            return self.samples
        return SAMPLES_GPU if self.paper_limits or self.device.type == "cuda" else SAMPLES_CPU


def plan_method(problem: str, n: int, method: Row, options: Options, out: Path) -> Cell:
    """A row of solvers: the first usable one, or why there is none."""
    names = method.solvers.split()
    cell = Cell(problem, n, method, names[0])
    if reason := table.not_run(method, n, options.paper_limits):
        return replace(cell, reason=reason)
    reasons = [get_solver(name).unavailable() for name in names]
    usable = [name for name, why in zip(names, reasons, strict=True) if why is None]
    if not usable:
        return replace(cell, reason="; ".join(str(why) for why in reasons))
    name, seconds = usable[0], table.seconds_for(method, problem, n, options.paper_limits)
    return replace(
        cell,
        solver=name,
        setting=f"{seconds:.3g} s" if method.kind not in (table.QUICK, table.EXACT) else "",
        seconds=seconds,
        store=out / "results" / f"{problem}{n}-first{options.limit}-{name}-{seconds:g}s-seed{options.seed}.jsonl",
    )


def given_model(problem: str, n: int, row: Row, options: Options) -> tuple[str, Model] | None:
    """Of the given model files, the one that the row is about and that was trained nearest to n."""
    given = [(str(path), model_file.load(path)) for path in options.model_files]
    own = [(path, model) for path, model in given if model.problem == problem and fills(row, model)]

    def distance(entry: tuple[str, Model]) -> float:
        return min((abs(int(size) - n) for size in entry[1].card.get("sizes", ())), default=10**9)

    return min(own, key=distance, default=None)


def fills(row: Row, model: Model) -> bool:
    """Whether a row is about such a model; the attention model's are also about policies that have no row."""
    supervised = model.card.get("config", {}).get("loss") == "supervised"
    kind = model.kind == row.policy if row.policy else model.kind not in table.RIVALS
    return kind and supervised == row.supervised


def weights_digest(model: Model) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(model.policy.state_dict().items()):
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


def plan_learned(problem: str, n: int, row: Row, options: Options, out: Path) -> Cell:
    """A row of a model that is given. Without one the attention model that ships, or why there is none; else as others
    reported it."""
    found = given_model(problem, n, row, options) if row.policy or row.kind == table.LEARNED else None
    if found is None and row.kind == table.REPORTED:
        return Cell(problem, n, row, reason=row.note)
    try:
        origin, model = found or ("shipped", models.load_model(problem, n))
    except InputError as error:
        return Cell(problem, n, row, "attention model", reason=f"no model yet: {error}")
    strategy = row.decode.format(all=options.rollouts, each=options.rollouts // AUGMENT)
    sizes = "/".join(map(str, model.card.get("sizes", ["?"])))
    solver = f"model for n = {sizes}" + ("" if origin == "shipped" else f" ({Path(origin).name})")
    stem = f"{problem}{n}-first{options.limit}-{model.kind}-{weights_digest(model)}-{strategy.replace(':', '')}"
    store = out / "results" / f"{stem}-{options.device.type}-seed{options.seed}.jsonl"
    return Cell(problem, n, row, solver, strategy, store=store, model=model)


def plan(names: Sequence[str], out: Path, options: Options) -> list[Cell]:
    """All cells of a table in the order in which they are run."""
    cells = []
    for problem in names:
        for n in options.sizes:
            for row in table.rows_of(problem, options.rows):
                planned = plan_learned if row.kind in (table.LEARNED, table.REPORTED) else plan_method
                cells.append(planned(problem, n, row, options, out))
    return cells


def expected_seconds(cell: Cell, options: Options) -> float:
    """About how long a cell takes on this machine, less what is stored; 0 if there is nothing to run."""
    if cell.reason:
        return 0.0
    if cell.model is not None:
        strategy, improvement = parse(cell.setting)
        each = ROLLOUT_SECONDS * (strategy.rollouts if options.device.type == "cpu" else 1) * cell.n**2
        each += improvement.seconds or 0.0 if improvement else 0.0
        whole, blocks = 0.5 + options.limit * each / worker_count(), 1
    elif cell.row.kind == table.QUICK:
        whole, blocks = QUICK_ROW_SECONDS, 1
    else:
        proves = cell.row.kind == table.EXACT or cell.n in cell.row.short
        usual = table.typical_seconds(cell.problem, cell.n, cell.solver) if proves else cell.seconds
        whole, blocks = options.limit * min(cell.seconds, usual) / worker_count(), options.limit
    return whole * max(0.0, 1 - farm.stored_blocks(cell.store) / blocks)


class Timetable:
    """How long a table will take: what every cell is expected to need, corrected by what the cells so far took.

    Call `where()` when a cell starts, `passed()` when it is done.
    """

    def __init__(self, expected: Sequence[float]):
        self.expected = list(expected)  # seconds of each cell; 0: nothing to run, or all of it stored
        self.at = 0
        self.started = time.perf_counter()
        self.planned = self.taken = 0.0  # seconds of the cells that are done

    def left(self) -> float:
        """Seconds still to go, at the pace so far."""
        pace = (self.taken + TRUST) / (self.planned + TRUST)
        return pace * sum(self.expected[self.at :])

    def where(self) -> str:
        self.started = time.perf_counter()
        if self.expected[self.at] == 0:
            return "stored before"
        number = sum(seconds > 0 for seconds in self.expected[: self.at + 1])
        return f"{number} of {sum(seconds > 0 for seconds in self.expected)}, about {duration(self.left())} left"

    def passed(self) -> None:
        if self.expected[self.at] > 0:
            self.planned += self.expected[self.at]
            self.taken += time.perf_counter() - self.started
        self.at += 1
        self.started = time.perf_counter()


def run(cell: Cell, x: Any, options: Options, watch: Watch) -> Cell:
    if cell.reason:
        return cell
    problem = problems.get(cell.problem)
    watching = watch(f"{TITLES[cell.problem]} n={cell.n}: {cell.row.row}", len(x.xy))
    if cell.model is not None:
        result = evaluated(
            cell.store, problem, x, cell.model, cell.setting, device=options.device, seed=options.seed,
            precision="float32", watching=watching,
        )  # fmt: skip
        return replace(cell, result=result)
    try:
        with watching as progress:
            result = farm.solve_instances(
                problem, x, get_solver(cell.solver), seconds=cell.seconds, seed=options.seed, store=cell.store,
                on=options.on, progress=progress,
            )  # fmt: skip
    except (InputError, SolverError) as error:
        return replace(cell, reason=str(error).strip().splitlines()[-1])
    return replace(cell, result=result)


def evaluated(
    store: Path, problem: Problem, x: Any, model: Model, strategy: str, *, device: torch.device, seed: int,
    precision: str, watching: AbstractContextManager[Progress], warm: str = "greedy",
) -> Evaluation:  # fmt: skip
    """What a model makes of the instances; stored like a solver's answers, in one block.

    As for solvers, what is compiled once does not count: `warm` is decoded before the clock starts.
    """
    batch = x.xy.shape[0]
    method = f"{model.kind} {weights_digest(model)} {strategy} on {device.type}"
    with farm.Store(store, farm.settings_of(problem, x, method, 0.0, seed, batch)) as kept:
        if not kept.blocks:
            with watching as progress:
                evaluate(problem, model.policy, take(x, slice(0, 1)), warm, device=device, precision=precision)
                done = evaluate(
                    problem, model.policy, x, strategy, device=device, seed=seed, precision=precision, progress=progress
                )
            kept.add(farm.Block(0, done.tours[:, 0].tolist(), done.seconds), done.seconds)
        return farm.collect(problem, x, kept.blocks, kept.blocks[0].seconds, strategy, str(device))


def reproduce_table(
    names: Sequence[str], out: Path, options: Options, stem: str, title: str, *, watch: Watch = silent
) -> list[Path]:
    """Run every row for these problems and write stem.txt, .md, .tex and .csv; a stopped run resumes."""
    started = time.perf_counter()
    cells = plan(names, out, options)
    timetable = Timetable([expected_seconds(cell, options) for cell in cells])

    def announced(label: str, total: int) -> AbstractContextManager[Progress]:
        return watch(f"{label} ({timetable.where()})", total)

    grids, records, paths = [], [], []
    for problem in names:
        done = []
        for n in options.sizes:
            x = take(generate(problem, n), slice(0, options.limit))
            for cell in cells:
                if (cell.problem, cell.n) == (problem, n):
                    done.append(run(cell, x, options, announced))
                    timetable.passed()
        grid, of_problem = grid_of(problem, done, options.sizes)
        grids.append(grid)
        records += of_problem
        # After every problem: whoever stops early has the tables so far.
        told = legend(options.limit, options.paper_limits, time.perf_counter() - started)
        paths = write_tables(out, stem, title, grids, records, told)
    return paths


def table1(chosen: Sequence[str], out: Path, options: Options, *, watch: Watch = silent) -> list[Path]:
    """Table 1: all problems, n = 20, 50 and 100."""
    names = table.check_problems(chosen, table.TABLE1)
    return reproduce_table(names, out, options, "table1", "Table 1: Attention Model (AM) vs baselines", watch=watch)


def table_op(out: Path, options: Options, *, watch: Watch = silent) -> list[Path]:
    """The additional results for the OP (appendix D.4): constant and uniform prizes."""
    return reproduce_table(table.TABLE_OP, out, options, "table-op", "Additional results for the OP", watch=watch)
