"""Local search over vehicle routes with granular neighbourhoods (Toth and Vigo 2003; the moves of Vidal 2022).

All routes lie in one array, with 0 before, between and after them; a move makes customer u a neighbour of one of
its near customers v: relocate a stretch of one to three customers (either way round), exchange two customers,
reverse (2-opt within a route, 2-opt* turned round between two), exchange two route ends (2-opt*). Where legs are
asymmetric nothing is turned round. Once none of these improves, SWAP* looks at pairs of routes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from routelearn.search.swap_star import PLACES, best_swap, extent, make_swap, overlap, shifted

RELOCATE, RELOCATE_TURNED, EXCHANGE, REVERSE, TAILS = 1, 2, 3, 4, 5
LONGEST = 3
PAIRS_A_LOOK = 256  # pairs of customers that SWAP* holds against each other in the time of one look at a customer


class Marks(NamedTuple):
    """What a descent has looked at, by customer, so that it stops after any number of looks and goes on later."""

    quiet: NDArray[np.bool_]  # [N]: don't-look bits
    moved: NDArray[np.int64]  # [N]: when the customer's route last changed
    tested: NDArray[np.int64]  # [N]: when SWAP* last tried the route whose lowest customer this is
    clock: NDArray[np.int64]  # [1]


def fresh_marks(nodes: int) -> Marks:
    """Nothing looked at yet."""
    whole = np.int64
    return Marks(np.zeros(nodes, np.bool_), np.zeros(nodes, whole), np.full(nodes, -1, whole), np.zeros(1, whole))


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
def note_moved(start, seq, marks):
    """The route behind place `start` has changed."""
    i = start + 1
    while seq[i] != 0:
        marks.moved[seq[i]] = marks.clock[0]
        i += 1


@njit(cache=True, nogil=True)
def swap_pass(seq, size, demand, capacity, legs, extents, polar, epsilon, marks, looks):
    """The best SWAP* move of every pair of routes that has one: (moves made, looks left).

    A pair is the business of the route with the lowest customer, and tried again only after one of the two has changed
    (whatever their order in the array, which a reversal may change). Without a move and with looks left there is none.
    """
    nodes = demand.shape[0]
    starts, lowest = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    count, load = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    boxes, cost, place = np.empty((nodes, 4)), np.empty((nodes, PLACES)), np.empty((nodes, PLACES), np.int64)
    routes, made = 0, 0
    for i in range(size - 1):
        if seq[i] == 0 and seq[i + 1] != 0:
            starts[routes] = i
            routes += 1
        elif seq[i] != 0:
            count[routes - 1] += 1
            load[routes - 1] += demand[seq[i]]
    for r in range(routes):
        lowest[r] = extent(seq, starts[r], extents, polar, boxes[r])
    for a in range(routes):
        if looks <= 0:
            break
        begun = marks.clock[0]
        before = marks.tested[lowest[a]]
        for b in range(routes):
            if lowest[b] <= lowest[a] or max(marks.moved[lowest[a]], marks.moved[lowest[b]]) <= before:
                continue
            if count[a] == 0 or not overlap(boxes[a], boxes[b], polar):
                continue
            looks -= 1 + count[a] * count[b] // PAIRS_A_LOOK
            gain, i, to_b, j, to_a = best_swap(
                seq, starts[a], starts[b], load[a], load[b], demand, capacity, legs, epsilon, cost, place
            )
            if gain == 0.0:
                continue
            made += 1
            for end in (i, to_b, j, to_a):
                marks.quiet[seq[end]] = marks.quiet[seq[end + 1]] = marks.quiet[seq[max(end - 1, 0)]] = False
            change = -demand[seq[i]] + (demand[seq[j]] if j > 0 else 0)
            from_a = starts[a] < i <= starts[a] + count[a]
            for r in range(routes):
                starts[r] = shifted(starts[r], i, to_b)
                if j > 0:
                    starts[r] = shifted(starts[r], shifted(j, i, to_b), shifted(to_a, i, to_b))
            make_swap(seq, i, to_b, j, to_a)
            load[a] += change if from_a else -change
            load[b] -= change if from_a else -change
            if j == 0:
                count[a] += -1 if from_a else 1
                count[b] -= -1 if from_a else 1
            marks.clock[0] += 1
            for r in (a, b):
                lowest[r] = extent(seq, starts[r], extents, polar, boxes[r])
                note_moved(starts[r], seq, marks)
        marks.tested[lowest[a]] = begun
    return made, looks


@njit(cache=True, nogil=True)
def descend_routes(tour, demand, capacity, legs, near, wide, extents, polar, symmetric, epsilon, marks, looks):
    """Best moves, customer by customer, then SWAP*, until none improves or `looks` customers were looked at.

    Gives (tour, whether the local optimum was reached); the tour has 0 after every route. `marks` remember what was
    looked at, so that the next call goes on. `extents` [N, 2]: angles around the depot if `polar`, else places.
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
    ends = np.zeros(8, np.int64)
    while looks > 0:
        found = False
        for u in range(1, nodes):
            if marks.quiet[u] or pos[u] == 0:
                continue
            looks -= 1
            if looks < 0:
                return seq[1:size], False
            kind, i, j, k = best_move(
                u, seq, pos, route, head, load, demand, capacity, legs, near, wide, symmetric, epsilon
            )
            marks.quiet[u] = kind == 0
            if kind == 0:
                continue
            found = True
            for n, at in enumerate((i - 1, i, i + 1, j - 1, j, j + 1, k, k + 1)):
                ends[n] = seq[at] if 0 <= at < size else 0
            make(seq, kind, i, j, k)
            survey(seq, size, demand, pos, route, head, load)
            marks.clock[0] += 1
            for c in ends:
                marks.quiet[c] = False
                if c != 0 and marks.moved[c] != marks.clock[0]:
                    start = pos[c] - 1
                    while seq[start] != 0:
                        start -= 1
                    note_moved(start, seq, marks)
        if not found:
            made, looks = swap_pass(
                seq, size, demand, capacity, legs, extents, polar, epsilon, marks, looks
            )  # fmt: skip
            if made == 0:
                return seq[1:size], looks > 0
            survey(seq, size, demand, pos, route, head, load)
    return seq[1:size], False
