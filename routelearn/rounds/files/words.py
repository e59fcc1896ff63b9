"""Texts of numbers without names: lines into numbers, for the formats of Solomon, Cordeau, and Li and Lim."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from routelearn.data.edge_weights import euclidean
from routelearn.data.numbers import DECIMAL, real, shown
from routelearn.errors import InputError
from routelearn.rounds.files.lengths import check_count, one_rounded, rounded
from routelearn.rounds.model import ANY, NAMELESS, Legs, Round, Stop, Vehicle, Window

MOST_VEHICLES = 100_000

Line = tuple[int, list[str]]  # its number, and its words


def lines_of(text: str) -> list[Line]:
    """The lines that are not blank."""
    return [(i, line.split()) for i, line in enumerate(text.splitlines(), 1) if line.strip()]


def all_numbers(words: list[str]) -> bool:
    return all(DECIMAL.fullmatch(word) for word in words)


def numbers_of(line: Line, source: str, count: int, what: str, *, exactly: bool = False) -> list[float]:
    """The numbers of a line, of which `count` are needed, at least or exactly."""
    at, words = line
    if len(words) < count or (exactly and len(words) > count):
        raise InputError(f"{source}, line {at}: {len(words)} numbers; {what} has {count}")
    return [real(word, f"{source}, line {at}", f"number {j}") for j, word in enumerate(words, 1)]


def whole(value: float, where: str, what: str, least: int = 0, most: int = MOST_VEHICLES) -> int:
    if value != int(value) or not least <= value <= most:
        raise InputError(f"{where}: {what} is {value:g}; a whole number from {least} to {most:,} is needed")
    return int(value)


def check_rows(rows: list[Line], source: str) -> None:
    """Refuse too many of them, and numbers of customers that come twice."""
    check_count(len(rows), source)
    first: dict[str, int] = {}
    for at, words in rows:
        if (other := first.setdefault(words[0], at)) != at:
            raise InputError(f"{source}, line {at}: customer {shown(words[0])} is already given in line {other}")


def window_of(row: Sequence[float], rounding: str) -> Window:
    """When service may begin there; Solomon, and Li and Lim, give both ends behind the demand."""
    return one_rounded(row[4], rounding), one_rounded(row[5], rounding)


def of_one_depot(
    source: str, table: list[Line], values: list[list[float]], stops: Sequence[Stop], head: Line, number: float,
    capacity: float, rounding: str, speed: float = 1.0,
) -> Round:  # fmt: skip
    """Stops around the first row, whose window is the shift of vehicles that are alike; `head` says how many."""
    where = f"{source}, line {head[0]}"
    vehicle = Vehicle(
        id=NAMELESS,
        number=whole(number, where, "the number of vehicles", 1),
        capacity=(capacity,),
        start=0,
        end=0,
        shift=window_of(values[0], rounding),
    )
    xy = np.array([row[1:3] for row in values])
    distance = rounded(euclidean(xy), rounding)
    return Round(
        source=source,
        stops=tuple(stops),
        vehicles=(vehicle,),
        legs={ANY: Legs(distance, distance if speed == 1 else distance / speed)},
        places=tuple(words[0] for _, words in table),
        xy=xy,
        rounding=rounding,
        where=tuple(f"line {at}" for at, _ in table[1:]),
        vehicles_where=(where,),
    )
