"""Arrays that a Python caller gives, as Stops: shapes and numbers checked, messages that name argument and row."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from routelearn.data.names import table
from routelearn.data.numbers import LARGEST, SMALLEST, exact, from_torch, plain, shown, stand_in
from routelearn.data.records import check_degrees
from routelearn.data.stops import Stops, checked_matrix
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS, Problem
from routelearn.problems.attributes import Attribute

LONGEST = 86_400  # seconds of a search
LARGEST_SEED, MOST_THREADS = 2**32 - 1, 1024


def effort(seconds: Any, seed: Any, threads: Any) -> tuple[float, int, int | None]:
    """Seconds, seed and threads as plain numbers; refuse values that no search can use."""
    seconds, seed, threads = plain(seconds), plain(seed), plain(threads)
    if not (_is(seconds, numbers.Real) and 0 <= seconds <= LONGEST):
        raise InputError(f"seconds is {shown(seconds)}; a number from 0 to {LONGEST} is needed")
    if not (_is(seed, numbers.Integral) and 0 <= seed <= LARGEST_SEED):
        raise InputError(f"seed is {shown(seed)}; a whole number from 0 to {LARGEST_SEED} is needed")
    if threads is not None and not (_is(threads, numbers.Integral) and 1 <= threads <= MOST_THREADS):
        raise InputError(f"threads is {shown(threads)}; a whole number from 1 to {MOST_THREADS} is needed")
    return float(seconds), int(seed), None if threads is None else int(threads)


def _is(value: Any, kind: type) -> bool:
    """Whether the value is of that kind (numpy's numbers included) and not True or False."""
    return isinstance(value, kind) and not isinstance(value, bool)


def stops_of(
    *,
    coords: Any = None,
    latlon: Any = None,
    matrix: Any = None,
    ids: Sequence[str | int] | None = None,
    depot: int | None = None,
    source: str = "the arguments",
    problem: str | None = None,
    **columns: Any,
) -> Stops:
    """The stops of one instance; without `ids` they are called by their row, from 0. `columns` are their attributes."""
    if coords is not None and latlon is not None:
        raise InputError(f"{source}: both coords and latlon; keep the one to measure lengths by")
    places = {"coords": _places(coords, "coords", source), "latlon": _places(latlon, "latlon", source)}
    lengths = None if matrix is None else checked_matrix(_floats(matrix, "matrix", source), f"{source}: matrix")
    counts = [len(a) for a in (*places.values(), lengths) if a is not None]
    if not counts:
        raise InputError(f"{source}: no places; give coords, latlon or matrix")
    count, known = counts[0], table(problem).columns
    where = tuple(f"row {i}" for i in range(count))
    if places["latlon"] is not None:
        check_degrees(places["latlon"], where, source)
    metric = "matrix" if lengths is not None else "euclidean" if places["latlon"] is None else "great-circle"
    return Stops(
        source,
        _names(ids, count, source),
        where,
        xy=places["coords"],
        latlon=places["latlon"],
        matrix=lengths,
        columns={
            name: _column(values, known[name], count, _depot(depot, count, source) or 0, source)
            for name, values in columns.items()
            if values is not None
        },
        depot=_depot(depot, count, source),
        metric=metric,
    )


def _floats(values: Any, name: str, source: str) -> np.ndarray:
    """A copy in double precision of anything that looks like an array of numbers (a tensor, lists, a frame, a zip)."""
    try:
        array = np.array(list(values) if isinstance(values, Iterator) else from_torch(values))
        mixed = array.dtype.kind == "O" and array.ndim > 0  # as frames with missing values have it
        if not (array.dtype.kind in "iuf" or (mixed and all(_is(one, numbers.Real) for one in array.flat))):
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{source}: {name} holds something that is not a number, or rows of unequal length") from None
    bad = ~(np.isfinite(array) & (np.abs(array) <= LARGEST))
    if bad.any():
        row = int(np.argwhere(bad)[0][0]) if array.ndim else 0
        raise InputError(f"{source}: row {row} of {name} is not a finite number below {LARGEST:.0e}")
    array[np.abs(array) < SMALLEST] = 0.0
    return array


def _places(values: Any, name: str, source: str) -> np.ndarray | None:
    if values is None:
        return None
    array = _floats(values, name, source)
    if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0:
        raise InputError(f"{source}: {name} has shape {array.shape}; (stops, 2) is needed")
    return array


def name_of(problem: str | Problem | None) -> str | None:
    """The name of a problem, which may be given as the registered object; InputError for any other object."""
    if problem is None or isinstance(problem, str):
        return problem
    name = getattr(problem, "name", None)
    if not isinstance(name, str) or PROBLEMS.get(name) is not problem:
        given = (
            f"the class {problem.__name__}" if isinstance(problem, type) else f"{shown(problem)} that is not registered"
        )
        raise InputError(
            f"the problem is {given}; name one of {', '.join(PROBLEMS)}, or call routelearn.register with it first"
        )
    return name


def sorted_out(attributes: Mapping[str, Any], problem: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """(those of the stops, those of the whole) of a caller's arguments; InputError for one that no problem declares."""
    names = table(problem)
    for name in attributes:
        if name not in names.columns and name not in names.limits:
            known = ", ".join((*names.columns, *names.limits))
            raise InputError(f"unknown argument {name!r}; no problem declares such an attribute, they declare {known}")
        if attributes[name] is not None:
            names.undisputed(name, "the arguments")
    columns = {name: value for name, value in attributes.items() if name in names.columns}
    return columns, {name: value for name, value in attributes.items() if name in names.limits}


def _column(values: Any, one: Attribute, count: int, depot: int, source: str) -> Any:
    """The values of an attribute, [count, *shape]; exact ones are the decimals they print as: 0.1 is a tenth."""
    values = list(values) if isinstance(values, Iterator) else values
    values = _decimal(values) if one.whole else values
    if isinstance(values, list | tuple) and any(value is None for value in values):
        values = [_blank(one, i, depot, source) if value is None else value for i, value in enumerate(values)]
    array = _floats(values, one.name, source)
    if array.shape != (count, *one.shape):
        wanted = f"({count},)" if not one.shape else (count, *one.shape)
        end = "" if one.at_depot else ", the depot's 0 too"
        raise InputError(f"{source}: {one.name} has shape {array.shape}; {count} stops need {wanted}{end}")
    if not one.whole:
        return array
    listed = array.tolist()
    if not one.shape and all(map(float.is_integer, listed)):  # nearly always
        return tuple(map(int, listed))
    return tuple(_exact(value, f"{source}, row {i}", one.name) for i, value in enumerate(listed))


def _blank(one: Attribute, row: int, depot: int, source: str) -> Any:
    """What stands for a value that is missing, as in an empty cell of a file."""
    if (value := stand_in(one, row == depot)) is None:
        raise InputError(f"{source}, row {row}: no {one.name}")
    return np.array(value, dtype=np.float64).tolist()


def _exact(value: Any, where: str, name: str) -> Any:
    if isinstance(value, list):
        return tuple(_exact(part, where, name) for part in value)
    return int(value) if value == int(value) else exact(float(value), where, name)


def _decimal(values: Any) -> Any:
    """Numbers of less than double precision as the decimals that were meant; anything else as it is."""
    values = from_torch(values)
    kind = getattr(values, "dtype", None)
    coarse = isinstance(kind, np.dtype) and kind.kind == "f" and kind.itemsize < 8
    if not (coarse or isinstance(values, list | tuple)):
        return values
    try:
        return [plain(value) for value in values]
    except TypeError:  # a number where a row of them is needed, which is told elsewhere
        return values


def _names(ids: Sequence[str | int] | None, count: int, source: str) -> tuple[str | int, ...]:
    if ids is None:
        return tuple(range(count))
    if not isinstance(ids, Iterable):
        raise InputError(f"{source}: ids is {shown(ids)}; a list with one entry per stop is needed")
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in ids)
    if len(names) != count:
        raise InputError(f"{source}: {len(names)} ids for {count} stops")
    for i, name in enumerate(names):
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise InputError(f"{source}, row {i}: the id is a {type(name).__name__}; text or a whole number is needed")
    return names


def _depot(depot: int | None, count: int, source: str) -> int | None:
    if depot is None:
        return None
    depot = plain(depot)
    if isinstance(depot, bool) or not isinstance(depot, int) or not 0 <= depot < count:
        raise InputError(f"{source}: depot is {depot!r}; the row of a stop, 0 to {count - 1}, is needed")
    return depot
