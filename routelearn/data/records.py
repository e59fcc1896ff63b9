"""Rows of named values (from CSV, JSON or GeoJSON) into Stops: names, numbers, ids and the depot."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from routelearn.data.numbers import blank, exact, real, shown
from routelearn.data.stops import Stops
from routelearn.errors import InputError

ALIASES = {"latitude": "lat", "longitude": "lon", "lng": "lon", "long": "lon"}
NAMES = ("id", "x", "y", "lat", "lon", "demand", "prize", "penalty", "real_prize", "depot")
MARKED = {"1", "true", "yes", "y", "x", "depot"}
UNMARKED = {"", "0", "false", "no", "n"}

Row = tuple[str, Mapping[str, Any]]  # where it stands ("line 7"), and its values by canonical name


def canonical(name: str) -> str:
    """The name this program uses for a column, whatever its case and spelling."""
    plain = name.strip().lower().replace(" ", "_")
    return ALIASES.get(plain, plain)


def check_names(names: Iterable[str], where: str) -> None:
    """Columns of other names are left alone, except those that look like a slip of the pen."""
    for name in names:
        if name not in NAMES and (close := difflib.get_close_matches(name, NAMES, 1, 0.82)):
            raise InputError(f"{where}: {name[:40]!r} is not known; did you mean {close[0]!r}? Otherwise rename it")


def named(values: dict[str, Any], where: str) -> dict[str, Any]:
    """The values by canonical name."""
    result = {canonical(key): value for key, value in values.items()}
    check_names(result, where)
    return result


def file_values(data: dict[str, Any], source: str) -> dict[str, Any]:
    """capacity, max_length, min_prize and problem of the whole file."""
    problem = data.get("problem")
    if problem is not None and not isinstance(problem, str):
        raise InputError(f"{source}: 'problem' is {shown(problem)}; the id of a problem is needed, as \"cvrp\"")
    values: dict[str, Any] = {"problem": problem}
    for key, parse_value in (("capacity", exact), ("max_length", real), ("min_prize", real)):
        values[key] = None if data.get(key) is None else parse_value(data[key], source, key)
    return values


def to_stops(
    rows: Sequence[Row],
    source: str,
    *,
    matrix: np.ndarray | None = None,
    capacity: Fraction | None = None,
    max_length: float | None = None,
    min_prize: float | None = None,
    problem: str | None = None,
) -> Stops:
    """Stops from rows; values of the whole file come beside them. Raises InputError with the row."""
    where = tuple(place for place, _ in rows)
    present = {name for _, row in rows for name, value in row.items() if not blank(value)}
    if not rows:
        raise InputError(f"{source}: no stops")
    keys = {name for _, row in rows for name in row}
    for pair in ({"x", "y"}, {"lat", "lon"}):
        if pair & present:
            present |= pair & keys  # a column left empty beside its partner lacks its first value
    depot = _depot(rows, source)

    def column(name: str, parse: Callable[[Any, str, str], Any]) -> list[Any] | None:
        if name not in present:
            return None
        values = []
        for i, (place, row) in enumerate(rows):
            raw = row.get(name)
            if blank(raw):
                if name in ("x", "y", "lat", "lon") or i != (depot or 0):
                    raise InputError(f"{source}, {place}: no {name}")
                raw = 0  # a depot needs no demand, prize or penalty
            values.append(parse(raw, f"{source}, {place}", name))
        return values

    def reals(name: str) -> np.ndarray | None:
        values = column(name, real)
        return None if values is None else np.array(values, dtype=np.float64)

    xy, latlon = (
        _pair(reals("x"), reals("y"), "x", "y", source),
        _pair(reals("lat"), reals("lon"), "lat", "lon", source),
    )
    if xy is not None and latlon is not None:
        raise InputError(f"{source}: both x, y and lat, lon; keep the pair that lengths shall be measured by")
    if xy is None and latlon is None and matrix is None:
        raise InputError(f"{source}: no coordinates; name them x and y, or lat and lon")
    if latlon is not None:
        check_degrees(latlon, where, source)
    demand = column("demand", exact)
    metric = "matrix" if matrix is not None else "euclidean" if latlon is None else "great-circle"
    return Stops(
        source,
        tuple(_ids(rows, source) if "id" in present else _names(rows) or range(1, len(rows) + 1)),
        where,
        xy=xy,
        latlon=latlon,
        matrix=matrix,
        demand=None if demand is None else tuple(demand),
        prize=reals("prize"),
        penalty=reals("penalty"),
        real_prize=reals("real_prize"),
        capacity=capacity,
        max_length=max_length,
        min_prize=min_prize,
        depot=depot,
        problem=problem,
        metric=metric,
    )


def check_degrees(latlon: np.ndarray, where: Sequence[str], source: str) -> None:
    for i, (lat, lon) in enumerate(latlon):
        if not (-90 <= lat <= 90 and -180 <= lon <= 360):
            raise InputError(
                f"{source}, {where[i]}: latitude {lat:g}, longitude {lon:g}; they lie within -90 to 90 "
                "and -180 to 180 degrees (swapped, or metres?)"
            )


def _pair(a: np.ndarray | None, b: np.ndarray | None, first: str, second: str, source: str) -> np.ndarray | None:
    if (a is None) != (b is None):
        have, lack = (first, second) if b is None else (second, first)
        raise InputError(f"{source}: a column {have} but no {lack}")
    return None if a is None or b is None else np.stack((a, b), 1)


def _ids(rows: Sequence[Row], source: str) -> list[str | int]:
    ids: list[str | int] = []
    for place, row in rows:
        value = row.get("id")
        if blank(value):
            raise InputError(f"{source}, {place}: no id, though other stops have one")
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise InputError(f"{source}, {place}: the id is {shown(value)}; text or a whole number is needed")
        ids.append(value.strip() if isinstance(value, str) else value)
    return ids


def _names(rows: Sequence[Row]) -> list[str] | None:
    """A column `name` calls the stops by it where there is no id, if each has one of its own."""
    names = [str(row.get("name") or "").strip() for _, row in rows]
    return names if all(names) and len(set(names)) == len(names) else None


def _depot(rows: Sequence[Row], source: str) -> int | None:
    """The one stop whose depot column is marked."""
    found: int | None = None
    for i, (place, row) in enumerate(rows):
        raw = row.get("depot")
        text = "" if raw is None else str(raw).strip().lower()
        if text in UNMARKED:
            continue
        if text not in MARKED:
            raise InputError(f"{source}, {place}: depot is {shown(raw)}; write 1 for the depot and 0 for the others")
        if found is not None:
            raise InputError(f"{source}, {place}: a second depot; the first is in {rows[found][0]}, and one is allowed")
        found = i
    return found
