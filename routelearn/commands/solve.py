"""`routelearn solve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from routelearn.solution import Solution
    from routelearn.solving import Event

STOPS = "CSV, JSON, GeoJSON, .tsp, .vrp or .npz file; - for standard input; a folder or a 'glob*' for many files."
LONGEST_LIST = 12  # stops of a route that the table names


def solve(
    stops: str | None = typer.Argument(None, help=STOPS),
    matrix: Path | None = typer.Option(None, help="File of distances or times, from row to column, to count instead."),
    problem: str | None = typer.Option(None, help="Problem id. [default: inferred from the fields]"),
    capacity: str | None = typer.Option(None, help="Capacity of a vehicle."),
    max_length: float | None = typer.Option(None, help="Longest route allowed (km for lat, lon)."),
    min_prize: float | None = typer.Option(None, help="Least prize to collect."),
    seconds: float = typer.Option(1.0, help="Time for each file; 0: one construction, no search."),
    out: str | None = typer.Option(None, help="Write .json, .geojson, .csv or .sol; - prints JSON; a folder for many."),
    plot: Path | None = typer.Option(None, help="Draw .png, .svg, .pdf or an interactive .html; a folder for many."),
    watch: bool = typer.Option(False, "--watch", help="Show the cost falling while the search runs."),
    policy: bool = typer.Option(True, help="Let the trained policy take part; without it, search alone."),
    model: str | None = typer.Option(None, help="Model file, or the name of a shipped one. [default: the fitting one]"),
    rounded: bool = typer.Option(True, help="Lengths of a .tsp or .vrp rounded as these libraries define."),
    threads: int | None = typer.Option(None, min=1, help="Searches at once. [default: the processors, 4 at most]"),
    seed: int = typer.Option(0, help="Seed of the search."),
) -> None:
    """Find a good route for your own stops, in the time you give: `routelearn solve stops.csv --seconds 1`."""
    from routelearn.data import read_stops, to_instance
    from routelearn.solving import solve_stops

    found = read_stops(stops, matrix=matrix, rounded=rounded)
    check_target(out, plot, len(found))
    for one in found[1:]:  # a bad file among many is told before the first is solved
        to_instance(one, problem, capacity, max_length, min_prize)
    for one in found:
        solution = solve_stops(
            one, problem=problem, capacity=capacity, max_length=max_length, min_prize=min_prize, seconds=seconds,
            seed=seed, policy=policy, model=model, threads=threads, watch=show_event if watch else None,
        )  # fmt: skip
        deliver(solution, out, plot, many=len(found) > 1)


def check_target(out: str | None, plot: Path | None, count: int) -> None:
    """Wrong names are told before the search, not after it."""
    from routelearn.data.solutions import WRITERS
    from routelearn.errors import InputError
    from routelearn.solution import PICTURES

    for name, path, choices in (
        ("--out", None if out in (None, "-") else out, tuple(f".{kind}" for kind in WRITERS)),
        ("--plot", None if plot is None else str(plot), PICTURES),
    ):
        if path is None:
            continue
        suffix = Path(path).suffix.lower()
        if count > 1 and suffix:
            raise InputError(f"{name} {path}: {count} sets of stops need a folder, not a file")
        if count == 1 and suffix not in choices:
            raise InputError(f"{name} {path}: the file must end in {', '.join(choices)}")
        folder = Path(path) if count > 1 else Path(path).parent
        if count > 1:
            folder.mkdir(parents=True, exist_ok=True)
        elif not folder.is_dir():
            raise InputError(f"{name} {path}: there is no folder {folder}")


def deliver(solution: Solution, out: str | None, plot: Path | None, *, many: bool = False) -> None:
    """Show the solution and write what was asked for."""
    import re

    name = re.sub(r"[^\w.-]+", "_", Path(solution.source).name)
    report(solution, brief=many, to_stderr=out == "-")
    if out is not None:
        solution.write(out if not many or out == "-" else Path(out) / f"{name}.json")
    if plot is not None:
        solution.plot(plot if not many else plot / f"{name}.html")


def show_event(event: Event) -> None:
    typer.echo(f"{event.seconds:8.3f} s  {event.cost:14.6g}  {event.by}", err=True)


def report(solution: Solution, *, brief: bool = False, to_stderr: bool = False) -> None:
    """A readable table: routes, load, length, and what policy and search each contributed."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from routelearn.plots.routes import caption

    console = Console(stderr=to_stderr, highlight=False)
    title = f"[bold]{escape(caption(solution))}[/bold]  ({escape(solution.source)}, {solution.seconds:.2f} s)"
    console.print(title, soft_wrap=True)
    if brief:
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
        if len(names) > LONGEST_LIST:
            names = [*names[: LONGEST_LIST - 3], f"... {len(names) - LONGEST_LIST + 1} more ...", *names[-2:]]
        load = [] if solution.loads is None else [f"{solution.loads[i]:g}"]
        order = escape(" > ".join(names))
        table.add_row(str(i + 1), str(len(route)), *load, f"{solution.lengths[i]:,.6g}", order)
    console.print(table)
    if solution.unvisited and solution.depot is not None:
        left = ", ".join(map(str, solution.unvisited[:LONGEST_LIST]))
        console.print(
            f"left out: {escape(left)}{' ...' if len(solution.unvisited) > LONGEST_LIST else ''}", soft_wrap=True
        )
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
