"""A solution from a file, as a tour of the stops it belongs to: JSON, CSV or `.sol`, as this program writes them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from routelearn.data.convert import Converted
from routelearn.data.files import read_text
from routelearn.errors import Infeasible, InputError

_ROUTE = re.compile(r"\s*Route\s*#?\s*\d+\s*:\s*(.*)", re.IGNORECASE)

Names = list[list[str]]


def read_routes(path: str | Path) -> tuple[Names, dict[str, Any]]:
    """(routes of ids as text, what else the file says: problem, source, limits)."""
    text = read_text(path)
    suffix = Path(path).suffix.lower()
    if suffix == ".sol":
        return _sol(text, str(path)), {"numbered": True}
    if suffix == ".csv":
        return _csv(text, str(path)), {}
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
        stops = route.get("stops") if isinstance(route, dict) else route
        if not isinstance(stops, list) or not all(isinstance(stop, str | int) for stop in stops):
            raise InputError(f"{source}: route {i} is no list of ids")
        names.append([str(stop) for stop in stops])
    return names, document


def _csv(text: str, source: str) -> Names:
    rows = csv.DictReader(io.StringIO(text))
    if not {"route", "id"} <= set(rows.fieldnames or ()):
        raise InputError(f"{source}: a solution as CSV has the columns route, position and id")
    routes: dict[str, list[str]] = {}
    for row in rows:
        if not row["route"] or not row["id"]:
            raise InputError(f"{source}, line {rows.line_num}: no route or no id")
        routes.setdefault(row["route"], []).append(row["id"])
    return list(routes.values())


def _sol(text: str, source: str) -> Names:
    routes = [match[1].split() for line in text.splitlines() if (match := _ROUTE.fullmatch(line))]
    if not routes:
        raise InputError(f"{source}: no line 'Route #1: ...'")
    return routes


def to_tour(routes: Names, converted: Converted, source: str, *, numbered: bool = False) -> Tensor:
    """The tour [1, 1, T], feasible for the stops; `numbered`: by node number (`.sol`) instead of id."""
    ids = [str(i) for i in range(len(converted.scale.ids))] if numbered else [str(i) for i in converted.scale.ids]
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
        converted.problem.check(converted.referee, tour)
    except Infeasible as error:
        raise InputError(f"{source}: not a solution of these stops: {error.reason}") from None
    return tour
