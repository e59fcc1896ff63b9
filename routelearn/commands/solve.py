"""`routelearn solve`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from routelearn.commands import rounds
from routelearn.commands.evaluate import BACKEND, Backend

if TYPE_CHECKING:
    from routelearn.data.stops import Stops
    from routelearn.problems import Problem
    from routelearn.rounds.answers import RoundSolution
    from routelearn.rounds.model import Round
    from routelearn.solving import Event
    from routelearn.solving.solution import Solution

STOPS = "CSV, JSON, GeoJSON, .tsp, .vrp or .npz files; - reads standard input; a folder or 'glob*' solves many files."
OUT = "Write .json, .geojson, .csv or .sol, of rounds also VROOM's .vroom.json; - prints JSON; a folder (existing, or "
OUT += "ending in /) gets one .json per file."
PLOT = "Draw .png, .svg, .pdf or an interactive .html; a folder gets one .html per file."
SEED = "Seed of the search. The search ends by the clock, so equal seeds may still give different results."
KEEP = "Rounds: a plan of which the beginning is driven or fixed: the visits it marks as kept, else all of its visits."
VROOM = "vroom.json"
LONGEST_LIST = 12  # stops of a route that the table names, and files that were left


def solve(
    stops: list[str] | None = typer.Argument(None, help=STOPS),
    matrix: Path | None = typer.Option(None, help=rounds.MATRIX),
    matrix_unit: rounds.MatrixUnit | None = typer.Option(None, help=rounds.MATRIX_UNIT),
    vehicles: str | None = typer.Option(None, help=rounds.VEHICLES),
    problem: str | None = typer.Option(None, help="Problem id. [default: inferred from the fields]"),
    limits: dict[str, Any] = "",  # type: ignore[assignment]  # an option for each attribute (commands/attributes.py)
    speed: str | None = typer.Option(None, help=rounds.SPEED),
    allow_unassigned: bool = typer.Option(False, "--allow-unassigned", help=rounds.ALLOW),
    keep: Path | None = typer.Option(None, help=KEEP),
    until: str | None = typer.Option(
        None, help="With --keep: keep only visits that begin by this time, and begin no other before."
    ),
    seconds: float = typer.Option(1.0, help="Search time for each file; 0 builds one solution and does not search."),
    iterations: int | None = typer.Option(None, min=0, help=rounds.ITERATIONS),
    out: str | None = typer.Option(None, help=OUT),
    plot: str | None = typer.Option(None, help=PLOT),
    watch: bool = typer.Option(False, "--watch", help="Show better costs while the search runs."),
    policy: bool = typer.Option(True, help="Use the trained policy beside the search, or search alone."),
    model: str | None = typer.Option(
        None, help="Model file, or the name of a shipped model. [default: the best for problem and size]"
    ),
    round_: rounds.Rounding | None = typer.Option(None, "--round", help=rounds.ROUND),
    rounded: bool | None = typer.Option(None, "--rounded/--no-rounded", help="As --round nearest, or --round none."),
    threads: int | None = typer.Option(
        None, min=1, help="Parallel searches. [default: number of processors, at most 4]"
    ),
    seed: int = typer.Option(0, help=SEED),
    backend: Backend = typer.Option(Backend.auto, help=f"For the policy: {BACKEND}"),
) -> None:
    """Find a good route for your own stops within a time limit: `routelearn solve stops.csv --seconds 1`."""
    from routelearn.data import to_instance
    from routelearn.data.stops import Stops
    from routelearn.errors import InputError
    from routelearn.policies.kernels import select
    from routelearn.solving import solve_stops

    how = rounds.asked_for(matrix, matrix_unit, vehicles, problem, limits, speed, allow_unassigned, round_, rounded)
    found = rounds.read_all(stops or [], how)
    if until is not None and keep is None:
        raise InputError("--until says what --keep keeps; give --keep PLAN.json, too")
    if keep is not None and len(found) > 1:
        raise InputError(f"--keep {keep}: {len(found)} sets of stops for one plan; give the file of its stops")
    check_target(out, plot, found)
    plain = [one for one in found if isinstance(one, Stops)]
    for those in plain:
        how.check_no_round(those, iterations=iterations, keep=keep)
    if len(found) > 1 or is_file(out, ".sol"):  # what is wrong with one is told before the first is solved
        problems = [to_instance(those, problem, **limits).problem for those in plain]
        check_has_depot(out, problems)

    def solved(one: Stops | Round) -> Solution | RoundSolution:
        if isinstance(one, Stops):
            with select.backend(backend):
                return solve_stops(
                    one, problem=problem, seconds=seconds, seed=seed, policy=policy, model=model, threads=threads,
                    watch=show_event if watch else None, tell=show_line, **limits,
                )  # fmt: skip
        from routelearn.rounds.solving import solve_round

        kept, start, since = (one, None, None) if keep is None else rounds.kept_of(one, keep, until)
        return solve_round(
            kept, start=start, seconds=seconds, iterations=iterations,
            seed=seed, policy=policy, model=model, threads=threads,
            better=rounds.show_better if watch else None, tell=show_line, read_with=replace(how, until=since).record,
        )  # fmt: skip

    names = answer_names([one.source for one in found])
    done = 0
    try:
        for one, name in zip(found, names, strict=True):
            solution = solved(one)
            heard = deliver(solution, out, plot, name, brief=len(found) > 1)
            done += 1
            if not heard:
                return
            if solution.interrupted and done < len(found):
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        if len(found) == 1:
            raise
        raise typer.Abort(f"interrupted; not solved: {listed([one.source for one in found[done:]])}") from None


def listed(names: Sequence[object]) -> str:
    """The first names of a list that may be long."""
    return ", ".join(map(str, names[:LONGEST_LIST])) + (" ..." if len(names) > LONGEST_LIST else "")


def check_target(out: str | None, plot: str | None, found: Sequence[Stops | Round]) -> None:
    """Refuse targets that cannot be written before the search, not after it."""
    from routelearn.data.stops import Stops
    from routelearn.errors import InputError
    from routelearn.plots.saving import DRAWINGS
    from routelearn.solving.writing import WRITERS

    count = len(found)
    if out is not None and out.lower().endswith(f".{VROOM}") and any(isinstance(one, Stops) for one in found):
        raise InputError(f"--out {out}: VROOM's answers are for rounds, which {found[0].source} is not; choose .json")
    for name, path, choices in (
        ("--out", None if out == "-" else out, tuple(f".{kind}" for kind in WRITERS)),
        ("--plot", plot, DRAWINGS),
    ):
        if path is None:
            continue
        if not path.strip():
            raise InputError(f"{name}: the name is empty; give a file that ends in {', '.join(choices)}, or a folder")
        suffix, folder = Path(path).suffix.lower(), is_folder(path) or (count > 1 and not Path(path).suffix)
        if not folder and count > 1:
            raise InputError(f"{name} {path}: {count} sets of stops need a folder, not a file; end its name in /")
        if not folder and suffix not in choices:
            raise InputError(f"{name} {path}: the file must end in {', '.join(choices)}, the name of a folder in /")
        if not folder and suffix == ".geojson" and found[0].latlon is None:
            raise InputError(f"{name} {path}: {found[0].source} has no lat and lon; choose .json or .csv")
        try_writing(f"{name} {path}", Path(path), folder=folder)


def is_folder(path: str) -> bool:
    """Whether the path is an existing folder, or ends like one."""
    return path.endswith(("/", os.sep)) or os.path.isdir(path)


def is_file(path: str | None, suffix: str) -> bool:
    return path is not None and path.lower().endswith(suffix) and not is_folder(path)


def check_has_depot(out: str | None, problems: Sequence[Problem]) -> None:
    """As `check_target`, once the problem is known."""
    from routelearn.errors import InputError

    if is_file(out, ".sol") and not all(problem.has_depot for problem in problems):
        raise InputError(f"--out {out}: a .sol holds routes from a depot, not a tour without one; choose .json or .csv")


def try_writing(what: str, path: Path, *, folder: bool) -> None:
    """Refuse a path that cannot be written. A file created for the test is removed."""
    import tempfile

    from routelearn.errors import InputError

    try:
        if folder:
            path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path).close()
        elif not path.parent.is_dir():
            raise InputError(f"{what}: there is no folder {path.parent}")
        elif not path.exists():
            path.open("xb").close()
            path.unlink()
        elif path.is_file():  # not a pipe: opening one waits for its reader
            path.open("ab").close()
    except OSError as error:
        raise InputError(f"{what}: cannot be written ({error.strerror or error})") from None


def answer_names(sources: Sequence[str]) -> list[str]:
    """A name for the answer to each file: the file's own, with its folders if another file has the same name."""
    from collections import Counter

    def plain(path: str) -> str:
        return re.sub(r"[^\w.-]+", "_", path)

    def count(names: list[str]) -> Counter[str]:
        return Counter(name.casefold() for name in names)  # some disks do not tell A from a

    names = [plain(Path(source).name) for source in sources]
    times = count(names)
    for name in [name for name, often in times.items() if often > 1]:
        rows = [row for row, own in enumerate(names) if own.casefold() == name]
        above = os.path.commonpath([Path(sources[row]).parent for row in rows])
        for row in rows:
            names[row] = plain(os.path.relpath(sources[row], above or "."))
    times = count(names)
    taken = {name for name, often in times.items() if often == 1}
    for row, name in enumerate(names):
        number = 1
        while times[name.casefold()] > 1 and names[row].casefold() in taken:  # "a b" and "a_b": by number
            number += 1
            names[row] = f"{name}_{number}"
        taken.add(names[row].casefold())
    return names


def deliver(
    solution: Solution | RoundSolution, out: str | None, plot: str | None, name: str, *, brief: bool = False
) -> bool:
    """Write what was asked for, then show the solution; `name`: of the answer in a folder.

    What fails takes nothing else with it. False if there are no files, and whoever read what is printed has gone.
    """
    try:
        if out == "-":
            heard = printed(sys.stdout, lambda: solution.write("-"))
        elif out is not None:
            solution.write(inside(out, f"{name}.json"))
    finally:
        try:
            if plot is not None:
                solution.plot(inside(plot, f"{name}.html"))
        finally:
            stream = sys.stderr if out == "-" else sys.stdout
            shown = printed(stream, lambda: show(solution, brief=brief, to_stderr=out == "-"))
    return plot is not None or (shown if out is None else out != "-" or heard)


def printed(stream: TextIO, show: Callable[[], None]) -> bool:
    """Show something; False if the reader has gone, as with `| head -1`. Later output is then discarded."""
    try:
        show()
        stream.flush()
    except BrokenPipeError:
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
        return False
    return True


def inside(path: str, name: str) -> str | Path:
    """The path itself, or the file of that name if the path is a folder."""
    return Path(path) / name if is_folder(path) else path


def show_event(event: Event) -> None:
    show_line(f"{event.seconds:8.3f} s  {event.cost:14.6g}  {event.by}")


def show_line(line: str) -> None:
    printed(sys.stderr, lambda: typer.echo(line, err=True))


def show(solution: Solution | RoundSolution, *, brief: bool, to_stderr: bool) -> None:
    """On the screen, as what it is."""
    from routelearn.solving.solution import Solution

    if isinstance(solution, Solution):
        report(solution, brief=brief, to_stderr=to_stderr)
    else:
        rounds.report_round(solution, brief=brief, to_stderr=to_stderr)


def report(solution: Solution, *, brief: bool = False, to_stderr: bool = False) -> None:
    """A readable table: routes, load, length, and what policy and search each contributed."""
    from rich.markup import escape
    from rich.table import Table

    from routelearn.plots.routes import caption

    console = rounds.titled(solution, caption(solution), to_stderr=to_stderr)
    if brief:
        for note in solution.notes:
            console.print(f"  {escape(note)}", soft_wrap=True)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("route", justify="right")
    table.add_column("stops", justify="right")
    if solution.loads is not None:
        table.add_column("load", justify="right")
    table.add_column(f"length{f' ({solution.unit})' if solution.unit else ''}", justify="right")
    table.add_column("order")
    for i, route in enumerate(solution.routes):
        names = [str(stop) for stop in route]
        if solution.amounts is not None:
            names = [f"{stop} ({amount:g})" for stop, amount in zip(names, solution.amounts[i], strict=True)]
        if len(names) > LONGEST_LIST:
            names = [*names[: LONGEST_LIST - 3], f"... {len(names) - LONGEST_LIST + 1} more ...", *names[-2:]]
        load = [] if solution.loads is None else [f"{solution.loads[i]:g}"]
        order = escape(" > ".join(names))
        table.add_row(str(i + 1), str(len(route)), *load, f"{solution.lengths[i]:,.6g}", order)
    console.print(table)
    if solution.unvisited and solution.depot is not None:
        console.print(f"left out: {escape(listed(solution.unvisited))}", soft_wrap=True)
    console.print(contributions(solution), soft_wrap=True)
    for note in solution.notes:
        console.print(escape(note), soft_wrap=True)


def contributions(solution: Solution) -> str:
    """What each part of the search did, in words."""
    if not solution.events:
        return ""
    first = solution.events[0]
    words = {
        "policy": "the policy", "heuristic": "a heuristic", "search": "the search", "given": "the given solution",
        "rebuild": "search after the policy rebuilt a part",
    }  # fmt: skip
    line = f"first solution {abs(first.cost):,.6g} by {words[first.by]} after {first.seconds:.3f} s"
    gains = [
        f"{words[by]} {gain / abs(first.cost):.2%}"
        for by, gain in solution.found_by().items()
        if gain > 0 and first.cost != 0
    ]
    return line + (f"; then gained by {', '.join(gains)}" if gains else "")
