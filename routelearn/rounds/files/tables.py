"""Tables of stops and of vehicles: CSV texts and sheets of Excel workbooks into rows of named values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from routelearn.data.csv_file import DELIMITERS, cells_of, check_not_xml, declared_delimiter, first_line, rows_of
from routelearn.data.excel_file import sheets
from routelearn.data.names import check_width
from routelearn.data.numbers import blank, shown
from routelearn.data.records import Row
from routelearn.errors import InputError
from routelearn.problems.attributes import folded
from routelearn.rounds.files.columns import column_of
from routelearn.rounds.files.table import Table
from routelearn.rounds.model import Stop, Vehicle

VEHICLE_SHEETS = ("vehicles", "vehicle", "vans", "fleet", "fahrzeuge", "flotte", "fuhrpark", "vehicules", "vehiculos")


def csv_table(text: str, source: str, kind: type) -> Table:
    """A CSV text with a header; decimal commas are allowed where commas do not delimit."""
    check_not_xml(text, source)
    first = first_line(text)
    said = declared_delimiter(first)
    delimiter = said or _delimiter(first, kind)
    lines = list(rows_of(text, delimiter, source))[0 if said is None else 1 :]
    found = _table([(f"line {at}", cells) for at, cells in lines], source, kind, delimiter != ",")
    return replace(found, separator=delimiter)


def _delimiter(first: str, kind: type) -> str:
    """The one that gives the header the most known names, else the most columns."""
    return max(
        DELIMITERS,
        key=lambda d: (sum(column_of(cell, kind) is not None for cell in cells_of(first, d)), first.count(d)),
    )


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


def excel_tables(data: bytes, source: str) -> tuple[Table, Table | None]:
    """The first sheet is the stops; one that is called vehicles (in any language) the vehicles."""
    found = sheets(data, source)
    vehicles = next((name for name in found if folded(name) in VEHICLE_SHEETS), None)
    others = [name for name in found if name != vehicles and found[name]]
    if not others:
        raise InputError(f"{source}: no sheet of stops")
    stops = _sheet(found[others[0]], source, others[0], Stop, len(found) > 1)
    fleet = None if vehicles is None else _sheet(found[vehicles], source, vehicles, Vehicle, True)
    return stops, fleet


def excel_vehicles(data: bytes, source: str) -> Table:
    """A workbook of vehicles alone: the sheet of that name, or the first."""
    found = sheets(data, source)
    name = next((name for name in found if folded(name) in VEHICLE_SHEETS), next(iter(found)))
    return _sheet(found[name], source, name, Vehicle, len(found) > 1)


def _sheet(rows: Sequence[tuple[int, list[Any]]], source: str, name: str, kind: type, named: bool) -> Table:
    prefix = f"sheet {shown(name)}, " if named and kind is Vehicle else ""
    width = max((len(cells) for _, cells in rows), default=0)
    return _table(
        [(f"{prefix}row {at}", cells + [""] * (width - len(cells))) for at, cells in rows], source, kind, True
    )
