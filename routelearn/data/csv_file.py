"""Stops as CSV: a header that names the columns, then one stop per line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from routelearn.data.names import MOST_COLUMNS, PLACES, candidate, check_names, check_width, spelled, table
from routelearn.data.numbers import blank, shown
from routelearn.data.records import Row, to_stops
from routelearn.data.stops import MOST_STOPS, Stops
from routelearn.errors import InputError

DELIMITERS = ",;\t|"
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?[.,]?\d[\d.,]*([eE][+-]?\d+)?\s*", re.ASCII)
# What a spreadsheet would take for a formula; numbers and telephone numbers are none.
_FORMULA = re.compile(r"'*(?:[=@\t\r]|[+-](?![\d\s().,/+-]*(?:[eE][+-]?\d+)?\Z))")
_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?[ \t]*', re.IGNORECASE)


def parse(text: str, source: str, matrix: np.ndarray | None = None, problem: str | None = None) -> Stops:
    """The stops of a CSV text; a missing header, ragged rows and bad cells raise InputError with the line.

    With a matrix of lengths they need no places. `problem` is the one that the user names, if any.
    """
    check_not_xml(text, source)
    first = first_line(text)
    declared = declared_delimiter(first)
    delimiter = declared or _delimiter(first, problem)
    lines = rows_of(text, delimiter, source)
    if declared is not None:
        next(lines, None)
    header_line, header = next(lines, (1, []))  # a line of nothing but delimiters is blank
    where = f"{source}, line {header_line}"
    check_width(len(header), where)
    names = [" ".join(cell.split()) for cell in header]
    known = {candidate(name, problem) for name in names} - {None}
    if not header or (not known and any(_NUMBER.fullmatch(cell) for cell in header)):
        raise InputError(f"{where}: no header; the first line must name the columns, as x,y or id,lat,lon,demand")
    check_names(names, where, problem)
    seen: set[str] = set()
    for name in filter(None, names):
        ours = spelled(name, problem) or name
        if ours in seen:
            raise InputError(f"{where}: two columns are named {ours[:40]!r}")
        seen.add(ours)
    if matrix is None and not known & set(PLACES):
        raise InputError(
            f"{where}: no coordinates; the columns are {_listed(header)}, and none is x,y or lat,lon "
            "(addresses must be geocoded first, or their lengths given with --matrix)"
        )
    names = [name or f"column {i}" for i, name in enumerate(names, 1)]
    numbers = table(problem)
    numeric = [name for name in names if numbers.numeric(candidate(name, problem))]
    rows: list[Row] = []
    for line, cells in lines:
        if len(cells) > len(names) and not any(cell.strip() for cell in cells[len(names) :]):
            cells = cells[: len(names)]  # empty cells beyond the header, as spreadsheets leave them
        if len(cells) != len(names):
            raise InputError(f"{source}, line {line}: {len(cells)} cells; the header names {len(names)} columns")
        values = dict(zip(names, cells, strict=True))
        if delimiter != ",":  # then a comma can only be a decimal one
            for name in numeric:
                values[name] = with_point(values[name])
        rows.append((f"line {line}", values))
    if not rows:
        raise InputError(f"{source}: a header but no stops")
    return to_stops(rows, source, matrix=matrix, named=problem)


def first_line(text: str) -> str:
    """The first line that is not blank, without a list of all the others."""
    stands = len(text) - len(text.lstrip())
    begins = 1 + max(text.rfind(end, 0, stands) for end in "\r\n")
    ends = [found for end in "\r\n" if (found := text.find(end, stands)) >= 0]
    return text[begins : min(ends, default=len(text))]


def check_not_xml(text: str, source: str) -> None:
    if text.lstrip()[:1] == "<":
        raise not_xml(source)


def not_xml(source: str) -> InputError:
    return InputError(f"{source}: XML (as GPX and KML are), which is not read; convert it to CSV or GeoJSON")


def declared_delimiter(first: str) -> str | None:
    """The delimiter that a first line `sep=;` declares, as Excel does."""
    match = _SEPARATOR.fullmatch(first)
    return None if match is None else match[1]


def _delimiter(first: str, problem: str | None) -> str:
    """The one that gives the header the most known names, else the most columns; blanks for known names only."""
    words = first.split(maxsplit=MOST_COLUMNS)
    if len(words) > 1 and all(candidate(word, problem) for word in words):
        return "\t" if "\t" in first else " "
    return likeliest_delimiter(first, lambda name: candidate(name, problem))


def likeliest_delimiter(first: str, known: Callable[[str], object]) -> str:
    """The one that gives the header the most names that are `known`, else the most columns."""

    def worth(delimiter: str) -> tuple[int, int]:
        names = [cell.strip(' "') for cell in first.split(delimiter, MOST_COLUMNS)]
        return sum(known(name) is not None for name in names), first.count(delimiter)

    return max(DELIMITERS, key=worth)


def _listed(header: list[str]) -> str:
    """The first names of a header, for a message of one line."""
    names = [shown(cell.strip()) for cell in header if not blank(cell)]
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def with_point(cell: str) -> str:
    """`2,5` as 2.5; any other text as it is."""
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell


def writer(output: io.StringIO, delimiter: str = ",") -> Callable[[Iterable[Any]], None]:
    """Writes rows of cells. What a spreadsheet would run as a formula gets an apostrophe, which `plain` takes off."""
    line = io.StringIO(newline="")
    write = csv.writer(
        line, lineterminator="\r\n", delimiter=delimiter
    ).writerow  # so that cells with either are quoted

    def row(cells: Iterable[Any]) -> None:
        write([f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell for cell in cells])
        output.write(line.getvalue().removesuffix("\r\n") + "\n")
        line.seek(0)
        line.truncate()

    return row


def plain(cell: str) -> str:
    """A cell that `writer` wrote as it was before."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def rows_of(text: str, delimiter: str, source: str, most: int = MOST_STOPS) -> Iterator[tuple[int, list[str]]]:
    """(line on which the row begins, cells) for every row that is not blank; a table of too many is not read on."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    begins, count = 1, 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{source}, line {begins}: not CSV ({error})") from None
        if any(cell.strip() for cell in cells):
            count += 1
            if count > most + 2:  # below a header and a line that declares the delimiter
                raise InputError(f"{source}, line {begins}: at most {most:,} rows are read; split the file")
            yield begins, cells
        begins = reader.line_num + 1
