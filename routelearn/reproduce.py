"""The paper's tables again: every row that can be had, on the same instances, beside the paper's own figures."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from routelearn import model_file, models, problems
from routelearn.data import generate
from routelearn.engine import Block, Progress, Result, Store, collect, settings_of, solve_instances
from routelearn.errors import InputError
from routelearn.evaluate import evaluate
from routelearn.model_file import Model
from routelearn.paper_rows import (
    EXACT,
    EXACT_SECONDS,
    QUICK,
    ROWS,
    SIZES,
    TABLE1,
    TABLE_OP,
    TITLES,
    Learned,
    Method,
    Reported,
    Row,
    check_problems,
    fact_of,
    in_paper,
    not_run,
    seconds_for,
)
from routelearn.problems.base import take
from routelearn.solvers import get as get_solver
from routelearn.solvers.runner import SolverError, worker_count
from routelearn.tables import Entry, Grid, Line, compare, duration, figure, hardware, percent, write_tables

SAMPLES_CPU, SAMPLES_GPU = 320, 1280  # rollouts of AM (sampling); the paper draws 1280
AUGMENT = 8  # of those, the symmetries of the square they are spread over
TYPICAL_EXACT = {("tsp", 20): 0.1, ("tsp", 50): 0.5, ("tsp", 100): 2.5}  # seconds of one instance, for the estimate
QUICK_ROW_SECONDS = 0.5  # a construction's row: writing, reading and judging included
TYPICAL_EXACT_SMALL = 1.5  # OP and PCTSP at n = 20

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
    samples: int | None = None  # rollouts of AM (sampling); None: 320 on a CPU, 1280 on a GPU or with paper_limits
    model_files: tuple[Path, ...] = ()  # used before those that ship
    engine: str = "local"
    seed: int = 1234
    device: torch.device = field(default_factory=lambda: torch.device("cuda" if torch.cuda.is_available() else "cpu"))

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= 10_000:
            raise InputError(f"a limit of {self.limit} instances; a test set has 1 to 10000")
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


@dataclass(frozen=True)
class Outcome:
    """One cell: a result, or the reason why there is none."""

    row: str
    n: int
    solver: str = ""
    setting: str = ""
    result: Result | None = None
    reason: str = ""
    reported: bool = False


# ---------------------------------------------------------------------------------------------- running


def run_method(problem: str, x: Any, n: int, method: Method, options: Options, out: Path, watch: Watch) -> Outcome:
    """A row of solvers: the first usable one, or why there is none."""
    if reason := not_run(method, n, options.paper_limits):
        return Outcome(method.row, n, method.solvers[0], reason=reason)
    reasons = [get_solver(name).unavailable() for name in method.solvers]
    usable = [name for name, why in zip(method.solvers, reasons, strict=True) if why is None]
    if not usable:
        return Outcome(method.row, n, method.solvers[0], reason="; ".join(str(why) for why in reasons))
    name, seconds = usable[0], seconds_for(method, problem, n, options.paper_limits)
    stored = out / "results" / f"{problem}{n}-first{options.limit}-{name}-{seconds:g}s-seed{options.seed}.jsonl"
    setting = f"{seconds:.3g} s" if method.kind not in (QUICK, EXACT) else ""
    try:
        with watch(f"{TITLES[problem]} n={n}: {method.row}", len(x.xy)) as progress:
            result = solve_instances(
                problems.get(problem), x, get_solver(name), seconds=seconds, seed=options.seed, store=stored,
                engine=options.engine, progress=progress,
            )  # fmt: skip
    except (InputError, SolverError) as error:
        return Outcome(method.row, n, name, setting, reason=str(error).strip().splitlines()[-1])
    return Outcome(method.row, n, name, setting, result)


def pick_model(problem: str, n: int, options: Options) -> tuple[str, Model]:
    """The given model file of that problem that was trained nearest to n, or the one that ships."""
    given = [(path, model_file.load(path)) for path in options.model_files]
    own = [(str(path), model) for path, model in given if model.problem == problem]
    if not own:
        model = models.load_model(problem, n)
        return "shipped", model

    def distance(entry: tuple[str, Model]) -> float:
        return min((abs(int(size) - n) for size in entry[1].card.get("sizes", ())), default=10**9)

    return min(own, key=distance)


def weights_digest(model: Model) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(model.policy.state_dict().items()):
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


def run_learned(problem: str, x: Any, n: int, row: Learned, options: Options, out: Path, watch: Watch) -> Outcome:
    """A row of the attention model; stored like a solver's, in one block."""
    try:
        origin, model = pick_model(problem, n, options)
    except InputError as error:
        return Outcome(row.row, n, "attention model", reason=f"no model yet: {error}")
    strategy = f"augment:{AUGMENT}+sample:{options.rollouts // AUGMENT}" if row.sampling else "greedy"
    sizes = "/".join(map(str, model.card.get("sizes", ["?"])))
    solver = f"model for n = {sizes}" + ("" if origin == "shipped" else f" ({Path(origin).name})")
    spec, batch = problems.get(problem), x.xy.shape[0]
    method = f"{model.kind} {weights_digest(model)} {strategy} on {options.device.type}"
    stem = f"{problem}{n}-first{options.limit}-{model.kind}-{weights_digest(model)}-{strategy.replace(':', '')}"
    with Store(
        out / "results" / f"{stem}-{options.device.type}-seed{options.seed}.jsonl",
        settings_of(spec, x, method, 0.0, options.seed, batch),
    ) as store:
        if not store.blocks:
            # As for solvers, what is compiled once does not count.
            evaluate(spec, model.policy, take(x, slice(0, 1)), device=options.device, precision="float32")
            with watch(f"{TITLES[problem]} n={n}: {row.row}", batch) as progress:
                done = evaluate(
                    spec,
                    model.policy,
                    x,
                    strategy,
                    device=options.device,
                    seed=options.seed,
                    precision="float32",
                    progress=progress,
                )
            tours: list[list[int] | None] = [list(tour) for tour in done.tours[:, 0].tolist()]
            store.add(Block(0, tours, done.seconds), done.seconds)
        return Outcome(row.row, n, solver, strategy, collect(spec, x, store.blocks, batch, store.blocks[0].seconds))


def run_row(problem: str, x: Any, n: int, row: Row, options: Options, out: Path, watch: Watch) -> Outcome:
    if isinstance(row, Reported):
        return Outcome(row.row, n, reason=row.source, reported=True)
    if isinstance(row, Learned):
        return run_learned(problem, x, n, row, options, out, watch)
    return run_method(problem, x, n, row, options, out, watch)


def estimate(names: Sequence[str], options: Options) -> float:
    """About how many seconds the solvers' rows take here if all are usable (the rows of models not counted)."""
    total = 0.0
    for problem in names:
        for n in options.sizes:
            for row in ROWS[problem]:
                if not isinstance(row, Method) or not_run(row, n, options.paper_limits):
                    continue
                if all(get_solver(name).unavailable() for name in row.solvers):
                    continue
                seconds = seconds_for(row, problem, n, options.paper_limits)
                if row.kind == EXACT:
                    seconds = TYPICAL_EXACT.get((problem, n), TYPICAL_EXACT_SMALL)
                total += options.limit * seconds / worker_count() if row.kind != QUICK else QUICK_ROW_SECONDS
    return total


# ---------------------------------------------------------------------------------------------- tables


def grid_of(problem: str, outcomes: Sequence[Outcome], options: Options) -> tuple[Grid, list[dict[str, object]]]:
    """One problem's table and its cells as records; gaps are paired, to the best method run here."""
    cells = {(outcome.row, outcome.n): outcome for outcome in outcomes}
    lines: dict[tuple[str, int], Line] = {}
    for n in options.sizes:
        entries = [Entry(o.row, o.result.costs, o.result.seconds) for o in outcomes if o.n == n and o.result]
        lines |= {(line.method, n): line for line in compare(entries, problems.get(problem))}
    rows, records, notes = [], [], []
    for row in ROWS[problem]:
        texts = [row.row + ("" if in_paper(problem, row.row) else " *")]
        for n in options.sizes:
            outcome, line, fact = cells[row.row, n], lines.get((row.row, n)), fact_of(problem, row.row, n)
            paper = "-"
            if fact is not None:
                gap = "" if fact.gap is None else f"  {fact.gap:.2f} %"
                paper = f"{fact.objective:.2f}{gap}" + (f"  {fact.time}" if fact.time else "")
            here = "†" if outcome.reported else "-"
            if line is not None:
                here = f"{figure(line.objective)}  {percent(line.gap)}  {duration(line.seconds)}"
                here += f"  ({line.infeasible} infeasible)" if line.infeasible else ""
            texts += [here, paper]
            records.append(
                {
                    "problem": TITLES[problem],
                    "n": n,
                    "method": row.row,
                    "solver": outcome.solver,
                    "setting": outcome.setting,
                    "instances": line.instances if line else "",
                    "objective": f"{line.objective:.6f}" if line else "",
                    "standard_error": f"{line.standard_error:.6f}" if line else "",
                    "gap_percent": f"{100 * line.gap:.4f}" if line else "",
                    "wins": line.wins if line else "",
                    "infeasible": line.infeasible if line else "",
                    "seconds": f"{line.seconds:.3f}" if line else "",
                    "paper_objective": fact.objective if fact else "",
                    "paper_gap_percent": fact.gap if fact and fact.gap is not None else "",
                    "paper_time_for_10000": fact.time if fact else "",
                    "note": outcome.reason,
                }
            )
        rows.append(tuple(texts))
        notes += notes_on(row, [cells[row.row, n] for n in options.sizes])
    heading = ("method", *(text for n in options.sizes for text in (f"n = {n}, here", f"n = {n}, paper")))
    return Grid(TITLES[problem], heading, rows, notes), records


def notes_on(row: Row, outcomes: Sequence[Outcome]) -> list[str]:
    """What a reader must know of a row: how it was filled, and by name what is missing and why."""
    notes = []
    if isinstance(row, Reported):
        return [f"† {row.row}: {row.source}"]
    ran = [outcome for outcome in outcomes if outcome.result]
    if ran and isinstance(row, Method) and (row.note or row.kind != QUICK):
        settings = " / ".join(dict.fromkeys(outcome.setting for outcome in ran))
        limit = f"until proved, at most {EXACT_SECONDS:g} s an instance" if row.kind == EXACT else ""
        told = [part for part in (row.note, limit, f"{settings} an instance" if settings else "") if part]
        notes.append(f"{row.row} ({ran[0].solver}): {'; '.join(told)}")
    if ran and isinstance(row, Learned):
        used: dict[str, list[str]] = {}
        for outcome in ran:
            used.setdefault(outcome.solver, []).append(str(outcome.n))
        told = [f"{solver} (at n = {', '.join(sizes)})" for solver, sizes in used.items()]
        notes.append(f"{row.row}: {ran[0].setting}; {', '.join(told)}")
    missing: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.result is None:
            missing.setdefault(outcome.reason, []).append(str(outcome.n))
    notes += [f"{row.row}: not run at n = {', '.join(sizes)}: {reason}" for reason, sizes in missing.items()]
    return notes


def legend(options: Options, seconds: float) -> list[str]:
    return [
        f"Here: the first {options.limit} instances of each of the paper's test sets, on {hardware()}; objective, gap "
        "to the best method of this table on the same instances, and wall clock time for all of them.",
        "Paper: 10,000 instances; gap to the best method of the paper's table; time on one GTX 1080 Ti, or on 32 "
        "virtual cores (2 x Xeon E5-2630).",
        "† as reported there, not run here.  * not in the paper.  - no figure; the reason stands below its table.",
        f"Limits: {'those of the paper' if options.paper_limits else 'the defaults'}. This run took "
        f"{duration(seconds)} of wall clock; what an earlier run had stored was not run again.",
    ]


def reproduce_table(
    names: Sequence[str], out: Path, options: Options, stem: str, title: str, *, watch: Watch = silent
) -> list[Path]:
    """Run every row for these problems and write stem.txt, .md, .tex and .csv; a stopped run resumes."""
    started = time.perf_counter()
    grids, records, paths = [], [], []
    for problem in names:
        outcomes = []
        for n in options.sizes:
            x = take(generate(problem, n), slice(0, options.limit))
            outcomes += [run_row(problem, x, n, row, options, out, watch) for row in ROWS[problem]]
        grid, cells = grid_of(problem, outcomes, options)
        grids.append(grid)
        records += cells
        # After every problem: whoever stops early has the tables so far.
        paths = write_tables(out, stem, title, grids, records, legend(options, time.perf_counter() - started))
    return paths


def table1(chosen: Sequence[str], out: Path, options: Options, *, watch: Watch = silent) -> list[Path]:
    """Table 1: all problems, n = 20, 50 and 100."""
    names = check_problems(chosen, TABLE1)
    return reproduce_table(names, out, options, "table1", "Table 1: Attention Model (AM) vs baselines", watch=watch)


def table_op(out: Path, options: Options, *, watch: Watch = silent) -> list[Path]:
    """The additional results for the OP (appendix D.4): constant and uniform prizes."""
    return reproduce_table(TABLE_OP, out, options, "table-op", "Additional results for the OP", watch=watch)
