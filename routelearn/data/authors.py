"""The authors' data sets (`.pkl`, as their generate_data.py writes them), read without unpickling.

A pickle is a program that can do anything. This reader is its own small machine for the part of that
language that builds lists, tuples and numbers; it knows no other instruction, so a hostile file is
refused before anything runs. References to earlier objects are refused too: without them a file is a
tree no larger than its bytes.
"""

from __future__ import annotations

import pickletools
import struct
from pathlib import Path
from typing import Any

import numpy as np

from routelearn.data.fields import assemble
from routelearn.data.files import MEGABYTE, read_bytes
from routelearn.errors import InputError
from routelearn.problems import get

LIMIT = 512 * MEGABYTE
LONGEST_NUMBER = 64  # characters or bytes of one number
# What a tuple of the list holds, per problem: fields of the Instance, None = not needed.
COLUMNS: dict[str, tuple[str | None, ...]] = {
    "cvrp": ("depot", "loc", "demand", "capacity"),
    "sdvrp": ("depot", "loc", "demand", "capacity"),
    "op-const": ("depot", "loc", "prize", "max_length"),
    "op-unif": ("depot", "loc", "prize", "max_length"),
    "op-dist": ("depot", "loc", "prize", "max_length"),
    "pctsp": ("depot", "loc", "penalty", "prize", None),
    "spctsp": ("depot", "loc", "penalty", "prize", "real_prize"),
}


def load(path: str | Path, problem_name: str) -> Any:
    """The Instance [B, ...] of one of the authors' files; the file does not say which problem it is."""
    problem = get(problem_name)
    rows = parse(read_bytes(path, LIMIT), str(path))
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{path}: must hold a list of instances, and at least one")
    if problem.name == "tsp":
        return assemble(problem, {"xy": _array(rows, 3, f"{path}: tsp")}, str(path))
    columns = COLUMNS[problem.name]
    for row, instance in enumerate(rows):
        if not isinstance(instance, tuple | list) or len(instance) != len(columns):
            raise InputError(
                f"{path}: instance {row} of {problem.name} must be a tuple of {len(columns)} ({_expected(columns)})"
            )
    parts = {
        name: _array(
            list(values), {"depot": 2, "loc": 3, "capacity": 1, "max_length": 1}.get(name, 2), f"{path}: {name}"
        )
        for name, values in zip(columns, zip(*rows, strict=True), strict=True)
        if name is not None
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
    if "penalty" in parts:
        parts["min_prize"] = np.ones(len(rows))  # E.1: a total prize of 1 is asked for
    return assemble(problem, parts, str(path))


def _expected(columns: tuple[str | None, ...]) -> str:
    return ", ".join(name or "real_prize" for name in columns)


def _array(values: list[Any], axes: int, what: str) -> np.ndarray:
    try:
        array = np.array(values, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{what}: instances of different sizes, or lists where numbers belong") from None
    if array.ndim != axes or 0 in array.shape:
        raise InputError(f"{what}: nested as {array.shape}; {axes} levels of values are needed")
    return array


# ------------------------------------------------------------------------------------ the small machine

_SKIPPED = {0x80: 1, 0x95: 8, 0x94: 0, 0x71: 1, 0x72: 4}  # PROTO, FRAME, MEMOIZE, BINPUT, LONG_BINPUT: argument bytes
_PACKED = {0x4B: struct.Struct("<B"), 0x4D: struct.Struct("<H"), 0x4A: struct.Struct("<i")}  # BININT1, BININT2, BININT
_DOUBLE = struct.Struct(">d")


def parse(data: bytes, source: str) -> Any:
    """The lists, tuples and numbers that pickle `data` describes; anything else raises InputError."""
    stack: list[Any] = []
    marks: list[int] = []
    at, double, push = 0, _DOUBLE.unpack_from, stack.append
    try:
        while True:
            op = data[at]
            at += 1
            if op == 0x47:  # BINFLOAT, by far the most frequent
                push(double(data, at)[0])
                at += 8
            elif op in _SKIPPED:
                at += _SKIPPED[op]
            elif op == 0x28:  # MARK
                marks.append(len(stack))
            elif op == 0x5D:  # EMPTY_LIST
                push([])
            elif op == 0x65:  # APPENDS: all since the mark to the list below it
                start = marks.pop()
                _list_at(stack, start - 1, marks).extend(stack[start:])
                del stack[start:]
            elif op in _PACKED:
                push(_PACKED[op].unpack_from(data, at)[0])
                at += _PACKED[op].size
            elif op == 0x61:  # APPEND
                item = _pop(stack, 1, marks)[0]
                _list_at(stack, len(stack) - 1, marks).append(item)
            elif op in (0x74, 0x6C):  # TUPLE, LIST: all since the mark
                start = marks.pop()
                items = stack[start:]
                del stack[start:]
                push(tuple(items) if op == 0x74 else items)
            elif op in (0x85, 0x86, 0x87):  # TUPLE1 to TUPLE3
                push(tuple(_pop(stack, op - 0x84, marks)))
            elif op == 0x29:  # EMPTY_TUPLE
                push(())
            elif op in (0x8A, 0x8B):  # LONG1, LONG4: a length, then the bytes of the number
                width = 1 if op == 0x8A else 4
                length = int.from_bytes(data[at : at + width], "little")
                at += width
                if length > LONGEST_NUMBER or at + length > len(data):
                    raise IndexError
                push(int.from_bytes(data[at : at + length], "little", signed=True))
                at += length
            elif op in (0x46, 0x49, 0x4C, 0x70):  # FLOAT, INT, LONG, PUT of protocol 0: text to the end of the line
                end = data.index(b"\n", at, at + LONGEST_NUMBER)
                text = data[at:end].decode("ascii")
                at = end + 1
                if op == 0x46:
                    push(float(text))
                elif op != 0x70:
                    push(int(text.removesuffix("L")))
            elif op == 0x2E:  # STOP
                if len(stack) != 1 or marks:
                    raise IndexError
                return stack[0]
            else:
                raise InputError(
                    f"{source}: byte {at - 1} is {_name(op)}; only lists, tuples and numbers are read from a .pkl"
                )
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise InputError(
            f"{source}: not a whole pickle of lists and numbers; it breaks off or errs at byte {at}"
        ) from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{source}: not a number at byte {at}") from None


def _pop(stack: list[Any], count: int, marks: list[int]) -> list[Any]:
    """The last `count` items, none of them below an open mark."""
    start = len(stack) - count
    if start < (marks[-1] if marks else 0):
        raise IndexError
    items = stack[start:]
    del stack[start:]
    return items


def _list_at(stack: list[Any], index: int, marks: list[int]) -> list[Any]:
    if index < (marks[-1] if marks else 0) or not isinstance(stack[index], list):
        raise IndexError
    return stack[index]


def _name(op: int) -> str:
    name = next((known.name for known in pickletools.opcodes if ord(known.code) == op), None)
    if name is None:
        return f"0x{op:02x}, no instruction of a pickle"
    return f"{name}, one object used twice" if name.endswith("GET") else f"the instruction {name}"
