"""Leg lengths and neighbour lists of one instance, and the random numbers of the compiled searches."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray
from torch import Tensor

from routelearn.problems.base import MeasuresLegs, is_large
from routelearn.search.compiling import maker, merged

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

EPSILON = 1e-9  # relative to the mean leg: gains below it are rounding


class Row(NamedTuple):
    """The legs of one node."""

    xy: Floats
    rule: int
    place: int
    end: int


class Places(NamedTuple):
    """Legs of many nodes, measured when they are read; kernels index it as they index a matrix.

    Node 0 may be two places: one where a route begins, another where it ends.
    """

    xy: Floats  # [N, 2], or one more
    rule: int  # an index of ROUNDINGS
    shape: tuple[int, int]  # of the matrix that it stands for
    begin: int = 0  # the place of node 0 in the matrix's first row
    end: int = 0  # and in its first column


@merged
def measured(xy, rule, i, j):
    across, up = xy[i, 0] - xy[j, 0], xy[i, 1] - xy[j, 1]
    length = np.sqrt(across * across + up * up)
    if rule == 0:
        return length
    return np.floor(length + 0.5) if rule == 1 else np.ceil(length)


@overload(operator.getitem, jit_options={"forceinline": True})
def _read(legs, at):
    kind = getattr(legs, "instance_class", None)  # of a NamedTuple
    if kind is Places and isinstance(at, types.BaseTuple):
        return lambda legs, at: measured(legs.xy, legs.rule, at[0] or legs.begin, at[1] or legs.end)
    if kind is Places and isinstance(at, types.Integer):
        return lambda legs, at: Row(legs.xy, legs.rule, at or legs.begin, legs.end)
    if kind is Row and isinstance(at, types.Integer):
        return lambda legs, at: measured(legs.xy, legs.rule, legs.place, at or legs.end)
    return None


@maker
def lengths(legs, origin, target):
    """[K]: the legs between pairs of nodes."""
    found = np.empty(origin.shape[0])
    for k in range(origin.shape[0]):
        found[k] = legs[origin[k], target[k]]
    return found


class Graph(NamedTuple):
    """What the searches know of one instance's legs."""

    legs: Floats | Places  # [N, N]: legs[i, j] from i to j
    back: Floats | Places  # [N, N]: back[i, j] from j to i, so that both ways of a node lie in one row
    near: Ints  # [N, K]: the K nearest other nodes, nearest first, by the sum of both directions
    after: Ints  # [N, K]: the K nearest to go to (the same as `near` where legs are symmetric)
    symmetric: bool
    turnable: bool  # symmetric but for the depot, node 0
    epsilon: float  # gains below are rounding


@merged
def put_in_order(values, chosen, last, value, j):
    """Number j goes into a sorted row, whose entry `last` it overwrites."""
    k = last
    while k > 0 and values[k - 1] > value:
        values[k] = values[k - 1]
        chosen[k] = chosen[k - 1]
        k -= 1
    values[k] = value
    chosen[k] = j


@maker
def nearest(lengths, count):
    """[N, count]: the nearest other nodes of each row, nearest first, ties by number."""
    nodes = lengths.shape[0]
    chosen = np.empty((nodes, count), np.int32)
    values = np.empty(count)
    for i in range(nodes):
        found = 0
        for j in range(nodes):
            value = lengths[i, j]
            if j == i or (found == count and value >= values[count - 1]):
                continue
            put_in_order(values, chosen[i], found if found < count else count - 1, value, j)
            found = min(found + 1, count)
    return chosen


@maker
def nearest_places(xy, count):
    """[N, count]: the nearest other places of each, nearest first, without looking at all pairs.

    Places lie in strips by x, and in each strip by y.
    """
    nodes = xy.shape[0]
    wide = int(np.ceil(np.sqrt(2.0 * nodes)))
    strips = (nodes + wide - 1) // wide
    order = np.argsort(xy[:, 0], kind="mergesort")
    left, right = np.empty(strips), np.empty(strips)
    strip = np.empty(nodes, np.int64)
    for s in range(strips):
        members = order[s * wide : (s + 1) * wide]
        left[s], right[s] = xy[members[0], 0], xy[members[-1], 0]
        strip[members] = s
        order[s * wide : (s + 1) * wide] = members[np.argsort(xy[members, 1], kind="mergesort")]
    heights = xy[order, 1]
    chosen, values = np.empty((nodes, count), np.int32), np.empty(count)
    for i in range(nodes):
        values[:] = np.inf
        x, y = xy[i, 0], xy[i, 1]
        for turn in range(2 * strips):
            s = strip[i] + (turn + 1) // 2 * (1 if turn % 2 else -1)
            if s < 0 or s >= strips or max(left[s] - x, x - right[s], 0.0) ** 2 >= values[-1]:
                continue
            begin, end = s * wide, min(nodes, (s + 1) * wide)
            middle = begin + np.searchsorted(heights[begin:end], y)
            for upward in range(2):
                at = middle if upward else middle - 1
                while begin <= at < end and (heights[at] - y) ** 2 < values[-1]:
                    j = order[at]
                    apart = (xy[j, 0] - x) ** 2 + (heights[at] - y) ** 2
                    if j != i and apart < values[-1]:
                        put_in_order(values, chosen[i], count - 1, apart, j)
                    at += 1 if upward else -1
    return chosen


@maker
def euclidean(xy):
    """[N, N] from coordinates [N, 2]."""
    nodes = xy.shape[0]
    legs = np.empty((nodes, nodes))
    for i in range(nodes):
        for j in range(nodes):
            across, up = xy[i, 0] - xy[j, 0], xy[i, 1] - xy[j, 1]
            legs[i, j] = np.sqrt(across * across + up * up)
    return legs


def floats(values: Tensor) -> Floats:
    """A copy of one layout and type whatever the tensor was, so that no kernel compiles a second time."""
    return np.array(values.detach().cpu().numpy(), dtype=np.float64, order="C")


def graph_of(problem: Any, x: Any, neighbours: int) -> Graph:
    """The graph of an instance with batch axis 1, over the lengths that the problem's cost adds up."""
    if isinstance(problem, MeasuresLegs):
        return graph_from(floats(problem.legs(x)[0]), neighbours)
    if is_large(problem, x):
        return graph_of_places(floats(x.xy[0]), rounding_of(x), neighbours)
    return graph_from(euclidean(floats(x.xy[0])) if x.distances is None else floats(x.distances[0]), neighbours)


def graph_of_places(xy: Floats, rule: int, neighbours: int, end: Floats | None = None) -> Graph:
    """The graph of places [N, 2]; `end` [2] is where routes from place 0 end, if not there."""
    count = len(xy)
    near = nearest_places(xy, min(neighbours, count - 1))
    end = xy[0] if end is None else end
    symmetric = bool(np.array_equal(end, xy[0]))
    whole = xy if symmetric else np.concatenate((xy, end[None]))
    ends = (0, 0) if symmetric else (0, count)
    legs, back = (Places(whole, rule, (count, count), *way) for way in (ends, ends[::-1]))
    nodes = np.arange(count)
    mean = float(lengths(legs, nodes, np.roll(nodes, count // 2)).mean())
    return Graph(legs, back, near, near, symmetric, True, EPSILON * max(mean, 1e-30))


def rounding_of(x: Any) -> int:
    """How the legs of a large instance are rounded."""
    return 0 if x.distances is None else int(x.distances.rule[0])


def graph_from(legs: Floats, neighbours: int) -> Graph:
    """The graph of legs [N, N]."""
    symmetric = bool(np.array_equal(legs, legs.T))
    turnable = symmetric or bool(np.array_equal(legs[1:, 1:], legs[1:, 1:].T))
    count = min(neighbours, len(legs) - 1)
    back = legs if symmetric else np.ascontiguousarray(legs.T)
    near = nearest(legs if symmetric else legs + back, count)
    after = near if symmetric else nearest(legs, count)
    return Graph(legs, back, near, after, symmetric, turnable, EPSILON * max(float(legs.mean()), 1e-30))


def random_state(seed: int) -> NDArray[np.uint64]:
    """The state of the generator below, never 0."""
    mixed = (seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) % 2**64
    return np.array([mixed or 1], dtype=np.uint64)


@njit(cache=True, nogil=True, inline="always")
def draw(state):
    """The next 53 random bits as a float in [0, 1) (xorshift64*, Vigna 2016)."""
    s = state[0]
    s ^= s >> np.uint64(12)
    s ^= s << np.uint64(25)
    s ^= s >> np.uint64(27)
    state[0] = s
    return np.float64((s * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True, inline="always")
def below(state, count):
    """A whole number in [0, count)."""
    return np.int64(draw(state) * count)
