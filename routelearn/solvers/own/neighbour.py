"""Nearest neighbour for the TSP (appendix B.3)."""

from __future__ import annotations

import numpy as np
from numba import njit

from routelearn.solvers.own.common import Chunk, Heuristic


@njit(cache=True, nogil=True)
def nearest_neighbour(d: np.ndarray) -> np.ndarray:
    """Tours [b, N] over distances [b, N, N]: from node 0, always on to the nearest node not yet visited."""
    batch, nodes, _ = d.shape
    tours = np.empty((batch, nodes), np.int64)
    for b in range(batch):
        visited = np.zeros(nodes, np.bool_)
        last = 0
        for t in range(nodes):
            tours[b, t] = last
            visited[last] = True
            nearest = -1
            for i in range(nodes):
                if not visited[i] and (nearest < 0 or d[b, last, i] < d[b, last, nearest]):
                    nearest = i
            last = nearest
    return tours


def _method(chunk: Chunk) -> np.ndarray:
    return nearest_neighbour(chunk.distances())


SOLVERS = (Heuristic("nearest-neighbour", frozenset({"tsp"}), _method),)
