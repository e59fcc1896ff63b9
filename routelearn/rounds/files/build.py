"""Rows of named values (from CSV, Excel, JSON or GeoJSON) into a round: stops, depots, vehicles and legs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np

from routelearn.data.csv_file import with_point
from routelearn.data.names import MARKED, UNMARKED, not_used, zero
from routelearn.data.numbers import blank, real, shown
from routelearn.data.records import Row, check_degrees
from routelearn.errors import InputError
from routelearn.problems.attributes import folded
from routelearn.rounds.files import clock
from routelearn.rounds.files.clock import Times
from routelearn.rounds.files.columns import (
    BETWEEN_NAMES,
    BEYOND,
    Column,
    check_rules,
    check_typos,
    declared,
    understood,
)
from routelearn.rounds.files.lengths import Given, check_count, measured, rounding_of, speed_of
from routelearn.rounds.model import (
    ALWAYS,
    ANY,
    FOREVER,
    Amounts,
    Backhauls,
    Break,
    Legs,
    Objective,
    Round,
    Stop,
    Vehicle,
    Window,
)
from routelearn.rounds.validate import checked

DEPOTS = ("depot", "lager", "entrepot", "almacen", "deposito", "warehouse", "zentrallager", "hub", "base")
OPEN = ("open", "offen", "none", "keiner", "kein", "-", "ouvert", "abierto")  # a start or end that is none
OF_ALL = ("objective", "backhauls", "most_stops_apart", "most_time_apart", "allow_unassigned")
VEHICLE_OPTIONS = tuple(name for name in declared(Vehicle) if name not in ("number", "shift", "capacity"))
# Of the command line and beside the stops of a document. `matrix_unit`: what a plain matrix holds.
OPTIONS = (*("vehicles", "capacity", "shift", "speed", "round", "matrix_unit", "depot"), *OF_ALL, *VEHICLE_OPTIONS)
MOST_VEHICLES = 10_000
_LIST = re.compile(r"\s*[,;/|]\s*")
_DIMENSIONS = re.compile(r"\s*[;/|]\s*|\s+")
_TRUE, _FALSE = ("1", "true", "yes", "ja", "oui", "si", "sí"), ("0", "false", "no", "nein", "non", "")


@dataclass
class Table:
    """Rows as they stand in a file or a request."""

    source: str
    rows: Sequence[Row]
    comma: bool = False  # decimal commas may be there
    document: bool = False  # JSON: null says that there is none
    separator: str = ","  # of a CSV
    claims: dict[str, Column] = field(default_factory=dict)
    columns: dict[str, list[Any]] = field(default_factory=dict)  # the values that are not blank

    def understand(self, kind: type) -> None:
        for _, row in self.rows:
            for name, value in row.items():
                values = self.columns.setdefault(name, [])
                if not blank(value):
                    values.append(value)
        self.claims = understood(self.columns, kind, self.source)

    @property
    def decimal(self) -> str:
        """The sign of its fractions; where there are none, the comma if commas do not separate."""
        cells = [str(value) for name in self.claims for value in self.columns[name]]
        if not self.comma or any(re.fullmatch(r"\s*-?\d+\.\d+\s*", cell) for cell in cells):
            return "."
        return "," if self.separator == ";" or any(re.fullmatch(r"\s*-?\d+,\d+\s*", cell) for cell in cells) else "."

    @property
    def unclaimed(self) -> list[str]:
        return [name for name, values in self.columns.items() if values and name not in self.claims]

    def names_of(self, attribute: str) -> dict[str, str]:
        """{part: the user's name} of the columns that give an attribute."""
        return {one.part: name for name, one in self.claims.items() if one.attribute == attribute}

    def has(self, attribute: str) -> bool:
        return any(one.attribute == attribute for one in self.claims.values())

    def at(self, place: str) -> str:
        return f"{self.source}, {place}"


def beyond(stops: Table, options: Mapping[str, Any]) -> bool:
    """Whether stops or options have anything that the older problems do not."""
    for name, one in stops.claims.items():
        if one.attribute in BEYOND and folded(name) not in BETWEEN_NAMES:
            if not all(zero(value) for value in stops.columns[name]):
                return True
        elif one.attribute == "delivery" and one.part.isdigit() and int(one.part) > 1:
            return True
    if len(stops.names_of("delivery")) > 1:
        return True
    return options_beyond(options)


def options_beyond(options: Mapping[str, Any]) -> bool:
    """Whether options are there that only rounds have."""
    given = {name for name, value in options.items() if value not in (None, False)}
    capacity = options.get("capacity")
    several = isinstance(capacity, list | tuple) or (isinstance(capacity, str) and re.search(r"[,;]\s*\d", capacity))
    return bool(given - {"capacity", "round", "depot", "matrix_unit", "penalty"}) or bool(several)


def check_options(options: Mapping[str, Any]) -> None:
    if stray := next((name for name in options if name not in OPTIONS), None):
        raise InputError(f"{stray[:40]!r} is not an option of rounds; they are {', '.join(OPTIONS)}")


@dataclass
class Builder:
    """What is known of a round while its tables are read."""

    stops: Table
    vehicles: Table | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    given: Given | None = None
    profiles: Mapping[str, Given] = field(default_factory=dict)
    shipments: Any = None  # of a document: pairs of ids
    depot: Any = None  # of a document: a place of its own, or an id
    notes: tuple[str, ...] = ()
    unused: Sequence[str] = ()  # keys that nobody claimed

    def build(self) -> Round:
        """The round, checked."""
        check_options(self.options)
        self.priced: set[str] = set()  # vehicles that have a cost by distance or time
        source = self.stops.source
        check_count(len(self.stops.rows), source)
        unclaimed = self.stops.unclaimed
        check_typos(unclaimed, Stop, source)
        check_rules(self.stops.columns, self.stops.claims, source)
        if self.vehicles is not None:
            self.vehicles.understand(Vehicle)
            check_typos(self.vehicles.unclaimed, Vehicle, self.vehicles.source)
        self.times = self._times()
        self.ids = self._ids()
        self.depots = self._depots()
        self.named = {name: i for i, name in enumerate(self.ids)}
        self._places()
        dims = self._dimensions()
        stops = [self._stop(i) for i in range(len(self.stops.rows)) if i not in self.depots]
        where = [self.stops.rows[i][0] for i in range(len(self.stops.rows)) if i not in self.depots]
        number = {stop.id: k for k, stop in enumerate(stops)}
        self.stop_number = number
        vehicles, vehicles_where = self._fleet(len(stops))
        self._check_capacities(stops, vehicles)
        settings = self._settings()
        timed = self._timed(stops, vehicles, settings)
        rounding = rounding_of(self.options, "none")
        legs, unit, only_durations, notes = self._legs(timed, rounding)
        if only_durations:
            vehicles = [self._by_duration(vehicle, at) for vehicle, at in zip(vehicles, vehicles_where, strict=True)]
        found = Round(
            source=source,
            stops=tuple(stops),
            vehicles=tuple(vehicles),
            shipments=self._shipments(stops),
            legs=legs,
            places=self.places,
            xy=self.xy,
            latlon=self.latlon,
            dimensions=dims if len(dims) > 1 else (),
            day=self.times.day,
            rounding=rounding,
            length_unit=unit,
            separator=self.stops.separator,
            decimal=self.stops.decimal,
            where=tuple(where),
            vehicles_where=tuple(vehicles_where),
            notes=(*self.notes, *self._told(), *notes),
            **settings,
        )
        return checked(found)

    # --------------------------------------------------------------------------- values

    def _raw(self, table: Table, row: Mapping[str, Any], attribute: str, part: str = "") -> Any:
        name = table.names_of(attribute).get(part)
        return None if name is None else row.get(name)

    def _number(self, table: Table, raw: Any, where: str, what: str) -> float:
        return real(with_point(raw) if table.comma and isinstance(raw, str) else raw, where, what)

    def _whole(self, table: Table, raw: Any, where: str, what: str) -> int:
        value = self._number(table, raw, where, what)
        if value != int(value):
            raise InputError(f"{where}: {what} is {shown(raw)}; a whole number is needed")
        return int(value)

    def _long(self, table: Table, raw: Any, unit: float | None, where: str, what: str) -> float:
        """How long something takes; minutes where times are clock times and the file does not say otherwise."""
        usual = 60.0 if self.times.clock and not table.document else 1.0
        if table.comma and isinstance(raw, str):
            raw = with_point(raw)
        return clock.length(raw, usual if unit is None else unit, where, what)

    def _names(self, raw: Any, where: str, what: str) -> frozenset[str]:
        parts = raw if isinstance(raw, list | tuple) else _LIST.split(raw.strip()) if isinstance(raw, str) else [raw]
        return frozenset(text_of(part, where, what) for part in parts if not blank(part))

    def _amounts(self, table: Table, row: Mapping[str, Any], attribute: str, where: str) -> Amounts:
        """The amounts of a row, in one column or in one for each dimension."""
        names = table.names_of(attribute)
        if "" in names:
            raw = row.get(names[""])
            if blank(raw):
                return ()
            parts = raw
            if isinstance(raw, str):
                parts = [part for part in _DIMENSIONS.split(raw.strip()) if part]
            parts = parts if isinstance(parts, list | tuple) else [parts]
            return tuple(self._number(table, part, where, names[""]) for part in parts)
        if not names:
            return ()
        dims = self.dims if len(self.dims) > 1 else tuple(names)
        cells = [row.get(names[dim]) if dim in names else None for dim in dims]
        if all(map(blank, cells)):
            return ()
        return tuple(
            0.0 if blank(cell) else self._number(table, cell, where, names[dim])
            for dim, cell in zip(dims, cells, strict=True)
        )

    def _window(self, table: Table, row: Mapping[str, Any], attribute: str, where: str) -> tuple[Window, ...]:
        names = table.names_of(attribute)
        first, last = row.get(names.get("1", "")), row.get(names.get("2", ""))
        if "" in names and not blank(raw := row.get(names[""])) and raw != []:
            return self.times.windows(raw, where, names[""])
        if blank(first) and blank(last):
            return (ALWAYS,)
        what = names.get("1") or names.get("2") or attribute
        return (self.times.window(first, last, where, what),)

    # --------------------------------------------------------------------------- times

    def _times(self) -> Times:
        times = Times(self.stops.source)
        for table in (self.stops, self.vehicles):
            for name, one in () if table is None else table.claims.items():
                assert table is not None
                if one.attribute in ("windows", "shift", "release"):
                    times.look(table.columns[name])
                elif one.attribute == "breaks":
                    for value in table.columns[name]:
                        for pause in value if isinstance(value, list) else [value]:
                            raw = pause.get("windows", pause.get("window")) if isinstance(pause, dict) else pause
                            times.look([raw])
        if self.options.get("shift") is not None:
            times.look([self.options["shift"]])
        return times

    # --------------------------------------------------------------------------- stops, depots and places

    def _ids(self) -> tuple[str, ...]:
        """The ids; without any, the names if no two are the same; otherwise numbers."""
        table = self.stops
        by_id, by_name = (table.names_of(word).get("") for word in ("id", "name"))
        if by_id is not None:
            found = []
            for n, (place, row) in enumerate(table.rows):
                raw = row.get(by_id)
                if blank(raw) and place == "depot":
                    raw = (row.get(by_name) if by_name else None) or "depot"
                if blank(raw):
                    raise InputError(f"{table.at(place)}: no id, though other stops have one")
                found.append(text_of(raw, table.at(place), "the id") if raw is not None else str(n))
            return tuple(found)
        if by_name is not None:
            names = [str(row.get(by_name) or "").strip() for _, row in table.rows]
            filled = tuple(name or str(i) for i, name in enumerate(names, 1))
            if len(set(filled)) == len(filled):
                return filled
        first = table.rows[0][0] == "depot"
        numbers = [str(i + (0 if first else 1)) for i in range(len(table.rows))]
        return ("depot", *numbers[1:]) if first else tuple(numbers)

    def _depots(self) -> list[int]:
        """The rows that are depots: marked, named so, or the first."""
        table, marks = self.stops, self.stops.names_of("depot").get("")
        count = range(len(table.rows))
        if marks is not None:
            found = []
            for i in count:
                raw = table.rows[i][1].get(marks)
                text = str("" if raw is None else raw).strip().lower().removesuffix(".0")
                if text in UNMARKED:
                    continue
                if text not in MARKED:
                    raise InputError(
                        f"{table.at(table.rows[i][0])}: depot is {shown(raw)}; write 1 for a depot and 0 for the others"
                    )
                found.append(i)
            if found:
                return found
        asked = self.depot if self.depot is not None else self.options.get("depot")
        if table.rows[0][0] == "depot":
            return [0]
        if asked is not None:
            name = text_of(asked, table.source, "the depot")
            by_name = table.names_of("name").get("")
            called = [str(row.get(by_name) or "").strip() for _, row in table.rows] if by_name else []
            for names in (self.ids, called):
                if name in names:
                    return [list(names).index(name)]
            raise InputError(f"{table.source}: the depot {shown(asked)} is not the id or name of one of the stops")
        if self._starts_elsewhere():
            return []
        by_name = table.names_of("name").get("") or table.names_of("id").get("")
        if by_name is not None:
            names = [str(row.get(by_name) or "") for _, row in table.rows]
            words = [folded((name.split() or [""])[0]) for name in names]
            if found := [i for i in count if words[i] in DEPOTS or folded(names[i]) in DEPOTS]:
                return found
        return [0]

    def _starts_elsewhere(self) -> bool:
        """Whether every vehicle of a document says where it starts and ends, none of it by default."""
        table = self.vehicles
        if table is None or not table.document:
            return False
        start, end = table.names_of("start").get(""), table.names_of("end").get("")
        keys = set(table.columns)  # null is an answer, too
        return bool({"start", "end"} <= keys | {start, end}) and all(
            (start or "start") in row and (end or "end") in row for _, row in table.rows
        )

    def _places(self) -> None:
        """Names and coordinates of all places; each row is one, unless a document gives its number."""
        table = self.stops
        self.extra: list[tuple[float, float]] = []
        pairs = {}
        for first, second in (("x", "y"), ("lat", "lon")):
            a, b = table.names_of(first).get(""), table.names_of(second).get("")
            if (a is None) != (b is None):
                have, lack = (a, second) if b is None else (b, first)
                raise InputError(f"{table.source}: a column {have} but no {lack}")
            if a is not None and b is not None:
                pairs[first] = (a, b)
        if len(pairs) == 2:
            raise InputError(f"{table.source}: both x, y and lat, lon; keep the pair to measure lengths by")
        by_number = table.names_of("place").get("")
        self.place_of = list(range(len(table.rows)))
        self.places: tuple[str, ...] = self.ids
        if by_number is not None:
            size = self._matrix_size()
            if size is None:
                raise InputError(f"{table.source}: 'place' is a row of a matrix, and there is none; give durations")
            self.place_of = []
            for place, row in table.rows:
                if blank(row.get(by_number)):
                    raise InputError(f"{table.at(place)}: no {by_number}, though other stops have one")
                at = self._whole(table, row.get(by_number), table.at(place), by_number)
                if not 0 <= at < size:
                    raise InputError(f"{table.at(place)}: {by_number} is {at}; the matrix has {size} rows, from 0")
                self.place_of.append(at)
            names = [str(i) for i in range(size)]
            for name, at in zip(reversed(self.ids), reversed(self.place_of), strict=True):
                names[at] = name
            self.places = tuple(names)
        self.xy = self.latlon = None
        for kind, (a, b) in pairs.items():
            values = np.full((len(self.places), 2), np.nan)
            for at, (place, row) in zip(self.place_of, table.rows, strict=True):
                for axis, name in enumerate((a, b)):
                    if blank(row.get(name)):
                        raise InputError(f"{table.at(place)}: no {name}")
                    values[at, axis] = self._number(table, row.get(name), table.at(place), name)
            if np.isnan(values).any():
                continue
            if kind == "lat":
                check_degrees(
                    values, [place for place, _ in table.rows] if by_number is None else self.places, table.source
                )
                self.latlon = values
            else:
                self.xy = values

    def _matrix_size(self) -> int | None:
        found = [one.size for one in (self.given, *self.profiles.values()) if one is not None]
        return found[0] if found else None

    def _dimensions(self) -> tuple[str, ...]:
        """What the dimensions of amounts are called, where columns name several."""
        tables = [(self.stops, "delivery"), (self.stops, "pickup")]
        if self.vehicles is not None:
            tables.append((self.vehicles, "capacity"))
        several = [list(table.names_of(attribute)) for table, attribute in tables]
        found: list[str] = []
        if any(len(parts) > 1 for parts in several):
            found = list(dict.fromkeys(part for parts in several for part in parts if part))
            if all(part.isdigit() for part in found):
                found = [str(i + 1) for i in range(max(map(int, found)))]
        self.dims: tuple[str, ...] = tuple(found)
        return self.dims

    def _stop(self, i: int) -> Stop:
        table = self.stops
        place, row = table.rows[i]
        where = table.at(place)
        values: dict[str, Any] = {}
        for name, one in table.claims.items():
            raw, ours = row.get(name), one.attribute
            if blank(raw) or ours not in declared(Stop) or declared(Stop)[ours].unit == "amount" or ours == "windows":
                continue
            if ours in ("service", "setup"):
                values[ours] = self._long(table, raw, one.unit, where, name)
            elif ours == "release":
                values[ours] = self.times.at(raw, where, name)
            elif ours in ("skills", "only", "forbidden"):
                values[ours] = self._names(raw, where, name)
            elif ours == "priority":
                values[ours] = self._whole(table, raw, where, name)
            else:
                values[ours] = self._number(table, raw, where, name)
        kept = {name: text_of(row[name], where, name) for name in table.unclaimed if not blank(row.get(name))}
        by_name = table.names_of("name").get("")
        if by_name is not None and not blank(row.get(by_name)) and table.has("id"):
            kept = {by_name: str(row[by_name]).strip()} | kept
        return Stop(
            id=self.ids[i],
            place=self.place_of[i],
            delivery=self._amounts(table, row, "delivery", where),
            pickup=self._amounts(table, row, "pickup", where),
            windows=self._window(table, row, "windows", where),
            columns=kept,
            **values,
        )

    def _shipments(self, stops: Sequence[Stop]) -> tuple[tuple[int, int], ...]:
        """Pairs of stops: rows that share the value of a column, or what a document lists."""
        table, found = self.stops, []
        if self.shipments is not None:
            if not isinstance(self.shipments, list):
                raise InputError(f"{table.source}: 'shipments' is {shown(self.shipments)}; a list is needed")
            for n, pair in enumerate(self.shipments, 1):
                if isinstance(pair, dict):
                    pair = [pair.get("pickup"), pair.get("delivery")]
                if not isinstance(pair, list) or len(pair) != 2:
                    raise InputError(f"{table.source}, shipment {n}: the ids of pickup and delivery are needed")
                found.append((self._half(pair[0], n), self._half(pair[1], n)))
        by_shipment = table.names_of("shipment").get("")
        halves: dict[str, list[int]] = {}
        rows = [row for i, (_, row) in enumerate(table.rows) if i not in self.depots]
        if by_shipment is not None:
            for k, row in enumerate(rows):
                if not blank(row.get(by_shipment)):
                    halves.setdefault(text_of(row[by_shipment], table.source, by_shipment), []).append(k)
        lines = [place for i, (place, _) in enumerate(table.rows) if i not in self.depots]
        for name, members in halves.items():
            where = table.at(lines[members[-1]])
            if len(members) != 2:
                lack = "has no other half" if len(members) == 1 else f"has {len(members)} rows"
                raise InputError(f"{where}: the shipment {shown(name)} {lack}; a pickup and a delivery share its name")
            taken = [k for k in members if any(stops[k].pickup)]
            if len(taken) > 1:
                raise InputError(f"{where}: both rows of the shipment {shown(name)} are pickups; one delivers")
            first = taken[0] if taken else members[0]
            found.append((first, members[1] if first == members[0] else members[0]))
        return tuple(found)

    def _half(self, raw: Any, n: int) -> int:
        where = f"{self.stops.source}, shipment {n}"
        if blank(raw):
            raise InputError(f"{where}: its other half is missing; give the ids of pickup and delivery")
        name = text_of(raw, where, "a half")
        if name not in self.stop_number:
            raise InputError(f"{where}: its half {shown(name)} is not the id of a stop")
        return self.stop_number[name]

    # --------------------------------------------------------------------------- vehicles

    def _fleet(self, stops: int) -> tuple[list[Vehicle], list[str]]:
        """Vehicles of a table, or as options say: their number, and what each holds."""
        table, options = self.vehicles, self.options
        source = self.stops.source
        count = self._count()
        if table is None:
            alike = len(set(capacities := self._capacities(count))) < 2
            if alike:
                number = count if count is not None else None
                raw: list[tuple[str, Mapping[str, Any]]] = [("vehicles", {})]
                kinds = [("vehicle", number, capacities[0] if capacities else ())]
            else:
                raw = [("vehicles", {})] * len(capacities)
                kinds = [(str(k), 1, holds) for k, holds in enumerate(capacities, 1)]
            table = Table(source, raw)
            where = [source] * len(raw)
            return [
                self._vehicle(table, row, source, name, number, holds, stops)
                for (_, row), (name, number, holds) in zip(raw, kinds, strict=True)
            ], where
        if not table.rows:
            raise InputError(f"{table.source}: no vehicles")
        capacities = self._capacities(len(table.rows))
        where = [table.at(place) for place, _ in table.rows]
        by_id = table.names_of("id").get("")
        found = []
        for k, (_, row) in enumerate(table.rows):
            name = row.get(by_id) if by_id is not None else None
            if blank(name) and by_id is not None:
                raise InputError(f"{where[k]}: no {by_id}, though other vehicles have one")
            by_number = table.names_of("number").get("")
            raw_number = row.get(by_number) if by_number is not None else 1
            number = None if blank(raw_number) else self._whole(table, raw_number, where[k], by_number or "number")
            if number is not None and not 0 < number <= MOST_VEHICLES:
                raise InputError(f"{where[k]}: {number} vehicles; between 1 and {MOST_VEHICLES:,} are allowed")
            holds = self._amounts(table, row, "capacity", where[k])
            holds = holds or (capacities[k if len(capacities) > 1 else 0] if capacities else ())
            called = str(k + 1) if blank(name) else text_of(name, where[k], "the id")
            found.append(self._vehicle(table, row, where[k], called, number, holds, stops))
        if options.get("vehicles") is not None and count is not None and self.vehicles is not None:
            raise InputError(f"{source}: both a number of vehicles and a table of them; give one")
        return found, where

    def _check_capacities(self, stops: Sequence[Stop], vehicles: Sequence[Vehicle]) -> None:
        """Ask for a capacity where amounts are given and nobody says what a vehicle holds; of a table, tell."""
        if all(vehicle.capacity for vehicle in vehicles) or not any(any((*s.delivery, *s.pickup)) for s in stops):
            return
        if self.vehicles is None:
            raise InputError(
                f"{self.stops.source}: stops have amounts, but nothing says what a vehicle holds; give a capacity "
                "(--capacity 100, or 100,100,60 for three vehicles) or a table of vehicles"
            )
        free = [vehicle.id for vehicle in vehicles if not vehicle.capacity]
        self.notes = (*self.notes, f"without a capacity, so that they hold any amount: {', '.join(free[:5])}")

    def _count(self) -> int | None:
        raw = self.options.get("vehicles")
        if raw is None:
            return None
        count = self._whole(self.stops, raw, "--vehicles", "the number")
        if not 0 < count <= MOST_VEHICLES:
            raise InputError(f"--vehicles {shown(raw)}; between 1 and {MOST_VEHICLES:,} are allowed")
        return count

    def _capacities(self, count: int | None) -> list[Amounts]:
        """Of each vehicle (`100,100,60`), or one for all; dimensions with ; between them."""
        raw = self.options.get("capacity")
        if blank(raw):
            return [()] * (count or 1) if count is not None else []
        parts: Sequence[Any]
        if isinstance(raw, str):
            parts = [_DIMENSIONS.split(part.strip()) for part in raw.split(",")]
        else:
            parts = [raw] if not isinstance(raw, list | tuple) else raw
            parts = [part if isinstance(part, list | tuple) else [part] for part in parts]
        found = [tuple(real(one, "--capacity", "a number") for one in part) for part in parts]
        if len(found) == 1:
            return found * (count or 1)
        if count is not None and len(found) != count:
            raise InputError(f"--capacity has {len(found)} numbers, but there are {count} vehicles; give one for each")
        return found

    def _vehicle(
        self,
        table: Table,
        row: Mapping[str, Any],
        where: str,
        name: str,
        number: int | None,
        capacity: Amounts,
        stops: int,
    ) -> Vehicle:
        values: dict[str, Any] = {}
        cells = {one.attribute: (row.get(user), user, one.unit) for user, one in table.claims.items() if not one.part}
        for ours in VEHICLE_OPTIONS:
            raw, user, unit = cells.get(ours, (None, ours, None))
            if blank(raw):
                raw, user, unit = self.options.get(ours), f"--{ours.replace('_', '-')}", None
                if ours == "skills" and raw is not None and self.vehicles is None:
                    values[ours] = self._names(raw, where, user)
                    continue
            if blank(raw):
                continue
            one = declared(Vehicle)[ours]
            if ours == "skills":
                values[ours] = self._names(raw, where, user)
            elif ours == "profile":
                values[ours] = text_of(raw, where, user)
            elif one.unit == "time":
                values[ours] = self._long(table, raw, unit, where, user)
            elif one.whole:
                values[ours] = self._whole(table, raw, where, user)
            else:
                values[ours] = self._number(table, raw, where, user)
        if {"distance_cost", "driving_cost", "time_cost"} & set(values):
            self.priced.add(name)
        start, end = self._ends(table, row, where)
        shift = self._shift(table, row, where, start, end)
        reloads = self._reloads(table, row, where)
        trips = values.get("trips", 1)
        if trips > 1 and not reloads and start is not None:
            reloads = (start,)
        if reloads and "trips" not in values:
            values["trips"] = max(2, stops)
        return Vehicle(
            id=name,
            number=number,
            capacity=capacity,
            start=start,
            end=end,
            shift=shift,
            breaks=self._breaks(table, row, where),
            reloads=reloads,
            kept=self._kept(table, row, where),
            **values,
        )

    def _ends(self, table: Table, row: Mapping[str, Any], where: str) -> tuple[int | None, int | None]:
        """Start and end; the first depot and the start, where the table does not say."""
        home = self.place_of[self.depots[0]] if self.depots else None
        found: list[int | None] = []
        for word, default in (("start", home), ("end", None)):
            name = table.names_of(word).get("") or word
            raw = row.get(name)
            if table.document and name in row and raw is None:
                found.append(None)
            elif blank(raw):
                found.append(default if word == "start" else found[0])
            elif isinstance(raw, str) and raw.strip().lower() in OPEN:
                found.append(None)
            else:
                found.append(self._place(raw, where, name))
        return found[0], found[1]

    def _place(self, raw: Any, where: str, what: str) -> int:
        name = text_of(raw, where, what)
        if name in self.named:
            return self.place_of[self.named[name]]
        by_name = self.stops.names_of("name").get("")
        if by_name is not None:
            called = [str(row.get(by_name) or "").strip() for _, row in self.stops.rows]
            if called.count(name) == 1:
                return self.place_of[called.index(name)]
        if isinstance(raw, int) and 0 <= raw < len(self.places) and self._matrix_size() is not None:
            return raw
        raise InputError(
            f"{where}: {what} is {shown(raw)}, not the id or name of a depot or stop; leave it empty for the depot"
        )

    def _shift(self, table: Table, row: Mapping[str, Any], where: str, start: int | None, end: int | None) -> Window:
        """The vehicle's own, or that of the options, within the hours of the depots where it starts and ends."""
        windows = self._window(table, row, "shift", where)
        if len(windows) > 1:
            raise InputError(
                f"{where}: a shift of {len(windows)} stretches; one is needed, breaks are columns of their own"
            )
        low, high = windows[0]
        if windows == (ALWAYS,) and self.options.get("shift") is not None:
            (low, high), *more = self.times.windows(self.options["shift"], "--shift", "the shift")
            if more:
                raise InputError(f"--shift {shown(self.options['shift'])}: one stretch is needed")
        for i in self.depots:
            place, cells = self.stops.rows[i]
            hours = self._window(self.stops, cells, "windows", self.stops.at(place))
            if self.place_of[i] == start:
                low = max(low, hours[0][0])
            if self.place_of[i] == end:
                high = min(high, hours[-1][1])
        if high < low:
            raise InputError(f"{where}: the shift lies outside the depot's hours; change one of them")
        return low, high

    def _reloads(self, table: Table, row: Mapping[str, Any], where: str) -> tuple[int, ...]:
        name = table.names_of("reloads").get("")
        raw = row.get(name) if name is not None else None
        if name is None or blank(raw):
            return ()
        parts = raw if isinstance(raw, list | tuple) else _LIST.split(str(raw).strip())
        return tuple(self._place(part, where, name) for part in parts if not blank(part))

    def _breaks(self, table: Table, row: Mapping[str, Any], where: str) -> tuple[Break, ...]:
        """A document's list of breaks, or one in columns of its own."""
        name = table.names_of("breaks").get("")
        raw = row.get(name) if name is not None else None
        if table.document and isinstance(raw, list) and all(isinstance(one, dict) for one in raw):
            found = []
            for n, one in enumerate(raw, 1):
                known = ("id", "windows", "window", "service", "duration")
                if stray := next((key for key in one if key not in known), None):
                    raise InputError(f"{where}, break {n}: {shown(stray)} is not known; {', '.join(known)} are")
                windows = one.get("windows", one.get("window"))
                length = one.get("service", one.get("duration"))
                found.append(
                    Break(
                        id=text_of(one.get("id", n), where, "the id of a break"),
                        windows=(ALWAYS,) if blank(windows) else self.times.windows(windows, where, "windows"),
                        service=0.0 if blank(length) else self._long(table, length, None, where, "service"),
                    )
                )
            return tuple(found)
        windows = self._window(table, row, "breaks", where)
        by_length = table.names_of("break_duration").get("")
        length = row.get(by_length) if by_length is not None else None
        if windows == (ALWAYS,) and blank(length):
            return ()
        if blank(length) or by_length is None:
            raise InputError(f"{where}: a break, but not how long it is; add a column break_duration")
        unit = table.claims[by_length].unit
        return (Break(id="1", windows=windows, service=self._long(table, length, unit, where, by_length)),)

    def _kept(self, table: Table, row: Mapping[str, Any], where: str) -> tuple[int, ...]:
        name = table.names_of("kept").get("")
        raw = row.get(name) if name is not None else None
        if blank(raw):
            return ()
        parts = raw if isinstance(raw, list | tuple) else _LIST.split(str(raw).strip())
        found = []
        for part in parts:
            called = text_of(part, where, "a kept stop")
            if called not in self.stop_number:
                raise InputError(f"{where}: keeps {shown(called)}, which is not the id of a stop")
            found.append(self.stop_number[called])
        return tuple(found)

    # --------------------------------------------------------------------------- the whole

    def _settings(self) -> dict[str, Any]:
        return settings_of(self.options, self.stops.source, self.times.clock and not self.stops.document)

    def _timed(self, stops: Sequence[Stop], vehicles: Sequence[Vehicle], settings: Mapping[str, Any]) -> str | None:
        """What cannot be kept without durations, in words; None if nothing."""
        return timed(stops, vehicles, settings)

    def _legs(self, needs: str | None, rounding: str) -> tuple[dict[str, Legs], Any, bool, tuple[str, ...]]:
        source = self.stops.source
        speed = speed_of(self.options, source)
        legs: dict[str, Legs] = {}
        tables: dict[str, Given | None] = dict(self.profiles) or {ANY: self.given}
        notes: tuple[str, ...] = ()
        unit: Any = ""
        only = False
        for profile, given in tables.items():
            if given is not None:
                given = given.in_order(self.places, source)
                if given.size != len(self.places):
                    raise InputError(
                        f"{source}: {len(self.places)} places, but the matrix has {given.size} rows and columns; "
                        "one for each row of the table, the depot among them"
                    )
            found = measured(
                source,
                given,
                self.xy,
                self.latlon,
                speed=speed,
                timed=needs,
                clock=self.times.clock,
                rounding=rounding,
            )
            legs[profile] = found.legs
            notes, unit, only = tuple(dict.fromkeys((*notes, *found.notes))), found.unit, only or found.only_durations
        if ANY not in legs and len(legs) == 1:
            legs = {ANY: next(iter(legs.values())), **legs}
        return legs, unit, only, notes

    def _by_duration(self, vehicle: Vehicle, where: str) -> Vehicle:
        """Where distances are unknown, driving time is the cost unless the file gives others."""
        if vehicle.max_distance != FOREVER:
            raise InputError(f"{where}: a longest distance, but no distances; give them beside the durations")
        if vehicle.id in self.priced:
            if vehicle.distance_cost and self._gives_distance_cost():
                raise InputError(f"{where}: a cost by distance, but no distances; give them beside the durations")
            return replace(vehicle, distance_cost=0.0)
        return replace(vehicle, distance_cost=0.0, driving_cost=1.0)

    def _gives_distance_cost(self) -> bool:
        in_table = self.vehicles is not None and self.vehicles.has("distance_cost")
        return in_table or self.options.get("distance_cost") is not None

    def _told(self) -> list[str]:
        """What the user should know of how the tables were read."""
        notes = []
        if not self.stops.document:
            if self.depots and not self.stops.has("depot"):
                first = self.depots[0]
                notes.append(f"the depot is {shown(self.ids[first])} ({self.stops.rows[first][0]})")
            bare = [
                name
                for table in (self.stops, self.vehicles)
                if table is not None
                for name, one in table.claims.items()
                if one.unit is None
                and not one.part
                and one.attribute in ("service", "setup", "break_duration", "reload_time", "overtime")
                and any(_bare_number(value) for value in table.columns[name])
            ]
            if bare and self.times.clock:
                notes.append(f"in minutes, since times are clock times: {', '.join(bare)}")
        unused = [*self.unused, *self.stops.unclaimed]
        if unused:
            notes.append(not_used(unused))
        if self.vehicles is not None and self.vehicles.unclaimed:
            notes.append(f"of the vehicles {not_used(self.vehicles.unclaimed)}")
        return notes


def _bare_number(value: Any) -> bool:
    return isinstance(value, int | float) or (
        isinstance(value, str) and re.fullmatch(r"\s*\d+([.,]\d+)?\s*", value) is not None
    )


def text_of(raw: Any, where: str, what: str) -> str:
    """A name or id as text: numbers of spreadsheets without their point."""
    if isinstance(raw, float) and math.isfinite(raw) and raw == int(raw):
        raw = int(raw)
    if isinstance(raw, bool | dict | list):
        raise InputError(f"{where}: {what} is {shown(raw)}; text or a whole number is needed")
    return str(raw).strip()


def truth(raw: Any, what: str) -> bool:
    text = str(raw).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise InputError(f"{what} is {shown(raw)}; write true or false")


def settings_of(options: Mapping[str, Any], source: str, minutes: bool = False) -> dict[str, Any]:
    """What holds for the whole round, as fields of Round."""
    found: dict[str, Any] = {}
    for name, choices in (("objective", get_args(Objective)), ("backhauls", get_args(Backhauls))):
        if (raw := options.get(name)) is not None:
            if raw not in choices:
                raise InputError(f"{source}: {name} is {shown(raw)}; the choices are {', '.join(choices)}")
            found[name] = raw
    if (raw := options.get("most_stops_apart")) is not None:
        found["most_stops_apart"] = real(raw, source, "most_stops_apart")
    if (raw := options.get("most_time_apart")) is not None:
        found["most_time_apart"] = clock.length(raw, 60.0 if minutes else 1.0, source, "most_time_apart")
    if (raw := options.get("allow_unassigned")) is not None:
        found["allow_unassigned"] = truth(raw, f"{source}: allow_unassigned")
    return found


def timed(stops: Sequence[Stop], vehicles: Sequence[Vehicle], settings: Mapping[str, Any]) -> str | None:
    """What cannot be kept without durations, in words; None if nothing."""
    if any(stop.windows != (ALWAYS,) for stop in stops):
        return "stops have windows"
    if any(stop.release != -FOREVER for stop in stops):
        return "stops have release times"
    for vehicle in vehicles:
        if vehicle.shift != ALWAYS:
            return "vehicles have shifts"
        if vehicle.max_duration != FOREVER or vehicle.max_driving != FOREVER:
            return "vehicles have a longest duration"
        if vehicle.time_cost or vehicle.driving_cost:
            return "vehicles cost by time"
        if any(pause.windows != (ALWAYS,) for pause in vehicle.breaks):
            return "vehicles have breaks"
    if settings.get("most_time_apart", FOREVER) != FOREVER:
        return "routes may not differ too much in time"
    return None
