"""Rows of named values (from CSV, JSON or GeoJSON) into Stops: names, numbers, ids and the depot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from routelearn.data.names import (
    MARKED,
    PLACES,
    TYPOS,
    UNMARKED,
    candidate,
    check_width,
    refuse_typo,
    spelled,
    table,
    understand,
)
from routelearn.data.numbers import blank, column_of, shown, stand_in, value_of
from routelearn.data.rules import check_rules
from routelearn.data.stops import Stops
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS
from routelearn.problems.attributes import Attribute

Row = tuple[str, Mapping[str, Any]]  # where it stands ("line 7"), and its values by the user's names


def problem_of(data: Any, source: str) -> str | None:
    """The problem that a file says it is."""
    problem = data.get("problem") if isinstance(data, dict) else None
    if problem is not None and not isinstance(problem, str):
        raise InputError(f"{source}: 'problem' is {shown(problem)}; give the id of a problem: {', '.join(PROBLEMS)}")
    return problem


def limits_of(data: Mapping[str, Any], source: str, problem: str | None) -> dict[str, Any]:
    """The attributes of the whole file, such as a capacity."""
    names = table(problem)
    given = {name: one for name, one in names.limits.items() if data.get(name) is not None}
    for name in given:
        names.undisputed(name, source)
    return {name: value_of(one, data[name], source, name) for name, one in given.items()}


def to_stops(
    rows: Sequence[Row],
    source: str,
    *,
    depot: Any = None,
    matrix: np.ndarray | None = None,
    limits: Mapping[str, Any] | None = None,
    problem: str | None = None,
    named: str | None = None,
    unused: Sequence[str] = (),
) -> Stops:
    """Stops from rows; values of the whole file come beside them. Raises InputError with the row.

    `depot` is a place of its own, or the id or name of a stop. With a matrix the rows need no places. `problem` is what
    the file says, `named` what the user does. `unused` are keys of the file that nobody claimed.
    """
    names = table(named or problem)
    if not rows:
        raise InputError(f"{source}: no stops")
    if isinstance(depot, list) and len(depot) == 2:
        depot = {"x": depot[0], "y": depot[1]}
    rows, said, others = _understood(
        [("depot", depot), *rows] if isinstance(depot, dict) else rows, source, named or problem
    )
    rows, ids = _with_depot(rows, depot, source)
    where = tuple(place for place, _ in rows)
    present = {name for _, row in rows for name, value in row.items() if not blank(value)}
    keys = {name for _, row in rows for name in row}
    for pair in ({"x", "y"}, {"lat", "lon"}):
        if pair & present:
            present |= pair & keys  # a column left empty beside its partner lacks its first value
    marked = _depot(rows, source)

    def column(name: str, one: Attribute) -> Any:
        """The values of an attribute, in one column or in one for each of its numbers."""
        if name not in present:
            parts = [f"{name}_{i + 1}" for i in range(one.shape[0])] if one.shape else []
            if present.isdisjoint(parts):
                return None
            if missing := [part for part in parts if part not in present]:
                there = next(part for part in parts if part in present)
                raise InputError(f"{source}: a column {said.get(there, there)} but no {missing[0]}")
            inner = one._replace(shape=one.shape[1:])
            return column_of(one, list(zip(*(column(part, inner) for part in parts), strict=True)))
        values = []
        for i, (place, row) in enumerate(rows):
            if not blank(raw := row.get(name)):
                values.append(value_of(one, raw, f"{source}, {place}", said.get(name, name)))
            elif name in PLACES or (value := stand_in(one, i == (marked or 0))) is None:
                raise InputError(f"{source}, {place}: no {said.get(name, name)}")
            else:
                values.append(value)
        return column_of(one, values)

    def reals(name: str) -> np.ndarray | None:
        return column(name, Attribute(name, "stop"))

    xy, latlon = (
        _pair(reals("x"), reals("y"), said.get("x", "x"), said.get("y", "y"), source),
        _pair(reals("lat"), reals("lon"), said.get("lat", "lat"), said.get("lon", "lon"), source),
    )
    if xy is not None and latlon is not None:
        raise InputError(f"{source}: both x, y and lat, lon; keep the pair to measure lengths by")
    if xy is None and latlon is None and matrix is None:
        raise InputError(
            f"{source}: no coordinates; name them x and y, or lat and lon, or give the lengths with --matrix"
        )
    if latlon is not None:
        check_degrees(latlon, where, source)
    columns = {name: column(name, one) for name, one in names.columns.items()}
    metric = "matrix" if matrix is not None else "euclidean" if latlon is None else "great-circle"
    return Stops(
        source,
        ids,
        where,
        xy=xy,
        latlon=latlon,
        matrix=matrix,
        columns={name: values for name, values in columns.items() if values is not None},
        limits=limits or {},
        depot=marked,
        problem=problem,
        metric=metric,
        said=said,
        unused=(*unused, *others),
    )


def _understood(rows: Sequence[Row], source: str, problem: str | None) -> tuple[list[Row], dict[str, str], list[str]]:
    """(rows by canonical name, the user's words for some of these, the names with values that nobody claimed)."""
    columns: dict[str, list[Any]] = {}
    first: dict[str, str] = {}  # where a name comes up
    for place, row in rows:
        for name, value in row.items():
            if name not in columns:
                columns[name], first[name] = [], place
            if not blank(value):
                columns[name].append(value)
    check_width(len(columns), source)
    claims = understand(columns, source, problem)
    for name in islice((name for name in columns if candidate(name, problem) is None), TYPOS):
        refuse_typo(name, table(problem).names, f"{source}, {first[name]}")
    others = [name for name, values in columns.items() if name not in claims and values]
    idle = [name for name, ours in claims.items() if columns[name] and table(problem).idle(ours)]
    check_rules(rows, columns, (*others, *idle), source, problem)
    known: list[Row] = []
    for place, row in rows:
        values: dict[str, Any] = {}
        for name, value in row.items():
            ours = claims.get(name)
            if ours is not None and values.setdefault(ours, value) != value:
                raise InputError(f"{source}, {place}: {shown(ours)} is given twice, under two spellings; keep one")
        known.append((place, values))
    said = {ours: name for name, ours in claims.items() if spelled(name, problem) is None}
    return known, said, others


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


def _with_depot(rows: Sequence[Row], depot: Any, source: str) -> tuple[Sequence[Row], tuple[str | int, ...]]:
    """The rows and their ids. A depot with a place of its own is the first of them; one that is a row is marked."""
    if isinstance(depot, dict):
        place, ids = rows[0][1], _ids(rows[1:], source)
        own = _id(place, f"{source}, depot") if not blank(place.get("id")) else _name(place) or "depot"
        return [("depot", {**place, "depot": 1}), *rows[1:]], (own, *ids)
    ids = _ids(rows, source)
    if depot is None:
        return rows, ids
    if isinstance(depot, bool) or not isinstance(depot, str | int):
        raise InputError(f"{source}: 'depot' is {shown(depot)}; a place, or the id of a stop, is needed")
    called = str(depot).strip()
    found = [i for i, name in enumerate(ids) if str(name) == called]
    found = found or [i for i, (_, row) in enumerate(rows) if _name(row) == called]
    if not found and all(blank(row.get("id")) for _, row in rows):  # named stops may be counted, too
        found = [i for i in range(len(rows)) if str(i + 1) == called]
    if len(found) != 1:
        raise InputError(f"{source}: the depot {shown(depot)} is not the id or name of one of the stops")
    i = found[0]
    return [*rows[:i], (rows[i][0], {**rows[i][1], "depot": 1}), *rows[i + 1 :]], ids


def _ids(rows: Sequence[Row], source: str) -> tuple[str | int, ...]:
    """The ids; without any, the names if no two are the same; a stop that has neither is called by its number."""
    if any(not blank(row.get("id")) for _, row in rows):
        return tuple(_id(row, f"{source}, {place}") for place, row in rows)
    names = tuple(_name(row) or i for i, (_, row) in enumerate(rows, 1))
    return names if len({str(name) for name in names}) == len(names) else tuple(range(1, len(rows) + 1))


def _id(row: Mapping[str, Any], where: str) -> str | int:
    value = row.get("id")
    if blank(value):
        raise InputError(f"{where}: no id, though other stops have one")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{where}: the id is {shown(value)}; text or a whole number is needed")
    return value.strip() if isinstance(value, str) else value


def _name(row: Mapping[str, Any]) -> str:
    value = row.get("name")
    return "" if value is None else str(value).strip()


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
