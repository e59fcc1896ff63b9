"""2-opt and Or-opt local search (Croes 1958; Or 1976), on top of every construction for the TSP and the CVRP.

One kernel serves closed tours of all or of some nodes, over symmetric and asymmetric distances: what a
reversal changes inside the reversed stretch is summed up while the stretch grows, so it costs nothing extra.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numba import njit

from routelearn.search.sequence_moves import reverse
from routelearn.solvers.own import christofides, constructions, savings, sweep
from routelearn.solvers.own.common import Chunk, Heuristic

GAIN = 1e-9  # share of the legs replaced: a smaller gain is rounding, and could go round in circles
LONGEST = 3  # nodes that Or-opt moves at once


@njit(cache=True, nogil=True)
def shorten(d, tour, count):
    """Improve the closed tour tour[:count] over d [N, N] in place until no move helps; its first node stays first.

    Gives the length saved.
    """
    saved = 0.0
    improved = count > 2
    while improved:
        improved = False
        # 2-opt: reverse the stretch i..j
        for i in range(1, count - 1):
            before, start = tour[i - 1], tour[i]
            inside = 0.0
            for j in range(i + 1, count):
                end = tour[j]
                inside += d[end, tour[j - 1]] - d[tour[j - 1], end]
                after = tour[j + 1] if j + 1 < count else tour[0]
                replaced = d[before, start] + d[end, after]
                change = d[before, end] + d[start, after] - replaced + inside
                if change < -GAIN * replaced:
                    reverse(tour, i, j)
                    start = tour[i]
                    inside = -inside
                    saved -= change
                    improved = True
        # Or-opt: move a stretch of one to three nodes to between two others, either way round
        for size in range(1, min(LONGEST, count - 2) + 1):
            for i in range(1, count - size + 1):
                before, start, end = tour[i - 1], tour[i], tour[i + size - 1]
                after = tour[i + size] if i + size < count else tour[0]
                replaced = d[before, start] + d[end, after]
                gain = replaced - d[before, after]
                inside = 0.0
                for k in range(i, i + size - 1):
                    inside += d[tour[k + 1], tour[k]] - d[tour[k], tour[k + 1]]
                best, place, turned = -GAIN * replaced, -1, False
                for k in range(count):
                    if i - 1 <= k < i + size:
                        continue
                    left = tour[k]
                    right = tour[k + 1] if k + 1 < count else tour[0]
                    base = -d[left, right] - gain
                    straight = base + d[left, start] + d[end, right]
                    turned_round = base + d[left, end] + d[start, right] + inside
                    if straight < best:
                        best, place, turned = straight, k, False
                    if turned_round < best:
                        best, place, turned = turned_round, k, True
                if place >= 0:
                    if turned:
                        reverse(tour, i, i + size - 1)
                    # the stretch and what lies between it and its place change sides: three reversals
                    low, high = (i, place) if place > i else (place + 1, i + size - 1)
                    middle = i + size - 1 if place > i else i - 1
                    reverse(tour, low, middle)
                    reverse(tour, middle + 1, high)
                    reverse(tour, low, high)
                    saved -= best
                    improved = True
    return saved


@njit(cache=True, nogil=True)
def shorten_routes(d, tour):
    """Improve each route of a vehicle tour [T] (customers, 0 between routes) for itself, in place."""
    closed = np.zeros(len(tour) + 1, np.int64)  # a route with the depot in front
    count = 1
    for t in range(len(tour) + 1):
        if t < len(tour) and tour[t] != 0:
            closed[count] = tour[t]
            count += 1
        else:
            shorten(d, closed, count)
            tour[t - count + 1 : t] = closed[1:count]
            count = 1


def _method(construct: Heuristic, chunk: Chunk) -> list[np.ndarray]:
    """Constructions never split what fits a vehicle, so the order within a route changes no delivery."""
    tours = [np.array(tour, np.int64) for tour in construct.method(chunk)]
    for d, tour in zip(chunk.distances(), tours, strict=True):
        if chunk.problem.name == "tsp":
            shorten(d, tour, len(tour))
        else:
            shorten_routes(d, tour)
    return tours


CONSTRUCTS = (*constructions.SOLVERS, *savings.SOLVERS, *christofides.SOLVERS, *sweep.SOLVERS)
SOLVERS = tuple(
    replace(construct, name=f"{construct.name}+2opt", method=partial(_method, construct)) for construct in CONSTRUCTS
)
