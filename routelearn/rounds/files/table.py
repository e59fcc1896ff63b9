"""Tables as they stand in a file or a request, the options of rounds, and when either makes a round."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from routelearn.data.names import check_width, zero
from routelearn.data.numbers import blank, real, shown
from routelearn.data.records import Row
from routelearn.errors import InputError
from routelearn.problems.attributes import folded
from routelearn.rounds.files import clock
from routelearn.rounds.files.columns import BETWEEN_NAMES, BEYOND, Column, column_of, declared, understood
from routelearn.rounds.model import ALWAYS, FOREVER, Stop, Vehicle

OF_ALL = ("objective", "backhauls", "most_stops_apart", "most_time_apart", "allow_unassigned")
VEHICLE_OPTIONS = tuple(name for name in declared(Vehicle) if name not in ("number", "shift", "capacity"))
# Of the command line and beside the stops of a document. `matrix_unit`: what a plain matrix holds.
OPTIONS = (*("vehicles", "capacity", "shift", "speed", "round", "matrix_unit", "depot"), *OF_ALL, *VEHICLE_OPTIONS)
THOUSANDS = re.compile(r"\s*[1-9]\d{0,2}\.\d{3}\s*", re.ASCII)  # what may be a thousand
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
        self.rows = [
            (place, {" ".join(str(name).split()): value for name, value in row.items()}) for place, row in self.rows
        ]
        for _, row in self.rows:
            for name, value in row.items():
                values = self.columns.setdefault(name, [])
                if not blank(value):
                    values.append(value)
        check_width(len(self.columns), self.source)
        if self.document:
            self._merge(kind)
        self.claims = understood(self.columns, kind, self.source)

    def _merge(self, kind: type) -> None:
        """Two names of one thing are one where no row has both: `windows` of a stop, and `window` of another."""
        ours: dict[Column, str] = {}
        for name in [name for name, values in self.columns.items() if values]:
            one = column_of(name, kind)
            first = name if one is None else ours.setdefault(one._replace(own=False), name)
            if first == name or any(not blank(row.get(name)) and not blank(row.get(first)) for _, row in self.rows):
                continue
            self.rows = [(at, row if blank(row.get(name)) else {**row, first: row[name]}) for at, row in self.rows]
            self.columns[first] += self.columns.pop(name)

    @property
    def decimal(self) -> str:
        """The sign of its fractions; where there are none, the comma if commas do not separate."""
        cells = [str(value) for name in self.claims for value in self.columns[name]]
        if not self.comma or any(re.fullmatch(r"\s*-?\d+\.\d+\s*", cell) for cell in cells):
            return "."
        return "," if self.separator == ";" or any(re.fullmatch(r"\s*-?\d+,\d+\s*", cell) for cell in cells) else "."

    @cached_property
    def decimal_commas(self) -> bool:
        """Whether any number is written with a decimal comma."""
        cells = (value for name in self.claims for value in self.columns[name] if isinstance(value, str))
        return self.comma and any(re.fullmatch(r"\s*-?\d+,\d+\s*", cell) for cell in cells)

    @cached_property
    def decimal_points(self) -> bool:
        """Whether a point is decimal for sure: there are numbers with one that is not before three digits."""
        cells = [value for name in self.claims for value in self.columns[name] if isinstance(value, str)]
        points = (cell for cell in cells if re.fullmatch(r"\s*-?\d+\.\d+\s*", cell))
        return not self.decimal_commas and any(not THOUSANDS.fullmatch(cell) for cell in points)

    @property
    def unclaimed(self) -> list[str]:
        return [name for name, values in self.columns.items() if values and name not in self.claims]

    def names_of(self, attribute: str) -> dict[str, str]:
        """{part: the user's name} of the columns that give an attribute."""
        return {one.part: name for name, one in self.claims.items() if one.attribute == attribute}

    def name_of(self, attribute: str) -> str | None:
        """The user's name of the one column that gives an attribute."""
        return self.names_of(attribute).get("")

    def cell(self, row: Mapping[str, Any], attribute: str) -> Any:
        """What a row has in that column; None without one."""
        name = self.name_of(attribute)
        return None if name is None else row.get(name)

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
    found = {name: raw for name in ("objective", "backhauls") if (raw := options.get(name)) is not None}
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
