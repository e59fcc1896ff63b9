"""The answer to a round that users get: an itinerary for each vehicle in their own ids and units, and its files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from routelearn.data.geometry import from_distances, project
from routelearn.errors import InputError
from routelearn.rounds import writing
from routelearn.rounds.model import ALWAYS, ANY, PROBLEM, Matrix, Round, Stop, Vehicle, attributes_of
from routelearn.rounds.plan import Plan, Route, Visit
from routelearn.rounds.units import amount, number, spoken, told
from routelearn.solving.solution import Event
from routelearn.solving.writing import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT_VERSION = 2  # adds to version 1 (solving/writing.py) and renames nothing


@dataclass(frozen=True)
class RoundSolution:
    """A plan with all its times. One that `solve_round` gives breaks no rule; one that was checked may."""

    round: Round
    plan: Plan
    seconds: float = 0.0  # from the call to the answer; start-up of compiled code not counted
    events: tuple[Event, ...] = ()  # every better plan of the search, in order
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    read_with: Mapping[str, Any] = field(default_factory=dict)  # beside the stops: matrix, vehicles, options

    def __repr__(self) -> str:
        from routelearn.plots.rounds import caption

        return f"RoundSolution({caption(self)})"

    @property
    def problem(self) -> str:
        return PROBLEM

    @property
    def source(self) -> str:
        return self.round.source

    @property
    def cost(self) -> float:
        """The objective: fixed costs, distance, time, lateness, overtime, and penalties of stops left out."""
        return self.plan.cost

    @property
    def length(self) -> float:
        return math.fsum(route.distance for route in self.plan.routes)

    @property
    def duration(self) -> float:
        """Seconds from leaving to the end, of all vehicles together."""
        return math.fsum(route.duration for route in self.plan.routes)

    @property
    def routes(self) -> list[list[str]]:
        return [[self.round.stops[stop].id for stop in route.stops] for route in self.plan.routes]

    @property
    def unvisited(self) -> list[str]:
        seen = {stop for route in self.plan.routes for stop in route.stops}
        return [stop.id for i, stop in enumerate(self.round.stops) if i not in seen]

    @property
    def unassigned(self) -> list[tuple[str, str]]:
        """(id, reason) of the stops that were left out."""
        return [(self.round.stops[one.stop].id, one.reason) for one in self.plan.unassigned]

    @property
    def depot(self) -> str | None:
        """The place where all vehicles start, if it is one."""
        places = {vehicle.start for vehicle in self.round.vehicles}
        only = places.pop() if len(places) == 1 else None
        return None if only is None else self.round.places[only]

    def vehicle(self, route: Route) -> Vehicle:
        return self.round.vehicles[route.vehicle]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What each route's vehicle is called; of several that are alike, by number."""
        ids = [self.vehicle(route).id for route in self.plan.routes]
        often, seen = Counter(ids), Counter[str]()
        labels = []
        for name in ids:
            seen[name] += 1
            labels.append(f"{name} ({seen[name]})" if often[name] > 1 else name)
        return tuple(labels)

    @cached_property
    def layout(self) -> Matrix:
        """[P, 2]: where each place is drawn."""
        if self.round.latlon is not None:
            return project(self.round.latlon)
        if self.round.xy is not None:
            return self.round.xy
        legs = self.round.legs.get(ANY) or next(iter(self.round.legs.values()))
        return from_distances(
            np.where(np.isfinite(legs.distance), legs.distance, 0.0) if legs.distance.any() else legs.duration
        )

    @property
    def embedded(self) -> bool:
        """Whether the layout was made from the legs alone."""
        return self.round.latlon is None and self.round.xy is None

    def kept(self, route: Route) -> set[int]:
        """The stops of a route that were already driven or fixed."""
        return set(self.vehicle(route).kept)

    def load(self, route: Route) -> tuple[float, ...]:
        """The most that is aboard, in each dimension."""
        return tuple(map(max, zip(*(visit.load for visit in route.visits), strict=True)))

    def spoken(self, seconds: float) -> str:
        """A moment for people."""
        return spoken(self.round.day, seconds)

    # ------------------------------------------------------------------------------------------- JSON

    def document(self) -> dict[str, Any]:
        """What is written as JSON."""
        vehicles_first = self.round.objective != "cost"
        return {
            "format": "routelearn-solution",
            "format_version": FORMAT_VERSION,
            "problem": PROBLEM,
            "source": self.source,
            **self.read_with,
            "rounding": self.round.rounding,
            "cost": self.cost,
            "length": self.length,
            "duration": number(self.duration),
            **({"objective": self.round.objective} if vehicles_first else {}),
            "unit": self.round.length_unit or None,
            "depot": self.depot,
            "routes": [self.route_document(route) for route in self.plan.routes],
            "unvisited": self.unvisited,
            "unassigned": [{"id": name, "reason": reason} for name, reason in self.unassigned],
            **({"violations": self.violations_document()} if self.plan.violations else {}),
            **({"values": values} if (values := stop_values(self.round)) else {}),
            "seconds": self.seconds,
            "history": [[round(e.seconds, 6), e.cost, e.by] for e in self.events],
            "notes": list(self.notes),
        }

    def route_document(self, route: Route) -> dict[str, Any]:
        load = amount(self.load(route))
        return {
            "vehicle": self.vehicle(route).id,
            "stops": [self.round.stops[stop].id for stop in route.stops],
            "length": number(route.distance),
            "duration": number(route.duration),
            "driving": number(route.driving),
            **({} if load is None else {"load": load}),
            "cost": number(route.cost),
            "visits": [self.visit_document(route, visit) for visit in route.visits],
        }

    def visit_document(self, route: Route, visit: Visit) -> dict[str, Any]:
        load = amount(visit.load)
        stop = None if visit.stop is None else self.round.stops[visit.stop]
        return {
            "id": visit.id,
            "kind": visit.kind,
            "arrival": told(self.round, visit.arrival),
            "start": told(self.round, visit.start),
            "departure": told(self.round, visit.departure),
            "wait": number(visit.wait),
            **({} if load is None else {"load": load}),
            "distance": number(visit.distance),
            "driving": number(visit.driving),
            "distance_so_far": number(visit.distance_so_far),
            "driving_so_far": number(visit.driving_so_far),
            **({"kept": True} if visit.stop in self.kept(route) else {}),
            **({"columns": dict(stop.columns)} if stop is not None and stop.columns else {}),
        }

    def violations_document(self) -> list[dict[str, Any]]:
        """Every broken rule: which, where, in words, and how far."""
        return [
            {
                "rule": one.rule,
                "route": None if one.route is None else one.route + 1,
                "visit": one.visit,
                "id": None
                if one.route is None or one.visit is None
                else self.plan.routes[one.route].visits[one.visit].id,
                "words": one.words,
                "by": number(one.by) if math.isfinite(one.by) else None,
            }
            for one in self.plan.violations
        ]

    # ------------------------------------------------------------------------------------------ files

    to_json, to_csv = writing.to_json, writing.to_csv
    to_vroom, to_geojson = writing.to_vroom, writing.to_geojson

    def to_html(self) -> str:
        """One self-contained page: a map, a time line for each vehicle, the itinerary."""
        from routelearn.plots.round_page import page

        return page(self)

    def write(self, path: str | Path, kind: str | None = None) -> None:
        """The format that the name's end (or `kind`) says: json, vroom.json, geojson, csv; `-` is standard output."""
        name, writers = kind or writing.kind_of(str(path)), writing.WRITERS
        if name not in writers:
            raise InputError(f"{path}: unknown format {name!r} of a plan; the choices are {', '.join(writers)}")
        write_text(path, writers[name](self))

    def plot(self, path: str | Path | None = None) -> Figure | None:
        """A matplotlib figure of routes and time lines; with a path, a file instead: .png, .svg, .pdf or .html."""
        from routelearn.plots.rounds import draw
        from routelearn.plots.saving import drawn

        return drawn(path, lambda: draw(self), self.to_html)


def stop_values(round_: Round) -> dict[str, dict[str, Any]]:
    """The attributes of the stops, by name and id, where they are not what every stop has."""
    found: dict[str, dict[str, Any]] = {}
    for one in attributes_of(Stop):
        usual = Stop.__dataclass_fields__[one.name].default
        values = {stop.id: plain(round_, one.name, value) for stop in round_.stops
                  if (value := getattr(stop, one.name)) != usual}  # fmt: skip
        if values:
            found[one.name] = values
    return found


def plain(round_: Round, name: str, value: Any) -> Any:
    """A value of a stop as JSON has it."""
    if name == "windows":
        return [[told(round_, low), told(round_, high)] for low, high in value if (low, high) != ALWAYS]
    if name == "release":
        return told(round_, value)
    if isinstance(value, frozenset):
        return sorted(value)
    return amount(value) if isinstance(value, tuple) else value
