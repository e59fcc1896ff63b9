"""Vehicle routes as linked lists in arrays: remove, insert, copy the routes that changed.

A split delivery in the tours of `sdvrp` leaves a customer half served only where the vehicle ran empty, so at the
end of a route. Here such a visit is the route's *tail*: `end[r]` is its customer and the route is full; the visit
that completes the customer is its node in some later route, with `amount` = what the tails left over. A tail is
only given to a customer whose node goes to a route without tail, so the order "tail first" has no cycles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routelearn.search.compiling import kernel, maker
from routelearn.search.graph import Ints


class Routes(NamedTuple):
    """N nodes (0 = depot), R places for routes; pred and succ are 0 at the depot."""

    pred: Ints  # [N]
    succ: Ints  # [N]
    route: Ints  # [N]: -1 while a customer is out
    amount: NDArray[np.float64]  # [N]: delivered at the node itself, where deliveries are split
    tails: Ints  # [N]: how many tails the customer has; [0] where no delivery is split, and amount likewise
    first: Ints  # [R]
    last: Ints  # [R]
    visits: Ints  # [R]: nodes, the tail not counted
    end: Ints  # [R]: customer of the tail, 0 = none


def empty_routes(nodes: int, split: bool = False) -> Routes:
    """No customer served yet; as many places for routes as there are nodes."""
    whole, flat, parted = np.int32, np.zeros, nodes if split else 0
    return Routes(
        flat(nodes, whole), flat(nodes, whole), np.full(nodes, -1, whole), flat(parted), flat(parted, whole),
        flat(nodes, whole), flat(nodes, whole), flat(nodes, whole), flat(nodes, whole),
    )  # fmt: skip


@kernel
def unlink(routes, c, legs):
    """Take node c out of its route; the change of length."""
    r, p, s = routes.route[c], routes.pred[c], routes.succ[c]
    onward = s if s != 0 else routes.end[r]
    if p != 0:
        routes.succ[p] = s
    else:
        routes.first[r] = s
    if s != 0:
        routes.pred[s] = p
    else:
        routes.last[r] = p
    routes.visits[r] -= 1
    routes.route[c] = -1
    return legs[p, onward] - legs[p, c] - legs[c, onward]


@kernel
def insert(routes, c, r, p):
    """Put node c into route r after p (0 = first)."""
    s = routes.succ[p] if p != 0 else routes.first[r]
    routes.pred[c] = p
    routes.succ[c] = s
    if p != 0:
        routes.succ[p] = c
    else:
        routes.first[r] = c
    if s != 0:
        routes.pred[s] = c
    else:
        routes.last[r] = c
    routes.route[c] = r
    routes.visits[r] += 1


@kernel
def link(routes, c, r, p, legs):
    """Put node c into route r after p (0 = first); the change of length."""
    s = routes.succ[p] if p != 0 else routes.first[r]
    onward = s if s != 0 else routes.end[r]
    insert(routes, c, r, p)
    return legs[p, c] + legs[c, onward] - legs[p, onward]


@kernel
def turn_round(routes, r):
    """Drive route r, which has no tail, the other way (symmetric legs only)."""
    c = routes.first[r]
    routes.first[r], routes.last[r] = routes.last[r], routes.first[r]
    while c != 0:
        onward = routes.succ[c]
        routes.succ[c], routes.pred[c] = routes.pred[c], onward
        c = onward


@kernel
def copy_route(source, target, r):
    """Make route r of `target` equal to that of `source`."""
    split = source.tails.shape[0] > 0
    target.first[r] = source.first[r]
    target.last[r] = source.last[r]
    target.visits[r] = source.visits[r]
    target.end[r] = source.end[r]
    c = source.first[r]
    while c != 0:
        target.pred[c] = source.pred[c]
        target.succ[c] = source.succ[c]
        target.route[c] = r
        if split:
            target.amount[c] = source.amount[c]
            target.tails[c] = source.tails[c]
        c = source.succ[c]


@kernel
def copy_all(source, target):
    for r in range(source.visits.shape[0]):
        if source.visits[r] > 0 or target.visits[r] > 0:
            copy_route(source, target, r)


@kernel
def total_length(routes, legs):
    total = 0.0
    for r in range(routes.visits.shape[0]):
        if routes.visits[r] == 0:
            continue
        p, c = 0, routes.first[r]
        while c != 0:
            total += legs[p, c]
            p, c = c, routes.succ[c]
        if routes.end[r] != 0:
            total += legs[p, routes.end[r]]
            p = routes.end[r]
        total += legs[p, 0]
    return total


@kernel
def clear(routes):
    """No customer served."""
    routes.pred[:] = 0
    routes.succ[:] = 0
    routes.route[:] = -1
    routes.tails[:] = 0
    routes.first[:] = 0
    routes.last[:] = 0
    routes.visits[:] = 0
    routes.end[:] = 0


@kernel
def each_alone(routes, served):
    """Every customer served has a route of its own."""
    clear(routes)
    for r in range(served.shape[0]):
        insert(routes, served[r], r, 0)


@kernel
def read_tour(tour, routes):
    """Read a tour that visits every customer once into `routes`."""
    clear(routes)
    r = 0
    for c in tour:
        if c != 0:
            insert(routes, c, r, routes.last[r])
        elif routes.visits[r] > 0:
            r += 1
            if r == routes.visits.shape[0]:
                break


@maker
def read_split_tour(tour, demand, capacity, routes):
    """Read a tour of `sdvrp`; False if it needs what the routes cannot hold (a route that is only a tail)."""
    clear(routes)
    owed = demand.copy()
    r, room = 0, capacity
    for step in range(tour.shape[0] + 1):
        c = tour[step] if step < tour.shape[0] else 0
        if c == 0:
            if routes.visits[r] > 0:
                r += 1
            elif routes.end[r] != 0:
                return False
            if r == routes.visits.shape[0]:
                break
            room = capacity
            continue
        if routes.end[r] != 0 or routes.route[c] >= 0:
            return False
        delivered = min(owed[c], room)
        if delivered == 0 and demand[c] > 0:
            return False
        owed[c] -= delivered
        room -= delivered
        if owed[c] > 0:
            routes.end[r] = c
            routes.tails[c] += 1
        else:
            routes.amount[c] = delivered
            insert(routes, c, r, routes.last[r])
    return owed.sum() == 0


@maker
def write_tour(routes):
    """[T]: a route with a tail comes before the route that completes its customer; 0 after every route."""
    places = routes.visits.shape[0]
    depth = np.zeros(places, np.int64)
    deepest = 0
    for r in range(places):
        at = r
        while routes.visits[r] > 0 and routes.end[at] != 0:
            at = routes.route[routes.end[at]]
            depth[r] += 1
        deepest = max(deepest, depth[r])
    tour = np.empty(3 * places, np.int64)
    written = 0
    for level in range(deepest, -1, -1):
        for r in range(places):
            if routes.visits[r] == 0 or depth[r] != level:
                continue
            c = routes.first[r]
            while c != 0:
                tour[written] = c
                written += 1
                c = routes.succ[c]
            if routes.end[r] != 0:
                tour[written] = routes.end[r]
                written += 1
            tour[written] = 0
            written += 1
    return tour[:written]
