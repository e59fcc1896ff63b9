"""Excel workbooks (.xlsx), through openpyxl: sheets as rows of cells."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from datetime import date, datetime, time, timedelta
from typing import Any

from routelearn.data.files import MEGABYTE
from routelearn.data.names import MOST_COLUMNS
from routelearn.data.stops import MOST_STOPS
from routelearn.errors import InputError

SUFFIXES = (".xlsx", ".xlsm")
LARGEST = 256 * MEGABYTE  # once it is unpacked

# A formula that nobody has calculated: openpyxl would give an empty cell. (Empty texts have t="str".)
_UNCOUNTED = re.compile(
    rb'<c r="([A-Z]+\d+)"(?![^>]*t="str")[^>]*>(?:<f[^>]*/>|<f[^>]*>[^<]*</f>)\s*(?:<v\s*/>|<v></v>)?</c>'
)

Sheet = list[tuple[int, list[Any]]]  # number of the row, and its cells; "" for an empty one


def is_workbook(data: bytes) -> bool:
    return data[:4] == b"PK\x03\x04" and b"xl/workbook.xml" in data


def sheets(data: bytes, source: str) -> dict[str, Sheet]:
    """The sheets by name, in their order, without rows that are blank."""
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            f"{source}: Excel workbooks need openpyxl; pip install 'routelearn[excel]', or save it as CSV (UTF-8)"
        ) from None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
                raise InputError(f"{source}: larger than {LARGEST / MEGABYTE:.0f} MB once unpacked; save it as CSV")
            for name in archive.namelist():
                if name.startswith("xl/worksheets/") and (cell := _UNCOUNTED.search(archive.read(name))) is not None:
                    raise InputError(
                        f"{source}, cell {cell[1].decode()}: a formula whose value is not in the file; open it in a "
                        "spreadsheet program and save it there, or as CSV"
                    )
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        return {sheet.title: _rows(sheet, source) for sheet in book.worksheets}
    except InputError:
        raise
    except Exception as error:  # whatever a broken archive or its XML makes openpyxl raise
        words = " ".join(str(error).split())[:80]
        raise InputError(f"{source}: an Excel workbook that cannot be read ({words}); save it as CSV (UTF-8)") from None


def as_csv(data: bytes, source: str) -> str:
    """The first sheet that holds anything as CSV, its rows on the lines of the same number."""
    sheet = next((rows for rows in sheets(data, source).values() if rows), None)
    if sheet is None:
        raise InputError(f"{source}: an Excel workbook without a cell; save the stops in its first sheet")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    line = 1
    for number, cells in sheet:
        out.write("\n" * (number - line))
        line = number + 1
        writer.writerow([" ".join(cell.split()) if isinstance(cell, str) else cell for cell in cells])
    return out.getvalue()


def _rows(sheet: Any, source: str) -> Sheet:
    found: Sheet = []
    for number, cells in enumerate(sheet.iter_rows(values_only=True), 1):
        if number > MOST_STOPS or len(cells) > MOST_COLUMNS:
            raise InputError(f"{source}: a sheet of more than {MOST_STOPS:,} rows or {MOST_COLUMNS:,} columns; cut it")
        values = [_value(cell) for cell in cells]
        if any(value != "" for value in values):
            found.append((number, values))
    return found


def _value(cell: Any) -> Any:
    """A cell as people would write it: clock times as text, whole numbers without a point."""
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.isoformat(" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        seconds = round(cell.total_seconds())
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}" if seconds >= 0 else f"{seconds} s"
    if isinstance(cell, bool):
        return "1" if cell else "0"
    if isinstance(cell, float) and cell == cell and abs(cell) < 1e15 and cell == int(cell):
        return int(cell)
    return cell if isinstance(cell, int | float) else str(cell)
