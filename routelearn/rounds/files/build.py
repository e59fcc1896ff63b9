"""Rows of named values (from CSV, Excel, JSON or GeoJSON) into a round."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from routelearn.data.names import not_used, zero
from routelearn.data.notes import Placed, far_off
from routelearn.data.numbers import blank, shown
from routelearn.errors import InputError
from routelearn.rounds.files.cells import Cells
from routelearn.rounds.files.clock import Times
from routelearn.rounds.files.columns import check_fleet, check_rules, check_typos, declared
from routelearn.rounds.files.fleet import Fleet, homes
from routelearn.rounds.files.lengths import Given, check_count, measured, rounding_of, speed_of
from routelearn.rounds.files.sites import Sites
from routelearn.rounds.files.table import Table, check_options, settings_of, timed
from routelearn.rounds.model import ANY, Legs, Round, Stop, Vehicle
from routelearn.rounds.validate import checked

LASTING = (
    *("service", "setup", "break_duration", "reload_time", "overtime"),
    *("max_duration", "max_driving", "most_time_apart"),
)
TIMES = ("windows", "shift", "release")
LONG = 180  # minutes of one service, say, beyond which they may be seconds


@dataclass
class Builder:
    """What is known of a round while its tables are read; `stops` has been understood."""

    stops: Table
    vehicles: Table | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    given: Given | None = None
    profiles: Mapping[str, Given] = field(default_factory=dict)
    shipments: Any = None  # of a document: pairs of ids
    depot: Any = None  # of a document: the id or name of a stop
    notes: tuple[str, ...] = ()

    def build(self) -> Round:
        """The round, checked."""
        check_options(self.options)
        source = self.stops.source
        check_count(len(self.stops.rows), source)
        if self.options.get("matrix_unit") is not None and self.given is None:
            raise InputError(f"{source}: --matrix-unit says what a matrix holds, but there is none; give --matrix, too")
        check_typos(self.stops.unclaimed, Stop, source)
        check_rules(self.stops.columns, self.stops.claims, source)
        if self.vehicles is not None:
            self.vehicles.understand(Vehicle)
            check_typos(self.vehicles.unclaimed, Vehicle, self.vehicles.source)
            check_fleet(self.vehicles.columns, self.vehicles.claims, self.vehicles.source)
        self.times, dims = self._times(), self._dimensions()
        cells = Cells(self.times, dims)
        sizes = [one.size for one in (self.given, *self.profiles.values()) if one is not None]
        self.sites = Sites(
            self.stops,
            cells,
            size=sizes[0] if sizes else None,
            depot=self.options.get("depot") if self.depot is None else self.depot,
            homes=homes(self.vehicles),
        )
        fleet = Fleet(self.vehicles, self.sites, cells, self.options)
        stops = self.sites.stops()
        vehicles, vehicles_where = fleet.vehicles(len(stops))
        fleet.check_capacities(stops, vehicles)
        settings = settings_of(self.options, source, self.times.clock and not self.stops.document)
        rounding = rounding_of(self.options, "none")
        legs, unit, only_durations, notes = self._legs(timed(stops, vehicles, settings), rounding)
        if only_durations:
            vehicles = [fleet.by_duration(vehicle, at) for vehicle, at in zip(vehicles, vehicles_where, strict=True)]
        vehicles = [fleet.measured(vehicle, unit) for vehicle in vehicles]
        found = Round(
            source=source,
            stops=tuple(stops),
            vehicles=tuple(vehicles),
            shipments=self.sites.shipments(stops, self.shipments),
            legs=legs,
            places=self.sites.places,
            xy=self.sites.xy,
            latlon=self.sites.latlon,
            dimensions=dims if len(dims) > 1 else (),
            day=self.times.day,
            zone=self.times.zone,
            rounding=rounding,
            length_unit=unit,
            separator=self.stops.separator,
            decimal=self.stops.decimal,
            where=tuple(self.stops.rows[i][0] for i in self.sites.inner),
            vehicles_where=tuple(vehicles_where),
            notes=(*self.notes, *self._told(), *fleet.notes, *fleet.told(vehicles), *notes, *self._far()),
            **settings,
        )
        return checked(found)

    @property
    def _tables(self) -> list[Table]:
        return [table for table in (self.stops, self.vehicles) if table is not None]

    def _times(self) -> Times:
        times = Times(self.stops.source)
        for table in self._tables:
            for name, one in table.claims.items():
                if one.attribute in TIMES:
                    times.look(table.columns[name])
                elif one.attribute == "breaks":
                    for value in table.columns[name]:
                        for pause in value if isinstance(value, list) else [value]:
                            raw = pause.get("windows", pause.get("window")) if isinstance(pause, dict) else pause
                            times.look([raw])
        if self.options.get("shift") is not None:
            times.look([self.options["shift"]])
        times.settle()
        return times

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
        return tuple(found)

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
                given = given.in_order(self.sites.places, source)
                if given.size != len(self.sites.places):
                    raise InputError(
                        f"{source}: {len(self.sites.places)} places, but the matrix has {given.size} rows and columns; "
                        "one for each row of the table, the depot among them"
                    )
            found = measured(
                source,
                given,
                self.sites.xy,
                self.sites.latlon,
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

    def _far(self) -> tuple[str, ...]:
        """A note on places far from all others, where they decide about the legs."""
        if self.given is not None or self.profiles:
            return ()
        return far_off(Placed(self.sites.ids, [at for at, _ in self.stops.rows], self.sites.xy, self.sites.latlon))

    def _told(self) -> list[str]:
        """What the user should know of how the tables were read."""
        notes = []
        if not self.stops.document:
            if self.sites.depots and not self.stops.has("depot"):
                places = [f"{shown(self.sites.ids[i])} ({self.stops.rows[i][0]})" for i in self.sites.depots]
                more = f" and {len(places) - 5} more" if len(places) > 5 else ""
                notes.append(f"the depot is {' and '.join(places[:5])}{more}")
            bare = [
                name
                for table in self._tables
                for name, one in table.claims.items()
                if (one.attribute in TIMES and not self.times.clock)
                or (one.unit is None and not one.part and one.attribute in LASTING)
                if any(_bare_number(value) for value in table.columns[name])
            ]  # fmt: skip
            bare += [f"--{name.replace('_', '-')}" for name in LASTING if _bare_number(self.options.get(name))]
            if bare:
                values = [value for table in self._tables for name in bare for value in table.columns.get(name, ())]
                hint = _long(values) if self.times.clock else ""
                unit = "minutes, since times are" if self.times.clock else "seconds, since no times are"
                notes.append(f"in {unit} clock times: {', '.join(bare)}{hint}")
            if self.times.hours:
                notes.append("stretches such as 8-12 are read as hours of the day")
            if self.times.dense:
                notes.append("numbers such as 0830 are read as times of day")
        if self.stops.unclaimed:
            notes.append(not_used(self.stops.unclaimed))
        rows = [self.stops.rows[i][1] for i in self.sites.depots]
        work = [name for name, one in self.stops.claims.items() if one.attribute in declared(Stop)]
        idle = [
            name
            for name in work
            if name not in self.stops.names_of("windows").values()
            and not all(blank(row.get(name)) or zero(row.get(name)) for row in rows)
        ]
        if idle:
            notes.append(f"of the depot {not_used(idle)}")
        if self.vehicles is not None and self.vehicles.unclaimed:
            notes.append(f"of the vehicles {not_used(self.vehicles.unclaimed)}")
        return notes


def _long(values: Iterable[Any]) -> str:
    """A hint where minutes seem to be seconds."""
    numbers = [float(str(value).replace(",", ".")) for value in values if _bare_number(value)]
    most = max(numbers, default=0.0)
    return f" (up to {most:g}; write {most:g} s where seconds are meant)" if most > LONG else ""


def _bare_number(value: Any) -> bool:
    return isinstance(value, int | float) or (
        isinstance(value, str) and re.fullmatch(r"\s*\d+([.,]\d+)?\s*", value) is not None
    )
