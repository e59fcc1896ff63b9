"""A genetic algorithm for the OP, in the spirit of Kobeaga, Merino and Lozano (2018), compiled.

A small population of feasible routes, each a local optimum. A child takes one parent's route, forces in nodes
of a stretch of the other's (or, as mutation, a random node and its neighbourhood), is shortened by 2-opt and
Or-opt, loses the nodes with the least prize per detour until it fits, and is then improved: what fits is
added, and nodes are exchanged for better ones. It replaces the worst member unless it is worse or a copy.
More prize is better; with equal prize, less length.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from numba import njit

from routelearn.search.sequence_moves import insert_at, remove_at
from routelearn.solvers.own import selective
from routelearn.solvers.own.common import Chunk, Heuristic, below, uniform, until
from routelearn.solvers.own.twoopt import shorten
from routelearn.solvers.tasks import OP

POPULATION = 24
MUTATION = 0.3  # share of children that get a random neighbourhood instead of a second parent
SLICE = 2000  # nodes times children between two looks at the clock
EQUAL = 1e-9  # prizes and lengths closer than this are the same


@njit(cache=True, nogil=True)
def _fill(d, prize, limit, route, count, noise, stream):
    """Add the node with most prize per detour (perturbed by the noise) as long as one fits; the new count."""
    nodes = len(d)
    inside = np.zeros(nodes, np.bool_)
    inside[route[:count]] = True
    length = selective.closed_length(d, route, count)
    while True:
        best, chosen, place, more = 0.0, -1, 0, 0.0
        for i in range(1, nodes):
            if inside[i] or prize[i] <= 0:
                continue
            where, added = selective.cheapest(d, route, count, i)
            if length + added > limit:
                continue
            ratio = prize[i] / max(added, 1e-9)
            if noise > 0:
                ratio *= 1 + noise * (uniform(stream) - 0.5)
            if ratio > best:
                best, chosen, place, more = ratio, i, where, added
        if chosen < 0:
            return count
        count = insert_at(route, count, place + 1, chosen)
        inside[chosen] = True
        length += more


@njit(cache=True, nogil=True)
def _fit(d, prize, limit, route, count, stream):
    """Leave out the nodes with least prize per detour, slightly perturbed, until the route fits; the new count."""
    length = selective.closed_length(d, route, count)
    while length > limit and count > 1:
        worst, position, less = np.inf, 1, 0.0
        for k in range(1, count):
            saved = selective.detour_of(d, route, count, k)
            ratio = prize[route[k]] / max(saved, 1e-9) * (0.9 + 0.2 * uniform(stream))
            if ratio < worst:
                worst, position, less = ratio, k, saved
        count = remove_at(route, count, position)
        length = selective.closed_length(d, route, count) if less <= 0 else length - less
    return count


@njit(cache=True, nogil=True)
def _swap(d, prize, limit, route, count):
    """Exchange the pair that brings most prize, or else saves most length at equal prize; whether one did."""
    nodes = len(d)
    inside = np.zeros(nodes, np.bool_)
    inside[route[:count]] = True
    length = selective.closed_length(d, route, count)
    places, added = np.empty(3, np.int64), np.empty(3)
    most, least, chosen, position, place = 0.0, -EQUAL, -1, 0, 0
    for i in range(1, nodes):
        if inside[i] or prize[i] <= 0:
            continue
        selective.three_cheapest(d, route, count, i, places, added)
        for k in range(1, count):
            gain = prize[i] - prize[route[k]]
            if gain < most - EQUAL:
                continue
            where, more = selective.exchange_place(d, route, count, k, i, places, added)
            change = more - selective.detour_of(d, route, count, k)
            if length + change <= limit and (gain > most + EQUAL or change < least):
                most, least, chosen, position, place = max(gain, 0.0), change, i, k, where
    if chosen < 0:
        return False
    selective.exchange(route, count, position, place, chosen)
    return True


@njit(cache=True, nogil=True)
def _improve(d, prize, limit, route, count, stream):
    """To a local optimum of shortening, leaving out, adding and exchanging; the new count."""
    shorten(d, route, count)
    count = _fit(d, prize, limit, route, count, stream)
    while True:
        shorten(d, route, count)
        count = _fill(d, prize, limit, route, count, 0.0, stream)
        if not _swap(d, prize, limit, route, count):
            return count


@njit(cache=True, nogil=True)
def _value(d, prize, route, count):
    return prize[route[:count]].sum(), selective.closed_length(d, route, count)


@njit(cache=True, nogil=True)
def _found(d, prize, limit, stream, greedy, route):
    """A first member, filled by perturbed ratios from a random node, or by the ratios alone; its count."""
    count, noise = 1, 0.0
    route[0] = 0
    if not greedy:
        noise = 2.0
        i = 1 + below(stream, len(d) - 1)
        if prize[i] > 0 and d[0, i] + d[i, 0] <= limit:
            route[1], count = i, 2
    count = _fill(d, prize, limit, route, count, noise, stream)
    return _improve(d, prize, limit, route, count, stream)


@njit(cache=True, nogil=True)
def _tournament(prizes, lengths, stream):
    a, b = below(stream, len(prizes)), below(stream, len(prizes))
    better = prizes[a] > prizes[b] + EQUAL or (prizes[a] > prizes[b] - EQUAL and lengths[a] < lengths[b])
    return a if better else b


@njit(cache=True, nogil=True)
def _evolve(d, prize, limit, stream, routes, counts, prizes, lengths, children):
    """Make `children` children, each taking the worst member's place if it is better and new."""
    nodes = len(d)
    child, inside = np.empty(nodes + 1, np.int64), np.empty(nodes, np.bool_)
    for _ in range(children):
        first = _tournament(prizes, lengths, stream)
        count = counts[first]
        child[:count] = routes[first, :count]
        inside[:] = False
        inside[child[:count]] = True
        if uniform(stream) < MUTATION:
            # a random node and the nearest to it
            centre = 1 + below(stream, nodes - 1)
            near = np.argsort(d[centre])
            wanted = near[: 1 + below(stream, max(1, nodes // 8))]
        else:
            second = _tournament(prizes, lengths, stream)
            other = counts[second]
            size = 1 + below(stream, max(1, other - 1))
            start = below(stream, other)
            wanted = np.empty(size, np.int64)
            for k in range(size):
                wanted[k] = routes[second, (start + k) % other]
        for node in wanted:
            if not inside[node] and prize[node] > 0:
                place, _added = selective.cheapest(d, child, count, node)
                count = insert_at(child, count, place + 1, node)
                inside[node] = True
        count = _improve(d, prize, limit, child, count, stream)
        got, length = _value(d, prize, child, count)
        worst, copy = 0, False
        for member in range(len(routes)):
            copy |= abs(prizes[member] - got) < EQUAL and abs(lengths[member] - length) < EQUAL
            behind = prizes[member] < prizes[worst] - EQUAL
            if behind or (prizes[member] < prizes[worst] + EQUAL and lengths[member] > lengths[worst]):
                worst = member
        better = got > prizes[worst] + EQUAL or (got > prizes[worst] - EQUAL and length < lengths[worst])
        if better and not copy:
            routes[worst, :count] = child[:count]
            counts[worst], prizes[worst], lengths[worst] = count, got, length


def genetic(
    d: np.ndarray, prize: np.ndarray, limit: float, *, seconds: float, children: int | None, stream: np.ndarray
) -> np.ndarray:
    """The nodes of the best route of one instance; d is [N, N], prize [N], stream [1].

    Stops when the time is up, or after about that many children.
    """
    nodes = len(d)
    # in units of the limit and the largest prize, so that EQUAL and ROUNDING mean the same in all units
    d, limit, prize = d / limit, 1 + selective.ROUNDING, prize / max(prize.max(), 1e-300)
    routes = np.zeros((POPULATION, nodes + 1), np.int64)
    counts, prizes, lengths = np.ones(POPULATION, np.int64), np.zeros(POPULATION), np.zeros(POPULATION)
    evolve = partial(_evolve, d, prize, limit, stream, routes, counts, prizes, lengths)
    evolve(0)  # compiles, where it was not yet, outside the time
    end = time.perf_counter() + seconds
    for member in range(POPULATION):
        counts[member] = _found(d, prize, limit, stream, member == 0, routes[member])
        prizes[member], lengths[member] = _value(d, prize, routes[member], counts[member])
        if time.perf_counter() > end:
            break
    size = max(1, SLICE // nodes)
    slices = None if children is None else max(1, children // size)
    until(end - time.perf_counter(), slices, partial(evolve, size))
    best = np.lexsort((lengths, -prizes))[0]
    return routes[best, 1 : counts[best]]


def _method(chunk: Chunk) -> list[np.ndarray]:
    return [
        genetic(d, prize, limit, seconds=chunk.seconds, children=None, stream=stream)
        for d, prize, limit, stream in chunk.rows("prize", "max_length")
    ]


SOLVERS = (Heuristic("op-genetic", OP, _method, anytime=True, chunk_rows=1),)
