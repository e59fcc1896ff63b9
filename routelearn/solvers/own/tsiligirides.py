"""The construction of Tsiligirides (1984) for the OP, as in appendix D: greedy, or the best of many samples.

From the current node every unvisited node that still allows the return in time has the score
(prize / distance)^4. Greedy goes to the best; sampling to one of the best four, with probability proportional
to the score. The tour ends when no node fits. Nodes without prize are never visited.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from routelearn.solvers.own.common import Chunk, Heuristic, uniform, until
from routelearn.solvers.own.selective import ROUNDING
from routelearn.solvers.tasks import OP

TOP = 4  # nodes that sampling chooses from
SAMPLES = 1280
SLICE = 128  # samples between two looks at the clock


@njit(cache=True, nogil=True)
def _scores(d, prize):
    """Scores [N, N] of going from a node to another, and the nodes [N, N] by falling score."""
    nodes = len(d)
    score, order = np.empty((nodes, nodes)), np.empty((nodes, nodes), np.int64)
    for i in range(nodes):
        for j in range(nodes):
            ratio = prize[j] / max(d[i, j], 1e-12)
            score[i, j] = ratio * ratio * ratio * ratio
        order[i] = np.argsort(-score[i])
    return score, order


@njit(cache=True, nogil=True)
def _construct(d, prize, limit, score, order, top, stream, tour):
    """One tour, from the best `top` nodes at each step; writes it, gives its number of nodes and its prize."""
    nodes = len(d)
    visited = np.zeros(nodes, np.bool_)
    choice = np.empty(top, np.int64)
    last, steps, length, collected = 0, 0, 0.0, 0.0
    while True:
        count, total = 0, 0.0
        for rank in range(nodes):
            i = order[last, rank]
            if i != 0 and prize[i] > 0 and not visited[i] and length + d[last, i] + d[i, 0] <= limit:
                choice[count] = i
                total += score[last, i]
                count += 1
                if count == top:
                    break
        if count == 0:
            return steps, collected
        chosen = 0
        if count > 1:
            left = uniform(stream) * total
            while chosen < count - 1 and left >= score[last, choice[chosen]]:
                left -= score[last, choice[chosen]]
                chosen += 1
        node = choice[chosen]
        visited[node] = True
        length += d[last, node]
        collected += prize[node]
        tour[steps] = node
        steps += 1
        last = node


@njit(cache=True, nogil=True)
def _samples(d, prize, limit, top, samples, streams, best, steps, most):
    """`samples` tours of every row; keeps the one with most prize in best [b, N], steps [b] and most [b]."""
    tour = np.empty(d.shape[1], np.int64)
    for b in range(len(d)):
        score, order = _scores(d[b], prize[b])
        for _ in range(samples):
            count, collected = _construct(d[b], prize[b], limit[b], score, order, top, streams[b], tour)
            if collected > most[b]:
                most[b], steps[b] = collected, count
                best[b, :count] = tour[:count]


def _method(top: int, samples: int, chunk: Chunk) -> list[np.ndarray]:
    d, streams = chunk.distances(), chunk.streams()
    batch, nodes, _ = d.shape
    prize, limit = chunk.field("prize"), chunk.field("max_length") * (1 + ROUNDING)
    best, steps, most = np.zeros((batch, nodes), np.int64), np.zeros(batch, np.int64), np.zeros(batch)
    size = min(SLICE, samples)
    until(
        chunk.seconds * batch,
        -(-samples // size),
        partial(_samples, d, prize, limit, top, size, streams, best, steps, most),
    )
    return [best[b, : steps[b]] for b in range(batch)]


SOLVERS = (
    Heuristic("tsiligirides", OP, partial(_method, 1, 1)),
    Heuristic("tsiligirides-sampling", OP, partial(_method, TOP, SAMPLES), chunk_rows=4),
)
