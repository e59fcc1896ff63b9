"""The savings method of Clarke and Wright (1964), parallel version: for the CVRP, the SDVRP and the TSP.

Every customer starts with a route of its own. Going through the pairs by falling saving
d(i, 0) + d(0, j) - d(i, j), the routes that end in i and start with j are joined if the load allows.
Over symmetric distances a route may be turned round for that. The TSP takes node 0 as the depot of one
vehicle without limit and joins until one route is left.

The randomised form repeats this with perturbed savings: a route shape factor on d(i, j) (Yellow 1970), drawn
anew for every run, and noise on every saving. Its first run is the plain method, so it is never worse.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from routelearn.problems.resources import Load
from routelearn.search.constructions import join_by_savings
from routelearn.search.routes import each_alone, empty_routes, total_length, write_tour
from routelearn.search.rules import hold
from routelearn.solvers.own.common import Chunk, Heuristic, by_distances, is_symmetric, uniform, until
from routelearn.solvers.own.vehicles import VEHICLE_PROBLEMS, serve

RUNS = 100  # of the randomised form
SLICE = 500  # nodes times runs between two looks at the clock
NOISE = 0.1  # largest relative change of a saving
SHAPE = (0.8, 1.4)  # range of the route shape factor


@njit(cache=True, nogil=True)
def _sorted_pairs(d, customers, symmetric, noise, shape, all_pairs, stream):
    """Pairs [P, 2] of customers, each once where d [N, N] is symmetric, and their order by falling saving."""
    most = len(customers) ** 2
    pairs, saving, count = np.empty((most, 2), np.int32), np.empty(most), 0
    for i in customers:
        for j in customers:
            if i == j or (symmetric and j > i):
                continue
            value = d[i, 0] + d[0, j] - shape * d[i, j]
            if noise > 0:
                value *= 1 + noise * (2 * uniform(stream) - 1)
            if all_pairs or value > 0:
                pairs[count], saving[count] = (i, j), value
                count += 1
    return pairs[:count], np.argsort(-saving[:count])


@njit(cache=True, nogil=True)
def _runs(d, routes, rules, customers, plain, all_pairs, runs, stream, shortest):
    """`runs` runs over d [N, N], perturbed unless `plain`: the best tour, if one is shorter than `shortest`."""
    symmetric = is_symmetric(d)
    best = np.empty(0, np.int64)
    for _ in range(runs):
        noise, shape = 0.0, 1.0
        if not plain:
            noise = NOISE * uniform(stream)
            shape = SHAPE[0] + (SHAPE[1] - SHAPE[0]) * uniform(stream)
        pairs, order = _sorted_pairs(d, customers, symmetric, noise, shape, all_pairs, stream)
        each_alone(routes, customers)
        join_by_savings(pairs, order, symmetric, routes, rules, d)
        length = total_length(routes, d)
        if length < shortest:
            shortest, best = length, write_tour(routes)[:-1]
    return best, shortest


def _vehicle_savings(
    runs: int, chunk: Chunk, demand: np.ndarray, capacity: np.ndarray, served: np.ndarray
) -> list[np.ndarray]:
    d = chunk.distances()
    batch, nodes, _ = d.shape
    streams, shortest = chunk.streams(), np.full(batch, np.inf)
    tours = [np.zeros(0, np.int64)] * batch
    rows = [
        (d[b], empty_routes(nodes), hold((Load(demand[b].astype(float), float(capacity[b])),), nodes),
         np.flatnonzero(served[b]).astype(np.int32))
        for b in range(batch)
    ]  # fmt: skip

    def go(plain: bool, count: int) -> None:
        for b, row in enumerate(rows):
            tour, length = _runs(*row, plain, False, count, streams[b], shortest[b])
            if length < shortest[b]:
                tours[b], shortest[b] = tour, length

    go(True, 1)
    if runs > 1:
        size = max(1, SLICE // nodes)
        until(chunk.seconds * batch, -(-(runs - 1) // size), partial(go, False, size))
    return tours


def tsp_savings(d: np.ndarray) -> np.ndarray:
    """Tours [b, N] over distances [b, N, N]."""
    batch, nodes, _ = d.shape
    rules = hold((Load(np.zeros(nodes), 0.0),), nodes)
    row = empty_routes(nodes), rules, np.arange(1, nodes, dtype=np.int32)
    tours = np.zeros((batch, nodes), np.int64)
    for b in range(batch):
        tours[b, 1:], _ = _runs(d[b], *row, True, True, 1, np.zeros(1, np.uint64), np.inf)
    return tours


SOLVERS = (
    Heuristic("tsp-savings", frozenset({"tsp"}), partial(by_distances, tsp_savings)),
    Heuristic("savings", VEHICLE_PROBLEMS, partial(serve, routing=partial(_vehicle_savings, 1))),
    Heuristic(
        "random-savings", VEHICLE_PROBLEMS, partial(serve, routing=partial(_vehicle_savings, RUNS)), chunk_rows=4
    ),
)
