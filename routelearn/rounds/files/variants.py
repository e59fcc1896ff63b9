"""Instances of vehicle routing variants (problems/vrp.py) as rounds, so that the same search solves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from routelearn.data import npz
from routelearn.data.files import TEXT_LIMIT, read_bytes
from routelearn.data.reading import instance_in
from routelearn.errors import InputError
from routelearn.problems.base import distance_matrix, take
from routelearn.rounds.model import ANY, FOREVER, PROBLEM, Legs, Round, Stop, Vehicle


def read_set(path: str | Path) -> list[Round]:
    """All rounds of an `.npz` of variants, or the one that `set.npz[3]` names; none where it holds other problems."""
    file, row = instance_in(str(path)) or (str(path), None)
    if Path(file).suffix.lower() != ".npz" or not Path(file).is_file():
        return []
    problem, batch = npz.parse(read_bytes(file), file, limit=TEXT_LIMIT)
    if problem != PROBLEM:
        return []
    count = batch.xy.shape[0]
    if row is not None and row >= count:
        raise InputError(f"{path}: the file holds {count} instances, numbered from 0")
    return [round_of(take(batch, [k]), f"{file}[{k}]") for k in (range(count) if row is None else [row])]


def round_of(x: Any, source: str) -> Round:
    """The round of an instance with batch axis 1: stops are called by their nodes, a unit of length takes a second."""
    places, count = x.xy[0].double().numpy(), x.depots.shape[1]
    apart = distance_matrix(x)[0].double().numpy()
    windows, service = x.window[0].double().tolist(), x.service[0].double().tolist()
    stops = tuple(
        Stop(
            id=str(node),
            place=node,
            delivery=(float(x.delivery[0, node]),),
            pickup=(float(x.pickup[0, node]),),
            windows=(tuple(windows[node]),),
            service=service[node],
        )
        for node in range(count, len(places))
    )
    vehicles = tuple(
        Vehicle(
            id=f"depot {depot}",
            number=None,
            capacity=(float(x.capacity[0]),),
            start=depot,
            end=None if x.open[0] else depot,
            shift=(windows[depot][0], FOREVER if x.open[0] else windows[depot][1]),
            max_distance=float(x.max_length[0]),
        )
        for depot in range(count)
        if x.depots[0, depot]
    )
    return Round(
        source=source,
        stops=stops,
        vehicles=vehicles,
        legs={ANY: Legs(apart, apart)},
        places=tuple(map(str, range(len(places)))),
        xy=places,
        backhauls="mixed" if x.mixed[0] else "last",
    )
