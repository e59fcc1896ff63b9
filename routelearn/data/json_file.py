"""Stops as JSON: an object with `stops`, a bare list of stops, or a matrix; GeoJSON is passed on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from routelearn.data import geojson
from routelearn.data.names import limit, table
from routelearn.data.numbers import real, shown
from routelearn.data.records import Row, limits_of, problem_of, to_stops
from routelearn.data.stops import MATRIX_STOPS, Stops, checked_matrix, from_matrix
from routelearn.errors import InputError


def decode(text: str, source: str) -> Any:
    """JSON with every fraction as the text that was written, so that 0.1 stays a tenth."""

    def refuse(constant: str) -> Any:
        raise InputError(f"{source}: {constant} is not a finite number")

    try:
        data = json.loads(text, parse_float=str, parse_constant=refuse)
        if "\\u" in text:  # only an escape can smuggle in half a character
            json.dumps(data, ensure_ascii=False).encode()
        return data
    except json.JSONDecodeError as error:
        raise InputError(f"{source}, line {error.lineno}: not JSON ({error.msg})") from None
    except RecursionError:
        raise InputError(f"{source}: nested too deep to be a list of stops") from None
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise InputError(f"{source}: {half} is half a character, and text cannot hold it; write both halves") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{source}: a number is too long") from None


def parse(text: str, source: str, matrix: np.ndarray | None = None, problem: str | None = None) -> Stops:
    """The stops of a JSON text in any of the documented shapes; `matrix` replaces the file's own lengths.

    `problem` is the one that the user names, if any.
    """
    data = decode(text, source)
    if isinstance(data, list):
        data = {"stops": data}
    if not isinstance(data, dict):
        raise InputError(f"{source}: holds {shown(data)}; an object with 'stops', or a list of stops, is needed")
    said = problem_of(data, source)
    decisive = problem or said
    keys: dict[str, Any] = {}
    for key, value in data.items():
        if keys.setdefault(limit(key, decisive), value) != value:
            raise InputError(f"{source}: {shown(limit(key, decisive))} is given twice, under two spellings; keep one")
    data = keys
    geographic = data.get("type") in ("FeatureCollection", "Feature")
    known = ("stops", "depot", "matrix", *table(decisive).limits, "problem", "name")
    unknown = [key for key in data if key not in known]
    if unknown and not geographic:
        raise InputError(f"{source}: {unknown[0][:40]!r} is not known; the keys are {', '.join(known)}")
    if matrix is None and data.get("matrix") is not None:
        matrix = matrix_of(data["matrix"], source)
    limits = limits_of(data, source, decisive)
    if geographic:
        rows = geojson.rows_of(data, source, decisive)
    elif data.get("stops") is not None:
        rows = _rows(data["stops"], source)
    elif matrix is not None:
        rows = [(place, {}) for place in from_matrix(matrix, source).where]
    else:
        raise InputError(f"{source}: neither 'stops' nor 'matrix'")
    others = [key for key in unknown if key not in geojson.KEYS and data[key] not in (None, "", [], {})]
    return to_stops(
        rows, source, depot=data.get("depot"), matrix=matrix, limits=limits, problem=said, named=problem, unused=others
    )  # fmt: skip


def matrix_of(rows: Any, source: str, what: str = "the matrix") -> np.ndarray:
    """A list of equally long lists of numbers; services that know no way give null."""
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows) or not rows:
        raise InputError(f"{source}: {what} must be a list of lists of numbers")
    if len(rows) > MATRIX_STOPS:
        raise InputError(f"{source}: {what} of {len(rows)} places; at most {MATRIX_STOPS} are allowed")
    for i, row in enumerate(rows, 1):
        if len(row) != len(rows):
            raise InputError(f"{source}: row {i} of {what} has {len(row)} numbers; {len(rows)} rows need as many")
        if None in row:
            raise InputError(
                f"{source}: row {i}, column {row.index(None) + 1} of {what} is empty: no way there; "
                "move the stop to a road, or leave it out"
            )
    values = [
        [real(cell, f"{source}: row {i} of {what}", f"column {j}") for j, cell in enumerate(row, 1)]
        for i, row in enumerate(rows, 1)
    ]
    return checked_matrix(np.array(values), source)


def _rows(stops: Any, source: str) -> list[Row]:
    if not isinstance(stops, list):
        raise InputError(f"{source}: 'stops' is {shown(stops)}; a list is needed")
    rows: list[Row] = []
    for i, stop in enumerate(stops, 1):
        where = f"stop {i}"
        if isinstance(stop, list) and len(stop) == 2:
            rows.append((where, {"x": stop[0], "y": stop[1]}))
        elif isinstance(stop, dict):
            rows.append((where, stop))
        else:
            raise InputError(f"{source}, {where}: {shown(stop)}; an object with x and y (or lat and lon) is needed")
    return rows
