"""Solutions as files: routes of the user's ids as JSON, GeoJSON, CSV or a CVRPLIB `.sol`."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routelearn.data import csv_file
from routelearn.data.files import STDIN
from routelearn.data.geojson import feature
from routelearn.errors import InputError
from routelearn.runtime.atomic import writing

if TYPE_CHECKING:
    from routelearn.solving.solution import Solution

FORMAT_VERSION = 1


def to_json(solution: Solution) -> str:
    return json.dumps(solution.document(), ensure_ascii=False, indent=2) + "\n"


def to_geojson(solution: Solution) -> str:
    """A LineString per route and a Point per stop, longitude first."""
    if not solution.on_globe:
        raise InputError("GeoJSON needs places on the globe; these stops have no lat and lon (choose json or csv)")
    features, places, depot = [], solution.places, solution.depot
    for i, route in enumerate(solution.routes):
        line = [places[str(stop)] for stop in solution.with_ends(route, depot)]
        features.append(feature("LineString", line, {"route": i + 1, "stops": route, **solution.of_route(i)}))
    if depot is not None:
        features.append(feature("Point", places[str(depot)], {"id": depot, "depot": True}))
    for i, route in enumerate(solution.routes):
        for position, stop in enumerate(route, 1):
            properties = {"id": stop, "route": i + 1, "position": position, **_values(solution, stop)}
            if solution.amounts is not None:
                properties["amount"] = solution.amounts[i][position - 1]
            features.append(feature("Point", places[str(stop)], properties))
    for stop in solution.unvisited:
        properties = {"id": stop, "route": None, **_values(solution, stop)}
        features.append(feature("Point", places[str(stop)], properties))
    return json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False, indent=1) + "\n"


def _values(solution: Solution, stop: str | int) -> dict[str, Any]:
    """The attributes of a stop."""
    return {name: values[str(stop)] for name, values in solution.values.items()}


def to_csv(solution: Solution) -> str:
    """One line per visit, in driving order; position 0 and the last one of a route are the depot."""
    columns: tuple[str, ...] = () if not solution.places else ("lon", "lat") if solution.on_globe else ("x", "y")
    output = io.StringIO()
    write = csv_file.writer(output)
    amounts = () if solution.amounts is None else ("amount",)
    write(("route", "position", "id", *columns, *solution.values, *amounts))
    for i, route in enumerate(solution.routes, 1):
        visits = solution.with_ends(route, solution.depot) if solution.depot is not None else route
        for position, stop in enumerate(visits, 0 if solution.depot is not None else 1):
            amount = [] if solution.amounts is None else ["", *solution.amounts[i - 1], ""][position : position + 1]
            values = (
                " ".join(map(str, value)) if isinstance(value, list) else value
                for value in _values(solution, stop).values()
            )
            write((i, position, stop, *solution.places.get(str(stop), ()), *values, *amount))
    return output.getvalue()


def to_sol(solution: Solution) -> str:
    """CVRPLIB: customers numbered from 1 in the order of the file, the depot left out."""
    if solution.depot is None:
        raise InputError("a .sol file holds routes from a depot; this is a tour without one (choose json or csv)")
    lines = [f"Route #{i}: {' '.join(map(str, route))}" for i, route in enumerate(solution.node_routes, 1)]
    total = solution.length
    return "\n".join([*lines, f"Cost {int(total) if total == int(total) else total}"]) + "\n"


WRITERS: dict[str, Callable[[Solution], str]] = {"json": to_json, "geojson": to_geojson, "csv": to_csv, "sol": to_sol}


def write_solution(path: str | Path, solution: Solution, kind: str | None = None) -> None:
    """Write in the format `kind`, or the one the suffix names; `-` is standard output (JSON unless told)."""
    name = kind or ("json" if str(path) == STDIN else Path(path).suffix.lower().removeprefix("."))
    if name not in WRITERS:
        raise InputError(f"{path}: unknown format {name!r} of a solution; the choices are {', '.join(WRITERS)}")
    write_text(path, WRITERS[name](solution))


def write_text(path: str | Path, text: str) -> None:
    """Write a file; `-` is standard output. In UTF-8, whatever the terminal's encoding: a program reads it."""
    if str(path) == STDIN:
        if hasattr(sys.stdout, "buffer"):
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode())
        else:  # a notebook's
            sys.stdout.write(text)
        sys.stdout.flush()
        return
    with writing(path):
        Path(path).write_text(text, encoding="utf-8")
