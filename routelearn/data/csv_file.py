"""Stops as CSV: a header that names the columns, one stop a line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from routelearn.data.records import NAMES, Row, canonical, check_names, to_stops
from routelearn.data.stops import Stops
from routelearn.errors import InputError

DELIMITERS = ",;\t"
NUMERIC = frozenset(NAMES) - {"id", "depot"}
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*", re.ASCII)


def parse(text: str, source: str) -> Stops:
    """The stops of a CSV text; a missing header, ragged rows and bad cells raise InputError with the line."""
    first = next(line for line in text.splitlines() if line.strip())
    delimiter = max(
        DELIMITERS, key=lambda d: (sum(canonical(cell.strip('"')) in NAMES for cell in first.split(d)), first.count(d))
    )
    lines = rows_of(text, delimiter, source)
    header_line, header = next(lines, (1, []))  # a line of nothing but delimiters is blank
    names = [canonical(cell) for cell in header]
    where = f"{source}, line {header_line}"
    if not set(names) & {"x", "y", "lat", "lon", "demand", "id"}:
        raise InputError(f"{where}: no header; the first line must name the columns, as x,y or id,lat,lon,demand")
    check_names(names, where)
    for name in names:
        if name and names.count(name) > 1:
            raise InputError(f"{where}: two columns are named {name[:40]!r}")
    rows: list[Row] = []
    for line, cells in lines:
        if len(cells) > len(names) and not any(cell.strip() for cell in cells[len(names) :]):
            cells = cells[: len(names)]  # empty cells beyond the header, as spreadsheets leave them
        if len(cells) != len(names):
            raise InputError(f"{source}, line {line}: {len(cells)} cells; the header names {len(names)} columns")
        values = dict(zip(names, cells, strict=True))
        if delimiter != ",":  # then a comma can only be a decimal one
            for name in NUMERIC & values.keys():
                if _DECIMAL_COMMA.fullmatch(values[name]):
                    values[name] = values[name].replace(",", ".")
        rows.append((f"line {line}", values))
    if not rows:
        raise InputError(f"{source}: a header but no stops")
    return to_stops(rows, source)


def rows_of(text: str, delimiter: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """(line on which the row begins, cells) for every row that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    begins = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{source}, line {begins}: not CSV ({error})") from None
        if any(cell.strip() for cell in cells):
            yield begins, cells
        begins = reader.line_num + 1
