"""Constructions for the TSP (appendix B.3): nearest neighbour, and nearest, farthest and random insertion."""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from routelearn.search import constructions
from routelearn.solvers.own.common import Heuristic, by_distances

NEAREST, FARTHEST, RANDOM = 0, 1, 2


def nearest_neighbour(d: np.ndarray) -> np.ndarray:
    """Tours [b, N] over distances [b, N, N]: from node 0, always on to the nearest node not yet visited."""
    no_lists = np.empty((d.shape[1], 0), np.int32)  # of neighbours, which take longer to make than one tour
    return np.stack([constructions.nearest_neighbour(legs, no_lists) for legs in d]).astype(np.int64)


@njit(cache=True, nogil=True)
def insertion(d, rule):
    """Tours [b, N] over distances [b, N, N], which need not be symmetric: the cheapest place for the chosen node.

    Nearest insertion takes the node nearest to any node of the tour, farthest the node whose nearest node of
    the tour is farthest away, random the next one in the order of the input, which counts as random. Farthest
    starts from the node with the largest distance to any other, nearest and random from node 0.
    """
    batch, nodes, _ = d.shape
    tours = np.empty((batch, nodes), np.int64)
    for b in range(batch):
        w = d[b]
        first = 0
        if rule == FARTHEST:
            farthest = -1.0
            for i in range(nodes):
                for j in range(nodes):
                    if w[i, j] > farthest:
                        first, farthest = i, w[i, j]
        following = np.empty(nodes, np.int64)  # successor in the tour
        following[first] = first
        inside = np.zeros(nodes, np.bool_)
        inside[first] = True
        away = w[:, first].copy()  # distance of every node to the tour
        for _ in range(nodes - 1):
            chosen = -1
            for i in range(nodes):
                if inside[i]:
                    continue
                if (
                    chosen < 0
                    or (rule == NEAREST and away[i] < away[chosen])
                    or (rule == FARTHEST and away[i] > away[chosen])
                ):
                    chosen = i
                    if rule == RANDOM:
                        break
            place, cheapest, j = first, np.inf, first
            while True:
                k = following[j]
                detour = w[j, chosen] + w[chosen, k] - w[j, k]
                if detour < cheapest:
                    place, cheapest = j, detour
                j = k
                if j == first:
                    break
            following[chosen] = following[place]
            following[place] = chosen
            inside[chosen] = True
            if rule != RANDOM:
                for i in range(nodes):
                    away[i] = min(away[i], w[i, chosen])
        node = first
        for t in range(nodes):
            tours[b, t] = node
            node = following[node]
    return tours


RULES = {"nearest": NEAREST, "farthest": FARTHEST, "random": RANDOM}
METHODS = {"nearest-neighbour": nearest_neighbour} | {
    f"{name}-insertion": partial(insertion, rule=rule) for name, rule in RULES.items()
}
SOLVERS = tuple(Heuristic(name, frozenset({"tsp"}), partial(by_distances, method)) for name, method in METHODS.items())
