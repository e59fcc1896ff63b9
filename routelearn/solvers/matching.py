"""Minimum weight perfect matching in a complete graph: Edmonds' blossom algorithm (1965), compiled.

A primal-dual method. Vertices have dual values `u`, blossoms (odd sets of vertices that act as one) `z` >= 0,
such that every edge between different outermost blossoms has slack d - u - u >= 0 and matched ones have none.
From all unmatched blossoms at once grow alternating trees over edges without slack: blossoms at even depth
are PLUS, at odd depth MINUS, the others FREE. The smallest change of the duals that makes something happen is
made, again and again: a tree takes in a FREE blossom and its mate, two PLUS blossoms of one tree close a new
blossom, two of different trees give an augmenting path, or a MINUS blossom whose z reached 0 is opened.

Every vertex remembers its nearest PLUS vertex in another blossom, which keeps a phase near O(k^2).
"""

from __future__ import annotations

import numpy as np
from numba import njit

FREE, PLUS, MINUS = 0, 1, 2


@njit(cache=True, nogil=True)
def _child(parent: np.ndarray, vertex: int, blossom: int) -> int:
    """The direct child of the blossom that holds the vertex."""
    node = vertex
    while parent[node] != blossom:
        node = parent[node]
    return node


@njit(cache=True, nogil=True)
def _rebase(
    blossom: int, vertex: int, k: int, parent: np.ndarray, base: np.ndarray, mate: np.ndarray,
    kids: np.ndarray, edges: np.ndarray, size: np.ndarray,
) -> None:  # fmt: skip
    """Match the inside of a blossom so that `vertex` is the one left for an edge to the outside."""
    stack = [(blossom, vertex)]
    while len(stack) > 0:
        b, v = stack.pop()
        if b < k or base[b] == v:
            continue
        base[b] = v
        count = size[b]
        entry = _child(parent, v, b)
        shift = 0
        while kids[b, shift] != entry:
            shift += 1
        kids[b, :count] = np.roll(kids[b, :count], -shift)
        for side in range(2):
            edges[b, :count, side] = np.roll(edges[b, :count, side], -shift)
        stack.append((entry, v))
        for i in range(1, count, 2):  # every second edge of the odd cycle, counted from the base
            p, q = edges[b, i, 0], edges[b, i, 1]
            mate[p], mate[q] = q, p
            stack.append((kids[b, i], p))
            stack.append((kids[b, i + 1], q))


@njit(cache=True, nogil=True)
def _spread(v: int, d: np.ndarray, u: np.ndarray, outer: np.ndarray, near: np.ndarray) -> None:
    """The vertex v became PLUS: it may be the nearest such vertex of others."""
    for w in range(len(d)):
        if outer[w] != outer[v] and (near[w] < 0 or d[v, w] - u[v] < d[near[w], w] - u[near[w]]):
            near[w] = v


@njit(cache=True, nogil=True)
def _climb(
    blossom: int, outer: np.ndarray, base: np.ndarray, mate: np.ndarray, entry: np.ndarray, path: np.ndarray,
    links: np.ndarray,
) -> int:  # fmt: skip
    """The way from a PLUS blossom to its root: blossoms, and the edges between them; gives their number."""
    path[0], count = blossom, 1
    while mate[base[path[count - 1]]] >= 0:
        here = base[path[count - 1]]
        links[count - 1, 0], links[count - 1, 1] = here, mate[here]
        minus = outer[mate[here]]
        path[count] = minus
        links[count, 0], links[count, 1] = entry[minus, 1], entry[minus, 0]
        path[count + 1] = outer[entry[minus, 0]]
        count += 2
    return count


@njit(cache=True, nogil=True)
def perfect_matching(d: np.ndarray) -> np.ndarray:
    """The partner of every vertex, [k], in a perfect matching of least weight; d is [k, k], symmetric, k even."""
    k = len(d)
    ids = k + k // 2 + 1
    parent, base, size = np.full(ids, -1), np.arange(ids), np.zeros(ids, np.int64)
    kids, edges = np.zeros((ids, k + 1), np.int64), np.zeros((ids, k + 1, 2), np.int64)
    outer, mate = np.arange(k), np.full(k, -1)
    u, z = np.zeros(k), np.zeros(ids)
    unused = np.arange(ids - 1, k - 1, -1)
    spare = len(unused)
    path_a, path_b = np.zeros(ids, np.int64), np.zeros(ids, np.int64)
    links_a, links_b = np.zeros((ids, 2), np.int64), np.zeros((ids, 2), np.int64)

    # a feasible start: half the shortest edge, then as much as the edges allow; match what is tight
    for v in range(k):
        u[v] = np.inf
        for w in range(k):
            if w != v:
                u[v] = min(u[v], d[v, w] / 2)
    for v in range(k):
        raised, tight = np.inf, -1
        for w in range(k):
            if w != v and d[v, w] - u[w] < raised:
                raised, tight = d[v, w] - u[w], w
        u[v] = raised
        if mate[v] < 0 and mate[tight] < 0:
            mate[v], mate[tight] = tight, v

    label, entry, near = np.zeros(ids, np.int64), np.zeros((ids, 2), np.int64), np.full(k, -1)
    unmatched = 0
    for v in range(k):
        unmatched += mate[v] < 0
    while unmatched > 0:
        label[:] = FREE
        near[:] = -1
        for v in range(k):
            if mate[base[outer[v]]] < 0:
                label[outer[v]] = PLUS
        for v in range(k):
            if label[outer[v]] == PLUS:
                _spread(v, d, u, outer, near)
        augmented = False
        while not augmented:
            # the smallest change of the duals after which something happens
            step, event = np.inf, -1
            for v in range(k):
                kind = label[outer[v]]
                if kind == PLUS and near[v] >= 0 and outer[near[v]] == outer[v]:  # became an inner edge: look again
                    near[v] = -1
                    for w in range(k):
                        other = label[outer[w]] == PLUS and outer[w] != outer[v]
                        if other and (near[v] < 0 or d[v, w] - u[w] < d[v, near[v]] - u[near[v]]):
                            near[v] = w
                if kind == MINUS or near[v] < 0:
                    continue
                slack = d[v, near[v]] - u[v] - u[near[v]]
                if kind == PLUS:
                    slack /= 2
                if slack < step:
                    step, event = slack, v
            for b in range(k, ids):
                if label[b] == MINUS and parent[b] < 0 and size[b] > 0 and z[b] / 2 < step:
                    step, event = z[b] / 2, b
            step = max(step, 0.0)
            for v in range(k):
                if label[outer[v]] == PLUS:
                    u[v] += step
                elif label[outer[v]] == MINUS:
                    u[v] -= step
            for b in range(k, ids):
                if parent[b] < 0 and size[b] > 0:
                    if label[b] == PLUS:
                        z[b] += 2 * step
                    elif label[b] == MINUS:
                        z[b] -= 2 * step

            if event >= k:  # open a MINUS blossom
                b = event
                count = size[b]
                inside = outer == b
                for i in range(count):
                    parent[kids[b, i]] = -1
                    label[kids[b, i]] = FREE
                for v in range(k):
                    if inside[v]:
                        outer[v] = v
                        while parent[outer[v]] >= 0:
                            outer[v] = parent[outer[v]]
                at = 0
                while kids[b, at] != outer[entry[b, 1]]:
                    at += 1
                label[kids[b, at]] = MINUS
                entry[kids[b, at]] = entry[b]
                # from there over a matched edge first, on to the base, which stays MINUS
                way = 1 if at % 2 == 1 else -1
                while at % count != 0:
                    plus, minus = (at + way) % count, (at + 2 * way) % count
                    label[kids[b, plus]], label[kids[b, minus]] = PLUS, MINUS
                    if way == 1:
                        entry[kids[b, minus]] = edges[b, plus]
                    else:
                        entry[kids[b, minus], 0], entry[kids[b, minus], 1] = edges[b, minus, 1], edges[b, minus, 0]
                    at = minus
                size[b] = 0
                unused[spare] = b
                spare += 1
                for v in range(k):
                    if inside[v] and label[outer[v]] == PLUS:
                        _spread(v, d, u, outer, near)
                continue

            v, w = event, near[event]  # w is PLUS
            if label[outer[v]] == FREE:  # the tree takes it in, and its mate
                b = outer[v]
                label[b] = MINUS
                entry[b, 0], entry[b, 1] = w, v
                grown = outer[mate[base[b]]]
                label[grown] = PLUS
                for s in range(k):
                    if outer[s] == grown:
                        _spread(s, d, u, outer, near)
                continue

            count_a = _climb(outer[v], outer, base, mate, entry, path_a, links_a)
            count_b = _climb(outer[w], outer, base, mate, entry, path_b, links_b)
            if path_a[count_a - 1] != path_b[count_b - 1]:  # two trees: match along both ways to the roots
                for side in range(2):
                    path, links, count = (path_a, links_a, count_a) if side == 0 else (path_b, links_b, count_b)
                    here, there = (v, w) if side == 0 else (w, v)
                    for i in range(0, count, 2):
                        _rebase(path[i], here, k, parent, base, mate, kids, edges, size)
                        mate[here] = there
                        if i + 1 < count:
                            there, here = links[i + 1, 0], links[i + 1, 1]
                            _rebase(path[i + 1], there, k, parent, base, mate, kids, edges, size)
                            mate[there] = here
                unmatched -= 2
                augmented = True
                continue

            # one tree: the ways meet in a PLUS blossom, the base of a new blossom
            while count_a > 1 and count_b > 1 and path_a[count_a - 2] == path_b[count_b - 2]:
                count_a -= 1
                count_b -= 1
            spare -= 1
            b = unused[spare]
            count = 0
            kids[b, 0] = path_a[count_a - 1]
            for i in range(count_a - 2, -1, -1):
                edges[b, count, 0], edges[b, count, 1] = links_a[i, 1], links_a[i, 0]
                count += 1
                kids[b, count] = path_a[i]
            edges[b, count, 0], edges[b, count, 1] = v, w
            for i in range(count_b - 1):
                count += 1
                kids[b, count] = path_b[i]
                edges[b, count] = links_b[i]
            size[b], z[b], parent[b] = count + 1, 0.0, -1
            base[b] = base[kids[b, 0]]
            fresh = np.zeros(k, np.bool_)
            for s in range(k):
                fresh[s] = label[outer[s]] == MINUS
            for i in range(size[b]):
                parent[kids[b, i]] = b
            for s in range(k):
                if parent[outer[s]] == b:
                    outer[s] = b
                else:
                    fresh[s] = False
            label[b] = PLUS
            for s in range(k):
                if fresh[s]:
                    _spread(s, d, u, outer, near)
    return mate
