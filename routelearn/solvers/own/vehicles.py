"""What the vehicle routing methods share: full loads split off for the SDVRP, routes joined to one tour."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from routelearn.solvers.own.common import Chunk

VEHICLE_PROBLEMS = frozenset({"cvrp", "sdvrp"})
# d [b, N, N], demand [b, N] within the capacity [b], served [b, N] (who needs a visit) -> a tour for every row
Routing = Callable[[Chunk, np.ndarray, np.ndarray, np.ndarray], list[np.ndarray]]


def serve(chunk: Chunk, routing: Routing) -> list[np.ndarray]:
    """Tours by a method for the CVRP, for the CVRP and the SDVRP.

    A tour of the CVRP is one of the SDVRP where no demand exceeds the capacity. Where one does, full loads go
    to that customer directly until what is left fits a vehicle. The SDVRP also leaves out who demands nothing.
    """
    demand = chunk.x.demand.numpy().astype(np.int64)
    capacity = chunk.x.capacity.numpy().astype(np.int64)
    served = np.ones(demand.shape, np.bool_)
    served[:, 0] = False
    if chunk.problem.name != "sdvrp":
        return routing(chunk, demand, capacity, served)
    loads = np.maximum(demand - 1, 0) // capacity[:, None]
    served &= demand > 0
    rest = routing(chunk, demand - loads * capacity[:, None], capacity, served)
    direct = [np.repeat(np.arange(len(row)), row) for row in loads]
    return [np.concatenate((np.stack((to, 0 * to), 1).ravel(), tour)) for to, tour in zip(direct, rest, strict=True)]


@njit(cache=True, nogil=True)
def route_length(d, tour, count):
    """Length of tour[:count] from the depot and back to it."""
    total, last = 0.0, 0
    for t in range(count):
        total += d[last, tour[t]]
        last = tour[t]
    return total + d[last, 0]
