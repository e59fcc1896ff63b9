"""Local search over vehicle routes with granular neighbourhoods (Toth and Vigo 2003; the moves of Vidal 2022).

All routes lie in one array, with 0 before, between and after them; a move makes customer u a neighbour of one of
its near customers v: relocate a stretch of one to three customers (either way round), exchange two customers,
reverse (2-opt within a route, 2-opt* turned round between two), exchange two route ends (2-opt*). Where legs are
asymmetric nothing is turned round. Once none of these improves, SWAP* looks at pairs of routes. What a move would gain
is counted first; whether the changed routes keep the rules is asked only of those that gain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routelearn.search.compiling import kernel
from routelearn.search.rules import fits_pieces, fits_turned, free_of_order, has_room, needs, survey
from routelearn.search.sequence_moves import reverse
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


class Desk(NamedTuple):
    """Room to work in, for N customers in as many routes at most."""

    seq: NDArray[np.int64]  # [2 N + 2]: all routes, with 0 before, between and after them
    pos: NDArray[np.int64]  # [N]: places of the customers
    route: NDArray[np.int64]  # [2 N + 2]: the route at each place
    ends: NDArray[np.int64]  # [8]: customers at the ends of what a move changed
    starts: NDArray[np.int64]  # [N]: the place before each route, for SWAP*
    lowest: NDArray[np.int64]  # [N]: the lowest customer of each route
    visits: NDArray[np.int64]  # [N]: customers of each route
    boxes: NDArray[np.float64]  # [N, 4]: extents of the routes
    cost: NDArray[np.float64]  # [N, PLACES]: detours to a customer's cheapest places in another route
    place: NDArray[np.int64]  # [N, PLACES]


def new_desk(nodes: int) -> Desk:
    whole, places = np.int64, 2 * nodes + 2
    return Desk(
        np.zeros(places, whole), np.zeros(nodes, whole), np.zeros(places, whole), np.zeros(8, whole),
        np.zeros(nodes, whole), np.zeros(nodes, whole), np.zeros(nodes, whole), np.zeros((nodes, 4)),
        np.zeros((nodes, PLACES)), np.zeros((nodes, PLACES), whole),
    )  # fmt: skip


def fresh_marks(nodes: int) -> Marks:
    """Nothing looked at yet."""
    whole = np.int64
    return Marks(np.zeros(nodes, np.bool_), np.zeros(nodes, whole), np.full(nodes, -1, whole), np.zeros(1, whole))


@kernel
def look_over(seq, size, pos, route):
    """Places of the customers, and the route at each place."""
    r = -1
    for i in range(size):
        if seq[i] == 0:
            r += 1
        else:
            pos[seq[i]] = i
        route[i] = r


@kernel
def survey_all(seq, size, rules, legs):
    """Labels of all routes."""
    r = 0
    for i in range(size - 1):
        if seq[i] == 0:
            survey(rules, seq, legs, i, r)
            r += 1


@kernel
def swap_blocks(seq, i, j, k):
    """[i..j-1][j..k-1] becomes [j..k-1][i..j-1]."""
    reverse(seq, i, k - 1)
    reverse(seq, i, i + k - j - 1)
    reverse(seq, i + k - j, k - 1)


@kernel
def make(seq, kind, i, j, k):
    """Change the array: RELOCATE i..j behind place k, EXCHANGE i and j, REVERSE i..j, TAILS behind i and behind j."""
    if kind == EXCHANGE:
        seq[i], seq[j] = seq[j], seq[i]
    elif kind == REVERSE:
        reverse(seq, i, j)
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
            reverse(seq, i, j)
        if k > j:
            swap_blocks(seq, i, j + 1, k + 1)
        else:
            swap_blocks(seq, k + 1, i, j + 1)


@kernel
def fits_relocated(rules, seq, legs, low, high, turned, k, same):
    """Whether places low to high may be visited behind place k, of the same route or of another."""
    if not same:
        return fits_pieces(rules, seq, legs, k, low, high, turned, 1, 0, False, 1, 0, k + 1) and (
            free_of_order(rules, 0) or fits_pieces(rules, seq, legs, low - 1, 1, 0, False, 1, 0, False, 1, 0, high + 1)
        )
    if free_of_order(rules, 0):
        return True
    if k > high:
        return fits_pieces(rules, seq, legs, low - 1, high + 1, k, False, low, high, turned, 1, 0, k + 1)
    return fits_pieces(rules, seq, legs, k, low, high, turned, k + 1, low - 1, False, 1, 0, high + 1)


@kernel
def fits_exchanged(rules, seq, legs, i, k, same):
    """Whether the stops at places i and k may change places."""
    if not same:
        return fits_pieces(rules, seq, legs, i - 1, k, k, False, 1, 0, False, 1, 0, i + 1) and fits_pieces(
            rules, seq, legs, k - 1, i, i, False, 1, 0, False, 1, 0, k + 1
        )
    if free_of_order(rules, 0):
        return True
    low, high = min(i, k), max(i, k)
    return fits_pieces(rules, seq, legs, low - 1, high, high, False, low + 1, high - 1, False, low, low, high + 1)


@kernel
def fits_reversed(rules, seq, legs, low, high, i, j, same):
    """Whether places low to high may be turned round: within a route, or from behind i of one up to j of another."""
    if not same:
        return fits_turned(rules, seq, i, j)
    return free_of_order(rules, 0) or fits_pieces(
        rules, seq, legs, low - 1, low, high, True, 1, 0, False, 1, 0, high + 1
    )


@kernel
def fits_crossed(rules, seq, legs, i, j):
    """Whether the routes may change ends, behind places i and j."""
    return fits_pieces(rules, seq, legs, i, 1, 0, False, 1, 0, False, 1, 0, j + 1) and fits_pieces(
        rules, seq, legs, j, 1, 0, False, 1, 0, False, 1, 0, i + 1
    )


@kernel
def best_move(u, seq, pos, route, rules, legs, near, wide, turnable, symmetric, epsilon):
    """The best move that makes u a neighbour of a near customer, as `make` takes it: (kind, i, j, k); kind 0 = none.

    `turnable`: legs between customers are as long both ways; `symmetric`: those of the depot as well.
    """
    best = epsilon
    kind, mi, mj, mk = 0, 0, 0, 0
    i = pos[u]
    ru = route[i]
    pu, su = seq[i - 1], seq[i + 1]
    need = needs(rules, u)
    for n in range(wide):
        v = near[u, n]
        if v == 0:
            continue
        j = pos[v]
        same = route[j] == ru
        pv, sv = seq[j - 1], seq[j + 1]
        uv, vu = legs[u, v], legs[v, u]
        # Relocate a stretch that starts (step 1) or ends (step -1) at u.
        room = same or has_room(rules, need, route[j])
        for step in (1, -1):
            if not room:
                break
            last = i
            for length in range(1, LONGEST + 1):
                if length > 1:
                    last += step
                    if seq[last] == 0 or last == j:
                        break
                elif step < 0:
                    continue  # a single customer was tried with step 1
                low, high = min(i, last), max(i, last)
                p, s, first, e = seq[low - 1], seq[high + 1], seq[low], seq[high]
                freed = legs[p, first] + legs[e, s] - legs[p, s]
                if freed <= epsilon:
                    continue
                far = seq[last]
                if j != low - 1:  # behind v
                    turned = step < 0
                    gain = freed - vu - legs[far, sv] + legs[v, sv]
                    if (
                        gain > best
                        and (turnable or not turned)
                        and fits_relocated(rules, seq, legs, low, high, turned, j, same)
                    ):
                        best = gain
                        kind, mi, mj, mk = (RELOCATE_TURNED if turned else RELOCATE), low, high, j
                if j != high + 1:  # before v
                    turned = step > 0 and length > 1
                    gain = freed - legs[pv, far] - uv + legs[pv, v]
                    if (
                        gain > best
                        and (turnable or not turned)
                        and fits_relocated(rules, seq, legs, low, high, turned, j - 1, same)
                    ):
                        best = gain
                        kind, mi, mj, mk = (RELOCATE_TURNED if turned else RELOCATE), low, high, j - 1
        # Exchange u with a neighbour of v.
        for side in (-1, 1):
            k = j + side
            w = seq[k]
            if w == 0 or abs(k - i) < 2:
                continue
            pw, sw = seq[k - 1], seq[k + 1]
            gain = (
                legs[pu, u] + legs[u, su] + legs[pw, w] + legs[w, sw]
                - legs[pu, w] - legs[w, su] - legs[pw, u] - legs[u, sw]
            )  # fmt: skip
            if gain > best and fits_exchanged(rules, seq, legs, i, k, same):
                best = gain
                kind, mi, mj, mk = EXCHANGE, i, k, 0
        # Reverse what lies between: 2-opt, or 2-opt* with both heads (or both tails) in one route.
        if symmetric or (same and turnable):
            low, high = min(i, j), max(i, j)
            p, a, b, s = seq[low], seq[low + 1], seq[high], seq[high + 1]
            gain = legs[p, a] + legs[b, s] - legs[p, b] - legs[a, s]
            if gain > best and fits_reversed(rules, seq, legs, low + 1, high, i, j, same):
                best = gain
                kind, mi, mj, mk = REVERSE, low + 1, high, 0
            p, a, b, s = seq[low - 1], seq[low], seq[high - 1], seq[high]
            gain = legs[p, a] + legs[b, s] - legs[p, b] - legs[a, s]
            if gain > best and fits_reversed(rules, seq, legs, low, high - 1, i - 1, j - 1, same):
                best = gain
                kind, mi, mj, mk = REVERSE, low, high - 1, 0
        # Exchange the route ends so that v follows u, or u follows v.
        if not same:
            gain = legs[u, su] + legs[pv, v] - uv - legs[pv, su]
            if gain > best and fits_crossed(rules, seq, legs, i, j - 1):
                best = gain
                kind, mi, mj, mk = TAILS, i, j - 1, 0
            gain = legs[pu, u] + legs[v, sv] - vu - legs[pu, sv]
            if gain > best and fits_crossed(rules, seq, legs, i - 1, j):
                best = gain
                kind, mi, mj, mk = TAILS, i - 1, j, 0
    return kind, mi, mj, mk


@kernel
def note_moved(start, seq, marks):
    """The route behind place `start` has changed."""
    i = start + 1
    while seq[i] != 0:
        marks.moved[seq[i]] = marks.clock[0]
        i += 1


@kernel
def swap_pass(desk, size, rules, legs, extents, polar, epsilon, marks, looks):
    """The best SWAP* move of every pair of routes that has one: (moves made, looks left).

    A pair is the business of the route with the lowest customer, and tried again only after one of the two has changed
    (whatever their order in the array, which a reversal may change). Without a move and with looks left there is none.
    """
    seq, starts, lowest, count, boxes = desk.seq, desk.starts, desk.lowest, desk.visits, desk.boxes
    routes, made = 0, 0
    count[:] = 0
    for i in range(size - 1):
        if seq[i] == 0 and seq[i + 1] != 0:
            starts[routes] = i
            routes += 1
        elif seq[i] != 0:
            count[routes - 1] += 1
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
            gain, i, to_b, j, to_a = best_swap(seq, starts[a], starts[b], rules, legs, epsilon, desk.cost, desk.place)
            if gain == 0.0:
                continue
            made += 1
            for end in (i, to_b, j, to_a):
                marks.quiet[seq[end]] = marks.quiet[seq[end + 1]] = marks.quiet[seq[max(end - 1, 0)]] = False
            from_a = starts[a] < i <= starts[a] + count[a]
            for r in range(routes):
                starts[r] = shifted(starts[r], i, to_b)
                if j > 0:
                    starts[r] = shifted(starts[r], shifted(j, i, to_b), shifted(to_a, i, to_b))
            make_swap(seq, i, to_b, j, to_a)
            if j == 0:
                count[a] += -1 if from_a else 1
                count[b] -= -1 if from_a else 1
            marks.clock[0] += 1
            for r in (a, b):
                lowest[r] = extent(seq, starts[r], extents, polar, boxes[r])
                note_moved(starts[r], seq, marks)
        marks.tested[lowest[a]] = begun
    return made, looks


@kernel
def descend_routes(
    tour, rules, legs, near, wide, extents, polar, turnable, symmetric, epsilon, marks, desk, looks
):  # fmt: skip
    """Best moves, customer by customer, then SWAP*, until none improves or `looks` customers were looked at.

    Gives (number of places of `desk.seq` that hold the routes, whether the local optimum is reached). `marks` remember
    what was looked at, so that the next call goes on. `extents` [N, 2]: angles around the depot if `polar`, or places.
    """
    nodes = legs.shape[0]
    seq, pos, route, ends = desk.seq, desk.pos, desk.route, desk.ends
    seq[:] = 0
    pos[:] = 0
    size = 1
    for c in tour:
        if c != 0 or seq[size - 1] != 0:
            seq[size] = c
            size += 1
    if seq[size - 1] != 0:
        size += 1
    look_over(seq, size, pos, route)
    survey_all(seq, size, rules, legs)
    while looks > 0:
        found = False
        for u in range(1, nodes):
            if marks.quiet[u] or pos[u] == 0:
                continue
            looks -= 1
            if looks < 0:
                return size, False
            kind, i, j, k = best_move(u, seq, pos, route, rules, legs, near, wide, turnable, symmetric, epsilon)
            marks.quiet[u] = kind == 0
            if kind == 0:
                continue
            found = True
            for n, at in enumerate((i - 1, i, i + 1, j - 1, j, j + 1, k, k + 1)):
                ends[n] = seq[at] if 0 <= at < size else 0
            if kind == REVERSE and route[i - 1] != route[j + 1]:  # the routes between are turned as well
                make(seq, kind, i, j, k)
                survey_all(seq, size, rules, legs)
            else:
                make(seq, kind, i, j, k)
            look_over(seq, size, pos, route)
            marks.clock[0] += 1
            for c in ends:
                marks.quiet[c] = False
                if c != 0 and marks.moved[c] != marks.clock[0]:
                    start = pos[c] - 1
                    while seq[start] != 0:
                        start -= 1
                    note_moved(start, seq, marks)
                    survey(rules, seq, legs, start, route[start])
        if not found:
            made, looks = swap_pass(desk, size, rules, legs, extents, polar, epsilon, marks, looks)
            if made == 0:
                return size, looks > 0
            look_over(seq, size, pos, route)
            survey_all(seq, size, rules, legs)
    return size, False
