"""Cells of a table: numbers, amounts, lists of names, windows, and how long things take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from routelearn.data.csv_file import with_point
from routelearn.data.numbers import blank, real, shown
from routelearn.errors import InputError
from routelearn.rounds.files import clock
from routelearn.rounds.files.clock import Times
from routelearn.rounds.files.table import Table, text_of
from routelearn.rounds.model import ALWAYS, FOREVER, Amounts, Window

LIST = re.compile(r"\s*[,;/|]\s*")
THOUSANDS = re.compile(r"\s*[1-9]\d{0,2}\.\d{3}\s*", re.ASCII)
DIMENSIONS = re.compile(r"\s*[;/|]\s*|\s+")


class Cells:
    """What cells say, once all times have been looked at and the dimensions of amounts are known."""

    def __init__(self, times: Times, dims: tuple[str, ...]) -> None:
        self.times, self.dims = times, dims

    def number(self, table: Table, raw: Any, where: str, what: str) -> float:
        return real(with_point(raw) if table.comma and isinstance(raw, str) else raw, where, what)

    def amount(self, table: Table, raw: Any, where: str, what: str) -> float:
        """A number; 1.000 is refused where other cells have decimal commas, since it could be a thousand, too."""
        if isinstance(raw, str) and THOUSANDS.fullmatch(raw) and table.decimal_commas:
            either = f"{raw.strip().replace('.', '')} or {raw.strip().replace('.', ',')}"
            raise InputError(f"{where}: {what} is {shown(raw)}, but other numbers have a decimal comma; write {either}")
        return self.number(table, raw, where, what)

    def whole(self, table: Table, raw: Any, where: str, what: str) -> int:
        value = self.number(table, raw, where, what)
        if value != int(value):
            raise InputError(f"{where}: {what} is {shown(raw)}; a whole number is needed")
        return int(value)

    def long(self, table: Table, raw: Any, unit: float | None, where: str, what: str) -> float:
        """How long something takes; minutes where times are clock times and the file does not say otherwise."""
        usual = 60.0 if self.times.clock and not table.document else 1.0
        if table.comma and isinstance(raw, str):
            raw = with_point(raw)
        return clock.length(raw, usual if unit is None else unit, where, what)

    def names(self, raw: Any, where: str, what: str) -> frozenset[str]:
        parts = raw if isinstance(raw, list | tuple) else LIST.split(raw.strip()) if isinstance(raw, str) else [raw]
        return frozenset(text_of(part, where, what) for part in parts if not blank(part))

    def amounts(self, table: Table, row: Mapping[str, Any], attribute: str, where: str) -> Amounts:
        """The amounts of a row, in one column or in one for each dimension."""
        names = table.names_of(attribute)
        if "" in names:
            raw = row.get(names[""])
            if blank(raw):
                return ()
            parts = raw
            if isinstance(raw, str):
                parts = [part for part in DIMENSIONS.split(raw.strip()) if part]
            parts = parts if isinstance(parts, list | tuple) else [parts]
            return tuple(self.amount(table, part, where, names[""]) for part in parts)
        if not names:
            return ()
        dims = self.dims if len(self.dims) > 1 else tuple(names)
        cells = [row.get(names[dim]) if dim in names else None for dim in dims]
        if all(map(blank, cells)):
            return ()
        usual = FOREVER if attribute == "capacity" else 0.0
        return tuple(
            usual if blank(cell) else self.amount(table, cell, where, names[dim])
            for dim, cell in zip(dims, cells, strict=True)
        )

    def window(self, table: Table, row: Mapping[str, Any], attribute: str, where: str) -> tuple[Window, ...]:
        names = table.names_of(attribute)
        if numbered := sorted({part[2:] for part in names if "/" in part}):
            return self._numbered(names, numbered, row, where)
        first, last = row.get(names.get("1", "")), row.get(names.get("2", ""))
        if "" in names and not blank(raw := row.get(names[""])) and raw != []:
            return self.times.windows(raw, where, names[""])
        if blank(first) and blank(last):
            return (ALWAYS,)
        what = names.get("1") or names.get("2") or attribute
        whole = [raw for raw in (first, last) if not blank(raw) and clock.moment(raw) is None and clock.stretches(raw)]
        if whole:  # window_1 and window_2 are two windows, not two ends
            return tuple(window for raw in whole for window in self.times.windows(raw, where, what))
        return (self.times.window(first, last, where, what, names.get("2")),)

    def _numbered(
        self, names: Mapping[str, str], numbers: list[str], row: Mapping[str, Any], where: str
    ) -> tuple[Window, ...]:
        """Several windows, each in two columns of its own."""
        pairs = [(names.get("1"), names.get("2"))] if {"1", "2"} & set(names) else []
        pairs += [(names.get(f"1/{number}"), names.get(f"2/{number}")) for number in numbers]
        found = []
        for low, high in pairs:
            first, last = (None if name is None else row.get(name) for name in (low, high))
            if not (blank(first) and blank(last)):
                found.append(self.times.window(first, last, where, low or high or "window", high))
        return tuple(found) or (ALWAYS,)
