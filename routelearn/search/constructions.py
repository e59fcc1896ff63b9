"""Simple first solutions: nearest neighbour (a tour) and savings (routes)."""

from __future__ import annotations

import numpy as np

from routelearn.search.compiling import kernel, maker
from routelearn.search.graph import Graph, Ints, lengths
from routelearn.search.routes import Routes, each_alone, turn_round
from routelearn.search.rules import Held, fits_merged, refresh


@maker
def nearest_neighbour(legs, near):
    """[N]: always on to the nearest node not yet visited, from node 0."""
    nodes = legs.shape[0]
    tour = np.empty(nodes, np.int32)
    seen = np.zeros(nodes, np.bool_)
    at = 0
    tour[0] = 0
    seen[0] = True
    for step in range(1, nodes):
        choice = -1
        for k in range(near.shape[1]):
            if not seen[near[at, k]]:
                choice = near[at, k]
                break
        if choice < 0:
            shortest = np.inf
            for v in range(nodes):
                if not seen[v] and legs[at, v] < shortest:
                    shortest = legs[at, v]
                    choice = v
        tour[step] = choice
        seen[choice] = True
        at = choice
    return tour


@kernel
def join_by_savings(pairs, order, turning, routes, rules, legs):
    """Join routes end to start in the order of the savings, where one vehicle may drive both."""
    for r in range(routes.visits.shape[0]):
        refresh(rules, routes, legs, r)
    for k in order:
        i, j = pairs[k, 0], pairs[k, 1]
        a, b = routes.route[i], routes.route[j]
        if a == b:
            continue
        if turning:
            if routes.last[a] != i and routes.first[a] == i:
                turn_round(routes, a)
            if routes.first[b] != j and routes.last[b] == j:
                turn_round(routes, b)
        if routes.last[a] != i or routes.first[b] != j or not fits_merged(rules, routes, legs, a, b):
            continue
        routes.succ[i] = j
        routes.pred[j] = i
        routes.last[a] = routes.last[b]
        routes.visits[a] += routes.visits[b]
        c = j
        while c != 0:
            routes.route[c] = a
            c = routes.succ[c]
        routes.first[b] = routes.last[b] = routes.visits[b] = 0
        refresh(rules, routes, legs, a)


@maker
def pairs_of_neighbours(near, served, symmetric):
    """[P, 2]: customers i, j with j among the neighbours of i; where legs are symmetric each pair once."""
    nodes, wide = near.shape
    wanted = np.zeros(nodes, np.bool_)
    for c in served:
        wanted[c] = c != 0
    pairs = np.empty((served.shape[0] * wide, 2), np.int32)
    count = 0
    for i in served:
        for k in range(wide):
            j = near[i, k]
            if not wanted[j]:
                continue
            if symmetric and j < i:
                again = False
                for back in near[j]:
                    if back == i:
                        again = True
                        break
                if again:
                    continue
            pairs[count, 0] = i
            pairs[count, 1] = j
            count += 1
    return pairs[:count]


def savings(graph: Graph, turning: bool, served: Ints, routes: Routes, rules: tuple[Held, ...]) -> None:
    """Clarke and Wright (1964) over pairs of neighbours: `routes` of the customers served.

    Every customer must fit into a route of its own. `turning`: routes may be turned round.
    """
    legs = graph.legs
    each_alone(routes, served)
    pairs = pairs_of_neighbours(graph.near, served, turning)
    first, second = np.ascontiguousarray(pairs.T)
    depot = np.zeros_like(first)
    saved = lengths(legs, first, depot) + lengths(legs, depot, second) - lengths(legs, first, second)
    order = np.argsort(-saved, kind="stable")
    join_by_savings(pairs, order[saved[order] > 0], turning, routes, rules, legs)
