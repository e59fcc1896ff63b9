"""Texts of Cordeau: routing with one depot or several, with a longest duration and with windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from routelearn.data.edge_weights import euclidean
from routelearn.errors import InputError
from routelearn.rounds.files.lengths import one_rounded, rounded, rounding_of
from routelearn.rounds.files.words import all_numbers, check_rows, lines_of, numbers_of, whole
from routelearn.rounds.model import ALWAYS, ANY, FOREVER, NAMELESS, Legs, Round, Stop, Vehicle, Window

KINDS = ("VRP", "PVRP", "MDVRP", "SDVRP", "VRPTW", "PVRPTW", "MDVRPTW", "SDVRPTW")
READ = ("VRP", "MDVRP", "VRPTW", "MDVRPTW")
BEFORE = 7  # number, x, y, service, demand, frequency, number of visit patterns


def is_like(text: str) -> bool:
    lines = lines_of(text[:20_000])
    if len(lines) < 4 or len(lines[0][1]) != 4 or not all_numbers(lines[0][1]):
        return False
    kinds = {str(k) for k in range(len(KINDS))}
    return lines[0][1][0] in kinds and len(lines[1][1]) == 2 and all_numbers(lines[1][1])


def parse(text: str, source: str, options: Mapping[str, Any]) -> Round:
    rounding = rounding_of(options, "none")
    lines = lines_of(text)
    head = numbers_of(lines[0], source, 4, "the first line")
    where = f"{source}, line {lines[0][0]}"
    kind = KINDS[whole(head[0], where, "the kind", 0, len(KINDS) - 1)]
    if kind not in READ:
        raise InputError(f"{where}: {kind} is not supported; {', '.join(READ)} are read")
    several, windows = kind.startswith("MD"), kind.endswith("TW")
    number, count, depots = (
        whole(value, where, what, 1)
        for value, what in zip(head[1:], ("the number of vehicles", "customers", "the number of depots"), strict=True)
    )
    if not several and depots != 1:
        raise InputError(f"{where}: {depots} depots; a {kind} has 1")
    limits, table = lines[1 : 1 + depots], lines[1 + depots :]
    if len(table) != count + depots:
        raise InputError(f"{where}: {count} customers and {depots} depots, but {len(table)} lines of them")
    check_rows(table, source)
    values = [numbers_of(row, source, BEFORE, "a customer") for row in table]
    for (at, words), row in zip(table, values, strict=True):
        patterns = whole(row[6], f"{source}, line {at}", "the number of visit patterns")
        wanted = BEFORE + patterns + (2 if windows else 0)
        if len(words) != wanted:
            raise InputError(f"{source}, line {at}: {len(words)} numbers; {wanted} are needed here")
    homes = list(range(count, count + depots)) if several else [0]
    xy = np.array([row[1:3] for row in values])
    distance = rounded(euclidean(xy), rounding)

    def window(i: int) -> Window:
        low, high = values[i][-2:]
        return (one_rounded(low, rounding), one_rounded(high, rounding)) if windows else ALWAYS

    inner = [i for i in range(len(table)) if i not in homes]
    stops = tuple(
        Stop(
            id=table[i][1][0],
            place=i,
            delivery=(values[i][4],),
            windows=(window(i),),
            service=one_rounded(values[i][3], rounding),
        )
        for i in inner
    )
    vehicles = []
    for limit, home in zip(limits, homes, strict=True):
        longest, capacity = numbers_of(limit, source, 2, "a line of limits")[:2]
        vehicles.append(
            Vehicle(
                id=f"depot {table[home][1][0]}" if several else NAMELESS,
                number=number,
                capacity=(capacity or FOREVER,),
                start=home,
                end=home,
                shift=window(home),
                max_duration=one_rounded(longest or FOREVER, rounding),
            )
        )
    return Round(
        source=source,
        stops=stops,
        vehicles=tuple(vehicles),
        legs={ANY: Legs(distance, distance)},
        places=tuple(words[0] for _, words in table),
        xy=xy,
        rounding=rounding,
        where=tuple(f"line {table[i][0]}" for i in inner),
        vehicles_where=tuple(f"{source}, line {at}" for at, _ in limits),
    )
