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
from routelearn.rounds.files.table import THOUSANDS, Table, text_of
from routelearn.rounds.model import ALWAYS, FOREVER, Amounts, Window

LIST = re.compile(r"\s*[,;/|]\s*")
DIMENSIONS = re.compile(r"\s*[;/|]\s*|\s+")


class Cells:
    """What cells say, once all times have been looked at and the dimensions of amounts are known."""

    def __init__(self, times: Times, dims: tuple[str, ...]) -> None:
        self.times, self.dims = times, dims

    def number(self, table: Table, raw: Any, where: str, what: str) -> float:
        return real(with_point(raw) if table.comma and isinstance(raw, str) else raw, where, what)

    def amount(self, table: Table, raw: Any, where: str, what: str) -> float:
        """A number; 1.000 is refused where it could be a thousand: commas are decimal, or may be."""
        if isinstance(raw, str) and THOUSANDS.fullmatch(raw) and table.comma and not table.decimal_points:
            either = f"{raw.strip().replace('.', '')} or {raw.strip().replace('.', ',')}"
            why = (
                "but other numbers have a decimal comma" if table.decimal_commas else "which may be a thousand or less"
            )
            raise InputError(f"{where}: {what} is {shown(raw)}, {why}; write {either}")
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
        found = clock.length(raw, usual if unit is None else unit, where, what)
        if found < 0:  # told as it was written, not in seconds
            raise InputError(f"{where}: {what} is {str(raw).strip()}; it cannot be negative")
        return found

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
            if isinstance(raw, str) and len(parts) > 1 and any(re.fullmatch(r"[^\W\d]+", part) for part in parts):
                raise InputError(
                    f"{where}: {names['']} is {shown(raw)}; write the number alone, its unit in the header"
                )
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
        given = {part: row.get(name) for part, name in names.items()}
        given = {part: raw for part, raw in given.items() if not blank(raw) and raw != []}
        if not given:
            return (ALWAYS,)
        ends = [raw for part, raw in given.items() if part]
        whole = [raw for raw in ends if clock.moment(raw) is None and clock.stretches(raw)]
        if "" in given and len(whole) < len(ends):
            both = " and ".join(shown(names[part]) for part in sorted(given)[:2])
            raise InputError(f"{where}: {both} both say when; leave one of them out")
        if "" in given or whole:  # window, window_1 and window_2 are windows each, not ends of one
            found = ((names[part], raw) for part, raw in sorted(given.items()))
            return tuple(window for name, raw in found for window in self.times.windows(raw, where, name))
        what = names.get("1") or names.get("2") or attribute
        return (self.times.window(given.get("1"), given.get("2"), where, what, names.get("2")),)

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
