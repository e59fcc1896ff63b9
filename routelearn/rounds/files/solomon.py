"""Texts of Solomon, and of Gehring and Homberger: one depot, windows, vehicles that are alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from routelearn.errors import InputError
from routelearn.rounds.files.lengths import euclidean, one_rounded, rounded, rounding_of
from routelearn.rounds.files.words import all_numbers, check_rows, lines_of, numbers_of, whole
from routelearn.rounds.model import ANY, Legs, Round, Stop, Vehicle

_HEADS = re.compile(r"^\s*VEHICLES?\b.*^\s*CUSTOMERS?\b", re.MULTILINE | re.DOTALL | re.IGNORECASE)
COLUMNS = 7  # number, x, y, demand, ready time, due date, service time


def is_like(text: str) -> bool:
    return _HEADS.search(text[:2_000]) is not None


def parse(text: str, source: str, options: Mapping[str, Any]) -> Round:
    """The first customer is the depot; its window is the shift."""
    rounding = rounding_of(options, "dimacs")
    lines = lines_of(text)
    rows = [line for line in lines if all_numbers(line[1])]
    if len(rows) < 3 or len(rows[0][1]) != 2:
        raise InputError(f"{source}: number and capacity of the vehicles, then the customers, are needed")
    number, capacity = numbers_of(rows[0], source, 2, "the line of vehicles")
    where = f"{source}, line {rows[0][0]}"
    table = rows[1:]
    begins = table[0][0]
    if strange := next((line for line in lines if line[0] > begins and not all_numbers(line[1])), None):
        raise InputError(f"{source}, line {strange[0]}: {' '.join(strange[1])[:40]!r} is not a line of numbers")
    check_rows(table, source)
    values = [numbers_of(row, source, COLUMNS, "a customer") for row in table]
    if long := next((row for row in table if len(row[1]) != COLUMNS), None):
        raise InputError(f"{source}, line {long[0]}: {len(long[1])} numbers; a customer has {COLUMNS}")
    xy = np.array([row[1:3] for row in values])
    distance = rounded(euclidean(xy), rounding)
    stops = tuple(
        Stop(
            id=words[0],
            place=i,
            delivery=(row[3],),
            windows=((one_rounded(row[4], rounding), one_rounded(row[5], rounding)),),
            service=one_rounded(row[6], rounding),
        )
        for i, ((_, words), row) in enumerate(zip(table, values, strict=True))
        if i
    )
    vehicle = Vehicle(
        id="vehicle",
        number=whole(number, where, "the number of vehicles", 1),
        capacity=(capacity,),
        start=0,
        end=0,
        shift=(one_rounded(values[0][4], rounding), one_rounded(values[0][5], rounding)),
    )
    return Round(
        source=source,
        stops=stops,
        vehicles=(vehicle,),
        legs={ANY: Legs(distance, distance)},
        places=tuple(words[0] for _, words in table),
        xy=xy,
        rounding=rounding,
        where=tuple(f"line {at}" for at, _ in table[1:]),
        vehicles_where=(where,),
    )
