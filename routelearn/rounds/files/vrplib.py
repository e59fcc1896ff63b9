"""Library files (`.vrp`) with more than a capacity, in PyVRP's dialect of VRPLIB.

Durations are distances, as in all of these libraries. The keyword VEHICLES is a limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from routelearn.data import tsplib
from routelearn.data.edge_weights import FROM_COORDINATES, euclidean
from routelearn.data.numbers import real, shown
from routelearn.data.tsplib import Document, node_number, nodes_of
from routelearn.errors import InputError
from routelearn.rounds.files.lengths import check_count, one_rounded, rounded, rounding_of
from routelearn.rounds.model import ALWAYS, ANY, FOREVER, Amounts, Backhauls, Legs, Matrix, Round, Stop, Vehicle, Window

OF_STOPS = ("TIME_WINDOW", "SERVICE_TIME", "RELEASE_TIME", "BACKHAUL", "LINEHAUL", "PRIZE", "PICKUP_AND_DELIVERY")
OF_VEHICLES = (
    *("VEHICLES_DEPOT", "VEHICLES_RELOAD_DEPOT", "VEHICLES_MAX_RELOADS", "VEHICLES_MAX_DISTANCE"),
    *("VEHICLES_MAX_DURATION", "VEHICLES_FIXED_COST", "VEHICLES_UNIT_DISTANCE_COST", "VEHICLES_ALLOWED_CLIENTS"),
    "CAPACITY",
)
USUAL = (*tsplib.SECTIONS, "DEMAND")
REFUSED = {"MUTUALLY_EXCLUSIVE_GROUP": "one stop of several instead of another is not supported"}
VALUES = (
    *("NAME", "COMMENT", "TYPE", "DIMENSION", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE"),
    *("DISPLAY_DATA_TYPE", "VEHICLES", "CAPACITY", "DISTANCE", "SERVICE_TIME", "BEST_KNOWN"),
)
MOST_VEHICLES = 100_000


def document_of(text: str, source: str) -> Document:
    """The file taken apart; a section that this program does not know is refused by name."""
    parts = tsplib.document(text, source, None, (*USUAL, *OF_STOPS, *OF_VEHICLES, *REFUSED))
    for name, why in REFUSED.items():
        if f"{name}_SECTION" in parts.sections:
            raise InputError(f"{source}: {name}_SECTION: {why}; remove it to solve without")
    return parts


def beyond_cvrp(parts: Document) -> bool:
    """Whether the file has anything that a CVRP does not."""
    if any(f"{name}_SECTION" in parts.sections for name in (*OF_STOPS, *OF_VEHICLES)):
        return True
    if any(name in parts.values for name in (*OF_STOPS, *OF_VEHICLES) if name not in ("SERVICE_TIME", "CAPACITY")):
        return True
    if (parts.value("TYPE") or "CVRP").split()[:1] not in ([], ["CVRP"], ["TSP"], ["ATSP"], ["OP"]):
        return True
    return _limited(parts)


def _limited(parts: Document) -> bool:
    """Whether service times are there, or a limit that a route could reach (libraries write 999999 for none)."""
    line, word = parts.values.get("SERVICE_TIME", (0, "0"))
    if real(word, parts.at(line), "SERVICE_TIME"):
        return True
    if "DISTANCE" not in parts.values:
        return False
    line, word = parts.values["DISTANCE"]
    numbers, _ = nodes_of(parts)
    xy = tsplib.coordinates_of(parts, numbers)
    longest = float(tsplib.lengths_of(parts, len(numbers)).max()) if xy is None else float(np.hypot(*np.ptp(xy, 0)))
    return real(word, parts.at(line), "DISTANCE") < longest * len(numbers)


def parse(parts: Document, options: Mapping[str, Any]) -> Round:
    """The round of a file that has been taken apart."""
    source = parts.source
    for keyword, (line, _) in parts.values.items():
        if keyword not in (*VALUES, *OF_STOPS, *OF_VEHICLES):
            raise InputError(f"{parts.at(line)}: {shown(keyword)} is not supported; remove it to solve without")
    kind = ((parts.value("TYPE") or "").split() or [""])[0].upper()
    numbers, where = nodes_of(parts)
    check_count(len(numbers), source)
    depots = _depots(parts, numbers)
    windows = "TIME_WINDOW_SECTION" in parts.sections or "PICKUP_AND_DELIVERY_SECTION" in parts.sections
    fleet = [name for name in OF_VEHICLES if f"{name}_SECTION" in parts.sections]
    several = len(depots) > 1 or "VEHICLES_ALLOWED_CLIENTS" in fleet
    default = "nearest" if not (windows or fleet) else "none" if not windows else "exact" if several else "dimacs"
    rounding = rounding_of(options, default)
    xy = tsplib.coordinates_of(parts, numbers)
    distance = _distances(parts, len(numbers), xy, rounding)
    columns = _Columns(parts, numbers, rounding)
    stops, shipments = columns.stops(depots)
    vehicles, allowed, at = _Fleet(parts, numbers, depots, columns, rounding).vehicles(len(stops))
    if allowed:
        ids = [vehicle.id for vehicle in vehicles]
        stops = [
            stop if len(only) == len(ids) else replace(stop, only=only)
            for stop in stops
            for only in [frozenset(name for name, one in zip(ids, allowed, strict=True) if stop.place in one)]
        ]
    last: Backhauls = "last" if kind == "VRPB" else "mixed"
    return Round(
        source=source,
        stops=tuple(stops),
        vehicles=tuple(vehicles),
        shipments=tuple(shipments),
        legs={ANY: Legs(distance, distance)},
        places=tuple(map(str, numbers)),
        xy=xy,
        backhauls=last,
        rounding=rounding,
        where=tuple(where[stop.place] for stop in stops),
        vehicles_where=tuple(at),
        notes=_unlimited(stops, vehicles, options),
    )


def _unlimited(stops: Sequence[Stop], vehicles: Sequence[Vehicle], options: Mapping[str, Any]) -> tuple[str, ...]:
    """A note where there are amounts, but nothing says what vehicles hold."""
    if options.get("capacity") is not None or any(vehicle.capacity for vehicle in vehicles):
        return ()
    loaded = any(any((*stop.delivery, *stop.pickup)) for stop in stops)
    return ("stops have amounts, but the file no CAPACITY, so that vehicles hold any (--capacity)",) if loaded else ()


def _depots(parts: Document, numbers: dict[int, int]) -> list[int]:
    """The nodes of DEPOT_SECTION by index; without it the first node."""
    found: list[int] = []
    for line, index in tsplib.depots_of(parts, numbers):
        if index in found:
            raise InputError(f"{parts.at(line)}: the depot {list(numbers)[index]} is given twice")
        found.append(index)
    return found or [0]


def _distances(parts: Document, count: int, xy: Matrix | None, rounding: str) -> Matrix:
    metric = tsplib.metric_of(parts, xy)
    if metric == "EXPLICIT" or xy is None:
        return rounded(tsplib.lengths_of(parts, count), rounding)
    if metric == "EUC_2D":
        return rounded(euclidean(xy), rounding)
    found = FROM_COORDINATES[metric](xy)
    np.fill_diagonal(found, 0.0)
    return found


class _Columns:
    """What the sections say of each node."""

    def __init__(self, parts: Document, numbers: dict[int, int], rounding: str) -> None:
        self.parts, self.numbers, self.rounding = parts, numbers, rounding
        self.count = len(numbers)
        pairs = self._rows("PICKUP_AND_DELIVERY", 6)
        self.pairs = pairs
        column = None if pairs is None else [row[1:3] for row in pairs]
        windows = column or self._rows("TIME_WINDOW", 2)
        self.windows: list[Window] | None = None
        if windows is not None:
            self.windows = [(self._time(low), self._time(high)) for low, high in windows]

    def _time(self, value: float) -> float:
        return one_rounded(value, self.rounding)

    def _rows(self, name: str, width: int | None = None) -> list[list[float]] | None:
        """The numbers of a section by node; None if it is not there. Without a width all lines have the first's."""
        section, parts = f"{name}_SECTION", self.parts
        if section not in parts.sections:
            return None
        if width is None:
            first = next(iter(parts.sections[section]), (0, ["", ""]))[1]
            width = max(1, len(first) - 1)
        rows = parts.by_node(section, self.numbers, width)
        return [[real(word, parts.at(line), name) for word in words] for line, words in rows]

    def _numbers(self, name: str) -> list[float]:
        """One number for each node: of the section, or the keyword's for all but depots."""
        rows = self._rows(name, 1)
        if rows is not None:
            return [self._time(row[0]) for row in rows]
        line, word = self.parts.values.get(name, (0, "0"))
        return [self._time(real(word, self.parts.at(line), name))] * self.count

    def stops(self, depots: list[int]) -> tuple[list[Stop], list[tuple[int, int]]]:
        """All nodes but depots, and the pairs among them."""
        parts, inner = self.parts, [i for i in range(self.count) if i not in set(depots)]
        names = list(self.numbers)
        demand = self._rows("DEMAND") or self._rows("LINEHAUL")
        back = self._rows("BACKHAUL")
        service, release = self._numbers("SERVICE_TIME"), self._numbers("RELEASE_TIME")
        prizes = self._rows("PRIZE", 1)
        released = "RELEASE_TIME_SECTION" in parts.sections or "RELEASE_TIME" in parts.values
        size = len((demand or back or [[0.0]])[0])
        zero: Amounts = (0.0,) * size
        if back is not None and len(back[0]) != size:
            raise InputError(
                f"{parts.source}: backhauls in {len(back[0])} dimensions, but demands in {size}; give as many"
            )
        if self.pairs is not None and size != 1:
            raise InputError(f"{parts.source}: PICKUP_AND_DELIVERY_SECTION has one dimension, but demands {size}")
        deliveries: list[Amounts] = [zero if demand is None else tuple(demand[i]) for i in range(self.count)]
        pickups: list[Amounts] = [zero if back is None else tuple(back[i]) for i in range(self.count)]
        shipments: list[tuple[int, int]] = []
        if self.pairs is not None:
            deliveries, pickups, service, shipments = self._pairs(inner)
        stops = [
            Stop(
                id=str(names[i]),
                place=i,
                delivery=deliveries[i],
                pickup=pickups[i],
                windows=(ALWAYS if self.windows is None else self.windows[i],),
                service=service[i],
                release=release[i] if released else -FOREVER,
                penalty=prizes[i][0] if prizes is not None and prizes[i][0] != 0 else None,
            )
            for i in inner
        ]
        return stops, shipments

    def _pairs(self, inner: list[int]) -> tuple[list[Amounts], list[Amounts], list[float], list[tuple[int, int]]]:
        """Amounts, service and pairs of PICKUP_AND_DELIVERY_SECTION: demand, window, service, pickup, delivery."""
        assert self.pairs is not None
        lines = [line for line, _ in self.parts.by_node("PICKUP_AND_DELIVERY_SECTION", self.numbers, 6)]
        service = [self._time(row[3]) for row in self.pairs]
        position = {node: k for k, node in enumerate(inner)}
        nothing: Amounts = (0.0,)
        deliveries, pickups = [nothing] * self.count, [nothing] * self.count
        shipments = []
        for i in inner:
            demand, _, _, _, pickup, delivery = self.pairs[i]
            if delivery or pickup:
                named, column, half = (delivery, 4, "pickup") if delivery else (pickup, 5, "delivery")
                other = self.numbers.get(int(named))
                if other is None or other not in position or self.numbers.get(int(self.pairs[other][column])) != i:
                    raise InputError(
                        f"{self.parts.at(lines[i])}: a shipment without its other half; node {named:g} does not "
                        f"name this one as its {half}"
                    )
                if delivery:
                    pickups[i] = deliveries[other] = (abs(demand),)
                    shipments.append((position[i], position[other]))
            elif demand < 0:
                pickups[i] = (-demand,)
            else:
                deliveries[i] = (demand,)
        return deliveries, pickups, service, shipments


class _Fleet:
    """What the sections say of each vehicle."""

    def __init__(
        self, parts: Document, numbers: dict[int, int], depots: list[int], columns: _Columns, rounding: str
    ) -> None:
        self.parts, self.numbers, self.depots, self.columns, self.rounding = parts, numbers, depots, columns, rounding
        self.count: int | None = None
        if "VEHICLES" in parts.values:
            line, word = parts.values["VEHICLES"]
            self.count = tsplib.count_of(parts, "VEHICLES")
            if not 0 < self.count <= MOST_VEHICLES:
                raise InputError(f"{parts.at(line)}: VEHICLES is {word[:20]}; between 1 and {MOST_VEHICLES:,} are read")
        else:
            given = (parts.sections.get(f"{name}_SECTION") for name in OF_VEHICLES)
            self.count = next((len(lines) for lines in given if lines), None)

    def _lines(self, name: str) -> dict[int, tuple[int, list[str]]] | None:
        """Line and words of each vehicle, counted from 0."""
        section, parts = f"{name}_SECTION", self.parts
        if section not in parts.sections:
            return None
        found: dict[int, tuple[int, list[str]]] = {}
        for line, words in parts.sections[section]:
            vehicle = node_number(words[0], parts.at(line)) - 1
            if vehicle in found or not 0 <= vehicle < (self.count or 0):
                raise InputError(
                    f"{parts.at(line)}: vehicle {vehicle + 1} is given twice, or there are only {self.count} (VEHICLES)"
                )
            found[vehicle] = line, words[1:]
        if len(found) != self.count:
            missing = next(k for k in range(self.count or 0) if k not in found)
            raise InputError(f"{parts.source}: {section} has no line for vehicle {missing + 1}")
        return found

    def _numbers(self, name: str, default: float, times: bool = False) -> list[tuple[float, ...]]:
        """The numbers of each vehicle: of the section, or the keyword's for all."""
        rows = self._lines(name)
        if rows is None:
            values: tuple[tuple[float, ...], ...] = ((default,),) * (self.count or 1)
            if name in self.parts.values:
                line, word = self.parts.values[name]
                values = ((real(word, self.parts.at(line), name),),) * (self.count or 1)
        else:
            values = tuple(
                tuple(real(word, self.parts.at(rows[k][0]), name) for word in rows[k][1]) for k in range(len(rows))
            )
            for k, one in enumerate(values):
                if not one:
                    raise InputError(f"{self.parts.at(rows[k][0])}: no number behind the vehicle")
        return [tuple(one_rounded(value, self.rounding) if times else value for value in one) for one in values]

    def _nodes(self, name: str) -> list[tuple[int, ...]] | None:
        rows = self._lines(name)
        if rows is None:
            return None
        found = []
        for k in range(len(rows)):
            line, words = rows[k]
            nodes = [node_number(word, self.parts.at(line)) for word in words if word != "-1"]
            if stray := next((node for node in nodes if node not in self.numbers), None):
                raise InputError(f"{self.parts.at(line)}: node {stray} is not a node of the file")
            found.append(tuple(self.numbers[node] for node in nodes))
        return found

    def vehicles(self, stops: int) -> tuple[list[Vehicle], list[frozenset[int]] | None, list[str]]:
        """Vehicles that are alike together; which nodes each may serve, where the file says; where each stands."""
        parts = self.parts
        capacity = self._numbers("CAPACITY", FOREVER)
        capacity = [() if one == len(capacity[0]) * (FOREVER,) else one for one in capacity]
        fixed = self._numbers("VEHICLES_FIXED_COST", 0.0)
        price = self._numbers("VEHICLES_UNIT_DISTANCE_COST", 1.0)
        longest = self._numbers("VEHICLES_MAX_DURATION", self._old_limit(), True)
        farthest = self._numbers("VEHICLES_MAX_DISTANCE", FOREVER, True)
        reloading = self._numbers("VEHICLES_MAX_RELOADS", FOREVER)
        home = self._nodes("VEHICLES_DEPOT")
        reloads = self._nodes("VEHICLES_RELOAD_DEPOT")
        allowed = self._nodes("VEHICLES_ALLOWED_CLIENTS")
        where = self._lines("CAPACITY") or self._lines("VEHICLES_DEPOT") or {}
        alike: dict[Any, list[int]] = {}
        for k in range(self.count or 1):
            start = home[k][0] if home is not None and home[k] else self.depots[0]
            key = (capacity[k], fixed[k][0], price[k][0], longest[k][0], farthest[k][0], reloading[k][0], start)
            alike.setdefault((*key, reloads and reloads[k], allowed and frozenset(allowed[k])), []).append(k)
        vehicles, only, at = [], [], []
        for key, members in alike.items():
            holds, fixed_cost, distance_cost, max_duration, max_distance, most, start, places, clients = key
            if start not in self.depots or any(place not in self.depots for place in places or ()):
                raise InputError(f"{parts.source}: vehicle {members[0] + 1} is at a node that DEPOT_SECTION lacks")
            trips = 1 if not places else stops if math.isinf(most) else int(most) + 1
            vehicles.append(
                Vehicle(
                    id=_name(members),
                    number=None if self.count is None else len(members),
                    capacity=holds,
                    start=start,
                    end=start,
                    shift=ALWAYS if self.columns.windows is None else self.columns.windows[start],
                    fixed_cost=fixed_cost,
                    distance_cost=distance_cost,
                    max_duration=max_duration,
                    max_distance=max_distance,
                    trips=max(1, trips),
                    reloads=places if places and trips > 1 else (),
                )
            )
            only.append(clients or frozenset())
            line = where.get(members[0], (None,))[0]
            at.append(parts.source if line is None else parts.at(line))
        return vehicles, only if allowed is not None else None, at

    def _old_limit(self) -> float:
        """DISTANCE of older libraries, which counts service times, too."""
        if "DISTANCE" not in self.parts.values:
            return FOREVER
        line, word = self.parts.values["DISTANCE"]
        return real(word, self.parts.at(line), "DISTANCE")


def _name(members: list[int]) -> str:
    """What vehicles that are alike are called: 4, 1-4, or 1+3 where they do not stand together."""
    first, count = members[0] + 1, len(members)
    if count == 1:
        return str(first)
    return f"{first}-{first + count - 1}" if members[-1] == members[0] + count - 1 else f"{first}+{count - 1}"
