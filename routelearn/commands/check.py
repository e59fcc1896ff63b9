"""`routelearn check`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from routelearn.commands import rounds
from routelearn.commands.improve import ROUND, reading_of, said_limits
from routelearn.commands.solve import OUT, PLOT, check_has_depot, check_target, deliver


def check(
    plan: Path = typer.Argument(help="Plan to check: .json or .csv as `solve` writes them, VROOM's .json, or a .sol."),
    stops: str | None = typer.Option(None, help="File of the stops. [default: the one named in the .json]"),
    matrix: Path | None = typer.Option(
        None, help="Matrix of distances or times. [default: the one named in the .json]"
    ),
    matrix_unit: rounds.MatrixUnit | None = typer.Option(None, help=f"{rounds.MATRIX_UNIT} [default: the plan's]"),
    vehicles: str | None = typer.Option(None, help=f"{rounds.VEHICLES} [default: the plan's]"),
    problem: str | None = typer.Option(None, help="Problem id. [default: the plan's, or inferred]"),
    limits: dict[str, Any] = " [default: the plan's]",  # type: ignore[assignment]  # an option for each attribute
    speed: str | None = typer.Option(None, help=f"{rounds.SPEED} [default: the plan's]"),
    allow_unassigned: bool = typer.Option(False, "--allow-unassigned", help="Stops that are left out break no rule."),
    out: str | None = typer.Option(None, help=OUT),
    plot: str | None = typer.Option(None, help=PLOT),
    round_: rounds.Rounding | None = typer.Option(None, "--round", help=ROUND),
    rounded: bool | None = typer.Option(None, "--rounded/--no-rounded", help="As --round nearest, or --round none."),
) -> None:
    """Check a plan: its itinerary, its cost and every rule that it breaks. The status is 1 if it breaks one."""
    from routelearn.rounds.given import given_plan, kept_until, read_plan
    from routelearn.rounds.solving import check_round

    routes, said = read_plan(plan)
    asked = rounds.asked_for(matrix, matrix_unit, vehicles, problem, limits, speed, allow_unassigned, round_, rounded)
    source, how = reading_of(plan, said, stops, asked)
    round_found = None if source is None else how.round_of(source)
    if round_found is None:
        check_solution(plan, source, said, how, limits, out, plot)
        return
    check_target(out, plot, [round_found])
    # What VROOM's steps say is to be checked, not kept.
    round_found = replace(round_found, vehicles=tuple(replace(one, kept=()) for one in round_found.vehicles))
    given = given_plan(round_found, routes, str(plan), numbered=bool(said.get("numbered")))
    round_found, drives = kept_until(round_found, given, str(plan), how.until, marked=True)
    checked = check_round(round_found, drives, read_with=how.record)
    deliver(checked, out, plot, plan.stem)
    if checked.plan.violations:
        raise typer.Exit(1)


def check_solution(
    path: Path,
    source: str | None,
    said: dict[str, Any],
    how: rounds.Reading,
    limits: dict[str, Any],
    out: str | None,
    plot: str | None,
) -> None:
    """Of stops that are no round: the cost, or the first rule that is broken."""
    from routelearn.data import read_stops, to_instance
    from routelearn.errors import InputError
    from routelearn.solving.resume import read_routes, to_tour
    from routelearn.solving.solution import make_solution

    found = read_stops(source, matrix=how.matrix, rounded=how.rounded, problem=how.problem)
    if len(found) != 1:
        raise InputError(f"{source}: {len(found)} sets of stops for one plan; give the file of its stops")
    how.check_no_round(found[0])
    check_target(out, plot, found)
    converted = to_instance(found[0], how.problem, **(said_limits(said, how.problem or found[0].problem) | limits))
    check_has_depot(out, [converted.problem])
    tour = to_tour(read_routes(path)[0], converted, str(path), numbered=bool(said.get("numbered")))
    deliver(make_solution(converted, tour[0, 0]), out, plot, path.stem)
