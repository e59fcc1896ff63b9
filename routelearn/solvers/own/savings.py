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

from routelearn.solvers.own.common import Chunk, Heuristic, is_symmetric, uniform, until
from routelearn.solvers.own.vehicles import VEHICLE_PROBLEMS, route_length, serve

RUNS = 100  # of the randomised form
SLICE = 500  # nodes times runs between two looks at the clock
NOISE = 0.1  # largest relative change of a saving
SHAPE = (0.8, 1.4)  # range of the route shape factor


@njit(cache=True, nogil=True)
def _turn(following, preceding, head):
    """Turn the route that starts at head round."""
    node = head
    while node >= 0:
        onward = following[node]
        following[node], preceding[node] = preceding[node], onward
        node = onward


@njit(cache=True, nogil=True)
def _join(d, demand, capacity, served, noise, shape, all_pairs, stream, tour):
    """One run over d [N, N]; writes the tour, gives its number of steps."""
    nodes = len(d)
    symmetric = is_symmetric(d)
    pairs = nodes * nodes
    origin, target = np.empty(pairs, np.int32), np.empty(pairs, np.int32)
    saving = np.empty(pairs)
    count = 0
    for i in range(1, nodes):
        for j in range(1, i if symmetric else nodes):
            value = d[i, 0] + d[0, j] - shape * d[i, j]
            if noise > 0:
                value *= 1 + noise * (2 * uniform(stream) - 1)
            if i != j and served[i] and served[j] and (all_pairs or value > 0):
                origin[count], target[count], saving[count] = i, j, value
                count += 1
    following, preceding = np.full(nodes, -1), np.full(nodes, -1)
    route, head, tail, load = np.arange(nodes), np.arange(nodes), np.arange(nodes), demand.copy()
    order = np.argsort(-saving[:count])
    for index in range(count):
        i, j = origin[order[index]], target[order[index]]
        first, second = route[i], route[j]
        if first == second or load[first] + load[second] > capacity:
            continue
        if tail[first] == i and head[second] == j:
            pass
        elif not symmetric:
            continue
        elif tail[second] == j and head[first] == i:
            first, second = second, first
        elif tail[first] == i and tail[second] == j:
            _turn(following, preceding, head[second])
            head[second], tail[second] = tail[second], head[second]
        elif head[first] == i and head[second] == j:
            _turn(following, preceding, head[first])
            head[first], tail[first] = tail[first], head[first]
        else:
            continue
        following[tail[first]], preceding[head[second]] = head[second], tail[first]
        tail[first] = tail[second]
        load[first] += load[second]
        node = head[second]
        while node >= 0:
            route[node] = first
            node = following[node]
    steps = 0
    for start in range(1, nodes):
        if served[start] and preceding[start] < 0:
            if steps > 0:
                tour[steps] = 0
                steps += 1
            node = start
            while node >= 0:
                tour[steps] = node
                steps += 1
                node = following[node]
    return steps


@njit(cache=True, nogil=True)
def _runs(d, demand, capacity, served, plain, runs, streams, best, steps, length):
    """`runs` runs for every row, perturbed unless `plain`; keeps the best tour [b, 2 N], its steps and length [b]."""
    tour = np.empty(2 * d.shape[1], np.int64)
    for b in range(len(d)):
        for _ in range(runs):
            noise, shape = 0.0, 1.0
            if not plain:
                noise = NOISE * uniform(streams[b])
                shape = SHAPE[0] + (SHAPE[1] - SHAPE[0]) * uniform(streams[b])
            count = _join(d[b], demand[b], capacity[b], served[b], noise, shape, False, streams[b], tour)
            total = route_length(d[b], tour, count)
            if total < length[b]:
                length[b], steps[b] = total, count
                best[b, :count] = tour[:count]


def _vehicle_savings(
    runs: int, chunk: Chunk, demand: np.ndarray, capacity: np.ndarray, served: np.ndarray
) -> list[np.ndarray]:
    d = chunk.distances()
    batch, nodes, _ = d.shape
    streams, steps = chunk.streams(), np.zeros(batch, np.int64)
    best, length = np.zeros((batch, 2 * nodes), np.int64), np.full(batch, np.inf)

    def go(plain: bool, count: int) -> None:
        _runs(d, demand, capacity, served, plain, count, streams, best, steps, length)

    go(True, 1)
    if runs > 1:
        size = max(1, SLICE // nodes)
        until(chunk.seconds * batch, -(-(runs - 1) // size), partial(go, False, size))
    return [best[b, : steps[b]] for b in range(batch)]


@njit(cache=True, nogil=True)
def tsp_savings(d):
    """Tours [b, N] over distances [b, N, N]."""
    batch, nodes, _ = d.shape
    tours = np.zeros((batch, nodes), np.int64)
    weightless, everyone, stream = np.zeros(nodes, np.int64), np.ones(nodes, np.bool_), np.zeros(1, np.uint64)
    everyone[0] = False
    for b in range(batch):
        _join(d[b], weightless, 0, everyone, 0.0, 1.0, True, stream, tours[b, 1:])
    return tours


def _tsp_method(chunk: Chunk) -> np.ndarray:
    return tsp_savings(chunk.distances())


def _method(runs: int, chunk: Chunk) -> list[np.ndarray]:
    return serve(chunk, partial(_vehicle_savings, runs))


TSP_SOLVERS = (Heuristic("tsp-savings", frozenset({"tsp"}), _tsp_method),)
VEHICLE_SOLVERS = (
    Heuristic("savings", VEHICLE_PROBLEMS, partial(_method, 1)),
    Heuristic("random-savings", VEHICLE_PROBLEMS, partial(_method, RUNS), chunk_rows=4),
)
SOLVERS = (*TSP_SOLVERS, *VEHICLE_SOLVERS)
