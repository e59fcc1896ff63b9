"""Local search over vehicle routes with granular neighbourhoods (Toth and Vigo 2003; the moves of Vidal 2022).

All routes lie in one array, with 0 before, between and after them; a move makes customer u a neighbour of one of
its near customers v: relocate a stretch of one to three customers (either way round), exchange two customers,
reverse (2-opt within a route, 2-opt* turned round between two), exchange two route ends (2-opt*). Where legs are
asymmetric nothing is turned round.
"""

from __future__ import annotations

import numpy as np
from numba import njit

RELOCATE, RELOCATE_TURNED, EXCHANGE, REVERSE, TAILS = 1, 2, 3, 4, 5
LONGEST = 3


@njit(cache=True, nogil=True)
def survey(seq, size, demand, pos, route, head, load):
    """Places of the customers, route and load so far at each place, load of each route."""
    r = 0
    carried = 0
    for i in range(size):
        c = seq[i]
        if c == 0:
            if i > 0:
                load[r] = carried
                r += 1
            carried = 0
        else:
            carried += demand[c]
            pos[c] = i
        route[i] = r
        head[i] = carried


@njit(cache=True, nogil=True)
def turn(seq, i, j):
    while i < j:
        seq[i], seq[j] = seq[j], seq[i]
        i += 1
        j -= 1


@njit(cache=True, nogil=True)
def swap_blocks(seq, i, j, k):
    """[i..j-1][j..k-1] becomes [j..k-1][i..j-1]."""
    turn(seq, i, k - 1)
    turn(seq, i, i + k - j - 1)
    turn(seq, i + k - j, k - 1)


@njit(cache=True, nogil=True)
def make(seq, kind, i, j, k):
    """Change the array: RELOCATE i..j behind place k, EXCHANGE i and j, REVERSE i..j, TAILS behind i and behind j."""
    if kind == EXCHANGE:
        seq[i], seq[j] = seq[j], seq[i]
    elif kind == REVERSE:
        turn(seq, i, j)
    elif kind == TAILS:
        if i > j:
            i, j = j, i
        end_first = i + 1
        while seq[end_first] != 0:
            end_first += 1
        end_second = j + 1
        while seq[end_second] != 0:
            end_second += 1
        # i | tail | middle | tail: the outer two change places.
        first, middle, second = end_first - i - 1, j + 1 - end_first, end_second - j - 1
        swap_blocks(seq, i + 1, i + 1 + first, end_second)  # middle, second, first
        swap_blocks(seq, i + 1, i + 1 + middle, i + 1 + middle + second)  # second, middle, first
    else:
        if kind == RELOCATE_TURNED:
            turn(seq, i, j)
        if k > j:
            swap_blocks(seq, i, j + 1, k + 1)
        else:
            swap_blocks(seq, k + 1, i, j + 1)


@njit(cache=True, nogil=True)
def best_move(u, seq, pos, route, head, load, demand, capacity, legs, near, wide, symmetric, epsilon):
    """The best move that makes u a neighbour of a near customer, as `make` takes it: (kind, i, j, k); kind 0 = none."""
    best = epsilon
    kind, mi, mj, mk = 0, 0, 0, 0
    i = pos[u]
    ru = route[i]
    pu, su = seq[i - 1], seq[i + 1]
    for n in range(wide):
        v = near[u, n]
        if v == 0:
            continue
        j = pos[v]
        rv = route[j]
        pv, sv = seq[j - 1], seq[j + 1]
        uv, vu = legs[u, v], legs[v, u]
        # Relocate a stretch that starts (step 1) or ends (step -1) at u.
        for step in (1, -1):
            last = i
            for length in range(1, LONGEST + 1):
                if length > 1:
                    last += step
                    if seq[last] == 0 or last == j:
                        break
                elif step < 0:
                    continue  # a single customer was tried with step 1
                low, high = min(i, last), max(i, last)
                if rv != ru and load[rv] + head[high] - head[low] + demand[seq[low]] > capacity:
                    break
                p, s, first, e = seq[low - 1], seq[high + 1], seq[low], seq[high]
                freed = legs[p, first] + legs[e, s] - legs[p, s]
                if freed <= epsilon:
                    continue
                far = seq[last]
                if j != low - 1:  # behind v
                    turned = step < 0
                    gain = freed - vu - legs[far, sv] + legs[v, sv]
                    if gain > best and (symmetric or not turned):
                        best = gain
                        kind, mi, mj, mk = (RELOCATE_TURNED if turned else RELOCATE), low, high, j
                if j != high + 1:  # before v
                    turned = step > 0 and length > 1
                    gain = freed - legs[pv, far] - uv + legs[pv, v]
                    if gain > best and (symmetric or not turned):
                        best = gain
                        kind, mi, mj, mk = (RELOCATE_TURNED if turned else RELOCATE), low, high, j - 1
        # Exchange u with a neighbour of v.
        for side in (-1, 1):
            k = j + side
            w = seq[k]
            if w == 0 or abs(k - i) < 2:
                continue
            if rv != ru:
                more = demand[u] - demand[w]
                if load[rv] + more > capacity or load[ru] - more > capacity:
                    continue
            pw, sw = seq[k - 1], seq[k + 1]
            gain = (
                legs[pu, u] + legs[u, su] + legs[pw, w] + legs[w, sw]
                - legs[pu, w] - legs[w, su] - legs[pw, u] - legs[u, sw]
            )  # fmt: skip
            if gain > best:
                best = gain
                kind, mi, mj, mk = EXCHANGE, i, k, 0
        # Reverse what lies between: 2-opt, or 2-opt* with both heads (or both tails) in one route.
        if symmetric:
            low, high = min(i, j), max(i, j)
            gain = legs[u, su] + legs[v, sv] - uv - legs[su, sv]
            if gain > best:
                heads = head[i] + head[j]
                if ru == rv or (heads <= capacity and load[ru] + load[rv] - heads <= capacity):
                    best = gain
                    kind, mi, mj, mk = REVERSE, low + 1, high, 0
            gain = legs[pu, u] + legs[pv, v] - uv - legs[pu, pv]
            if gain > best:
                heads = head[i - 1] + head[j - 1]
                if ru == rv or (heads <= capacity and load[ru] + load[rv] - heads <= capacity):
                    best = gain
                    kind, mi, mj, mk = REVERSE, low, high - 1, 0
        # Exchange the route ends so that v follows u, or u follows v.
        if ru != rv:
            gain = legs[u, su] + legs[pv, v] - uv - legs[pv, su]
            if (
                gain > best
                and head[i] + load[rv] - head[j - 1] <= capacity
                and head[j - 1] + load[ru] - head[i] <= capacity
            ):
                best = gain
                kind, mi, mj, mk = TAILS, i, j - 1, 0
            gain = legs[pu, u] + legs[v, sv] - vu - legs[pu, sv]
            if (
                gain > best
                and head[j] + load[ru] - head[i - 1] <= capacity
                and head[i - 1] + load[rv] - head[j] <= capacity
            ):
                best = gain
                kind, mi, mj, mk = TAILS, i - 1, j, 0
    return kind, mi, mj, mk


@njit(cache=True, nogil=True)
def descend_routes(tour, demand, capacity, legs, near, wide, symmetric, epsilon, looks):
    """Best moves, customer by customer, until none improves or `looks` customers were looked at.

    Gives (tour, whether the local optimum was reached); the tour has 0 after every route.
    """
    nodes = demand.shape[0]
    seq = np.zeros(tour.shape[0] + 2, np.int64)
    size = 1
    for c in tour:
        if c != 0 or seq[size - 1] != 0:
            seq[size] = c
            size += 1
    if seq[size - 1] != 0:
        size += 1
    pos = np.zeros(nodes, np.int64)
    route, head, load = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    survey(seq, size, demand, pos, route, head, load)
    quiet = np.zeros(nodes, np.bool_)  # don't-look bits
    ends = np.zeros(12, np.int64)
    reached = False
    while not reached and looks > 0:
        reached = True
        for u in range(1, nodes):
            if quiet[u] or pos[u] == 0:
                continue
            looks -= 1
            if looks < 0:
                reached = False
                break
            kind, i, j, k = best_move(
                u, seq, pos, route, head, load, demand, capacity, legs, near, wide, symmetric, epsilon
            )
            quiet[u] = kind == 0
            if kind == 0:
                continue
            reached = False
            for n, place in enumerate((i - 1, i, i + 1, j - 1, j, j + 1, k, k + 1)):
                ends[n] = seq[place] if 0 <= place < size else 0
            for n in range(8):
                quiet[ends[n]] = False
            make(seq, kind, i, j, k)
            survey(seq, size, demand, pos, route, head, load)
    return seq[1:size], reached
