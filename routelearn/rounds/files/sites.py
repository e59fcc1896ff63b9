"""Stops, depots and their places, from the rows of a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from routelearn.data.names import MARKED, UNMARKED, zero
from routelearn.data.numbers import blank, shown
from routelearn.data.records import check_degrees
from routelearn.errors import InputError
from routelearn.problems.attributes import folded
from routelearn.rounds.files.cells import Cells
from routelearn.rounds.files.columns import declared
from routelearn.rounds.files.table import Table, text_of
from routelearn.rounds.model import Stop
from routelearn.rounds.units import told_apart

DEPOTS = ("depot", "lager", "entrepot", "almacen", "deposito", "warehouse", "zentrallager", "hub", "base")


class Sites:
    """The rows of a table of stops, each with its id and place; some are depots.

    `size` is that of the matrix, if there is one. `depot` is the id or name of the depot, if the user says.
    `homes` are where the vehicles start and end, if all of them say: then no other row is a depot.
    """

    def __init__(
        self, table: Table, cells: Cells, *, size: int | None, depot: Any, homes: frozenset[str] | None
    ) -> None:
        self.table, self.cells, self.size = table, cells, size
        by_name = table.name_of("name")
        self.called = [] if by_name is None else [str(row.get(by_name) or "").strip() for _, row in table.rows]
        self.ids = self._ids()
        self.depots = self._depots(depot, homes)
        self.named = {name: i for i, name in enumerate(self.ids)}
        self._places()
        self.inner = [i for i in range(len(table.rows)) if i not in self.depots]  # the rows that are stops
        self.number = {self.ids[i]: k for k, i in enumerate(self.inner)}

    def stops(self) -> list[Stop]:
        return [self._stop(i) for i in self.inner]

    def _ids(self) -> tuple[str, ...]:
        """The ids; without any, the names, told apart by a number; otherwise numbers."""
        table = self.table
        by_id = table.name_of("id")
        if by_id is not None:
            found = []
            for place, row in table.rows:
                raw = row.get(by_id)
                if blank(raw) and place == "depot":
                    raw = table.cell(row, "name") or "depot"
                if blank(raw):
                    raise InputError(f"{table.at(place)}: no id, though other stops have one")
                found.append(text_of(raw, table.at(place), "the id"))
            return tuple(found)
        if self.called:
            return told_apart([name or str(i) for i, name in enumerate(self.called, 1)])
        first = table.rows[0][0] == "depot"
        numbers = [str(i + (0 if first else 1)) for i in range(len(table.rows))]
        return ("depot", *numbers[1:]) if first else tuple(numbers)

    def _depots(self, asked: Any, homes: frozenset[str] | None) -> list[int]:
        """The rows that are depots: marked, named so, or the first."""
        table, marks = self.table, self.table.name_of("depot")
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
        if table.rows[0][0] == "depot":
            return [0]
        if asked is not None:
            name = text_of(asked, table.source, "the depot")
            for names in (self.ids, self.called):
                if name in names:
                    return [list(names).index(name)]
            raise InputError(f"{table.source}: the depot {shown(asked)} is not the id or name of one of the stops")
        words = [folded((name.split() or [""])[0]) for name in self.called or self.ids]
        found = [i for i in count if words[i] in DEPOTS and not self._busy(i)]
        if homes is not None:  # a row where something is brought or taken is a stop, even if a vehicle starts there
            known = [{self.ids[i], *self.called[i : i + 1]} for i in count]
            return [i for i in count if i in found or (known[i] & homes and not self._busy(i))]
        return found or [0]

    def _busy(self, i: int) -> bool:
        """Whether a row has anything that only a visit has."""
        row = self.table.rows[i][1]
        asked = ("delivery", "pickup", "service", "shipment", "penalty", "priority", "skills")
        cells = (row.get(name) for name, one in self.table.claims.items() if one.attribute in asked)
        return any(not blank(cell) and not zero(cell) for cell in cells)

    def _places(self) -> None:
        """Names and coordinates of all places; each row is one, unless a document gives its number."""
        table = self.table
        pairs = {}
        for first, second in (("x", "y"), ("lat", "lon")):
            a, b = table.name_of(first), table.name_of(second)
            if (a is None) != (b is None):
                have, lack = (a, second) if b is None else (b, first)
                raise InputError(f"{table.source}: a column {have} but no {lack}")
            if a is not None and b is not None:
                pairs[first] = (a, b)
        if len(pairs) == 2:
            raise InputError(f"{table.source}: both x, y and lat, lon; keep the pair to measure lengths by")
        by_number = table.name_of("place")
        self.place_of = list(range(len(table.rows)))
        self.places: tuple[str, ...] = self.ids
        if by_number is not None:
            size = self.size
            if size is None:
                raise InputError(f"{table.source}: 'place' is a row of a matrix, and there is none; give durations")
            self.place_of = []
            for place, row in table.rows:
                if blank(row.get(by_number)):
                    raise InputError(f"{table.at(place)}: no {by_number}, though other stops have one")
                at = self.cells.whole(table, row.get(by_number), table.at(place), by_number)
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
                    values[at, axis] = self.cells.number(table, row.get(name), table.at(place), name)
            if np.isnan(values).any():
                continue
            if self.size is None:
                self._share(values.tolist())
            if kind == "lat":
                check_degrees(
                    values, [place for place, _ in table.rows] if by_number is None else self.places, table.source
                )
                self.latlon = values
            else:
                self.xy = values

    def _share(self, coordinates: Sequence[Sequence[float]]) -> None:
        """Stops at the very coordinates of a depot or of a stop before are at that place, as in VROOM's documents.

        Setup times depend on it. Depots keep places of their own, since these have their names.
        """
        at = {tuple(coordinates[i]): i for i in reversed(self.depots)}
        for i, here in enumerate(coordinates):
            if i not in self.depots:
                self.place_of[i] = at.setdefault(tuple(here), i)

    def _stop(self, i: int) -> Stop:
        table = self.table
        place, row = table.rows[i]
        where = table.at(place)
        values: dict[str, Any] = {}
        for name, one in table.claims.items():
            raw, ours = row.get(name), one.attribute
            if blank(raw) or ours not in declared(Stop) or declared(Stop)[ours].unit == "amount" or ours == "windows":
                continue
            if ours in ("service", "setup"):
                values[ours] = self.cells.long(table, raw, one.unit, where, name)
            elif ours == "release":
                values[ours] = self.cells.times.at(raw, where, name)
            elif ours in ("skills", "only", "forbidden"):
                values[ours] = self.cells.names(raw, where, name)
            elif ours == "priority":
                values[ours] = self.cells.whole(table, raw, where, name)
            else:
                values[ours] = self.cells.number(table, raw, where, name)
                if ours == "late_cost" and one.unit is not None:  # for an hour, say
                    values[ours] /= one.unit
        kept = {
            name: json.dumps(raw, ensure_ascii=False)
            if isinstance(raw := row[name], bool | dict | list)
            else text_of(raw, where, name)
            for name in table.unclaimed
            if not blank(row.get(name))
        }
        by_name = table.name_of("name")
        if by_name is not None and not blank(row.get(by_name)) and table.has("id"):
            kept = {by_name: str(row[by_name]).strip()} | kept
        return Stop(
            id=self.ids[i],
            place=self.place_of[i],
            delivery=self.cells.amounts(table, row, "delivery", where),
            pickup=self.cells.amounts(table, row, "pickup", where),
            windows=self.cells.window(table, row, "windows", where),
            columns=kept,
            **values,
        )

    def shipments(self, stops: Sequence[Stop], listed: Any) -> tuple[tuple[int, int], ...]:
        """Pairs of stops: rows that share the value of a column, or what a document lists."""
        table, found = self.table, []
        if listed is not None:
            if not isinstance(listed, list):
                raise InputError(f"{table.source}: 'shipments' is {shown(listed)}; a list is needed")
            for n, pair in enumerate(listed, 1):
                if isinstance(pair, dict):
                    pair = [pair.get("pickup"), pair.get("delivery")]
                if not isinstance(pair, list) or len(pair) != 2:
                    raise InputError(f"{table.source}, shipment {n}: the ids of pickup and delivery are needed")
                found.append((self._half(pair[0], n), self._half(pair[1], n)))
        by_shipment = table.name_of("shipment")
        halves: dict[str, list[int]] = {}
        for k, i in enumerate(self.inner):
            if by_shipment is not None and not blank(raw := table.rows[i][1].get(by_shipment)):
                halves.setdefault(text_of(raw, table.source, by_shipment), []).append(k)
        for name, members in halves.items():
            where = table.at(table.rows[self.inner[members[-1]]][0])
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
        where = f"{self.table.source}, shipment {n}"
        if blank(raw):
            raise InputError(f"{where}: its other half is missing; give the ids of pickup and delivery")
        name = text_of(raw, where, "a half")
        if name not in self.number:
            raise InputError(f"{where}: its half {shown(name)} is not the id of a stop")
        return self.number[name]

    def place(self, raw: Any, where: str, what: str) -> int:
        name = text_of(raw, where, what)
        if name in self.named:
            return self.place_of[self.named[name]]
        if self.called.count(name) == 1:
            return self.place_of[self.called.index(name)]
        if isinstance(raw, int) and 0 <= raw < len(self.places) and self.size is not None:
            return raw
        raise InputError(
            f"{where}: {what} is {shown(raw)}, not the id or name of a depot or stop; leave it empty for the depot"
        )
