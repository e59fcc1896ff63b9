"""Tables of stops and of vehicles: CSV texts and sheets of Excel workbooks into rows of named values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from routelearn.data.csv_file import check_not_xml, declared_delimiter, first_line, likeliest_delimiter, rows_of
from routelearn.data.excel_file import Sheet, sheets
from routelearn.data.names import check_width, not_used
from routelearn.data.numbers import blank, shown
from routelearn.data.records import Row
from routelearn.errors import InputError
from routelearn.problems.attributes import folded
from routelearn.rounds.files.columns import column_of
from routelearn.rounds.files.table import Table
from routelearn.rounds.model import Stop, Vehicle

# How the names of sheets of vehicles begin.
VEHICLE_SHEETS = ("vehicle", "vans", "fleet", "fahrzeuge", "flotte", "fuhrpark", "vehicule", "vehiculo")


def csv_table(text: str, source: str, kind: type) -> Table:
    """A CSV text with a header; decimal commas are allowed where commas do not delimit."""
    check_not_xml(text, source)
    first = first_line(text)
    said = declared_delimiter(first)
    delimiter = said or likeliest_delimiter(first, lambda name: column_of(name, kind))
    lines = list(rows_of(text, delimiter, source))[0 if said is None else 1 :]
    found = _table([(f"line {at}", cells) for at, cells in lines], source, kind, delimiter != ",")
    return replace(found, separator=delimiter)


def _table(lines: Sequence[tuple[str, Sequence[Any]]], source: str, kind: type, comma: bool) -> Table:
    what = "stops" if kind is Stop else "vehicles"
    if not lines:
        raise InputError(f"{source}: no {what}")
    where, head = lines[0]
    check_width(len(head), f"{source}, {where}")
    names = [" ".join(str(cell).split()) for cell in head]
    if not any(column_of(name, kind) for name in names if name):
        raise InputError(f"{source}, {where}: no header that names {what}; the first line must name the columns")
    seen: set[str] = set()
    for name in filter(None, names):
        if name.casefold() in seen:
            raise InputError(f"{source}, {where}: two columns are named {shown(name)}")
        seen.add(name.casefold())
    names = [name or f"column {i}" for i, name in enumerate(names, 1)]
    rows: list[Row] = []
    for at, cells in lines[1:]:
        cells = list(cells)
        while len(cells) > len(names) and blank(cells[-1]):  # as spreadsheets leave them
            cells.pop()
        if len(cells) != len(names):
            raise InputError(f"{source}, {at}: {len(cells)} cells; the header names {len(names)} columns")
        rows.append((at, dict(zip(names, cells, strict=True))))
    if not rows:
        raise InputError(f"{source}: a header but no {what}")
    return Table(source, rows, comma=comma)


def excel_tables(data: bytes, source: str) -> tuple[Table, Table | None, list[str]]:
    """(stops: the first sheet whose first row names columns of them, vehicles: the sheet of that name, notes)."""
    found = {name: rows for name, rows in sheets(data, source).items() if rows}
    vehicles = _of_vehicles(found)
    others = [name for name in found if name != vehicles]
    if not others:
        raise InputError(f"{source}: no sheet of stops")
    chosen = next((name for name in others if any(column_of(str(cell), Stop) for cell in found[name][0][1])), others[0])
    stops = _sheet(found[chosen], source, chosen, Stop, len(others) > 1)
    fleet = None if vehicles is None else _sheet(found[vehicles], source, vehicles, Vehicle, True)
    idle = [name for name in others if name != chosen]
    return stops, fleet, [f"the stops are those of the sheet {shown(chosen)}; {not_used(idle)}"] if idle else []


def _of_vehicles(found: Mapping[str, Sheet]) -> str | None:
    return next((name for name in found if folded(name).startswith(VEHICLE_SHEETS)), None)


def excel_vehicles(data: bytes, source: str) -> Table:
    """A workbook of vehicles alone: the sheet of that name, or the first."""
    found = sheets(data, source)
    name = _of_vehicles(found) or next(iter(found))
    return _sheet(found[name], source, name, Vehicle, len(found) > 1)


def _sheet(rows: Sequence[tuple[int, list[Any]]], source: str, name: str, kind: type, named: bool) -> Table:
    prefix = f"sheet {shown(name)}, " if named else ""
    width = max((len(cells) for _, cells in rows), default=0)
    return _table(
        [(f"{prefix}row {at}", cells + [""] * (width - len(cells))) for at, cells in rows], source, kind, True
    )
