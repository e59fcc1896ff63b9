"""Christofides' method for the TSP (1976): spanning tree, matching of its odd nodes, Euler walk, shortcuts.

At most half again as long as the optimum where distances obey the triangle inequality. Over asymmetric
distances tree and matching use the mean of both directions, and the tour runs whichever way round is shorter;
the guarantee is lost.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from routelearn.solvers.own.common import Heuristic, by_distances
from routelearn.solvers.own.matching import perfect_matching


@njit(cache=True, nogil=True)
def spanning_tree(d):
    """The parent of every node, [N], in a minimum spanning tree from node 0 (Prim 1957); -1 for node 0."""
    nodes = len(d)
    parent, away, inside = np.full(nodes, -1), np.full(nodes, np.inf), np.zeros(nodes, np.bool_)
    node = 0
    for _ in range(nodes):
        inside[node] = True
        nearest = -1
        for i in range(nodes):
            if inside[i]:
                continue
            if d[node, i] < away[i]:
                parent[i], away[i] = node, d[node, i]
            if nearest < 0 or away[i] < away[nearest]:
                nearest = i
        node = nearest
    return parent


@njit(cache=True, nogil=True)
def _euler_shortcut(ends, nodes):
    """Nodes [N] in the order of their first visit on a closed walk over all edges `ends` [E, 2] (Hierholzer 1873)."""
    count = len(ends)
    first, onward = np.full(nodes, -1), np.empty(2 * count, np.int64)  # half-edges leaving a node, linked
    for e in range(2 * count):
        node = ends[e // 2, e % 2]
        onward[e], first[node] = first[node], e
    used = np.zeros(count, np.bool_)
    stack, height = np.zeros(count + 1, np.int64), 1
    tour, seen, steps = np.empty(nodes, np.int64), np.zeros(nodes, np.bool_), 0
    while height > 0:
        node = stack[height - 1]
        while first[node] >= 0 and used[first[node] // 2]:
            first[node] = onward[first[node]]
        e = first[node]
        if e >= 0:
            used[e // 2] = True
            stack[height] = ends[e // 2, 1 - e % 2]
            height += 1
        else:
            height -= 1
            if not seen[node]:
                tour[steps] = node
                seen[node] = True
                steps += 1
    return tour


@njit(cache=True, nogil=True)
def christofides(d):
    """Tours [b, N] over distances [b, N, N]."""
    batch, nodes, _ = d.shape
    tours = np.empty((batch, nodes), np.int64)
    for b in range(batch):
        mean = (d[b] + d[b].T) / 2
        parent = spanning_tree(mean)
        degree = np.zeros(nodes, np.int64)
        for i in range(1, nodes):
            degree[i] += 1
            degree[parent[i]] += 1
        odd = np.nonzero(degree % 2)[0]
        between = np.empty((len(odd), len(odd)))
        for i in range(len(odd)):
            for j in range(len(odd)):
                between[i, j] = mean[odd[i], odd[j]]
        mate = perfect_matching(between)
        ends = np.empty((nodes - 1 + len(odd) // 2, 2), np.int64)
        count = 0
        for i in range(1, nodes):
            ends[count, 0], ends[count, 1] = i, parent[i]
            count += 1
        for i in range(len(odd)):
            if i < mate[i]:
                ends[count, 0], ends[count, 1] = odd[i], odd[mate[i]]
                count += 1
        tour = _euler_shortcut(ends, nodes)
        there, back = 0.0, 0.0
        for t in range(nodes):
            there += d[b, tour[t - 1], tour[t]]
            back += d[b, tour[t], tour[t - 1]]
        tours[b] = tour if there <= back else tour[::-1]
    return tours


SOLVERS = (Heuristic("christofides", frozenset({"tsp"}), partial(by_distances, christofides)),)
