"""Texts of Solomon, and of Gehring and Homberger: one depot, windows, vehicles that are alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from routelearn.errors import InputError
from routelearn.rounds.files.lengths import one_rounded, rounding_of
from routelearn.rounds.files.words import all_numbers, check_rows, lines_of, numbers_of, of_one_depot, window_of
from routelearn.rounds.model import Round, Stop

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
    table = rows[1:]
    begins = table[0][0]
    if strange := next((line for line in lines if line[0] > begins and not all_numbers(line[1])), None):
        raise InputError(f"{source}, line {strange[0]}: {' '.join(strange[1])[:40]!r} is not a line of numbers")
    check_rows(table, source)
    values = [numbers_of(row, source, COLUMNS, "a customer", exactly=True) for row in table]
    stops = [
        Stop(
            id=words[0],
            place=i,
            delivery=(row[3],),
            windows=(window_of(row, rounding),),
            service=one_rounded(row[6], rounding),
        )
        for i, ((_, words), row) in enumerate(zip(table, values, strict=True))
        if i
    ]
    return of_one_depot(source, table, values, stops, rows[0], number, capacity, rounding)
