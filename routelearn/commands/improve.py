"""`routelearn improve`."""

from __future__ import annotations

from pathlib import Path

import typer

from routelearn.commands.solve import check_target, deliver, show_event


def improve(
    solution: Path = typer.Argument(help="Solution to start from: .json or .csv as `solve` writes them, or a .sol."),
    stops: str | None = typer.Option(None, help="File of the stops. [default: the source that a .json names]"),
    matrix: Path | None = typer.Option(None, help="File of distances or times that count instead."),
    problem: str | None = typer.Option(None, help="Problem id. [default: the solution's, or inferred]"),
    capacity: str | None = typer.Option(None, help="Capacity of a vehicle. [default: the solution's]"),
    max_length: float | None = typer.Option(None, help="Longest route allowed. [default: the solution's]"),
    min_prize: float | None = typer.Option(None, help="Least prize to collect. [default: the solution's]"),
    seconds: float = typer.Option(1.0, help="Time for the search."),
    out: str | None = typer.Option(None, help="Write .json, .geojson, .csv or .sol; - prints JSON."),
    plot: Path | None = typer.Option(None, help="Draw .png, .svg, .pdf or an interactive .html."),
    watch: bool = typer.Option(False, "--watch", help="Show the cost falling while the search runs."),
    rounded: bool = typer.Option(True, help="Lengths of a .tsp or .vrp rounded as these libraries define."),
    threads: int | None = typer.Option(None, min=1, help="Searches at once. [default: the processors, 4 at most]"),
    seed: int = typer.Option(0, help="Seed of the search."),
) -> None:
    """Improve a solution by local search; it never gets worse."""
    from routelearn.data import read_stops, to_instance
    from routelearn.errors import InputError
    from routelearn.solving import solve_stops
    from routelearn.solving.resume import read_routes, to_tour

    routes, said = read_routes(solution)
    source = stops if stops is not None else said.get("source")
    if not isinstance(source, str) or (stops is None and not Path(source).is_file()):
        raise InputError(f"{solution}: does not say where its stops are; give --stops")
    check_target(out, plot, 1)
    found = read_stops(source, matrix=matrix, rounded=rounded)
    if len(found) != 1:
        raise InputError(f"{source}: {len(found)} sets of stops for one solution; give the file of its stops")
    named = problem if problem is not None else said.get("problem")
    limits = said.get("limits") if isinstance(said.get("limits"), dict) else {}
    assert isinstance(limits, dict)
    values = {"capacity": capacity, "max_length": max_length, "min_prize": min_prize}
    for name, value in values.items():
        if value is None and isinstance(limits.get(name), int | float):
            values[name] = limits[name]
    if named is not None and not isinstance(named, str):
        raise InputError(f"{solution}: 'problem' must be the id of a problem")
    converted = to_instance(found[0], named, **values)  # type: ignore[arg-type]
    if converted.problem.reveals_on_visit:
        raise InputError(
            f"{converted.problem.name}: a visit's prize is only known after it, so no finished tour can be improved"
        )
    tour = to_tour(routes, converted, str(solution), numbered=bool(said.get("numbered")))
    better = solve_stops(
        found[0], problem=named, **values, seconds=seconds, seed=seed, threads=threads, given=tour, policy=False,  # type: ignore[arg-type]
        watch=show_event if watch else None,
    )  # fmt: skip
    deliver(better, out, plot)
