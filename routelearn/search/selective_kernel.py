"""One route that need not visit every node: ruin a stretch, refill it, shorten, drop, anneal.

The route is a cyclic array with the depot somewhere in it; `pos[node]` is -1 off the route. Where the prize is
maximised (OP) the cost is minus the prize, with a small price on length, since a shorter route leaves room; else
(PCTSP) it is length plus the penalties of nodes left out. Both may have a longest route and a least prize. Off the
route each node keeps its cheapest place beside one of its neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routelearn.search.compiling import kernel, part
from routelearn.search.graph import Floats, Ints, below, draw
from routelearn.search.three_opt import descend, push

SIZE, KEPT_SIZE, BEST_SIZE = 0, 1, 2
LENGTH, PRIZE, WORTH, COST, BEST = 0, 1, 2, 3, 4  # worth: penalties of the nodes visited
BLINK = 0.05
FORCED = 0.5  # chance of another random node forced in after a ruin
MANY = 2500  # nodes beyond which not all of them are looked at after each change


class Rules(NamedTuple):
    """What one instance asks for, as numbers that the kernel reads."""

    prize: Floats  # [N]
    penalty: Floats  # [N]
    limit: float  # longest route
    least: float  # prize to collect
    by_prize: bool  # the prize is maximised; else length + penalties is minimised
    length_price: float  # cost of a unit of length; small where the prize is maximised


class Route(NamedTuple):
    """The arrays of one search, N nodes."""

    tour: Ints
    pos: Ints
    kept: Ints  # the tour that a rejected change falls back to
    best: Ints
    size: NDArray[np.int64]  # [3]: SIZE, KEPT_SIZE, BEST_SIZE
    real: Floats  # [5]
    detour: Floats  # [N]: of the cheapest place known, for nodes off the route
    place: Ints  # [N]: the node before that place
    off: Ints  # [N]: nodes off the route
    key: Floats  # [N]: how much each of them is wanted, where `off` is a heap
    spot: Ints  # [N]: where each of them is in it
    queue: Ints
    queued: NDArray[np.bool_]
    ring: NDArray[np.int64]  # [2]
    journal: Ints  # [1, 4]: changes are undone by copying, so it stays unread
    touched: Ints  # [8]


def empty_route(nodes: int) -> Route:
    """Only the depot is on the route."""
    whole = np.int32
    route = Route(
        np.zeros(nodes, whole), np.full(nodes, -1, whole), np.zeros(nodes, whole), np.zeros(nodes, whole),
        np.ones(3, np.int64), np.zeros(5), np.zeros(nodes), np.zeros(nodes, whole), np.zeros(nodes, whole),
        np.zeros(nodes), np.zeros(nodes, whole), np.zeros(nodes, whole), np.zeros(nodes, np.bool_),
        np.zeros(2, np.int64), np.zeros((1, 4), whole),
        np.zeros(8, whole),
    )  # fmt: skip
    route.pos[0] = 0
    return route


@kernel
def look_again(route, node):
    route.ring[1] = push(node, route.queue, route.queued, route.ring[0], route.ring[1])


@kernel
def insert(route, u, p, rules, legs):
    """Put u after p."""
    tour, pos, size = route.tour, route.pos, route.size[SIZE]
    at = pos[p]
    s = tour[at + 1] if at + 1 < size else tour[0]
    for i in range(size, at + 1, -1):
        v = tour[i - 1]
        tour[i] = v
        pos[v] = i
    tour[at + 1] = u
    pos[u] = at + 1
    route.size[SIZE] = size + 1
    route.real[LENGTH] += legs[p, u] + legs[u, s] - legs[p, s]
    route.real[PRIZE] += rules.prize[u]
    route.real[WORTH] += rules.penalty[u]
    look_again(route, p)
    look_again(route, u)
    look_again(route, s)


@kernel
def remove(route, at, length, rules, legs):
    """Take out the cyclic stretch of `length` positions from `at`; the depot must not be in it."""
    tour, pos, size = route.tour, route.pos, route.size[SIZE]
    p = tour[at - 1 if at > 0 else size - 1]
    previous = p
    for i in range(length):
        v = tour[(at + i) % size]
        pos[v] = -1
        route.real[LENGTH] -= legs[previous, v]
        route.real[PRIZE] -= rules.prize[v]
        route.real[WORTH] -= rules.penalty[v]
        previous = v
    s = tour[(at + length) % size]
    route.real[LENGTH] += legs[p, s] - legs[previous, s]
    write = 0
    for i in range(size):
        v = tour[i]
        if pos[v] >= 0:
            tour[write] = v
            pos[v] = write
            write += 1
    route.size[SIZE] = write
    look_again(route, p)
    look_again(route, s)


@kernel
def find_place(route, u, legs, back, near, wide):
    """The cheapest place for u beside its neighbours on the route, or beside the depot."""
    tour, pos, size = route.tour, route.pos, route.size[SIZE]
    to, fro = legs[u], back[u]
    best = np.inf
    place = 0
    for k in range(-1, wide):
        v = near[u, k] if k >= 0 else 0
        at = pos[v]
        if at < 0:
            continue
        s = tour[at + 1] if at + 1 < size else tour[0]
        p = tour[at - 1] if at > 0 else tour[size - 1]
        cost = fro[v] + to[s] - legs[v, s]
        if cost < best:
            best = cost
            place = v
        cost = fro[p] + to[v] - back[v, p]
        if cost < best:
            best = cost
            place = p
    route.detour[u] = best
    route.place[u] = place


@kernel
def find_places(route, legs, back, near, wide):
    """Fill `off`, `detour` and `place`; the number of nodes off the route."""
    count = 0
    for u in range(1, legs.shape[0]):
        if route.pos[u] < 0:
            route.off[count] = u
            count += 1
            find_place(route, u, legs, back, near, wide)
    return count


@kernel
def score(route, u, rules, power, short):
    """How much node u is wanted next; minus infinity = not at all."""
    detour = max(route.detour[u], 1e-12)
    if route.real[LENGTH] + detour > rules.limit:
        return -np.inf
    if rules.by_prize:
        if power == 0:
            return rules.prize[u] / np.sqrt(detour)
        if power == 1:
            return rules.prize[u] / detour
        return rules.prize[u] / (detour * detour)
    gain = rules.penalty[u] - detour
    if short:
        # Prize is owed: the least cost per prize first.
        return gain / max(rules.prize[u], 1e-12) if gain < 0.0 else gain * 1e12
    if gain <= 0.0:
        return -np.inf
    return gain if power == 0 else gain / detour


@part
def sift(off, key, spot, i, count):
    """Put entry i of a heap (the most wanted first) where it belongs."""
    u = off[i]
    while i > 0 and key[off[(i - 1) >> 1]] < key[u]:
        off[i] = off[(i - 1) >> 1]
        spot[off[i]] = i
        i = (i - 1) >> 1
    while True:
        child = 2 * i + 1
        if child + 1 < count and key[off[child + 1]] > key[off[child]]:
            child += 1
        if child >= count or key[off[child]] <= key[u]:
            break
        off[i] = off[child]
        spot[off[i]] = i
        i = child
    off[i] = u
    spot[u] = i


@part
def fill_many(route, rules, legs, back, near, wide, count):
    """As `fill`, for thousands of nodes: after an insertion only those near it are looked at.

    A node whose place is gone counts with what it was worth until its turn comes; then it gets another place.
    """
    off, key, spot, tour, pos = route.off, route.key, route.spot, route.tour, route.pos
    ordered, was_short, inserted = False, False, 0
    while count > 0:
        short = route.real[PRIZE] < rules.least
        if not ordered or short != was_short:
            ordered, was_short = True, short
            for i in range(count):
                key[off[i]] = score(route, off[i], rules, 1, short)
                spot[off[i]] = i
            for i in range(count // 2 - 1, -1, -1):
                sift(off, key, spot, i, count)
        u = off[0]
        if key[u] == -np.inf:
            break
        p = route.place[u]
        s = tour[pos[p] + 1] if pos[p] + 1 < route.size[SIZE] else tour[0]
        if legs[p, u] + legs[u, s] - legs[p, s] > route.detour[u]:  # another node has come between
            find_place(route, u, legs, back, near, wide)
        value = score(route, u, rules, 1, short)
        if value < key[u]:
            key[u] = value
            sift(off, key, spot, 0, count)
            continue
        count -= 1
        off[0] = off[count]
        if count > 0:
            sift(off, key, spot, 0, count)
        p = route.place[u]
        s = tour[pos[p] + 1] if pos[p] + 1 < route.size[SIZE] else tour[0]
        insert(route, u, p, rules, legs)
        inserted += 1
        for k in range(near.shape[1]):
            v = near[u, k]
            if v == 0 or pos[v] >= 0:
                continue
            before = legs[p, v] + legs[v, u] - legs[p, u]
            after = legs[u, v] + legs[v, s] - legs[u, s]
            if min(before, after) < route.detour[v]:
                route.detour[v] = min(before, after)
                route.place[v] = p if before <= after else u
                key[v] = score(route, v, rules, 1, short)
                sift(off, key, spot, spot[v], count)
    return inserted


@kernel
def fill(route, rules, legs, back, near, wide, blink, state):
    """Insert what is wanted, the most wanted first; the number inserted."""
    count = find_places(route, legs, back, near, wide)
    if legs.shape[0] > MANY and not blink:
        return fill_many(route, rules, legs, back, near, wide, count)
    power = below(state, 3) if blink else np.int64(1)
    inserted = 0
    while count > 0:
        short = route.real[PRIZE] < rules.least
        wanted = -np.inf
        chosen = -1
        for i in range(count):
            value = score(route, route.off[i], rules, power, short)
            if value > wanted and not (blink and draw(state) < BLINK):
                wanted = value
                chosen = i
        if chosen < 0 and short:  # every candidate blinked, or none has room, and prize is still owed
            for i in range(count):
                if score(route, route.off[i], rules, power, short) > -np.inf:
                    chosen = i
                    break
        if chosen < 0:
            break
        u = route.off[chosen]
        count -= 1
        route.off[chosen] = route.off[count]
        p = route.place[u]
        at = route.pos[p]
        s = route.tour[at + 1] if at + 1 < route.size[SIZE] else route.tour[0]
        insert(route, u, p, rules, legs)
        inserted += 1
        from_p, from_u, to_u, to_s = legs[p], legs[u], back[u], back[s]  # rows, because columns are slow to read
        for i in range(count):
            v = route.off[i]
            if route.place[v] == p:
                find_place(route, v, legs, back, near, wide)
            else:
                before = from_p[v] + to_u[v] - from_p[u]
                if before < route.detour[v]:
                    route.detour[v] = before
                    route.place[v] = p
            after = from_u[v] + to_s[v] - from_u[s]
            if after < route.detour[v]:
                route.detour[v] = after
                route.place[v] = u
    return inserted


@kernel
def drop(route, rules, legs):
    """PCTSP: take out nodes that cost more length than penalty, the worst first, while enough prize is left."""
    while route.size[SIZE] > 1:
        tour, size = route.tour, route.size[SIZE]
        most = 1e-12
        chosen = -1
        for i in range(size):
            v = tour[i]
            if v == 0 or route.real[PRIZE] - rules.prize[v] < rules.least:
                continue
            p = tour[i - 1 if i > 0 else size - 1]
            s = tour[i + 1 if i + 1 < size else 0]
            gain = legs[p, v] + legs[v, s] - legs[p, s] - rules.penalty[v]
            if gain > most:
                most = gain
                chosen = i
        if chosen < 0:
            break
        remove(route, chosen, 1, rules, legs)


@kernel
def exchange_best(route, rules, legs, back, near, wide, epsilon):
    """Replace one node of the route by a node near it that is worth more; whether one was found."""
    find_places(route, legs, back, near, wide)
    tour, size = route.tour, route.size[SIZE]
    most = epsilon
    at = -1
    new, place = 0, 0
    for i in range(size):
        v = tour[i]
        if v == 0:
            continue
        p = tour[i - 1 if i > 0 else size - 1]
        s = tour[i + 1 if i + 1 < size else 0]
        freed = legs[p, v] + legs[v, s] - legs[p, s]
        for k in range(wide):
            u = near[v, k]
            if route.pos[u] >= 0:
                continue
            detour, before = legs[p, u] + legs[u, s] - legs[p, s], p
            if route.place[u] != p and route.place[u] != v and route.detour[u] < detour:
                detour, before = route.detour[u], route.place[u]
            if rules.by_prize:
                gain = rules.prize[u] - rules.prize[v]
            else:
                gain = freed - detour + rules.penalty[u] - rules.penalty[v]
            if (
                gain > most
                and route.real[LENGTH] - freed + detour <= rules.limit
                and route.real[PRIZE] - rules.prize[v] + rules.prize[u] >= rules.least
            ):
                most = gain
                at, new, place = i, u, before
    if at < 0:
        return False
    remove(route, at, 1, rules, legs)
    insert(route, new, place, rules, legs)
    return True


@part
def exchange_many(route, rules, legs, near, wide, epsilon):
    """Replace each node by the one near it that is worth most in its place, if that is worth more; whether any was."""
    tour, pos, size = route.tour, route.pos, route.size[SIZE]
    found = False
    for i in range(size):
        v = tour[i]
        if v == 0:
            continue
        p = tour[i - 1 if i > 0 else size - 1]
        s = tour[i + 1 if i + 1 < size else 0]
        way = legs[p, v] + legs[v, s]
        most, new = epsilon, -1
        for k in range(wide):
            u = near[v, k]
            if pos[u] >= 0:
                continue
            longer = legs[p, u] + legs[u, s] - way
            gain = rules.prize[u] - rules.prize[v]
            if not rules.by_prize:
                gain = rules.penalty[u] - rules.penalty[v] - longer
            if (
                gain > most
                and route.real[LENGTH] + longer <= rules.limit
                and route.real[PRIZE] - rules.prize[v] + rules.prize[u] >= rules.least
            ):
                most, new = gain, u
        if new >= 0:
            found = True
            tour[i] = new
            pos[new], pos[v] = i, -1
            route.real[LENGTH] += legs[p, new] + legs[new, s] - way
            route.real[PRIZE] += rules.prize[new] - rules.prize[v]
            route.real[WORTH] += rules.penalty[new] - rules.penalty[v]
            look_again(route, p)
            look_again(route, new)
            look_again(route, s)
    return found


@kernel
def exchange(route, rules, legs, back, near, wide, epsilon):
    """Replace nodes of the route by others near them that are worth more; whether any was."""
    if legs.shape[0] > MANY:
        return exchange_many(route, rules, legs, near, wide, epsilon)
    return exchange_best(route, rules, legs, back, near, wide, epsilon)


@kernel
def shorten(route, legs, after, breadth, symmetric, epsilon, looks):
    """3-opt around the nodes that changed, with at most `looks` at a node; the length gained."""
    gain, _, _ = descend(
        route.tour, route.pos, route.size[SIZE], legs, after, min(breadth, after.shape[1]), symmetric, epsilon,
        route.queue, route.queued, route.ring, route.journal, 0, route.touched, looks,
    )  # fmt: skip
    route.real[LENGTH] -= gain
    return gain


@kernel
def settle(route, rules, legs, back, near, after, wide, breadth, symmetric, epsilon, blink, state, rounds, looks):
    """Insert, shorten and drop until nothing changes; without blinks, exchange as well.

    False if `rounds` of it, each with `looks` at a node, were not enough; the route is feasible all the same.
    """
    fill(route, rules, legs, back, near, wide, blink, state)
    while rounds > 0:
        rounds -= 1
        gain = shorten(route, legs, after, breadth, symmetric, epsilon, looks)
        if route.ring[1] > 0 and rounds == 0:  # the next call goes on from here
            return False
        before = route.size[SIZE]
        if not rules.by_prize:
            drop(route, rules, legs)
        if gain > epsilon or route.size[SIZE] != before:
            fill(route, rules, legs, back, near, wide, blink, state)
        if route.ring[1] == 0 and (blink or not exchange(route, rules, legs, back, near, wide, epsilon)):
            return True
    return False


@kernel
def ruin(route, rules, legs, near, longest, state):
    """Take out one to three stretches that lie near each other."""
    size = route.size[SIZE]
    if size < 2:
        return
    strings = 1 + below(state, 3)
    seed = route.tour[below(state, size)]
    for k in range(-1, near.shape[1]):
        v = seed if k < 0 else near[seed, k]
        if v == 0 or route.pos[v] < 0:
            continue
        size = route.size[SIZE]
        length = 1 + below(state, min(longest, size - 1))
        # Positions after the depot are 0 .. size - 2; the stretch holds v and stays within them.
        home = route.pos[0]
        place = route.pos[v] - home - 1
        if place < 0:
            place += size
        first = place - below(state, length)
        first = max(0, min(first, size - 1 - length))
        remove(route, (home + 1 + first) % size, length, rules, legs)
        strings -= 1
        if strings == 0 or route.size[SIZE] < 2:
            break


@kernel
def force(route, rules, legs, back, near, wide, state):
    """Insert a random node off the route at its cheapest place, if it fits, whatever it is worth."""
    u = 1 + below(state, legs.shape[0] - 1)
    if route.pos[u] >= 0:
        return
    find_place(route, u, legs, back, near, wide)
    if route.real[LENGTH] + route.detour[u] <= rules.limit:
        insert(route, u, route.place[u], rules, legs)


@kernel
def price(route, rules):
    """The cost that is annealed."""
    if rules.by_prize:
        return rules.length_price * route.real[LENGTH] - route.real[PRIZE]
    return route.real[LENGTH] - route.real[WORTH]


@kernel
def pays(route, rules):
    """Whether the route brings the least prize, or all that there is."""
    return route.real[PRIZE] >= rules.least * (1 - 1e-9) or route.size[SIZE] == route.pos.shape[0]


@kernel
def keep(route, rules, epsilon):
    """Make the present route the one to fall back to, and the best if it is."""
    size = route.size[SIZE]
    for i in range(size):
        route.kept[i] = route.tour[i]
    route.size[KEPT_SIZE] = size
    route.real[COST] = price(route, rules)
    value = -route.real[PRIZE] if rules.by_prize else route.real[COST]
    if value < route.real[BEST] - epsilon:
        route.real[BEST] = value
        for i in range(size):
            route.best[i] = route.tour[i]
        route.size[BEST_SIZE] = size


@kernel
def fall_back(route, rules, legs):
    """The kept route again, its sums computed anew, so that rounding does not pile up."""
    for i in range(route.size[SIZE]):
        route.pos[route.tour[i]] = -1
    size = route.size[KEPT_SIZE]
    route.size[SIZE] = size
    length = 0.0
    prize = 0.0
    worth = 0.0
    previous = route.kept[size - 1]
    for i in range(size):
        v = route.kept[i]
        route.tour[i] = v
        route.pos[v] = i
        length += legs[previous, v]
        prize += rules.prize[v]
        worth += rules.penalty[v]
        previous = v
    route.real[LENGTH], route.real[PRIZE], route.real[WORTH] = length, prize, worth


@kernel
def anneal_route(
    route, rules, legs, back, near, after, wide, breadth, longest, symmetric, epsilon, temperature, state, iterations
):  # fmt: skip
    """Ruin and refill `iterations` times at one temperature."""
    for _ in range(iterations):
        ruin(route, rules, legs, near, longest, state)
        while True:
            force(route, rules, legs, back, near, wide, state)
            if draw(state) >= FORCED:
                break
        settle(route, rules, legs, back, near, after, wide, breadth, symmetric, epsilon, True, state, 1 << 60, 1 << 60)
        worse = price(route, rules) - route.real[COST]
        if pays(route, rules) and worse < -temperature * np.log(1.0 - draw(state)):
            keep(route, rules, epsilon)
        else:
            fall_back(route, rules, legs)
