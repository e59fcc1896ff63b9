"""Slack induction by string removals (Christiaens and Vanden Berghe 2020) on rounds.

Ruin: strings of neighbouring stops leave a few neighbouring routes, shipments whole. Recreate: each goes where it costs
least, or stays out where that is cheaper; now and then a place is overlooked. Accept: simulated annealing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from routelearn.rounds.search.arrays import Flags
from routelearn.rounds.search.routes import SLACK, amounts_of, begins, clear, fits, link, refresh, unlink
from routelearn.rounds.search.walking import walk
from routelearn.search.compiling import inlined, kernel
from routelearn.search.graph import Floats, Ints, below, draw

REMOVED, LONGEST = 10.0, 10.0  # stops removed on average, longest string: the paper's values
SPLIT_STRING, SPLIT_LONGER, BLINK = 0.5, 0.01, 0.01
RETRIED = 10  # stops that nobody visits, tried again in each step
WHOLE = 64  # stops up to which every place is looked at
TOP = 6  # places that are walked for one stop
RETYPED = 0.1  # how often a ruined route goes to a vehicle of another kind, where there are several
CHOSEN = 0.1  # and how often the cheapest kind is looked for
COST, BEST = 0, 1


class Desk(NamedTuple):
    """What a step works with."""

    removed: Ints  # [n]
    keys: Floats  # [n]
    changed: Ints  # [R]
    is_changed: Flags  # [R]
    saved: Ints  # [I + R]: the changed routes as they were
    saved_from: Ints  # [R + 1], by place in `changed`
    saved_cost: Floats  # [R, 2]: cost and duration
    places: Ints  # [I]: where a stop may go
    top_cost: Floats  # [TOP]: the cheapest of them
    top_place: Ints
    top_reload: Ints
    seq: Ints  # [I]: one route, for a walk
    pending: Ints  # [B]: breaks, for a walk
    best: Ints  # [I + 2 R]: the best plan: each route as its slot, its stops and reloads (-2 - node), and -1
    real: Floats  # [2]


@inlined
def note(d, x, desk, r, changed):
    """Remember route r as it is before its first change; how many routes are changed."""
    if desk.is_changed[r]:
        return changed
    desk.is_changed[r] = True
    desk.changed[changed] = r
    desk.saved_cost[changed, 0], desk.saved_cost[changed, 1] = x.cost[r], x.lasts[r]
    n, slots = d.service.shape[0], d.kind.shape[0]
    at = desk.saved_from[changed]
    i = x.succ[n + r]
    while i != n + slots + r:
        desk.saved[at] = i
        at += 1
        i = x.succ[i]
    desk.saved_from[changed + 1] = at
    return changed + 1


@kernel
def restore(d, x, desk, changed):
    """All changed routes as they were."""
    n = d.service.shape[0]
    for j in range(changed):
        empty(d, x, desk.changed[j])
    for j in range(changed):
        r = desk.changed[j]
        p = n + r
        for at in range(desk.saved_from[j], desk.saved_from[j + 1]):
            link(d, x, desk.saved[at], p)
            p = desk.saved[at]
        refresh(d, x, r)
        x.cost[r], x.lasts[r] = desk.saved_cost[j, 0], desk.saved_cost[j, 1]


@kernel
def empty(d, x, r):
    """Nobody is visited by route r."""
    n, slots = d.service.shape[0], d.kind.shape[0]
    i = x.succ[n + r]
    while i != n + slots + r:
        s = x.succ[i]
        unlink(d, x, i)
        i = s


@kernel
def price(d, x, desk, r):
    """What route r costs, its labels being up to date; infinity: it breaks a rule."""
    if x.visits[r] == 0:
        return 0.0
    if not d.walked:
        return x.cost[r]
    count = written(d, x, desk, r, -1, -1, 0)
    cost, lasts = walk(d, d.kind[r], desk.seq, count, d.kept[r], desk.pending)
    x.lasts[r] = lasts
    return cost


@inlined
def reloads_at(d, k, reload):
    """The node of a reload: of the kind's first place before (1) or behind (-1) a stop, its second (2, -2), ..."""
    return d.reloads[k, abs(reload) - 1]


@kernel
def written(d, x, desk, r, i, p, reload):
    """Route r on the desk, with stop i behind p (-1: as it is) and a reload beside it (see `reloads_at`); how long."""
    n, slots = d.service.shape[0], d.kind.shape[0]
    k = d.kind[r]
    at, end, count = n + r, n + slots + r, 0
    while at != end:
        if at != n + r:
            desk.seq[count] = at if at < n else -1 - x.node[at]
            count += 1
        if at == p:
            if reload > 0:
                desk.seq[count] = -1 - reloads_at(d, k, reload)
                count += 1
            desk.seq[count] = i
            count += 1
            if reload < 0:
                desk.seq[count] = -1 - reloads_at(d, k, reload)
                count += 1
        at = x.succ[at]
    return count


@kernel
def take_out(d, x, desk, i, removed, changed):
    """Stop i leaves its route, with its other half."""
    changed = note(d, x, desk, x.slot[i], changed)
    unlink(d, x, i)
    desk.removed[removed] = i
    removed += 1
    j = d.mate[i]
    if j >= 0 and x.slot[j] >= 0 and not d.stays[j]:
        changed = note(d, x, desk, x.slot[j], changed)
        unlink(d, x, j)
    return removed, changed


@kernel
def tidy(d, x, r):
    """Take out the reloads of route r with no trip before or behind them."""
    n, slots = d.service.shape[0], d.kind.shape[0]
    i = x.succ[n + r]
    while i != n + slots + r:
        s, p = x.succ[i], x.pred[i]
        if i >= n and (p >= n or s == n + slots + r):
            unlink(d, x, i)
        i = s


@kernel
def ruin(d, x, desk, state):
    """Remove strings around a random stop; how many are out, and how many routes changed."""
    n = d.service.shape[0]
    served = n - x.size[1]
    removed, changed, ruined = 0, 0, 0
    if served == 0:
        return removed, changed
    longest = min(LONGEST, served / max(1, x.size[0]))
    strings = np.int64(1.0 + draw(state) * (4.0 * REMOVED / (1.0 + longest) - 1.0))
    seed = below(state, n)
    for j in range(-1, d.near.shape[1]):
        c = seed if j < 0 else d.near[seed, j]
        r = x.slot[c]
        if r < 0 or d.stays[c] or desk.is_changed[r]:
            continue
        size = x.visits[r] - d.kept[r]
        length = min(np.int64(1.0 + draw(state) * min(longest, np.float64(size))), size)
        skip = 0
        if 1 < length < size and draw(state) < SPLIT_STRING:
            skip = 1
            while length + skip < size and draw(state) < SPLIT_LONGER:
                skip += 1
        span = length + skip
        back = below(state, span)
        start, ahead, after, at = c, 0, 0, c
        while ahead < back and x.pred[start] < n and not d.stays[x.pred[start]]:
            start = x.pred[start]
            ahead += 1
        while after < span - 1 - ahead and x.succ[at] < n:
            at = x.succ[at]
            after += 1
        while ahead + after < span - 1 and x.pred[start] < n and not d.stays[x.pred[start]]:
            start = x.pred[start]
            ahead += 1
        keep_from = 1 + below(state, length - 1) if skip > 0 else span
        at = start
        for i in range(span):
            onward = x.succ[at]
            if (i < keep_from or i >= keep_from + skip) and x.slot[at] >= 0:
                removed, changed = take_out(d, x, desk, at, removed, changed)
            while onward < n and x.slot[onward] < 0:  # the other half of a shipment that just left
                onward = x.succ[onward]
            at = onward
            if at >= n:
                break
        ruined += 1
        if ruined >= strings:
            break
    for j in range(changed):
        tidy(d, x, desk.changed[j])
        refresh(d, x, desk.changed[j])
    return removed, changed


@kernel
def drive_by(d, x, desk, r, k):
    """What route r would cost if a vehicle of kind k drove it; infinity: it may not."""
    count = written(d, x, desk, r, -1, -1, 0)
    cost, _ = walk(d, k, desk.seq, count, 0, desk.pending)
    return cost


@inlined
def unused(d, x, k):
    """A vehicle of kind k that does not drive; -1: none."""
    for r in range(d.slots[k], d.slots[k + 1]):
        if x.visits[r] == 0 and d.kept[r] == 0:
            return r
    return -1


@kernel
def hand_over(d, x, desk, r, other, changed):
    """The stops of route r go to a vehicle that does not drive; how many routes changed."""
    n, slots = d.service.shape[0], d.kind.shape[0]
    changed = note(d, x, desk, r, changed)
    changed = note(d, x, desk, other, changed)
    p, i = n + other, x.succ[n + r]
    while i != n + slots + r:
        s = x.succ[i]
        unlink(d, x, i)
        if i >= n:
            node, i = x.node[i], free_reload(d, x, other)
            x.node[i] = node
        link(d, x, i, p)
        p, i = i, s
    refresh(d, x, r)
    refresh(d, x, other)
    x.cost[r], x.cost[other] = 0.0, price(d, x, desk, other)
    return changed


@kernel
def retype(d, x, desk, changed, state):
    """Give one of the changed routes to another kind of vehicle, if that may drive it; how many routes changed."""
    if changed == 0:
        return changed
    r = desk.changed[below(state, changed)]
    k = below(state, d.start.shape[0])
    if x.visits[r] == 0 or k == d.kind[r] or d.kept[r] > 0:
        return changed
    other = unused(d, x, k)
    if other < 0 or drive_by(d, x, desk, r, k) == np.inf:
        return changed
    return hand_over(d, x, desk, r, other, changed)


@kernel
def choose_kinds(d, x, desk, changed):
    """Every changed route goes to the kind of vehicle that drives it for least; how many routes changed."""
    for j in range(changed):
        r = desk.changed[j]
        if x.visits[r] == 0 or d.kept[r] > 0:
            continue
        best, chosen = x.cost[r] - d.epsilon, -1
        for k in range(d.start.shape[0]):
            if k != d.kind[r]:
                other = unused(d, x, k)
                if other >= 0:
                    cost = drive_by(d, x, desk, r, k)
                    if cost < best:
                        best, chosen = cost, other
        if chosen >= 0:
            changed = hand_over(d, x, desk, r, chosen, changed)
    return changed


@inlined
def order(d, desk, removed, state):
    """Sort those out: at random, most to carry, farthest or nearest first, narrowest or earliest or latest window."""
    dice = draw(state) * 18.0
    a, b = d.start[0], d.price[0]
    for j in range(removed):
        i = desk.removed[j]
        if dice < 4.0:
            desk.keys[j] = draw(state)
        elif dice < 8.0:
            desk.keys[j] = -(d.delivery[i, 0] + d.pickup[i, 0])
        elif dice < 10.0:
            desk.keys[j] = -d.cost[b, a, i]
        elif dice < 11.0:
            desk.keys[j] = d.cost[b, a, i]
        elif dice < 13.0:
            desk.keys[j] = d.closes[i, 0] - d.opens[i, 0]
        elif dice < 15.0:
            desk.keys[j] = d.opens[i, 0]
        else:
            desk.keys[j] = -d.closes[i, 0]
    for j in range(1, removed):
        key, c = desk.keys[j], desk.removed[j]
        at = j - 1
        while at >= 0 and desk.keys[at] > key:
            desk.keys[at + 1] = desk.keys[at]
            desk.removed[at + 1] = desk.removed[at]
            at -= 1
        desk.keys[at + 1] = key
        desk.removed[at + 1] = c


@kernel
def behind_kept(d, x, r, p):
    """Whether p comes at the end of the stops that route r begins with, or later."""
    n = d.service.shape[0]
    i, seen = n + r, 0
    while i != p:
        i = x.succ[i]
        if i < n:
            seen += 1
    return seen >= d.kept[r]


@inlined
def place_cost(d, x, r, p, i, best):
    """What it costs to put i behind p in route r, by labels; infinity if it does not fit, or not for less than `best`.

    Where routes are walked it is an estimate: time that is not driven may come to it, or waiting may take it in.
    """
    s = x.succ[p]
    if d.kept[r] > 0 and not behind_kept(d, x, r, p):
        return np.inf
    k = d.kind[r]
    c = d.price[k]
    a, b = x.node[p], x.node[s]
    delta = d.cost[c, a, i] + d.cost[c, i, b]
    delta += d.fixed[k] if x.visits[r] == 0 else -d.cost[c, a, b]
    if d.time_cost[k] > 0:
        m = d.profile[k]
        delta += d.time_cost[k] * (d.time[m, a, i] + d.time[m, i, b] - d.time[m, a, b] + d.service[i])
    if delta >= best or not fits(d, x, k, p, i, s):
        return np.inf
    return delta


@inlined
def reload_cost(d, x, r, p, i, reload, best):
    """As `place_cost`, with a reload before i or behind it."""
    n, s, k = d.service.shape[0], x.succ[p], d.kind[r]
    m, c, at = d.profile[k], d.price[k], reloads_at(d, k, reload)
    if (p >= n and reload > 0) or (s >= n and reload < 0) or at < 0:  # none, or one for an empty trip
        return np.inf
    if d.kept[r] > 0 and not behind_kept(d, x, r, p):
        return np.inf
    a, b = x.node[p], x.node[s]
    first, second = (at, i) if reload > 0 else (i, at)
    driven = d.time[m, a, first] + d.time[m, first, second] + d.time[m, second, b]
    delta = d.cost[c, a, first] + d.cost[c, first, second] + d.cost[c, second, b] - d.cost[c, a, b]
    delta += d.time_cost[k] * (driven - d.time[m, a, b] + d.service[i] + d.reload_time[k])
    if delta >= best:
        return np.inf
    arrival = x.ready[p] + d.time[m, a, first]
    if reload > 0:
        arrival += d.reload_time[k] + d.time[m, at, i]
    start = begins(d, i, arrival)
    on = d.time[m, i, b] if reload > 0 else d.time[m, i, at] + d.reload_time[k] + d.time[m, at, b]
    if start == np.inf or start + d.service[i] + on > x.latest[s] + SLACK:
        return np.inf
    for q in range(d.capacity.shape[1]):
        bring, leave, most = amounts_of(d, i, q)
        if reload > 0:
            most = max(most + x.behind[s, q, 0], leave + x.behind[s, q, 2])
        else:
            most = max(x.ahead[p, q, 2] + bring, x.ahead[p, q, 1] + most)
        if most > d.capacity[k, q] + SLACK:
            return np.inf
    return delta


@inlined
def takes(d, x, r, i):
    """Whether route r has room for stop i at all."""
    k = d.kind[r]
    if not d.allowed[k, i] or x.visits[r] >= d.max_stops[k]:
        return False
    return not d.simple or x.load[r] + d.delivery[i, 0] <= d.capacity[k, 0] + SLACK


@inlined
def list_places(d, x, desk, i):
    """Write the ids behind which stop i may go to the desk; how many.

    Those beside its neighbours, or all where there is none or the round is small; and one vehicle of each kind that
    does not drive yet.
    """
    n, slots = d.service.shape[0], d.kind.shape[0]
    count = 0
    if n > WHOLE:
        for j in range(d.beside.shape[1]):
            v = d.beside[i, j]
            r = x.slot[v]
            if r >= 0 and takes(d, x, r, i):
                p = x.pred[v]
                if count == 0 or desk.places[count - 1] != p:
                    desk.places[count] = p
                    count += 1
                desk.places[count] = v
                count += 1
    if count == 0:
        for u in range(x.size[0]):
            r = x.used[u]
            if takes(d, x, r, i):
                p = n + r
                while p != n + slots + r:
                    desk.places[count] = p
                    count += 1
                    p = x.succ[p]
    for k in range(d.start.shape[0]):
        if d.allowed[k, i]:
            for r in range(d.slots[k], d.slots[k + 1]):
                if x.visits[r] == 0:
                    if takes(d, x, r, i):
                        desk.places[count] = n + r
                        count += 1
                    break
    return count


@inlined
def consider(desk, kept, cost, p, reload):
    """Keep the place among the TOP cheapest; how many are kept."""
    at = kept if kept < TOP else TOP - 1
    while at > 0 and desk.top_cost[at - 1] > cost:
        desk.top_cost[at] = desk.top_cost[at - 1]
        desk.top_place[at] = desk.top_place[at - 1]
        desk.top_reload[at] = desk.top_reload[at - 1]
        at -= 1
    desk.top_cost[at] = cost
    desk.top_place[at] = p
    desk.top_reload[at] = reload
    return min(kept + 1, TOP)


@kernel
def best_place(d, x, desk, i, blink, state):
    """Where stop i costs least: (cost, id before, reload); -1: nowhere.

    Where routes are walked, the best of the few places that are cheapest by estimate.
    """
    n, slots = d.service.shape[0], d.kind.shape[0]
    best, before, kept = np.inf, -1, 0
    for j in range(list_places(d, x, desk, i)):
        p = desk.places[j]
        cost = place_cost(d, x, x.slot[p], p, i, best)
        if cost < best and not (blink and draw(state) < BLINK):
            if d.walked:
                kept = consider(desk, kept, cost, p, 0)
                best = desk.top_cost[TOP - 1] if kept == TOP else np.inf
            else:
                best, before = cost, p
    if not d.walked:
        return best, before, 0
    if d.reloading:
        for u in range(x.size[0]):
            r = x.used[u]
            if d.trips[d.kind[r]] > 1 and takes(d, x, r, i) and free_reload(d, x, r) >= 0:
                p = n + r
                while p != n + slots + r:
                    for way in range(-d.reloads.shape[1], d.reloads.shape[1] + 1):
                        if way != 0:
                            cost = reload_cost(d, x, r, p, i, way, best)
                            if cost < best and not (blink and draw(state) < BLINK):
                                kept = consider(desk, kept, cost, p, way)
                                best = desk.top_cost[TOP - 1] if kept == TOP else np.inf
                    p = x.succ[p]
    best, reload = np.inf, 0
    for j in range(kept):
        p = desk.top_place[j]
        r = x.slot[p]
        if best < np.inf and desk.top_cost[j] >= best and d.time_cost[d.kind[r]] == 0:
            break
        count = written(d, x, desk, r, i, p, desk.top_reload[j])
        cost, _ = walk(d, d.kind[r], desk.seq, count, d.kept[r], desk.pending)
        if cost - x.cost[r] < best:
            best, before, reload = cost - x.cost[r], p, desk.top_reload[j]
    return best, before, reload


@inlined
def free_reload(d, x, r):
    """A reload that route r may still make; -1: none."""
    n, slots = d.service.shape[0], d.kind.shape[0]
    for i in range(n + 2 * slots + d.reload_from[r], n + 2 * slots + d.reload_from[r + 1]):
        if x.slot[i] < 0:
            return i
    return -1


@inlined
def put_reload(d, x, r, p, reload):
    """A reload goes behind p, for a stop that goes before or behind it; behind which id that stop goes."""
    j = free_reload(d, x, r)
    x.node[j] = reloads_at(d, d.kind[r], reload)
    link(d, x, j, p)
    return j if reload > 0 else p


@inlined
def aboard(x, p, q):
    """The load with which a vehicle leaves p."""
    return x.ahead[p, q, 1] + x.behind[x.succ[p], q, 0]


@kernel
def best_pair(d, x, desk, i, j, blink, state):
    """Where pickup i and delivery j cost least: (cost, id before i, id before j, or i itself)."""
    n, slots, dims = d.service.shape[0], d.kind.shape[0], d.capacity.shape[1]
    best, before_i, before_j = np.inf, -1, -1
    kinds = d.start.shape[0]
    for u in range(x.size[0] + kinds):
        if u < x.size[0]:
            r = x.used[u]
        else:
            r = -1
            for e in range(d.slots[u - x.size[0]], d.slots[u - x.size[0] + 1]):
                if x.visits[e] == 0:
                    r = e
                    break
            if r < 0:
                continue
        k = d.kind[r]
        if not d.allowed[k, i] or not d.allowed[k, j] or x.visits[r] + 2 > d.max_stops[k]:
            continue
        m, c = d.profile[k], d.price[k]
        opening = d.fixed[k] if x.visits[r] == 0 else 0.0
        end = n + slots + r
        p = n + r
        while p != end:
            s = x.succ[p]
            room = d.kept[r] == 0 or behind_kept(d, x, r, p)
            for q in range(dims):
                room &= aboard(x, p, q) + d.pickup[i, q] <= d.capacity[k, q] + SLACK
            a = x.node[p]
            start = begins(d, i, x.ready[p] + d.time[m, a, i])
            if start == np.inf and d.windows[i] == 1:
                break
            if room and start < np.inf:
                t, at, nxt = start + d.service[i], i, s
                base = opening + d.cost[c, a, i] - (d.cost[c, a, x.node[s]] if x.visits[r] > 0 else 0.0)
                while True:
                    v, w = x.node[at] if at != i else i, x.node[nxt]
                    if at == i:
                        delta = base + d.cost[c, i, j] + d.cost[c, j, w]
                    else:
                        delta = base + d.cost[c, i, x.node[s]] + d.cost[c, v, j] + d.cost[c, j, w] - d.cost[c, v, w]
                    if delta < best:
                        there = begins(d, j, t + d.time[m, v, j])
                        on_time = there < np.inf and there + d.service[j] + d.time[m, j, w] <= x.latest[nxt] + SLACK
                        if on_time and not (blink and draw(state) < BLINK):
                            if d.walked:
                                count = pair_written(d, x, desk, r, i, p, j, at)
                                cost, _ = walk(d, k, desk.seq, count, d.kept[r], desk.pending)
                                delta = cost - x.cost[r]
                            if delta < best:
                                best, before_i, before_j = delta, p, at
                    if nxt >= n:
                        break
                    begun = begins(d, nxt, t + d.time[m, v, w])
                    if begun == np.inf or begun > x.latest[nxt] + SLACK:
                        break
                    t = begun + d.service[nxt]
                    for q in range(dims):
                        room &= aboard(x, nxt, q) + d.pickup[i, q] <= d.capacity[k, q] + SLACK
                    if not room:
                        break
                    at, nxt = nxt, x.succ[nxt]
            p = s
    return best, before_i, before_j


@kernel
def best_behind(d, x, desk, i, j):
    """Where delivery i costs least in the route that has its pickup j: (cost, id before)."""
    n, r = d.service.shape[0], x.slot[j]
    best, before, p = np.inf, -1, j
    while p < n:
        s = x.succ[p]
        if behind_kept(d, x, r, p):
            count = written(d, x, desk, r, i, p, 0)
            cost, _ = walk(d, d.kind[r], desk.seq, count, d.kept[r], desk.pending)
            if cost - x.cost[r] < best:
                best, before = cost - x.cost[r], p
        p = s
    return best, before


@kernel
def pair_written(d, x, desk, r, i, p, j, before_j):
    """Route r on the desk, with a shipment in it; how long."""
    n, slots = d.service.shape[0], d.kind.shape[0]
    at, end, count = n + r, n + slots + r, 0
    while at != end:
        if at != n + r:
            desk.seq[count] = at if at < n else -1 - x.node[at]
            count += 1
        if at == p:
            desk.seq[count] = i
            count += 1
            if before_j == i:
                desk.seq[count] = j
                count += 1
        if at == before_j:
            desk.seq[count] = j
            count += 1
        at = x.succ[at]
    return count


@kernel
def recreate(d, x, desk, removed, changed, blink, state):
    """Put those removed where they cost least, if that is less than leaving them out; how many routes changed."""
    for at in range(removed):
        i = desk.removed[at]
        j = d.mate[i]
        if j >= 0:
            if d.second[i]:
                i, j = j, i
            if x.slot[i] >= 0:  # the pickup is kept
                i, j = j, i
                cost, p = best_behind(d, x, desk, i, j)
                q, left_out = -1, d.unserved[i]
            else:
                cost, p, q = best_pair(d, x, desk, i, j, blink, state)
                left_out = d.unserved[i] + d.unserved[j]
            if p < 0 or cost >= left_out:
                continue
            reload = 0
        else:
            cost, p, reload = best_place(d, x, desk, i, blink, state)
            if p < 0 or cost >= d.unserved[i]:
                continue
            q = -1
        r = x.slot[p]
        changed = note(d, x, desk, r, changed)
        if reload != 0:
            p = put_reload(d, x, r, p, reload)
        link(d, x, i, p)
        if q >= 0:
            link(d, x, j, q)
        refresh(d, x, r)
        x.cost[r] = price(d, x, desk, r)
    return changed


@inlined
def retry(d, x, desk, removed, state):
    """Add some of the stops that nobody visits to those removed; how many then."""
    for _ in range(min(RETRIED, x.size[1])):
        i = x.out[below(state, x.size[1])]
        if d.mate[i] >= 0 and d.second[i]:
            i = d.mate[i]
        known = False
        for j in range(removed):
            known |= desk.removed[j] == i
        if not known:
            desk.removed[removed] = i
            removed += 1
    return removed


@inlined
def cost_out(d, x, i):
    """How much more than before is left out with stop i."""
    now, before = x.slot[i] < 0, x.out_at[i] >= 0
    return d.unserved[i] * (np.float64(now) - np.float64(before))


@inlined
def settle_out(x, i):
    """Whether stop i is out, as it now is."""
    now, at = x.slot[i] < 0, x.out_at[i]
    if now and at < 0:
        x.out_at[i] = x.size[1]
        x.out[x.size[1]] = i
        x.size[1] += 1
    elif not now and at >= 0:
        last = x.out[x.size[1] - 1]
        x.out[at] = last
        x.out_at[last] = at
        x.out_at[i] = -1
        x.size[1] -= 1


@kernel
def apart(d, x):
    """How far routes differ beyond what is allowed, in stops and seconds."""
    if x.size[0] == 0:
        return 0.0
    few, many, short, long = np.inf, -np.inf, np.inf, -np.inf
    for u in range(x.size[0]):
        r = x.used[u]
        few, many = min(few, x.visits[r]), max(many, x.visits[r])
        short, long = min(short, x.lasts[r]), max(long, x.lasts[r])
    return max(many - few - d.stops_apart, 0.0) + max(long - short - d.time_apart - SLACK, 0.0)


@inlined
def unequal(d, x):
    """The price of that in the search."""
    if not d.apart:
        return 0.0
    return d.much * apart(d, x)


@inlined
def keep_best(d, x, desk):
    """Write down the plan as it is."""
    n, slots = d.service.shape[0], d.kind.shape[0]
    at = 0
    for u in range(x.size[0]):
        r = x.used[u]
        desk.best[at] = r
        at += 1
        i = x.succ[n + r]
        while i != n + slots + r:
            desk.best[at] = i if i < n else -2 - x.node[i]
            at += 1
            i = x.succ[i]
        desk.best[at] = -1
        at += 1
    desk.best[at] = -1


@kernel
def load(d, x, desk, plan):
    """Take up a plan, written as `keep_best` does."""
    n = d.service.shape[0]
    clear(d, x)
    at = 0
    while plan[at] >= 0:
        r = plan[at]
        p = n + r
        at += 1
        while plan[at] != -1:
            i = plan[at]
            if i < 0:
                node, i = -2 - i, free_reload(d, x, r)
                x.node[i] = node
            link(d, x, i, p)
            if i < n:
                settle_out(x, i)
            p = i
            at += 1
        at += 1
        refresh(d, x, r)
        x.cost[r] = price(d, x, desk, r)
    total = unequal(d, x)
    for u in range(x.size[0]):
        total += x.cost[x.used[u]]
    for j in range(x.size[1]):
        total += d.unserved[x.out[j]]
    desk.real[COST] = total


@kernel
def step(d, x, desk, temperature, state):
    """Ruin and recreate once."""
    uneven = unequal(d, x)
    removed, changed = ruin(d, x, desk, state)
    possible = True
    for j in range(changed):
        r = desk.changed[j]
        x.cost[r] = price(d, x, desk, r)
        possible &= x.cost[r] < np.inf  # where legs break the triangle inequality, a stop less may be too late
    delta = 0.0
    if possible:
        removed = retry(d, x, desk, removed, state)
        order(d, desk, removed, state)
        several = d.start.shape[0] > 1
        if several and draw(state) < RETYPED:
            changed = retype(d, x, desk, changed, state)
        changed = recreate(d, x, desk, removed, changed, True, state)
        if several and draw(state) < CHOSEN:
            changed = choose_kinds(d, x, desk, changed)
        delta = unequal(d, x) - uneven
        for j in range(changed):
            delta += x.cost[desk.changed[j]] - desk.saved_cost[j, 0]
        for j in range(removed):
            i = desk.removed[j]
            delta += cost_out(d, x, i)
            if d.mate[i] >= 0:
                delta += cost_out(d, x, d.mate[i])
    if possible and delta < -temperature * np.log(1.0 - draw(state)):
        desk.real[COST] += delta
        for j in range(removed):
            i = desk.removed[j]
            settle_out(x, i)
            if d.mate[i] >= 0:
                settle_out(x, d.mate[i])
        if desk.real[COST] < desk.real[BEST] - d.epsilon:
            desk.real[BEST] = desk.real[COST]
            keep_best(d, x, desk)
    else:
        restore(d, x, desk, changed)
    for j in range(changed):
        desk.is_changed[desk.changed[j]] = False


@kernel
def anneal(d, x, desk, temperature, iterations, state):
    """Ruin and recreate `iterations` times at one temperature."""
    for _ in range(iterations):
        step(d, x, desk, temperature, state)


@kernel
def fill(d, x, desk, state):
    """Insert all stops that nobody visits, and keep the plan."""
    removed = 0
    for j in range(x.size[1]):
        i = x.out[j]
        if d.mate[i] < 0 or not d.second[i] or d.stays[d.mate[i]]:
            desk.removed[removed] = i
            removed += 1
    order(d, desk, removed, state)
    changed = recreate(d, x, desk, removed, 0, False, state)
    for j in range(changed):
        desk.is_changed[desk.changed[j]] = False
    total = unequal(d, x)
    for u in range(x.size[0]):
        total += x.cost[x.used[u]]
    for i in range(d.service.shape[0]):
        settle_out(x, i)
        if x.slot[i] < 0:
            total += d.unserved[i]
    desk.real[COST] = total
    if total < desk.real[BEST] - d.epsilon:
        desk.real[BEST] = total
        keep_best(d, x, desk)
