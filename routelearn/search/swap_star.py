"""SWAP* (Vidal 2022): exchange two customers of two routes, each going to its best place in the other route.

A plain exchange puts each customer where the other one was. Here customer u of route A goes to its best place in route
B as it is without v, and v likewise, so the pairs of a pair of routes take O(|A| |B|) steps: the three cheapest places
of every customer in the other route are found beforehand, and at most two of them touch the customer that leaves.
Only routes that lie in each other's way are tried: polar sectors around the depot that overlap (as in the paper), or
bounding boxes where a matrix counts, since there the depot's surroundings say less about what is near.
"""

from __future__ import annotations

import numpy as np

from routelearn.search.compiling import kernel
from routelearn.search.graph import Floats, put_in_order
from routelearn.search.rules import fits_pieces, free_of_order, has_room_instead, survey

PLACES = 3


def angles(xy: Floats) -> Floats:
    """[N, 2]: the direction of every place [N, 2] from the depot, in turns; the second column is 0."""
    turns = np.arctan2(xy[:, 1] - xy[0, 1], xy[:, 0] - xy[0, 0]) / (2 * np.pi) % 1.0
    return np.stack((turns, np.zeros_like(turns)), 1)


@kernel
def extent(seq, start, extents, polar, box):
    """Write the extent of the route that begins behind place `start` into box [4]; its lowest customer, 0 = empty.

    Polar: the arc around the depot from box[0] to box[1], in turns. Else left, right, low and high.
    """
    lowest = 0
    i = start + 1
    while seq[i] != 0:
        c = seq[i]
        x, y = extents[c, 0], extents[c, 1]
        if lowest == 0:
            box[0] = box[1] = x
            box[2] = box[3] = y
            lowest = c
        elif not polar:
            box[0], box[1] = min(box[0], x), max(box[1], x)
            box[2], box[3] = min(box[2], y), max(box[3], y)
        elif (x - box[0]) % 1.0 > (box[1] - box[0]) % 1.0:  # outside: the arc grows to the nearer side
            if (x - box[1]) % 1.0 <= (box[0] - x) % 1.0:
                box[1] = x
            else:
                box[0] = x
        lowest = min(lowest, c)
        i += 1
    return lowest


@kernel
def overlap(a, b, polar):
    """Whether two extents have a point in common."""
    if polar:
        return (b[0] - a[0]) % 1.0 <= (a[1] - a[0]) % 1.0 or (a[0] - b[0]) % 1.0 <= (b[1] - b[0]) % 1.0
    return a[0] <= b[1] and b[0] <= a[1] and a[2] <= b[3] and b[2] <= a[3]


@kernel
def cheapest_places(seq, start, other, legs, cost, place):
    """For every customer behind place `start`: its three cheapest places in the route behind `other`, cheapest first.

    cost, place [N, 3]: the detour, and the place in the array that it follows.
    """
    i = start + 1
    while seq[i] != 0:
        u = seq[i]
        cost[u, :] = np.inf
        k = other
        while True:
            a, b = seq[k], seq[k + 1]
            detour = legs[a, u] + legs[u, b] - legs[a, b]
            if detour < cost[u, PLACES - 1]:
                put_in_order(cost[u], place[u], PLACES - 1, detour, k)
            if b == 0:
                break
            k += 1
        i += 1


@kernel
def without(u, at, seq, legs, cost, place):
    """The cheapest place for u in the other route once the customer at place `at` has left it: (detour, place)."""
    before, after = seq[at - 1], seq[at + 1]
    best, where = legs[before, u] + legs[u, after] - legs[before, after], at - 1
    for k in range(PLACES):
        if cost[u, k] >= best:
            break
        if place[u, k] != at - 1 and place[u, k] != at:
            return cost[u, k], place[u, k]
    return best, where


@kernel
def fits_moved(rules, seq, legs, i, k):
    """Whether the stop at place i may be visited behind place k of another route."""
    return fits_pieces(rules, seq, legs, k, i, i, False, 1, 0, False, 1, 0, k + 1) and (
        free_of_order(rules, 0) or fits_pieces(rules, seq, legs, i - 1, 1, 0, False, 1, 0, False, 1, 0, i + 1)
    )


@kernel
def fits_instead(rules, seq, legs, i, j, k):
    """Whether the stop at place i may be visited behind place k of the route that the stop at place j leaves."""
    if free_of_order(rules, 0):
        return True  # there is room, whatever the place
    if k < j:
        return fits_pieces(rules, seq, legs, k, i, i, False, k + 1, j - 1, False, 1, 0, j + 1)
    return fits_pieces(rules, seq, legs, j - 1, j + 1, k, False, i, i, False, 1, 0, k + 1)


@kernel
def best_swap(seq, start_a, start_b, rules, legs, epsilon, cost, place):
    """The best SWAP* move between two routes: (gain, i, behind, j, behind).

    The customer at place i goes behind its second number, then the one at j behind its own; both count in the array as
    it is. j = 0: only the first moves. Gain 0 = none.
    """
    survey(rules, seq, legs, start_a, 0)
    survey(rules, seq, legs, start_b, 1)
    cheapest_places(seq, start_a, start_b, legs, cost, place)
    cheapest_places(seq, start_b, start_a, legs, cost, place)
    best = epsilon
    mi, to_b, mj, to_a = 0, 0, 0, 0
    i = start_a + 1
    while seq[i] != 0:
        u = seq[i]
        freed_u = legs[seq[i - 1], u] + legs[u, seq[i + 1]] - legs[seq[i - 1], seq[i + 1]]
        if freed_u - cost[u, 0] > best:
            k = place[u, 0]
            if fits_moved(rules, seq, legs, i, k):
                best = freed_u - cost[u, 0]
                mi, to_b, mj, to_a = i, k, 0, 0
        j = start_b + 1
        while seq[j] != 0:
            v = seq[j]
            freed = freed_u + legs[seq[j - 1], v] + legs[v, seq[j + 1]] - legs[seq[j - 1], seq[j + 1]]
            # A detour is never negative where the triangle inequality holds, so what is freed bounds the gain.
            if freed > best and has_room_instead(rules, seq, i, v) and has_room_instead(rules, seq, j, u):
                cost_u, behind_u = without(u, j, seq, legs, cost, place)
                cost_v, behind_v = without(v, i, seq, legs, cost, place)
                if (
                    freed - cost_u - cost_v > best
                    and fits_instead(rules, seq, legs, i, j, behind_u)
                    and fits_instead(rules, seq, legs, j, i, behind_v)
                ):
                    best = freed - cost_u - cost_v
                    mi, to_b, mj, to_a = i, behind_u, j, behind_v
            j += 1
        i += 1
    j = start_b + 1
    while seq[j] != 0:
        v = seq[j]
        freed = legs[seq[j - 1], v] + legs[v, seq[j + 1]] - legs[seq[j - 1], seq[j + 1]]
        if freed - cost[v, 0] > best:
            k = place[v, 0]
            if fits_moved(rules, seq, legs, j, k):
                best = freed - cost[v, 0]
                mi, to_b, mj, to_a = j, k, 0, 0
        j += 1
    return (best if mi > 0 else 0.0), mi, to_b, mj, to_a


@kernel
def shift(seq, i, behind):
    """Move what is at place i behind place `behind`."""
    c = seq[i]
    if behind > i:
        for k in range(i, behind):
            seq[k] = seq[k + 1]
        seq[behind] = c
    else:
        for k in range(i, behind + 1, -1):
            seq[k] = seq[k - 1]
        seq[behind + 1] = c


@kernel
def shifted(place, i, behind):
    """Where what was at `place` is after `shift(seq, i, behind)`."""
    if i < place <= behind:
        return place - 1
    if behind < place < i:
        return place + 1
    return place


@kernel
def make_swap(seq, i, to_b, j, to_a):
    """Change the array as `best_swap` says."""
    shift(seq, i, to_b)
    if j > 0:
        shift(seq, shifted(j, i, to_b), shifted(to_a, i, to_b))
