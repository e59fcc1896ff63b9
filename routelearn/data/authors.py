"""The authors' data sets: `.pkl`, as their generate_data.py writes them.

A pickle is a program that can do anything. This reader allows only the instructions that build lists, tuples and
numbers, so a hostile file is refused before anything runs. It also refuses references to earlier objects: without
them a file is a tree no larger than its bytes.
"""

from __future__ import annotations

import pickle
import pickletools
import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from routelearn.data.fields import assemble, attributes_of
from routelearn.data.files import MEGABYTE, read_bytes
from routelearn.errors import InputError
from routelearn.problems import get

LIMIT = 512 * MEGABYTE


def load(path: str | Path, problem_name: str) -> Any:
    """The Instance [B, ...] of one of the authors' files; the file does not say which problem it is."""
    problem = get(problem_name)
    rows = parse(read_bytes(path, LIMIT), str(path))
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{path}: must hold a list of instances, and at least one")
    published = getattr(problem, "published", None)
    if published is None:
        raise InputError(f"{path}: the authors have no data sets of {problem.name}; give an .npz")
    if not problem.has_depot:
        return assemble(problem, {"xy": _array(rows, 3, f"{path}: {problem.name}")}, str(path))
    attributes = {one.name: one for one in attributes_of(problem)}
    columns = ("depot", "loc", *published)
    for row, instance in enumerate(rows):
        if not isinstance(instance, tuple | list) or len(instance) != len(columns):
            raise InputError(
                f"{path}: instance {row} of {problem.name} must be a tuple of {len(columns)} ({', '.join(columns)})"
            )

    def axes(name: str) -> int:
        return {"depot": 2, "loc": 3}.get(name) or (1 if attributes[name].of_file else 2)

    parts = {
        name: _array(list(values), axes(name), f"{path}: {name}")
        for name, values in zip(columns, zip(*rows, strict=True), strict=True)
        if name not in attributes or not attributes[name].revealed_on_visit or problem.reveals_on_visit
    }
    depot, loc = parts.pop("depot"), parts.pop("loc")
    if depot.shape != (len(rows), 2) or loc.shape[2] != 2:
        raise InputError(f"{path}: depot {depot.shape} and places {loc.shape}; each place is one x and one y")
    for name, values in parts.items():
        if values.ndim == 2:
            if values.shape[1] != loc.shape[1]:
                raise InputError(f"{path}: {values.shape[1]} values of {name} for {loc.shape[1]} places")
            parts[name] = np.pad(values, ((0, 0), (1, 0)))  # the depot has none
    parts["xy"] = np.concatenate((depot[:, None], loc), 1)
    for name, value in getattr(problem, "published_limits", {}).items():
        parts[name] = np.full(len(rows), value)
    return assemble(problem, parts, str(path))


def _array(values: list[Any], axes: int, what: str) -> np.ndarray:
    try:
        array = np.array(values, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{what}: instances of different sizes, or lists where numbers belong") from None
    if array.ndim != axes or 0 in array.shape:
        raise InputError(f"{what}: nested as {array.shape}; {axes} levels of values are needed")
    return array


# ------------------------------------------------------------------------------------------ unpickling

_ALLOWED = (
    *(pickle.PROTO, pickle.STOP, pickle.MARK, pickle.MEMOIZE, pickle.PUT, pickle.BINPUT, pickle.LONG_BINPUT),
    *(pickle.EMPTY_LIST, pickle.LIST, pickle.APPEND, pickle.APPENDS),
    *(pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3),
    *(pickle.FLOAT, pickle.BINFLOAT, pickle.INT, pickle.BININT, pickle.BININT1, pickle.BININT2),
    *(pickle.LONG, pickle.LONG1, pickle.LONG4),
)


class _Handlers(dict[int, Any]):
    """The handler of each allowed instruction; any other raises _Refused with its name."""

    def __missing__(self, op: int) -> Any:
        name = next((known.name for known in pickletools.opcodes if ord(known.code) == op), None)
        if name is None:
            raise _Refused(f"0x{op:02x}, no instruction of a pickle")
        raise _Refused(f"{name}, one object used twice" if name.endswith("GET") else f"the instruction {name}")


class _Refused(Exception):
    pass


class _Reader(pickle._Unpickler):
    """Python's own reader, with the instructions for lists, tuples and numbers only.

    Not the compiled `pickle.Unpickler`: it cannot refuse an instruction, and reserves whatever memory an index in the
    file names (4 GB for a file of ten bytes).
    """

    dispatch = _Handlers({op[0]: pickle._Unpickler.dispatch[op[0]] for op in _ALLOWED})
    dispatch[pickle.FRAME[0]] = lambda self: self.read(8)  # the length of a part; the whole file is here already


def parse(data: bytes, source: str) -> Any:
    """The lists, tuples and numbers that pickle `data` describes; anything else raises InputError."""
    file = BytesIO(data)
    try:
        return _Reader(file).load()
    except _Refused as refusal:
        raise InputError(
            f"{source}: byte {file.tell() - 1} is {refusal}; only lists, tuples and numbers are read from a .pkl"
        ) from None
    except (pickle.UnpicklingError, ArithmeticError, AttributeError, EOFError, LookupError, ValueError, struct.error):
        raise InputError(
            f"{source}: not a valid pickle of lists and numbers; reading failed at byte {file.tell()}"
        ) from None
