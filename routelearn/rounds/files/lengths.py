"""Distances and durations between places: from files, or from places and a speed; and how libraries round them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from routelearn.data import json_file, matrix_file
from routelearn.data.edge_weights import euclidean
from routelearn.data.geometry import great_circle
from routelearn.data.matrix_file import Lengths
from routelearn.data.numbers import real, shown
from routelearn.data.stops import MATRIX_STOPS
from routelearn.errors import InputError
from routelearn.rounds.model import Legs, Matrix

ROUNDINGS = ("nearest", "dimacs", "exact", "none")
Unit = Literal["", "m", "km"]
HOUR = 3600.0
SECONDS = {"seconds": 1.0, "minutes": 60.0, "hours": 3600.0}
LENGTHS: dict[str, Unit] = {"lengths": "", "m": "m", "km": "km"}
SPEED = "give a speed (--speed, in lengths an hour; km/h for lat and lon) or the durations (--matrix)"


class Given(NamedTuple):
    """What a file of lengths holds, each from row to column."""

    distances: Matrix | None = None
    durations: Matrix | None = None  # seconds
    unit: Unit = ""
    plain: Matrix | None = None  # it does not say which of the two it is
    labels: tuple[str, ...] | None = None
    costs: Matrix | None = None  # of legs, beside the vehicles' prices

    def in_order(self, ids: tuple[str, ...], source: str) -> Given:
        """The rows in the order of the places, where labels name them."""

        def fix(matrix: Matrix | None) -> Matrix | None:
            return None if matrix is None else Lengths(matrix, self.labels).in_order(ids, source)

        return self._replace(
            distances=fix(self.distances), durations=fix(self.durations), plain=fix(self.plain), labels=None,
            costs=fix(self.costs),
        )  # fmt: skip

    @property
    def size(self) -> int:
        return next(len(m) for m in (self.distances, self.durations, self.plain) if m is not None)


def rounding_of(options: Mapping[str, Any], default: str) -> str:
    """The rounding that the user asks for, else the format's own."""
    asked = options.get("round")
    if asked is None:
        return default
    if asked not in ROUNDINGS:
        raise InputError(f"--round {shown(asked)}; the choices are {', '.join(ROUNDINGS)}")
    return str(asked)


def rounded(values: Matrix, rounding: str) -> Matrix:
    """Lengths or times as a library rounds them: to integers, cut to a tenth, to a thousandth, or not at all."""
    if rounding == "nearest":
        return np.floor(values + 0.5)
    if rounding == "dimacs":
        return np.trunc(values * 10) / 10
    if rounding == "exact":
        return np.round(values * 1000) / 1000
    return values


def one_rounded(value: float, rounding: str) -> float:
    return float(rounded(np.array([value]), rounding)[0]) if np.isfinite(value) else value


def check_count(count: int, source: str) -> None:
    if count > MATRIX_STOPS:
        raise InputError(f"{source}: {count:,} places; rounds need a matrix, and at most {MATRIX_STOPS:,} are allowed")


def speed_of(options: Mapping[str, Any], source: str) -> float | None:
    """Lengths an hour."""
    if options.get("speed") is None:
        return None
    raw = options["speed"]
    speed = real(raw.replace(",", ".") if isinstance(raw, str) else raw, source, "the speed")
    if speed <= 0:
        raise InputError(f"{source}: the speed is {speed:g}; it must be positive")
    return speed


def parse_lengths(text: str, source: str, options: Mapping[str, Any]) -> Given:
    """A table of OSRM (durations in seconds, distances in metres), or any file of a matrix."""
    if text.lstrip()[:1] == "{":
        data = json_file.decode(text, source)
        if isinstance(data, dict) and not data.keys().isdisjoint(("durations", "distances", "code")):
            if options.get("matrix_unit") is not None:
                raise InputError(f"{source}: its durations are seconds, its distances metres; leave --matrix-unit out")
            return of_document(data, source)
    found = matrix_file.parse(text, source)
    return in_unit(found.values, options)._replace(labels=found.labels)


def in_unit(matrix: Matrix, options: Mapping[str, Any]) -> Given:
    """A matrix that does not say what it holds, with what the options say of it."""
    unit = options.get("matrix_unit")
    if unit is None:
        return Given(plain=matrix)
    if unit in SECONDS:
        return Given(durations=matrix * SECONDS[unit])
    if unit in LENGTHS:
        return Given(distances=matrix, unit=LENGTHS[unit])
    raise InputError(f"--matrix-unit {shown(unit)}; the choices are {', '.join((*SECONDS, *LENGTHS))}")


def of_document(data: Mapping[str, Any], source: str) -> Given:
    """`durations` and `distances`, as OSRM's table service gives them, and `costs` of legs beside them."""
    code = data.get("code", "Ok")
    if isinstance(code, str) and code.lower() != "ok":
        raise InputError(f"{source}: OSRM answered {shown(code)}: {shown(data.get('message', 'no table'))}")
    given = {key: data.get(key) for key in ("durations", "distances", "costs")}
    found = {key: None if rows is None else json_file.matrix_of(rows, source, key) for key, rows in given.items()}
    (first, rows), *others = [(key, len(one)) for key, one in found.items() if one is not None] or [("", 0)]
    for key, count in others:
        if count != rows:
            raise InputError(f"{source}: {rows} rows of {first}, but {count} of {key}")
    osrm = "code" in data or "sources" in data or "destinations" in data
    unit: Unit = "m" if osrm and found["distances"] is not None else ""
    return Given(found["distances"], found["durations"], unit, costs=found["costs"])


class Measured(NamedTuple):
    legs: Legs
    unit: Unit
    only_durations: bool  # distances are unknown, or straight lines beside durations of roads
    notes: tuple[str, ...] = ()


def measured(
    source: str,
    given: Given | None,
    xy: Matrix | None,
    latlon: Matrix | None,
    *,
    speed: float | None,
    timed: str | None,
    clock: bool,
    rounding: str = "none",
) -> Measured:
    """The legs between all places, from what there is. `timed` says what needs durations, if anything does.

    A speed is asked for where it is needed, never invented.
    """
    notes: list[str] = []
    straight: Matrix | None = None
    unit: Unit = ""
    if latlon is not None:
        straight, unit = great_circle(latlon), "km"
    elif xy is not None:
        straight = euclidean(xy)
    if straight is not None:
        straight = rounded(straight, rounding)
    given = given or Given()
    distances, durations = given.distances, given.durations
    if given.plain is not None:
        if speed is not None or timed is None:
            distances = given.plain
        elif clock:
            raise InputError(
                f"{source}: the matrix does not say what it holds; name its unit (--matrix-unit seconds, minutes or "
                "hours), or give a speed if it holds lengths (--speed)"
            )
        else:
            distances = durations = given.plain
            notes.append("the matrix is taken as distances and as durations in seconds")
    if distances is not None:
        unit = given.unit
    only = distances is None and durations is not None
    if distances is None:
        if only and straight is not None:
            notes.append("distances are straight lines; the matrix gives durations only")
        elif only:
            notes.append("no distances are known")
        if only and given.costs is None:
            notes[-1] += "; the durations are the cost"
        distances = straight if straight is not None else None if durations is None else np.zeros_like(durations)
    if distances is None:
        raise InputError(f"{source}: no coordinates and no matrix; name them x and y, or lat and lon")
    if rounding != "none" and (given.distances is not None or given.durations is not None or given.plain is not None):
        notes.append(f"the matrix is not rounded; --round {rounding} is for lengths between coordinates")
    if durations is not None and speed is not None:
        notes.append("the speed is not used, since durations are given")
    if durations is None:
        if speed is not None:
            per_hour = speed * (1000.0 if unit == "m" else 1.0)
            durations = distances * (HOUR / per_hour)
        elif timed is not None:
            raise InputError(f"{source}: {timed}, but no durations; {SPEED}")
        else:
            durations = np.zeros_like(distances)
            notes.append("no durations are known, so driving takes no time; a speed gives them (--speed)")
    return Measured(Legs(distances, durations, given.costs), unit, only, tuple(notes))
