"""Solutions for people: routes of their own ids, written as JSON, GeoJSON, CSV or a CVRPLIB `.sol`."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from routelearn.data import csv_file
from routelearn.data.convert import Converted, Scale
from routelearn.data.fields import attributes_of
from routelearn.data.files import STDIN
from routelearn.data.stops import Stops
from routelearn.errors import InputError
from routelearn.problems import Problem
from routelearn.problems.attributes import Attribute, found
from routelearn.problems.base import MeasuresLegs, Splits, leg_of

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Solution:
    """A checked solution in the user's ids and units. Routes leave the depot out; they begin and end there."""

    problem: str
    source: str
    cost: float  # what the problem minimises; the prize of an orienteering tour counts as its negative
    unit: str  # of lengths: "km", or "" where the file does not say
    depot: str | int | None  # None: a closed tour without a depot
    routes: list[list[str | int]]
    lengths: list[float]  # per route, with the ways from and to the depot
    loads: list[float] | None = None  # per route, where there are demands
    amounts: list[list[float]] | None = None  # delivered at each visit of `routes`, where a delivery may be split
    prize: float | None = None  # collected, where there are prizes
    limits: dict[str, Any] = field(default_factory=dict)  # attributes of the whole file, by name
    values: dict[str, dict[str, Any]] = field(default_factory=dict)  # those of the stops: name -> str(id) -> value
    returns: bool = True  # False: the way back to the depot counts for nothing, and is not drawn
    unvisited: list[str | int] = field(default_factory=list)
    node_routes: list[list[int]] = field(default_factory=list)  # as `routes`, in node numbers (depot 0)
    places: dict[str, tuple[float, float]] = field(default_factory=dict)  # str(id) -> x, y or lon, lat
    on_globe: bool = False  # places are longitude, latitude
    matrix: str | None = None  # the file of lengths, where one replaced those of the places
    rounded: bool = True  # False: a library file's lengths without the library's rounding

    @property
    def length(self) -> float:
        return sum(self.lengths)

    def with_ends(self, route: Sequence[Any], depot: Any) -> list[Any]:
        """The stops of a route as they are drawn: from the depot and back, or to the first stop again."""
        if depot is None:
            return [*route, *route[:1]]
        return [depot, *route, depot] if self.returns else [depot, *route]

    def of_route(self, i: int) -> dict[str, Any]:
        """What is known of a route beside its stops."""
        parts = {"length": self.lengths, "load": self.loads, "amounts": self.amounts}
        return {name: values[i] for name, values in parts.items() if values is not None}

    def document(self) -> dict[str, Any]:
        """What is written as JSON."""
        return {
            "format": "routelearn-solution",
            "format_version": FORMAT_VERSION,
            "problem": self.problem,
            "source": self.source,
            **({} if self.matrix is None else {"matrix": self.matrix}),
            **({} if self.rounded else {"rounded": False}),
            "cost": self.cost,
            "length": self.length,
            "unit": self.unit or None,
            "depot": self.depot,
            "routes": [{"stops": route, **self.of_route(i)} for i, route in enumerate(self.routes)],
            "unvisited": self.unvisited,
            **({} if self.prize is None else {"prize": self.prize}),
            **({"values": self.values} if self.values else {}),
        }


def solution_of(converted: Converted, stops: Stops, tour: Tensor) -> Solution:
    """The tour [T] of the converted stops, checked and measured by the problem itself."""
    problem, x, scale = converted.problem, converted.referee, converted.scale
    batch = tour.detach().cpu().long().reshape(1, 1, -1)
    problem.check(x, batch)
    nodes = batch[0, 0].tolist()
    routes = _split(nodes) if problem.has_depot else [_from_first(nodes[: len(scale.ids)])]
    closed = [[0, *route] if problem.has_depot else route for route in routes]
    visited = {node for route in routes for node in route}
    attributes = attributes_of(problem)
    amounts = problem.delivered(x, routes) if isinstance(problem, Splits) else None
    demand = found(attributes, x, "stop", "amount")
    loads = amounts if amounts is not None or demand is None else [demand[0, route].tolist() for route in routes]
    earned = _earned(attributes, x)
    coordinates = stops.xy if stops.latlon is None else stops.latlon[:, ::-1]
    start = 1 if problem.has_depot else 0
    return Solution(
        problem=problem.name,
        source=stops.source,
        cost=float(problem.cost(x, batch)),
        unit=scale.unit,
        depot=scale.ids[0] if problem.has_depot else None,
        routes=[[scale.ids[node] for node in route] for route in routes],
        lengths=_lengths(problem, x, closed),
        returns=not isinstance(problem, MeasuresLegs) or any(_ways_back(problem, x, closed)),
        loads=None if loads is None else [sum(route) / scale.demand for route in loads],
        amounts=None if amounts is None else [[amount / scale.demand for amount in route] for route in amounts],
        prize=None if earned is None else float(earned[0, list(visited)].sum()),
        limits={
            one.name: _told(one, x, scale) for one in attributes if one.of_file and getattr(x, one.name) is not None
        },
        values={
            one.name: dict(zip(map(str, scale.ids), _told(one, x, scale), strict=True))
            for one in attributes
            if one.of == "stop" and not one.revealed_on_visit and getattr(x, one.name) is not None
        },
        unvisited=[scale.ids[node] for node in range(start, len(scale.ids)) if node not in visited],
        node_routes=routes,
        places={} if coordinates is None else _places(stops, coordinates),
        on_globe=stops.latlon is not None,
        matrix=stops.matrix_file,
        rounded=stops.rounded,
    )


def _split(nodes: list[int]) -> list[list[int]]:
    """The routes between the zeros."""
    routes: list[list[int]] = [[]]
    for node in nodes:
        if node == 0:
            routes.append([])
        else:
            routes[-1].append(node)
    return [route for route in routes if route]


def _from_first(nodes: list[int]) -> list[int]:
    """Rotate a closed tour to begin at node 0: the marked depot, or else the first stop of the file."""
    start = nodes.index(0)
    return nodes[start:] + nodes[:start]


def _told(one: Attribute, x: Any, scale: Scale) -> Any:
    """What an instance of one row has of an attribute, in the user's units: a number, or one for every node."""
    values = getattr(x, one.name)[0]
    return (values.double() / scale.demand if one.whole and one.unit == "amount" else values).tolist()


def _earned(attributes: Sequence[Attribute], x: Any) -> Tensor | None:
    """[B, N]: the prize that a visit brings: what it reveals, else what is expected of it."""
    for one in attributes:
        revealed = getattr(x, one.name) if one.revealed_on_visit and one.unit == "prize" else None
        if revealed is not None:
            return revealed
    return found(attributes, x, "stop", "prize")


def _ways_back(problem: Problem, x: Any, closed: list[list[int]]) -> list[float]:
    """The leg that closes each route."""
    last, first = (torch.tensor([[route[end] for route in closed]], dtype=torch.long) for end in (-1, 0))
    return leg_of(problem, x, last, first)[0].tolist()


def _lengths(problem: Problem, x: Any, closed: list[list[int]]) -> list[float]:
    """The length of each closed route. All legs are read at once, since there may be a thousand routes."""
    origin = torch.tensor([[node for route in closed for node in route]])
    target = torch.tensor([[node for route in closed for node in (*route[1:], route[0])]])
    legs = iter(leg_of(problem, x, origin.long(), target.long())[0].tolist())
    return [math.fsum(islice(legs, len(route))) for route in closed]


def _places(stops: Stops, coordinates: np.ndarray) -> dict[str, tuple[float, float]]:
    return {str(name): (float(a), float(b)) for name, (a, b) in zip(stops.ids, coordinates, strict=True)}


# --------------------------------------------------------------------------------------------- formats


def to_json(solution: Solution) -> str:
    return json.dumps(solution.document(), ensure_ascii=False, indent=2) + "\n"


def to_geojson(solution: Solution) -> str:
    """A LineString per route and a Point per stop, longitude first."""
    if not solution.on_globe:
        raise InputError("GeoJSON needs places on the globe; these stops have no lat and lon (choose json or csv)")
    features = []
    for i, route in enumerate(solution.routes):
        properties: dict[str, Any] = {"route": i + 1, "stops": route, **solution.of_route(i)}
        line = [solution.places[str(stop)] for stop in solution.with_ends(route, solution.depot)]
        features.append(_feature("LineString", line, properties))
    if solution.depot is not None:
        features.append(_feature("Point", solution.places[str(solution.depot)], {"id": solution.depot, "depot": True}))
    for i, route in enumerate(solution.routes):
        for position, stop in enumerate(route, 1):
            properties = {"id": stop, "route": i + 1, "position": position, **_values(solution, stop)}
            if solution.amounts is not None:
                properties["amount"] = solution.amounts[i][position - 1]
            features.append(_feature("Point", solution.places[str(stop)], properties))
    for stop in solution.unvisited:
        features.append(
            _feature("Point", solution.places[str(stop)], {"id": stop, "route": None, **_values(solution, stop)})
        )
    return json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False, indent=1) + "\n"


def _values(solution: Solution, stop: str | int) -> dict[str, Any]:
    """The attributes of a stop."""
    return {name: values[str(stop)] for name, values in solution.values.items()}


def _feature(kind: str, coordinates: Any, properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Feature", "geometry": {"type": kind, "coordinates": coordinates}, "properties": properties}


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


WRITERS: dict[str, Callable[[Solution], str]] = {
    "json": to_json,
    "geojson": to_geojson,
    "csv": to_csv,
    "sol": to_sol,
}


def print_text(text: str) -> None:
    """Write to standard output as UTF-8, whatever the terminal's encoding: a program reads it."""
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:  # a notebook's
        sys.stdout.write(text)
    else:
        sys.stdout.flush()
        binary.write(text.encode())
    sys.stdout.flush()


def write_solution(path: str | Path, solution: Solution, kind: str | None = None) -> None:
    """Write in the format `kind`, or the one the suffix names; `-` is standard output (JSON unless told)."""
    to_stdout = str(path) == STDIN
    name = kind or ("json" if to_stdout else Path(path).suffix.lower().removeprefix("."))
    if name not in WRITERS:
        raise InputError(f"{path}: unknown format {name!r} of a solution; the choices are {', '.join(WRITERS)}")
    write_text(path, WRITERS[name](solution))


def write_text(path: str | Path, text: str) -> None:
    """Write a file in UTF-8; `-` is standard output."""
    if str(path) == STDIN:
        print_text(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
