"""Iterated local search for the PCTSP, compiled: kick a good route, improve it to a local optimum, keep or go back.

The local search shortens by 2-opt and Or-opt, and makes the best addition or removal of a node or, where none
helps, the best exchange of two, until there is none. A kick leaves out a stretch or scattered nodes, or forces
in a neighbourhood of nodes left out. Slightly worse local optima are accepted for a while; the best is kept.

`plan` serves re-optimisation too: from any node back to the depot, through allowed nodes only, with any
prize required, over distances that need not be symmetric.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from routelearn.search.sequence_moves import insert_at, remove_at
from routelearn.solvers.own.common import Chunk, Heuristic, below, uniform, until
from routelearn.solvers.own.selective import cheapest, closed_length, detour_of, three_cheapest
from routelearn.solvers.own.twoopt import shorten

SLICE = 2000  # nodes times kicks between two looks at the clock
GAIN = 1e-10  # in units of the longest leg: a smaller gain is rounding
PATIENCE = 50  # kicks without a new best before going back to the best
WORSE = 0.03  # share of the cost by which an accepted local optimum may be worse, at the most


@njit(cache=True, nogil=True)
def _cost(d, penalty, inside, route, count):
    total = closed_length(d, route, count)
    for i in range(1, len(penalty)):
        if not inside[i]:
            total += penalty[i]
    return total


@njit(cache=True, nogil=True)
def _repair(d, prize, penalty, required, allowed, route, count, inside, collected):
    """Add the cheapest prize until enough is collected or nothing is left; the new count and prize."""
    while collected < required:
        best, chosen, place = np.inf, -1, 0
        for i in range(1, len(d)):
            if inside[i] or not allowed[i]:
                continue
            where, added = cheapest(d, route, count, i)
            price = (added - penalty[i]) / max(min(prize[i], required - collected), 1e-12)
            if price < best:
                best, chosen, place = price, i, where
        if chosen < 0:
            break
        count = insert_at(route, count, place + 1, chosen)
        inside[chosen] = True
        collected += prize[chosen]
    return count, collected


@njit(cache=True, nogil=True)
def _best_exchange(d, prize, penalty, spare, allowed, route, count, inside):
    """The node to take in, the position of the one to leave out, and the place after that; -1 if none helps."""
    nodes = len(d)
    places, added = np.empty(3, np.int64), np.empty(3)
    saved, joined = np.empty(count), np.empty(count)  # by leaving out a position; the leg that then closes the gap
    for k in range(1, count):
        joined[k] = d[route[k - 1], route[k + 1] if k + 1 < count else 0]
        saved[k] = detour_of(d, route, count, k) - penalty[route[k]]
    best, into, out, place = -GAIN, -1, -1, 0
    for i in range(1, nodes):
        if inside[i] or not allowed[i]:
            continue
        three_cheapest(d, route, count, i, places, added)
        for k in range(1, count):
            bound = best + penalty[i] + saved[k]  # what the node may add to the length
            rank = 0  # the cheapest place that does not touch the one left out
            while places[rank] == k or places[rank] == k - 1:
                rank += 1
            here = d[route[k - 1], i] + d[i, route[k + 1] if k + 1 < count else 0] - joined[k]
            if min(here, added[rank]) < bound and prize[route[k]] - prize[i] <= spare:
                best, into, out = min(here, added[rank]) - penalty[i] - saved[k], i, k
                place = k - 1 if here <= added[rank] else places[rank] - (1 if places[rank] > k else 0)
    return into, out, place


@njit(cache=True, nogil=True)
def _descend(d, prize, penalty, required, allowed, route, count, inside, collected):
    """To a local optimum; the new count and prize. What is collected never falls below what is required."""
    nodes = len(d)
    while True:
        shorten(d, route, count)
        moved = False
        while True:
            # the best addition or removal, and only if there is none the best exchange
            best, into, out, place = -GAIN, -1, -1, 0
            for k in range(1, count):
                change = penalty[route[k]] - detour_of(d, route, count, k)
                if change < best and prize[route[k]] <= collected - required:
                    best, out = change, k
            for i in range(1, nodes):
                if not inside[i] and allowed[i]:
                    where, added = cheapest(d, route, count, i)
                    if added - penalty[i] < best:
                        best, into, out, place = added - penalty[i], i, -1, where
            if into < 0 and out < 0:
                into, out, place = _best_exchange(
                    d, prize, penalty, collected - required, allowed, route, count, inside
                )
            if into < 0 and out < 0:
                break
            moved = True
            if out >= 0:
                inside[route[out]] = False
                collected -= prize[route[out]]
                count = remove_at(route, count, out)
            if into >= 0:
                inside[into] = True
                collected += prize[into]
                count = insert_at(route, count, place + 1, into)
        if not moved:
            return count, collected


@njit(cache=True, nogil=True)
def _kick(d, prize, allowed, route, count, inside, collected, stream):
    """Change the route at random; the new count and prize."""
    nodes = len(d)
    kind = below(stream, 3)
    if kind < 2 and count > 1:
        size = 1 + below(stream, max(4, (count - 1) // 3 if kind == 0 else (count - 1) // 5))
        start = 1 + below(stream, count - 1)
        for _ in range(min(size, count - 1)):
            position = start if kind == 0 else 1 + below(stream, count - 1)  # a stretch, or scattered nodes
            if position >= count:
                position = start = 1
            node = route[position]
            inside[node] = False
            collected -= prize[node]
            count = remove_at(route, count, position)
    else:
        near = np.argsort(d[1 + below(stream, nodes - 1)])
        size = 1 + below(stream, max(8, nodes // 8))
        for node in near:
            if size > 0 and node != 0 and allowed[node] and not inside[node]:
                place, _added = cheapest(d, route, count, node)
                count = insert_at(route, count, place + 1, node)
                inside[node] = True
                collected += prize[node]
                size -= 1
    return count, collected


@njit(cache=True, nogil=True)
def _iterate(d, prize, penalty, required, allowed, stream, now, best, counts, costs, since, kicks):
    """`kicks` kicks on the route `now`, which moves on, and `best`; counts [2] and costs [2] belong to the two.

    With counts[1] = 0 it first builds a route. `since` [1] counts kicks without a new best.
    """
    nodes = len(d)
    route, inside = np.empty(nodes + 1, np.int64), np.empty(nodes, np.bool_)
    for _attempt in range(kicks):
        fresh = counts[1] == 0
        if fresh:
            count = 1
            route[0] = 0
        else:
            count = counts[0]
            route[:count] = now[:count]
        inside[:] = False
        inside[route[:count]] = True
        collected = prize[route[:count]].sum()
        if not fresh:
            count, collected = _kick(d, prize, allowed, route, count, inside, collected, stream)
        count, collected = _repair(d, prize, penalty, required, allowed, route, count, inside, collected)
        count, collected = _descend(d, prize, penalty, required, allowed, route, count, inside, collected)
        cost = _cost(d, penalty, inside, route, count)
        since[0] += 1
        draw = uniform(stream)
        if fresh or cost < costs[0] + WORSE * draw * draw * draw * abs(costs[1]):
            now[:count] = route[:count]
            counts[0], costs[0] = count, cost
        if fresh or cost < costs[1] - GAIN:
            best[:count] = route[:count]
            counts[1], costs[1] = count, cost
            since[0] = 0
        elif since[0] >= PATIENCE:
            now[: counts[1]] = best[: counts[1]]
            counts[0], costs[0] = counts[1], costs[1]
            since[0] = 0


def plan(
    d: np.ndarray, prize: np.ndarray, penalty: np.ndarray, required: float, *, stream: np.ndarray,
    seconds: float, kicks: int | None = None, start: int = 0, allowed: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """The nodes to visit between `start` and the depot, in order: little length, few penalties, enough prize.

    d is [N, N], prize and penalty [N], stream [1]; `allowed` [N] bool says which nodes may be visited (all).
    If the allowed nodes do not hold the prize required, all of them are visited. Stops when the time is up, or
    after about that many kicks.
    """
    nodes = len(d)
    allowed = np.ones(nodes, np.bool_) if allowed is None else allowed
    unit = max(float(d.max()), 1e-300)  # so that GAIN means the same in all units
    d, penalty = d / unit, penalty / unit
    d[0] = d[start]  # leaving the depot means leaving the start (appendix F): the matrix becomes asymmetric
    if np.isfinite(required):
        required -= 1e-9 * abs(required)  # sums of all prizes differ in the last digits
    now, best = np.zeros(nodes + 1, np.int64), np.zeros(nodes + 1, np.int64)
    counts, costs, since = np.zeros(2, np.int64), np.zeros(2), np.zeros(1, np.int64)
    go_on = partial(_iterate, d, prize, penalty, required, allowed, stream, now, best, counts, costs, since)
    go_on(0)  # compiles, where it was not yet, outside the time
    size = max(1, SLICE // nodes)
    until(seconds, None if kicks is None else -(-kicks // size), partial(go_on, size))
    return best[1 : counts[1]]


def _method(chunk: Chunk) -> list[np.ndarray]:
    return [
        plan(d, prize, penalty, required, stream=stream, seconds=chunk.seconds)
        for d, prize, penalty, required, stream in chunk.rows("prize", "penalty", "min_prize")
    ]


SOLVERS = (Heuristic("pctsp-ils", frozenset({"pctsp"}), _method, anytime=True, chunk_rows=1),)
