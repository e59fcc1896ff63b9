"""`routelearn improve`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from routelearn.commands import rounds
from routelearn.commands.solve import OUT, PLOT, SEED, check_has_depot, check_target, deliver, show_event, show_line

if TYPE_CHECKING:
    from routelearn.rounds.answers import RoundSolution
    from routelearn.rounds.model import Round

ROUND = "Rounding of a library file's distances and times. [default: as solved]"


def improve(
    solution: Path = typer.Argument(help="Solution to start from: .json or .csv as `solve` writes them, or a .sol."),
    stops: str | None = typer.Option(None, help="File of the stops. [default: the one named in the .json]"),
    matrix: Path | None = typer.Option(
        None, help="Matrix of distances or times. [default: the one named in the .json]"
    ),
    matrix_unit: rounds.MatrixUnit | None = typer.Option(None, help=f"{rounds.MATRIX_UNIT} [default: the solution's]"),
    vehicles: str | None = typer.Option(None, help=f"{rounds.VEHICLES} [default: the solution's]"),
    problem: str | None = typer.Option(None, help="Problem id. [default: the solution's, or inferred]"),
    limits: dict[str, Any] = " [default: the solution's]",  # type: ignore[assignment]  # an option for each attribute
    speed: str | None = typer.Option(None, help=f"{rounds.SPEED} [default: the solution's]"),
    allow_unassigned: bool = typer.Option(False, "--allow-unassigned", help=rounds.ALLOW),
    seconds: float = typer.Option(1.0, help="Time for the search."),
    iterations: int | None = typer.Option(None, min=0, help=rounds.ITERATIONS),
    out: str | None = typer.Option(None, help=OUT),
    plot: str | None = typer.Option(None, help=PLOT),
    watch: bool = typer.Option(False, "--watch", help="Show better costs while the search runs."),
    round_: rounds.Rounding | None = typer.Option(None, "--round", help=ROUND),
    rounded: bool | None = typer.Option(None, "--rounded/--no-rounded", help="As --round nearest, or --round none."),
    threads: int | None = typer.Option(
        None, min=1, help="Parallel searches. [default: number of processors, at most 4]"
    ),
    seed: int = typer.Option(0, help=SEED),
) -> None:
    """Improve a solution by local search. The result is never worse than the solution given."""
    from routelearn.data import read_stops, to_instance
    from routelearn.errors import InputError
    from routelearn.solving import make_solution, solve_stops
    from routelearn.solving.resume import read_routes, remeasured, to_tour

    routes, said = read_routes(solution)
    asked = rounds.asked_for(matrix, matrix_unit, vehicles, problem, limits, speed, allow_unassigned, round_, rounded)
    source, how = reading_of(solution, said, stops, asked)
    given = (stops, matrix, matrix_unit, vehicles, round_, rounded, problem, speed)
    renamed = any(option is not None for option in given)
    if (found_round := None if source is None else how.round_of(source)) is not None:
        check_target(out, plot, [found_round])
        better_plan = improve_round(
            found_round, solution, how.record, renamed or bool(limits), seconds=seconds, iterations=iterations,
            seed=seed, threads=threads, better=rounds.show_better if watch else None,
        )  # fmt: skip
        deliver(better_plan, out, plot, solution.stem)
        return
    named = how.problem
    found = read_stops(source, matrix=how.matrix, rounded=how.rounded, problem=named)
    if len(found) != 1:
        raise InputError(f"{source}: {len(found)} sets of stops for one solution; give the file of its stops")
    how.check_no_round(found[0], iterations=iterations)
    values = said_limits(said, named or found[0].problem) | limits
    converted = to_instance(found[0], named, **values)
    check_target(out, plot, found)
    check_has_depot(out, [converted.problem])
    if converted.problem.reveals_on_visit:
        raise InputError(
            f"{converted.problem.name}: prizes are known only after each visit, so a finished tour cannot be improved"
        )
    tour = to_tour(routes, converted, str(solution), numbered=bool(said.get("numbered")))
    differs = remeasured(said, make_solution(converted, tour[0, 0]))
    if differs is not None and not renamed:
        raise InputError(f"{solution}: {differs}; if they were changed, name them with --stops or --matrix")
    better = solve_stops(
        found[0], problem=named, **values, seconds=seconds, seed=seed, threads=threads, given=tour, policy=False,
        watch=show_event if watch else None, tell=show_line,
    )  # fmt: skip
    if differs is not None:  # the user measures by other stops or lengths: that is a new start, and is said
        better = replace(better, notes=(*better.notes, f"{solution}: {differs}"))
    deliver(better, out, plot, solution.stem)


def reading_of(
    solution: Path, said: dict[str, Any], stops: str | None, asked: rounds.Reading
) -> tuple[str | None, rounds.Reading]:
    """(file of the stops, how to read it): by the options, else as the solution says that it was read."""
    from routelearn.errors import InputError

    source, lengths = sources(solution, said, stops, asked.matrix)
    named = asked.problem if asked.problem is not None else said.get("problem")
    if named is not None and not isinstance(named, str):
        raise InputError(f"{solution}: 'problem' must be the id of a problem")
    options = dict(told) if isinstance(told := said.get("options"), dict) else {}
    before = options.pop("round", None if said.get("rounded") is not False else str(rounds.Rounding.none))
    fleet = asked.vehicles if asked.vehicles is not None else said.get("vehicles")
    speed, allowed = options.pop("speed", None), bool(options.pop("allow_unassigned", False))
    return source, rounds.Reading(
        lengths,
        None if fleet is None else str(fleet),
        named,
        asked.rounding if asked.rounding is not None else before,
        options | dict(asked.options),
        asked.speed if asked.speed is not None else speed,
        asked.allow_unassigned or allowed,
        said.get("until"),
    )


def improve_round(
    round_: Round, path: Path, read_with: Mapping[str, Any], renamed: bool, **search: Any
) -> RoundSolution:
    """A better plan than the one in the file; what it marks as kept stays at the beginning."""
    from routelearn.errors import InputError
    from routelearn.rounds.given import given_plan, kept_until, read_plan
    from routelearn.rounds.solving import check_round, solve_round
    from routelearn.solving.resume import remeasured

    routes, said = read_plan(path)
    found = given_plan(round_, routes, str(path), numbered=bool(said.get("numbered")))
    round_, drives = kept_until(round_, found, str(path), read_with.get("until"), marked=True)
    given = check_round(round_, drives)
    notes = []
    differs = None if said.get("numbered") else remeasured(said, given)
    if differs is not None:
        if not renamed:
            raise InputError(f"{path}: {differs}; if they were changed, name them with --stops or --matrix")
        notes.append(f"{path}: {differs}")
    broken = given.plan.violations
    if broken:
        rules = f"{len(broken)} rule{'' if len(broken) == 1 else 's'}"
        notes.append(f"{path}: the plan breaks {rules} ({broken[0].words}), so the search begins anew")
    better = solve_round(round_, start=None if broken else drives, read_with=read_with, **search)
    return replace(better, notes=(*better.notes, *notes))


def said_limits(said: dict[str, Any], problem: str | None) -> dict[str, Any]:
    """The limits that the solution states and the problem has (None: problem not known yet)."""
    from routelearn.data.convert import filled_by
    from routelearn.data.names import table
    from routelearn.problems import PROBLEMS

    limits = said.get("limits")
    if not isinstance(limits, dict):
        return {}
    found = PROBLEMS.get(problem or "")
    known = table(problem).limits if found is None else filled_by(found)
    return {name: value for name, value in limits.items() if name in known and isinstance(value, int | float | list)}


def sources(solution: Path, said: dict[str, Any], stops: str | None, matrix: str | None) -> tuple[str | None, Any]:
    """(file of the stops, file of their lengths): the options, else what the solution was measured by."""
    from routelearn.data.reading import is_there
    from routelearn.errors import InputError

    lengths = matrix if matrix is not None else said.get("matrix")
    if matrix is None and lengths is not None and not (isinstance(lengths, str) and Path(lengths).is_file()):
        raise InputError(f"{solution}: was measured by the matrix {lengths!r}, which is not a file here; give --matrix")
    source = stops if stops is not None else said.get("source")
    if stops is None and source is not None and source == said.get("matrix"):
        return None, lengths  # there never was more than the matrix
    if not isinstance(source, str):
        raise InputError(f"{solution}: does not say where its stops are; give --stops")
    if stops is None and not is_there(source):
        raise InputError(f"{solution}: its stops are from {source!r}, which is not a file here; give --stops")
    return source, lengths
