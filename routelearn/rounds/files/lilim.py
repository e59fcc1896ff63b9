"""Texts of Li and Lim: pickups and deliveries with windows; fewest vehicles first, as their results count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from routelearn.errors import InputError
from routelearn.rounds.files.lengths import one_rounded, rounding_of
from routelearn.rounds.files.words import all_numbers, check_rows, lines_of, numbers_of, of_one_depot, window_of
from routelearn.rounds.model import Round, Stop

COLUMNS = 9  # task, x, y, demand, earliest, latest, service, pickup, delivery


def is_like(text: str) -> bool:
    lines = lines_of(text[:4_000])
    return len(lines) > 2 and all_numbers(lines[0][1]) and [len(words) for _, words in lines[:3]] == [3, 9, 9]


def parse(text: str, source: str, options: Mapping[str, Any]) -> Round:
    rounding = rounding_of(options, "none")
    first, *table = lines_of(text)
    number, capacity, speed = numbers_of(first, source, 3, "the first line")
    if speed <= 0:
        raise InputError(f"{source}, line {first[0]}: the speed is {speed:g}; it must be positive")
    check_rows(table, source)
    values = [numbers_of(line, source, COLUMNS, "a task", exactly=True) for line in table]
    index = {row[0]: i for i, row in enumerate(values)}
    stops, shipments = [], []
    for i, row in enumerate(values):
        if not i:
            continue
        _, _, _, demand, _, _, service, pickup, delivery = row
        other = index.get(delivery or pickup) if delivery or pickup else 0
        if (delivery or pickup) and (not other or values[other][7 if delivery else 8] != row[0]):
            raise InputError(
                f"{source}, line {table[i][0]}: a shipment without its other half; task {delivery or pickup:g} does "
                f"not name {row[0]:g}"
            )
        if delivery and other:
            shipments.append((i - 1, other - 1))
        taken = bool(delivery) or (not pickup and demand < 0)
        amount, nothing = (abs(demand),), (0.0,)
        stops.append(
            Stop(
                id=table[i][1][0],
                place=i,
                delivery=nothing if taken else amount,
                pickup=amount if taken else nothing,
                windows=(window_of(row, rounding),),
                service=one_rounded(service, rounding),
            )
        )
    found = of_one_depot(source, table, values, stops, first, number, capacity, rounding, speed)
    return replace(found, shipments=tuple(shipments), objective="vehicles")
