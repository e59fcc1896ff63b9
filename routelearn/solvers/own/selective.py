"""What OP and PCTSP methods share: a closed route through some of the nodes, changed one node at a time.

A route is an array whose first `count` entries are the depot (node 0) and the nodes visited, in order. Places
are named by the position before them, so place `count - 1` is between the last node and the return. All of it
holds for asymmetric distances.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from routelearn.search.graph import put_in_order
from routelearn.search.sequence_moves import insert_at, remove_at

ROUNDING = 1e-12  # share by which a sum of legs that equals the limit may seem to exceed it


@njit(cache=True, nogil=True)
def closed_length(d, route, count):
    total = d[route[count - 1], 0]
    for k in range(count - 1):
        total += d[route[k], route[k + 1]]
    return total


@njit(cache=True, nogil=True)
def detour_of(d, route, count, position):
    """Length saved by leaving out the node at a position."""
    left, node = route[position - 1], route[position]
    right = route[position + 1] if position + 1 < count else 0
    return d[left, node] + d[node, right] - d[left, right]


@njit(cache=True, nogil=True)
def cheapest(d, route, count, node):
    """The place where the node adds least length, and that length."""
    place, least = 0, np.inf
    for k in range(count):
        left = route[k]
        right = route[k + 1] if k + 1 < count else 0
        added = d[left, node] + d[node, right] - d[left, right]
        if added < least:
            place, least = k, added
    return place, least


@njit(cache=True, nogil=True)
def three_cheapest(d, route, count, node, places, added):
    """The three places [3] where the node adds least length [3], best first; infinite where there are fewer."""
    added[:] = np.inf
    places[:] = -5
    for k in range(count):
        left = route[k]
        right = route[k + 1] if k + 1 < count else 0
        more = d[left, node] + d[node, right] - d[left, right]
        if more < added[2]:
            put_in_order(added, places, 2, more, k)


@njit(cache=True, nogil=True)
def exchange_place(d, route, count, position, node, places, added):
    """Where the node is cheapest once the one at `position` is gone, and the length it then adds.

    The place is counted after the removal; places and added come from `three_cheapest` before it, of which at
    most two touch the removed node.
    """
    left = route[position - 1]
    right = route[position + 1] if position + 1 < count else 0
    place, least = position - 1, d[left, node] + d[node, right] - d[left, right]
    for rank in range(3):
        if places[rank] != position and places[rank] != position - 1:
            if added[rank] < least:
                place, least = places[rank], added[rank]
                if place > position:
                    place -= 1
            break
    return place, least


@njit(cache=True, nogil=True)
def exchange(route, count, position, place, node):
    """Carry out what `exchange_place` found."""
    count = remove_at(route, count, position)
    insert_at(route, count, place + 1, node)
