"""Vehicles, from the rows of a table or from options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from routelearn.data.numbers import blank, real, shown
from routelearn.errors import InputError
from routelearn.rounds.files.cells import DIMENSIONS, LIST, Cells
from routelearn.rounds.files.columns import declared
from routelearn.rounds.files.lengths import Unit
from routelearn.rounds.files.sites import Sites
from routelearn.rounds.files.table import VEHICLE_OPTIONS, Table, text_of
from routelearn.rounds.model import ALWAYS, FOREVER, NAMELESS, Amounts, Break, Stop, Vehicle, Window
from routelearn.rounds.units import METRES

OPEN = ("open", "offen", "none", "keiner", "kein", "-", "ouvert", "abierto")  # a start or end that is none
MOST_VEHICLES = 10_000
BOTH = "distances cost 1 for each unit beside the price of time; give a distance_cost of 0 to leave that out"


class Fleet:
    """The vehicles of a table (None: as the options say), at the places of the stops' table."""

    def __init__(self, table: Table | None, sites: Sites, cells: Cells, options: Mapping[str, Any]) -> None:
        self.table, self.sites, self.cells, self.options = table, sites, cells, options
        self.priced: set[str] = set()  # vehicles that have a cost by distance or time
        self.per_metres: dict[str, float] = {}  # for how many metres their cost by distance is, where its name says so
        self.metres: dict[str, float] = {}  # in a unit of their longest distance, where its name says so
        self.used: set[str] = set()  # options that hold for one vehicle at least
        self.notes: tuple[str, ...] = ()

    def vehicles(self, stops: int) -> tuple[list[Vehicle], list[str]]:
        """Vehicles of a table, or as options say: their number, and what each holds."""
        table, source, count = self.table, self.sites.table.source, self._count()
        if table is None:
            capacities = self._capacities(count)
            kinds: list[tuple[str, int | None, Amounts]] = [(str(k), 1, holds) for k, holds in enumerate(capacities, 1)]
            if len(set(capacities)) < 2:  # all are alike
                kinds = [(NAMELESS, count, capacities[0] if capacities else ())]
            table = Table(source, [("vehicles", {})])
            vehicles = [self._vehicle(table, {}, source, *kind, stops) for kind in kinds]
            return vehicles, [source] * len(kinds)
        if not table.rows:
            raise InputError(f"{table.source}: no vehicles")
        capacities = self._capacities(len(table.rows))
        where = [table.at(place) for place, _ in table.rows]
        by_id, by_number = table.name_of("id"), table.name_of("number")
        found = []
        for k, (_, row) in enumerate(table.rows):
            name = table.cell(row, "id")
            if blank(name) and by_id is not None:
                raise InputError(f"{where[k]}: no {by_id}, though other vehicles have one")
            raw_number = row.get(by_number) if by_number is not None else 1
            if table.document:  # null is as many as it takes; a vehicle that does not say is one
                said = [key for key in (by_number, "number") if key is not None and key in row]
                raw_number = row[said[0]] if said else 1
            number = None if blank(raw_number) else self.cells.whole(table, raw_number, where[k], by_number or "number")
            if number is not None and not 0 < number <= MOST_VEHICLES:
                raise InputError(f"{where[k]}: {number} vehicles; between 1 and {MOST_VEHICLES:,} are allowed")
            holds = self.cells.amounts(table, row, "capacity", where[k])
            self.used |= set() if holds else {"capacity"}
            holds = holds or (capacities[k if len(capacities) > 1 else 0] if capacities else ())
            called = str(k + 1) if blank(name) else text_of(name, where[k], "the id")
            found.append(self._vehicle(table, row, where[k], called, number, holds, stops))
        if count is not None:
            raise InputError(f"{source}: both a number of vehicles and a table of them; give one")
        return found, where

    def check_capacities(self, stops: Sequence[Stop], vehicles: Sequence[Vehicle]) -> None:
        """Ask for a capacity where amounts are given and nobody says what a vehicle holds; of a table, tell."""
        free = [v.id for v in vehicles if not v.capacity or FOREVER in v.capacity]
        if not any(any((*s.delivery, *s.pickup)) for s in stops):
            if len(free) < len(vehicles):
                self.notes = (*self.notes, "no stop has an amount, so that capacities bind nothing")
            return
        if not free:
            return
        if self.table is None:
            raise InputError(
                f"{self.sites.table.source}: stops have amounts, but nothing says what a vehicle holds; give a "
                "capacity (--capacity 100, or 100,100,60 for three vehicles) or a table of vehicles"
            )
        several = " in each dimension" if any(vehicle.capacity for vehicle in vehicles if vehicle.id in free) else ""
        words = f"without a capacity{several}, so that they hold any amount: {', '.join(free[:5])}"
        self.notes = (*self.notes, words)

    def told(self, vehicles: Sequence[Vehicle]) -> list[str]:
        """What the user should know of options and depots that are not used."""
        notes = []
        asked = ("capacity", "shift", *VEHICLE_OPTIONS)
        if self.table is not None:
            idle = [name for name in asked if self.options.get(name) is not None and name not in self.used]
            notes += [f"not used, since every vehicle gives its own: {', '.join(idle)}"] if idle else []
        sites = self.sites
        used = {place for one in vehicles for place in (one.start, one.end, *one.reloads)}
        unused = [shown(sites.ids[i]) for i in sites.depots if sites.place_of[i] not in used]
        if unused:
            words = "a table of vehicles with a column 'start' says which do"
            notes.append(f"no vehicle starts or ends at the depot {', '.join(unused[:5])}; {words}")
        return notes

    def _count(self) -> int | None:
        raw = self.options.get("vehicles")
        if raw is None:
            return None
        count = self.cells.whole(self.sites.table, raw, "--vehicles", "the number")
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
            parts = [DIMENSIONS.split(part.strip()) for part in raw.split(",")]
        else:
            parts = [raw] if not isinstance(raw, list | tuple) else raw
            parts = [part if isinstance(part, list | tuple) else [part] for part in parts]
        found = [tuple(real(one, "--capacity", "the capacity") for one in part) for part in parts]
        if len(found) == 1:
            return found * (count or 1)
        if count is not None and len(found) != count:
            there = f"there are {count} vehicles; give one for each"
            if count == 1:
                there = "there is one vehicle; give one, a fraction with a point (2.5)"
            raise InputError(f"--capacity has {len(found)} numbers, but {there}")
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
                self.used.add(ours)
                if ours == "skills" and raw is not None and self.table is None:
                    values[ours] = self.cells.names(raw, where, user)
                    continue
            if blank(raw):
                continue
            one = declared(Vehicle)[ours]
            if ours == "skills":
                values[ours] = self.cells.names(raw, where, user)
            elif ours == "profile":
                values[ours] = text_of(raw, where, user)
            elif one.unit == "time":
                values[ours] = self.cells.long(table, raw, unit, where, user)
            elif one.whole:
                values[ours] = self.cells.whole(table, raw, where, user)
            elif one.unit == "length":
                values[ours] = self.cells.number(table, raw, where, user)
                self.metres |= {} if unit is None else {name: unit}
            else:
                values[ours] = self.cells.number(table, raw, where, user) / self._per(name, ours, unit)
        prices = {"distance_cost", "driving_cost", "time_cost"} & set(values)
        if prices:
            self.priced.add(name)
            if "distance_cost" not in prices and BOTH not in self.notes:
                self.notes = (*self.notes, BOTH)
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

    def _per(self, vehicle: str, attribute: str, unit: float | None) -> float:
        """What a price is for, in our units: a column may give it for an hour."""
        if attribute == "distance_cost" and unit is not None:
            self.per_metres[vehicle] = unit
            return 1.0
        return unit or 1.0

    def measured(self, vehicle: Vehicle, unit: Unit) -> Vehicle:
        """With its price by distance, and its longest distance, in the unit of the legs."""
        if unit and vehicle.id in self.per_metres:
            factor = METRES[unit] / self.per_metres[vehicle.id]
            vehicle = replace(vehicle, distance_cost=vehicle.distance_cost * factor)
        if unit and vehicle.id in self.metres:
            factor = self.metres[vehicle.id] / METRES[unit]
            vehicle = replace(vehicle, max_distance=vehicle.max_distance * factor)
        return vehicle

    def _ends(self, table: Table, row: Mapping[str, Any], where: str) -> tuple[int | None, int | None]:
        """Start and end; the first depot and the start, where the table does not say."""
        home = self.sites.place_of[self.sites.depots[0]] if self.sites.depots else None
        found: list[int | None] = []
        for word, default in (("start", home), ("end", None)):
            name, raw = table.name_of(word) or word, table.cell(row, word)
            if table.document and name in row and row[name] is None:
                found.append(None)
            elif blank(raw):
                found.append(default if word == "start" else found[0])
            elif isinstance(raw, str) and raw.strip().lower() in OPEN:
                found.append(None)
            else:
                found.append(self.sites.place(raw, where, name))
        return found[0], found[1]

    def _shift(self, table: Table, row: Mapping[str, Any], where: str, start: int | None, end: int | None) -> Window:
        """The vehicle's own, or that of the options, within the hours of the depots where it starts and ends."""
        windows = self.cells.window(table, row, "shift", where)
        if len(windows) > 1:
            raise InputError(
                f"{where}: a shift of {len(windows)} stretches; one is needed, breaks are columns of their own"
            )
        low, high = windows[0]
        if windows == (ALWAYS,) and self.options.get("shift") is not None:
            self.used.add("shift")
            (low, high), *more = self.cells.times.windows(self.options["shift"], "--shift", "the shift")
            if more:
                raise InputError(f"--shift {shown(self.options['shift'])}: one stretch is needed")
        for i in self.sites.depots:
            place, cells = self.sites.table.rows[i]
            hours = self.cells.window(self.sites.table, cells, "windows", self.sites.table.at(place))
            if len(hours) > 1:
                raise InputError(
                    f"{self.sites.table.at(place)}: a depot with {len(hours)} windows; give one, from the first to the "
                    "last time at which vehicles may leave or come back"
                )
            if self.sites.place_of[i] == start:
                low = max(low, hours[0][0])
            if self.sites.place_of[i] == end:
                high = min(high, hours[-1][1])
        if high < low:
            raise InputError(f"{where}: the shift lies outside the depot's hours; change one of them")
        return low, high

    def _reloads(self, table: Table, row: Mapping[str, Any], where: str) -> tuple[int, ...]:
        parts = listed(table.cell(row, "reloads"))
        return tuple(self.sites.place(part, where, table.name_of("reloads") or "") for part in parts if not blank(part))

    def _breaks(self, table: Table, row: Mapping[str, Any], where: str) -> tuple[Break, ...]:
        """A document's list of breaks, or one in columns of its own."""
        raw = table.cell(row, "breaks")
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
                        windows=(ALWAYS,) if blank(windows) else self.cells.times.windows(windows, where, "windows"),
                        service=0.0 if blank(length) else self.cells.long(table, length, None, where, "service"),
                    )
                )
            return tuple(found)
        windows = self.cells.window(table, row, "breaks", where)
        by_length, length = table.name_of("break_duration"), table.cell(row, "break_duration")
        if windows == (ALWAYS,) and blank(length):
            return ()
        if blank(length) or by_length is None:
            raise InputError(f"{where}: a break, but not how long it is; add a column break_duration")
        unit = table.claims[by_length].unit
        return (Break(id="1", windows=windows, service=self.cells.long(table, length, unit, where, by_length)),)

    def _kept(self, table: Table, row: Mapping[str, Any], where: str) -> tuple[int, ...]:
        found = []
        for part in listed(table.cell(row, "kept")):
            called = text_of(part, where, "a kept stop")
            if called not in self.sites.number:
                raise InputError(f"{where}: keeps {shown(called)}, which is not the id of a stop")
            found.append(self.sites.number[called])
        return tuple(found)

    def by_duration(self, vehicle: Vehicle, where: str) -> Vehicle:
        """Where distances are unknown, driving time is the cost unless the file gives others."""
        if vehicle.max_distance != FOREVER:
            raise InputError(f"{where}: a longest distance, but no distances; give them beside the durations")
        if vehicle.id in self.priced:
            in_table = self.table is not None and self.table.has("distance_cost")
            if vehicle.distance_cost and (in_table or self.options.get("distance_cost") is not None):
                raise InputError(f"{where}: a cost by distance, but no distances; give them beside the durations")
            self.notes = tuple(note for note in self.notes if note != BOTH)
            return replace(vehicle, distance_cost=0.0)
        return replace(vehicle, distance_cost=0.0, driving_cost=1.0)


def homes(table: Table | None) -> frozenset[str] | None:
    """What vehicles call the places where they start, end and reload, if all of them say; else None."""
    if table is None:
        return None
    found: set[str] = set()
    start = table.name_of("start") or "start"
    for place, row in table.rows:
        if blank(table.cell(row, "start")) and not (table.document and start in row):  # null is an answer, too
            return None
        named = [("reloads", part) for part in listed(table.cell(row, "reloads"))]
        named += [(end, table.cell(row, end)) for end in ("start", "end")]
        found |= {text_of(raw, table.at(place), attribute) for attribute, raw in named if not blank(raw)}
    return frozenset(found)


def listed(raw: Any) -> Sequence[Any]:
    """The parts of a cell or of a document's list."""
    if blank(raw):
        return ()
    return raw if isinstance(raw, list | tuple) else LIST.split(str(raw).strip())
