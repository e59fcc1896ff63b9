"""What the commands share that take rounds: how files are read, what is kept of a plan, and the table on the screen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from routelearn.data.stops import Stops
    from routelearn.rounds.answers import RoundSolution
    from routelearn.rounds.model import Round
    from routelearn.rounds.plan import Drive, Route
    from routelearn.solving.solution import Solution


class Rounding(StrEnum):
    nearest = "nearest"
    dimacs = "dimacs"
    exact = "exact"
    none = "none"


class MatrixUnit(StrEnum):
    seconds = "seconds"
    minutes = "minutes"
    hours = "hours"
    lengths = "lengths"
    m = "m"
    km = "km"


MATRIX = "Matrix of distances or times (row = from, column = to), used instead of straight lines."
MATRIX_UNIT = "Rounds: what a plain matrix holds: durations in seconds, minutes or hours, or lengths (m, km)."
VEHICLES = "Rounds: a file of the vehicles, or how many there are."
SPEED = "Rounds: how fast vehicles are between places, in units of length an hour."
ROUND = "Rounding of a library file's distances and times: {choices}. [default: {usual}]"
ROUND = ROUND.format(choices=", ".join(Rounding), usual="as its library does")
ALLOW = "Rounds: leave out stops that cannot be served, with a reason, instead of failing."
ITERATIONS = "Rounds: end after so many steps of the search instead of by the clock; repeats exactly on one thread."
WIDE = 200  # characters of a line that goes to a file or a pipe
WIDEST = 30  # characters of a stop's id
LONGEST_ITINERARY = 150  # stops of a plan beyond which the screen gets one line a vehicle


@dataclass(frozen=True)
class Reading:
    """How files are to be read: what stands beside the stops, and the options."""

    matrix: str | None = None
    vehicles: str | None = None
    problem: str | None = None
    rounding: str | None = None  # None: as the library does
    options: Mapping[str, Any] = field(default_factory=dict)  # attributes of the whole, by name
    speed: str | None = None
    allow_unassigned: bool = False
    until: str | None = None  # from when on the plan went on

    @property
    def rounded(self) -> bool:
        """For files that are no rounds."""
        return self.rounding != Rounding.none

    @property
    def round_options(self) -> dict[str, Any]:
        """What `read_round` gets beside the files."""
        more = {"speed": self.speed, "round": self.rounding, "allow_unassigned": self.allow_unassigned or None}
        own = {name: value for name, value in self.options.items() if of_rounds(name)}
        return own | {name: value for name, value in more.items() if value is not None}

    @property
    def record(self) -> dict[str, Any]:
        """What the answer says of it, so that the plan can be measured again."""
        options = self.round_options
        found = {"matrix": self.matrix, "vehicles": self.vehicles, "options": options or None, "until": self.until}
        return {name: value for name, value in found.items() if value is not None}

    def rounds_of(self, path: str) -> list[Round]:
        """The rounds in a file: all of a set of instances (`.npz`; of `set.npz[3]` one), else one or none."""
        from routelearn.errors import InputError
        from routelearn.rounds.files import read_round
        from routelearn.rounds.files.variants import read_set
        from routelearn.rounds.model import PROBLEM

        if Path(path).suffix.lower().startswith(".npz"):
            several = read_set(path) if self.problem in (None, PROBLEM) else []
            if several and self.record:
                raise InputError(f"{path}: its instances have vehicles and legs; leave out what is given beside it")
            return several
        found = read_round(
            path, matrix=self.matrix, vehicles=self.vehicles, options=self.round_options, problem=self.problem
        )
        if found is not None and (other := next((name for name in self.options if not of_rounds(name)), None)):
            raise InputError(f"{found.source}: --{other.replace('_', '-')} is not for rounds; leave it out")
        return [] if found is None else [found]

    def round_of(self, path: str) -> Round | None:
        """The round in a file; None if it is none."""
        return next(iter(self.rounds_of(path)), None)

    def check_no_round(self, stops: Stops, **others: Any) -> None:
        """Refuse options that mean nothing for stops that are no round."""
        from routelearn.data.names import table
        from routelearn.errors import InputError
        from routelearn.rounds.model import PROBLEM

        known = table(self.problem or stops.problem).limits
        given = {name: value for name, value in self.round_options.items() if name not in (*known, "round", "capacity")}
        given |= {"vehicles": self.vehicles, **others}
        for name, value in given.items():
            if value is not None:
                option = "--" + name.replace("_", "-")
                raise InputError(f"{stops.source}: {option} is for rounds; name the problem with --problem {PROBLEM}")
        if self.rounding in (Rounding.dimacs, Rounding.exact):
            raise InputError(f"{stops.source}: --round {self.rounding} is for rounds; choose nearest or none")


def asked_for(
    matrix: Path | None, matrix_unit: MatrixUnit | None, vehicles: str | None, problem: str | None,
    limits: Mapping[str, Any], speed: str | None, allow_unassigned: bool, round_: Rounding | None, rounded: bool | None,
) -> Reading:  # fmt: skip
    """How the options of a command say that files are to be read."""
    options = {**limits, **({} if matrix_unit is None else {"matrix_unit": str(matrix_unit)})}
    rounding = rounding_of(round_, rounded)
    return Reading(
        None if matrix is None else str(matrix), vehicles, problem, rounding, options, speed, allow_unassigned
    )


def of_rounds(name: str) -> bool:
    """Whether an option is one of rounds; one that a loaded problem declares is the problem's, but for the capacity."""
    from routelearn.data.names import table

    return name == "capacity" or name not in table().limits


def rounding_of(chosen: Rounding | None, rounded: bool | None) -> str | None:
    """The rounding that `--round`, `--rounded` or `--no-rounded` name."""
    from routelearn.errors import InputError

    named = None if rounded is None else Rounding.nearest if rounded else Rounding.none
    if chosen is not None and named not in (None, chosen):
        raise InputError(f"--round {chosen} and --{'' if rounded else 'no-'}rounded disagree; give one of them")
    found = chosen or named
    return None if found is None else str(found)


def read_all(paths: Sequence[str], how: Reading) -> list[Stops | Round]:
    """What all files hold, in order; a shell replaces `*.csv` by the matching files."""
    from routelearn.data import read_stops
    from routelearn.data.reading import files_of
    from routelearn.errors import InputError

    if not paths:
        return [*read_stops(None, matrix=how.matrix, rounded=how.rounded, problem=how.problem)]
    if how.matrix is not None and len(paths) > 1:
        raise InputError(f"{len(paths)} files of stops, but one matrix; give one file of stops")
    found: list[Stops | Round] = []
    for path in paths:
        files = files_of(path)
        if how.matrix is not None and len(files) != 1:
            return [*read_stops(path, matrix=how.matrix)]  # says what is wrong with that
        for file in files:
            found += how.rounds_of(file) or read_stops(
                file, matrix=how.matrix, rounded=how.rounded, problem=how.problem
            )
    return found


def kept_of(round_: Round, path: Path, until: str | None) -> tuple[Round, tuple[Drive, ...], str | None]:
    """The round with what a plan has already done, the drives to go on from, and until when.

    Done is all that the file has, what it marks, or what begins by a time.
    """
    from routelearn.rounds.given import driven_on, given_plan, kept_until, read_plan, without_cancelled
    from routelearn.rounds.kept import check_kept, check_start

    routes, said = read_plan(path)
    before = said.get("until")
    moment = until if until is not None else before
    routes, gone = without_cancelled(round_, routes, until, marked=before is not None)
    given = given_plan(round_, routes, str(path), numbered=bool(said.get("numbered")))
    kept, drives = kept_until(round_, given, str(path), moment, marked=until is None and before is not None)
    check_kept(kept, str(path))
    check_start(kept, start := driven_on(kept, drives), str(path))
    if gone:
        kept = replace(kept, notes=(*kept.notes, f"{path}: no longer among the stops: {', '.join(gone)}"))
    return kept, start, moment


# ---------------------------------------------------------------------------------------------- the screen


def titled(solution: Solution | RoundSolution, caption: str, *, to_stderr: bool) -> Console:
    """The screen, with the first line of an answer on it."""
    from rich.console import Console
    from rich.markup import escape

    class Terminal(Console):
        def on_broken_pipe(self) -> None:  # instead of ending the program
            raise BrokenPipeError

    console = Terminal(stderr=to_stderr, highlight=False)
    if not console.is_terminal:  # a file or a pipe has no edge at which a column would be cut off
        console.width = max(console.width, WIDE)
    title = f"[bold]{escape(caption)}[/bold]  ({escape(solution.source)}, {solution.seconds:.2f} s)"
    console.print(title, soft_wrap=True)
    return console


def show_better(solution: RoundSolution) -> None:
    """A plan that was found while the search goes on, in a line on standard error."""
    vehicles, left = len(solution.plan.routes), len(solution.plan.unassigned)
    words = f"{vehicles} vehicle{'' if vehicles == 1 else 's'}"
    words += f", {left} stop{'' if left == 1 else 's'} left out" if left else ""
    typer.echo(f"{solution.seconds:8.3f} s  {solution.cost:14.6g}  {words}", err=True)


def report_round(solution: RoundSolution, *, brief: bool = False, to_stderr: bool = False) -> None:
    """A table: for each vehicle its itinerary, or one line where there are many stops; what was left out, and why."""
    from rich.markup import escape

    from routelearn.plots.rounds import caption

    console = titled(solution, caption(solution), to_stderr=to_stderr)
    long = sum(len(route.stops) for route in solution.plan.routes) > LONGEST_ITINERARY
    if not brief:
        if long:
            console.print(overview(solution))
        else:
            for i, route in enumerate(solution.plan.routes):
                line = f"\n[bold]{escape(called(solution.labels[i]))}[/bold]  {escape(summary(solution, route))}"
                console.print(line, soft_wrap=True)
                console.print(itinerary(solution, route))
        for name, reason in solution.unassigned:
            console.print(f"left out: {escape(name)}: {escape(reason)}", soft_wrap=True)
    for one in solution.plan.violations:
        console.print(f"[red]broken:[/red] {escape(one.words)}", soft_wrap=True)
    for note in solution.notes:
        console.print(escape(note), soft_wrap=True)


def called(vehicle: str) -> str:
    """A vehicle's id on the screen, where a number alone would say nothing."""
    return f"vehicle {vehicle}" if vehicle[:1].isdigit() else vehicle


def summary(solution: RoundSolution, route: Route) -> str:
    """One vehicle in a line."""
    from routelearn.rounds.units import amount_words, length

    day, vehicle = solution.round.day, solution.vehicle(route)
    unit = f" {solution.round.length_unit}" if solution.round.length_unit else ""
    parts = [f"{len(route.stops)} stop{'' if len(route.stops) == 1 else 's'}"]
    parts.append(f"{length(day, route.duration)} out, {length(day, route.driving)} driving")
    parts.append(f"length {figure(route.distance)}{unit}")
    if load := solution.load(route):
        of = f" of {amount_words(vehicle.capacity)}" if all(map(math.isfinite, vehicle.capacity)) else ""
        parts.append(f"load {amount_words(load)}{of}")
    return ", ".join([*parts, f"cost {route.cost:,.6g}"])


def overview(solution: RoundSolution) -> Table:
    """One line a vehicle."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("vehicle", "leaves", "ends", ""):
        table.add_column(name)
    for label, route in zip(solution.labels, solution.plan.routes, strict=True):
        first, last = route.visits[0].departure, route.visits[-1].arrival
        table.add_row(called(label), minute(solution, first), minute(solution, last), summary(solution, route))
    return table


def itinerary(solution: RoundSolution, route: Route) -> Table:
    """The visits of a vehicle, one a line."""
    from rich.markup import escape
    from rich.table import Table

    from routelearn.rounds.units import amount_words, length

    table, day = Table(box=None, header_style="bold", pad_edge=False), solution.round.day
    loaded = any(visit.load for visit in route.visits)
    table.add_column("stop", no_wrap=True, max_width=WIDEST)
    for name in ("arrives", "waits", "leaves", *(("load",) if loaded else ()), "so far"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("window")
    # Without a clock, a whole route may take less than a second; errors of adding up are no waiting.
    least = 0.5 if day is not None else 1e-4 * (route.visits[-1].arrival - route.visits[0].departure)
    for visit in route.visits:
        cells = [escape(visit.id if visit.kind == "stop" else f"({visit.kind}) {visit.id}".strip())]
        cells.append("" if visit.kind == "start" else minute(solution, visit.arrival))
        wait = visit.wait if day is None else 60 * round(visit.wait / 60)
        cells.append(length(day, wait) if wait > least else "")
        cells.append("" if visit.kind == "end" else minute(solution, visit.departure))
        cells += [amount_words(visit.load)] if loaded else []
        cells.append(figure(visit.distance_so_far))
        cells.append("" if visit.stop is None else windows(solution, visit.stop))
        table.add_row(*cells)
    return table


def figure(value: float) -> str:
    """A length on the screen."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def minute(solution: RoundSolution, seconds: float) -> str:
    """A moment on the screen: clock times to the minute, which the files have to the second."""
    return solution.spoken(seconds if solution.round.day is None else 60 * round(seconds / 60))


def windows(solution: RoundSolution, stop: int) -> str:
    from routelearn.rounds.model import FOREVER

    words = []
    for low, high in solution.round.stops[stop].windows:
        begin = "" if low == -FOREVER else solution.spoken(low)
        end = "" if high == FOREVER else solution.spoken(high)
        one_end = f"from {begin}" if begin else f"until {end}" if end else ""  # as files may have it, too
        words += [f"{begin}-{end}" if begin and end else one_end] if begin or end else []
    return ", ".join(words)
