"""The solution that users get: cost and routes in their own ids and units, how it was found, pictures and files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from routelearn.data.convert import Converted, Scale
from routelearn.data.fields import attributes_of
from routelearn.problems import Problem
from routelearn.problems.attributes import Attribute, found
from routelearn.problems.base import MeasuresLegs, Splits, leg_of, routes_of
from routelearn.solving import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What may find a solution: the policy alone, a constructive heuristic, local search and metaheuristic, or the
# policy rebuilding a part of the best one. "given": the solution that `improve` starts from.
SOURCES = ("policy", "heuristic", "search", "rebuild", "given")


@dataclass(frozen=True)
class Event:
    """A new best solution."""

    seconds: float  # since the search began
    cost: float
    by: str  # one of SOURCES


@dataclass(frozen=True, repr=False)
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
    maximise: bool = False  # people state the cost as its negative
    seconds: float = 0.0  # from the call to the answer; start-up of compiled code and model not counted
    events: tuple[Event, ...] = ()  # every new best solution of the search, in order
    notes: tuple[str, ...] = ()  # what the user should know, one line each
    layout: tuple[tuple[str | int, float, float], ...] = ()  # id and position on a drawing, by node number
    embedded: bool = False  # the layout was made from distances alone
    interrupted: bool = False  # the search was ended before its time

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
            "format_version": writing.FORMAT_VERSION,
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
            "limits": self.limits,
            "seconds": self.seconds,
            "history": [[round(event.seconds, 6), event.cost, event.by] for event in self.events],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        from routelearn.plots.routes import caption

        return f"Solution({caption(self)})"

    @property
    def objective(self) -> float:
        """The cost as people state it: the prize of an orienteering tour is positive."""
        return -self.cost if self.maximise else self.cost

    def gap_to(self, reference: float | Solution) -> float:
        """How much worse than the reference (0.01: 1 %); negative if better. A positive number is a prize for OP."""
        other = reference.cost if isinstance(reference, Solution) else float(reference)
        if self.maximise and other > 0:
            other = -other
        if other == 0:
            return 0.0 if self.cost == 0 else float("inf") if self.cost > 0 else float("-inf")
        return (self.cost - other) / abs(other)

    def found_by(self) -> dict[str, float]:
        """How much each part of the search reduced the cost of the first solution (0 for the part that built it)."""
        gains: dict[str, float] = {}
        before: float | None = None
        for event in self.events:
            gains[event.by] = gains.get(event.by, 0.0) + (0.0 if before is None else before - event.cost)
            before = event.cost
        return gains

    to_json, to_geojson = writing.to_json, writing.to_geojson
    to_csv, to_sol = writing.to_csv, writing.to_sol

    def to_html(self) -> str:
        """One self-contained interactive page."""
        from routelearn.plots.page import page

        return page(self)

    def plot(self, path: str | Path | None = None) -> Figure | None:
        """A matplotlib figure of the routes; with a path, a file instead: .png, .svg, .pdf, or an interactive .html."""
        from routelearn.plots.routes import draw
        from routelearn.plots.saving import drawn

        return drawn(path, lambda: draw(self), self.to_html)

    def write(self, path: str | Path, kind: str | None = None) -> None:
        """The format that the suffix (or `kind`) names: json, geojson, csv, sol; `-` is standard output."""
        writing.write_solution(path, self, kind)


def make_solution(
    converted: Converted,
    tour: Tensor,
    *,
    seconds: float = 0.0,
    events: tuple[Event, ...] = (),
    notes: tuple[str, ...] = (),
) -> Solution:
    """The tour [T] as a Solution; the problem itself checks and measures it, and raises Infeasible if it must."""
    stops, problem, x, scale = converted.stops, converted.problem, converted.referee, converted.scale
    batch = tour.detach().cpu().long().reshape(1, 1, -1)
    problem.check(x, batch)
    nodes = batch[0, 0].tolist()
    routes = routes_of(nodes) if problem.has_depot else [_from_first(nodes[: len(scale.ids)])]
    closed = [[0, *route] if problem.has_depot else route for route in routes]
    visited = {node for route in routes for node in route}
    attributes = attributes_of(problem)
    amounts = problem.delivered(x, routes) if isinstance(problem, Splits) else None
    demand = found(attributes, x, "stop", "amount")
    loads = amounts if amounts is not None or demand is None else [demand[0, route].tolist() for route in routes]
    earned = _earned(attributes, x)
    coordinates = stops.xy if stops.latlon is None else stops.latlon[:, ::-1]
    places = [] if coordinates is None else list(zip(stops.ids, coordinates.tolist(), strict=True))
    start = 1 if problem.has_depot else 0
    return Solution(
        problem=problem.name,
        source=stops.source,
        cost=float(problem.cost(x, batch)) + 0.0,  # and not -0.0
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
        places={str(name): (a, b) for name, (a, b) in places},
        on_globe=stops.latlon is not None,
        matrix=stops.matrix_file,
        rounded=stops.rounded,
        maximise=problem.maximise,
        seconds=seconds,
        events=events,
        notes=(*converted.notes, *notes),
        layout=tuple((name, a, b) for name, (a, b) in zip(scale.ids, x.xy[0].tolist(), strict=True)),
        embedded=stops.xy is None and stops.latlon is None,
    )


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
