"""A solution from a file, as a tour of the stops it belongs to: JSON, CSV or `.sol`, as this program writes them."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from routelearn.data.convert import Converted
from routelearn.data.csv_file import DELIMITERS, first_line, plain, rows_of
from routelearn.data.files import read_text
from routelearn.data.names import spelled
from routelearn.data.numbers import shown
from routelearn.data.stops import MOST_STOPS
from routelearn.errors import Infeasible, InputError
from routelearn.solving.strict import check_strictly

if TYPE_CHECKING:
    from routelearn.rounds.answers import RoundSolution
    from routelearn.solving.solution import Solution

_WHOLE = re.compile(r"\s*\d{1,9}\s*", re.ASCII)
_COST = re.compile(r"\s*Cost\s*:?\s*(\d+(?:\.\d+)?)\s*", re.IGNORECASE)
_ROUTE = re.compile(r"\s*Route\s*#?\s*\d+\s*:\s*(.*)", re.IGNORECASE)
# How the problems word a broken rule: node numbers, steps of the tour, and amounts in whole units.
_NODE, _STEP = re.compile(r"\bnode (\d+)\b"), re.compile(r"\bat step (\d+)\b")
_AMOUNT = re.compile(r"\b(loads|the capacity is|is still owed) (\d+)\b")

Names = list[list[str]]
COLUMNS = {"route", "position", "id"}  # of a solution as CSV
SAME = 1e-6  # relative: a cost that was rounded when it was written is still the same cost


def read_routes(path: str | Path) -> tuple[Names, dict[str, Any]]:
    """(routes of ids as text, what else the file says: problem, source, matrix, rounded, limits, cost, length)."""
    text = read_text(path)
    suffix = Path(path).suffix.lower()
    if suffix == ".sol":
        return _sol(text, str(path))
    if suffix == ".csv":
        return _csv(text, str(path))
    if suffix == ".json":
        return _json(text, str(path))
    raise InputError(f"{path}: a solution ends in .json, .csv or .sol")


def _json(text: str, source: str) -> tuple[Names, dict[str, Any]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}: not JSON ({str(error).splitlines()[0][:80]})") from None
    routes = document.get("routes") if isinstance(document, dict) else None
    if not isinstance(routes, list):
        raise InputError(f"{source}: no list of routes; a solution has 'routes'")
    names = []
    for i, route in enumerate(routes, 1):
        stops = _stops(route) if isinstance(route, dict) else route
        if not isinstance(stops, list) or not all(isinstance(stop, str | int) for stop in stops):
            raise InputError(f"{source}: route {i} is not a list of ids")
        names.append([str(stop) for stop in stops])
    return names, document


def _stops(route: dict[str, Any]) -> Any:
    """The ids of a route, ours or one of VROOM's."""
    if "stops" in route or not isinstance(route.get("steps"), list):
        return route.get("stops")
    steps = [step for step in route["steps"] if isinstance(step, dict) and "job" in step]
    return [step.get("description", step["job"]) for step in steps]


def _column(name: str) -> str:
    return spelled(name) or name.strip().lower()


def _csv(text: str, source: str) -> tuple[Names, dict[str, Any]]:
    first = first_line(text)
    delimiter = max(DELIMITERS, key=lambda d: sum(_column(cell.strip('"')) in COLUMNS for cell in first.split(d)))
    # A spreadsheet may have saved it, with ; and names in capitals. Depots stand between the stops.
    rows = rows_of(text, delimiter, source, 3 * MOST_STOPS)
    names = [_column(cell) for cell in next(rows, (1, []))[1]]
    if not COLUMNS.issubset(names):
        raise InputError(f"{source}: a solution as CSV has the columns route, position and id")
    routes: dict[str, dict[int, str]] = {}
    vehicles: dict[str, str] = {}
    for line, cells in rows:
        row = {name: plain(cell.strip()) for name, cell in zip(names, cells, strict=False)}
        route, position, stop = (row.get(name, "") for name in ("route", "position", "id"))
        where = f"{source}, line {line}"
        if (stop and not route and row.get("reason")) or row.get("kind") in ("start", "end", "break"):
            continue  # left out, or of an itinerary
        if not route or not stop:
            raise InputError(f"{where}: no route or no id")
        visits = routes.setdefault(route, {})
        if vehicle := row.get("vehicle"):
            vehicles.setdefault(route, vehicle)
        if not _WHOLE.fullmatch(position):
            raise InputError(f"{where}: position is {shown(position)}; a whole number is needed")
        if int(position) in visits:
            raise InputError(f"{where}: a second visit at position {int(position)} of route {shown(route)}")
        visits[int(position)] = stop
    # By number, not by line: a spreadsheet may have sorted the file. (Routes, too: in a split delivery the earlier
    # route brings what fits, the later one the rest.)
    order = sorted(routes, key=int) if all(map(_WHOLE.fullmatch, routes)) else list(routes)
    found = [[routes[route][position] for position in sorted(routes[route])] for route in order]
    said = [{"stops": stops, "vehicle": vehicles.get(route)} for route, stops in zip(order, found, strict=True)]
    return found, {"routes": said} if vehicles else {}


def _sol(text: str, source: str) -> tuple[Names, dict[str, Any]]:
    routes = [match[1].split() for line in text.splitlines() if (match := _ROUTE.fullmatch(line))]
    costs = [float(match[1]) for line in text.splitlines() if (match := _COST.fullmatch(line))]
    if not routes and not costs:  # a plan may leave out all stops
        raise InputError(f"{source}: no line 'Route #1: ...'")
    return routes, {"numbered": True, **({"length": costs[0]} if costs else {})}


def to_tour(routes: Names, converted: Converted, source: str, *, numbered: bool = False) -> Tensor:
    """The tour [1, 1, T], feasible for the stops; `numbered`: by node number (`.sol`) instead of id."""
    ids = [str(i) for i in range(converted.nodes)] if numbered else [str(i) for i in converted.scale.ids]
    node = {name: i for i, name in enumerate(ids)}
    depot = converted.problem.has_depot
    nodes: list[int] = []
    for i, route in enumerate(routes, 1):
        unknown = next((name for name in route if name not in node), None)
        if unknown is not None:
            raise InputError(f"{source}: route {i} visits {unknown[:40]!r}, which is not among the stops")
        nodes += [node[name] for name in route if not (depot and node[name] == 0)]
        nodes += [0] if depot else []
    tour = torch.tensor(nodes or [0])[None, None]
    try:
        if not depot and len(nodes) < len(ids):
            raise Infeasible(0, f"{len(nodes)} of {len(ids)} stops are visited")
        check_strictly(converted.problem, converted.referee, tour)
    except Infeasible as error:
        if depot and len(nodes) > 1:
            with suppress(Infeasible):  # a problem whose tours do not come back to the depot
                check_strictly(converted.problem, converted.referee, tour[..., :-1])
                return tour[..., :-1]
        reason = in_their_terms(error.reason, converted, nodes, numbered)
        raise InputError(f"{source}: not a solution of these stops: {reason}") from None
    return tour


def in_their_terms(reason: str, converted: Converted, nodes: list[int], numbered: bool) -> str:
    """The broken rule in the user's ids and amounts, instead of the instance's nodes and whole units."""
    scale = converted.scale

    def stop(match: re.Match[str]) -> str:
        node = int(match[1])
        return f"stop {shown(scale.ids[node])}" + (f" (number {node} of the .sol)" if numbered else "")

    reason = _STEP.sub(lambda match: f"in route {1 + nodes[: int(match[1])].count(0)}", reason)
    reason = _AMOUNT.sub(lambda match: f"{match[1]} {int(match[2]) / scale.demand:g}", reason)
    return _NODE.sub(stop, reason)


def remeasured(said: dict[str, Any], measured: Solution | RoundSolution) -> str | None:
    """How cost or length differ from what the file says, in words; None if both agree."""
    for name in ("cost", "length"):
        told, now = said.get(name), getattr(measured, name)
        if isinstance(told, int | float) and not abs(told - now) <= SAME * max(abs(told), abs(now)):
            return f"the {name} is {told:.10g} in the file, but {now:.10g} by these stops and lengths"
    return None
