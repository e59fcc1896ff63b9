"""The sweep method for the CVRP and the SDVRP (Gillett and Miller 1974; Wren and Holliday 1972).

Customers are taken in the order of their angle seen from the depot; a new route begins when the next one no
longer fits. A route visits its customers in that order: nothing improves it afterwards. `sweep` starts at the
smallest angle and turns anticlockwise; `random-sweep` takes the best of many random starts and directions.
Angles come from the coordinates also where an instance has its own distances.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from routelearn.solvers.own.common import Chunk, Heuristic, below
from routelearn.solvers.own.vehicles import VEHICLE_PROBLEMS, route_length, serve

RUNS = 1280  # as many as the paper samples solutions


@njit(cache=True, nogil=True)
def _sweep(order, start, turn, demand, capacity, tour):
    """Routes from the customers in order, beginning at its place `start`; gives the number of steps written."""
    count, steps, load = len(order), 0, 0
    for t in range(count):
        node = order[(start + turn * t) % count]
        if load + demand[node] > capacity:
            tour[steps] = 0
            steps += 1
            load = 0
        tour[steps] = node
        steps += 1
        load += demand[node]
    return steps


@njit(cache=True, nogil=True)
def _best_sweep(xy, d, demand, capacity, served, runs, stream):
    """The shortest of `runs` sweeps of one instance; the first from the smallest angle, anticlockwise."""
    customers = np.nonzero(served)[0]
    angle = np.arctan2(xy[customers, 1] - xy[0, 1], xy[customers, 0] - xy[0, 0])
    order = customers[np.argsort(angle)]
    best, tour = np.zeros(2 * len(xy), np.int64), np.zeros(2 * len(xy), np.int64)
    best_steps, best_length = 0, np.inf
    for run in range(runs if len(order) > 0 else 0):
        start, turn = 0, 1
        if run > 0:
            start, turn = below(stream, len(order)), 1 - 2 * below(stream, 2)
        steps = _sweep(order, start, turn, demand, capacity, tour)
        length = route_length(d, tour, steps)
        if length < best_length:
            best_steps, best_length = steps, length
            best[:steps] = tour[:steps]
    return best[:best_steps]


def _sweeps(runs: int, chunk: Chunk, demand: np.ndarray, capacity: np.ndarray, served: np.ndarray) -> list[np.ndarray]:
    rows = zip(chunk.rows("xy"), demand, capacity, served, strict=True)
    # Thousands of sweeps take milliseconds, so the clock is not asked.
    return [_best_sweep(xy, d, load, most, who, runs, stream) for (d, xy, stream), load, most, who in rows]


SOLVERS = (
    Heuristic("sweep", VEHICLE_PROBLEMS, partial(serve, routing=partial(_sweeps, 1))),
    Heuristic("random-sweep", VEHICLE_PROBLEMS, partial(serve, routing=partial(_sweeps, RUNS))),
)
