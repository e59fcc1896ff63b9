"""Slack induction by string removals (Christiaens and Vanden Berghe 2020) on rounds.

Ruin: strings of neighbouring stops leave a few neighbouring routes, shipments whole. Recreate: each goes where it costs
least, or stays out where that is cheaper; now and then a place is overlooked. Accept: simulated annealing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routelearn.rounds.search.arrays import BRINGS, TAKES, Data, Ints
from routelearn.rounds.search.routes import SLACK, amounts_of, begins, clear, fits, link, refresh, unlink
from routelearn.rounds.search.walking import walk
from routelearn.search.compiling import inlined, kernel
from routelearn.search.graph import Floats, below, draw

REMOVED, LONGEST = 10.0, 10.0  # stops removed on average, longest string: the paper's values
SPLIT_STRING, SPLIT_LONGER, BLINK = 0.5, 0.01, 0.01
RETRIED = 10  # stops that nobody visits, tried again in each step
WHOLE = 64  # stops up to which every place is looked at
TOP = 6  # places that are walked for one stop
RETYPED = 0.1  # how often a ruined route goes to a vehicle of another kind, where there are several
CHOSEN = 0.1  # and how often the cheapest kind is looked for
COST, BEST = 0, 1


REMOVED_STOP = np.dtype([("stop", "i8"), ("key", "f8")], align=True)
CHANGED_ROUTE = np.dtype(
    [("route", "i8"), ("saved_to", "i8"), ("is_changed", "?"), ("cost", "f8"), ("lasts", "f8")], align=True
)
PLACE = np.dtype([("cost", "f8"), ("before", "i8"), ("reload", "i8")], align=True)


class Desk(NamedTuple):
    """What a step works with."""

    removed: NDArray[np.void]  # [2 n] REMOVED_STOP
    changed: NDArray[np.void]  # [R] CHANGED_ROUTE: the changed routes as they were, in order; is_changed: by slot
    saved: Ints  # [I + R, 2]: their ids, and at which nodes
    places: Ints  # [2 I]: where a stop may go
    top: NDArray[np.void]  # [TOP] PLACE: the cheapest of them
    seq: Ints  # [I]: one route, for a walk
    pending: Ints  # [B]: breaks, for a walk
    best: Ints  # [I + 2 R]: the best plan: each route as its slot, its stops and reloads (-2 - node), and -1
    real: Floats  # [2]


def new_desk(d: Data) -> Desk:
    slots = len(d.slot)
    ids = len(d.stop) + 2 * slots + int(d.slot["reload_to"].max(initial=0))
    whole = np.int64
    return Desk(
        np.zeros(2 * len(d.stop) + 1, REMOVED_STOP), np.zeros(slots, CHANGED_ROUTE), np.zeros((ids + slots, 2), whole),
        np.zeros(2 * ids, whole), np.zeros(TOP, PLACE), np.zeros(ids + 1, whole), np.zeros(d.rest.shape[1], whole),
        np.full(ids + 2 * slots + 1, -1, whole), np.full(2, np.inf),
    )  # fmt: skip


@inlined
def note(d, x, desk, r, changed):
    """Remember route r as it is before its first change; how many routes are changed."""
    if desk.changed[r].is_changed:
        return changed
    desk.changed[r].is_changed = True
    desk.changed[changed].route = r
    desk.changed[changed].cost, desk.changed[changed].lasts = x.route[r].cost, x.route[r].lasts
    n, slots = d.stop.shape[0], d.slot.shape[0]
    at = desk.changed[changed - 1].saved_to if changed > 0 else 0
    i = x.at[n + r].succ
    while i != n + slots + r:
        desk.saved[at, 0], desk.saved[at, 1] = i, x.at[i].node
        at += 1
        i = x.at[i].succ
    desk.changed[changed].saved_to = at
    return changed + 1


@kernel
def restore(d, x, desk, changed):
    """All changed routes as they were."""
    n = d.stop.shape[0]
    for j in range(changed):
        empty(d, x, desk.changed[j].route)
    for j in range(changed):
        r = desk.changed[j].route
        p = n + r
        for at in range(desk.changed[j - 1].saved_to if j > 0 else 0, desk.changed[j].saved_to):
            i = desk.saved[at, 0]
            x.at[i].node = desk.saved[at, 1]  # a reload may have gone elsewhere meanwhile
            link(d, x, i, p)
            p = i
        refresh(d, x, r)
        x.route[r].cost, x.route[r].lasts = desk.changed[j].cost, desk.changed[j].lasts


@inlined
def empty(d, x, r):
    """Nobody is visited by route r."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    i = x.at[n + r].succ
    while i != n + slots + r:
        s = x.at[i].succ
        unlink(d, x, i)
        i = s


@kernel
def price(d, x, desk, r):
    """What route r costs, its labels being up to date; infinity: it breaks a rule."""
    if x.route[r].visits == 0:
        return 0.0
    if not d.walked:
        return x.route[r].cost
    count = written(d, x, desk, r, -1, -1, 0)
    cost, lasts = walk(d, d.slot[r].kind, desk.seq, count, d.slot[r].kept, desk.pending)
    x.route[r].lasts = lasts
    if cost == np.inf and d.slot[r].kept > 0:  # what is kept may need another stop, for a break say
        cost = 1000.0 * d.much
    return cost


@inlined
def reloads_at(d, k, reload):
    """The node of a reload: of the kind's first place before (1) or behind (-1) a stop, its second (2, -2), ..."""
    return d.reloads[k, abs(reload) - 1]


@kernel
def written(d, x, desk, r, i, p, reload):
    """Route r on the desk, with stop i behind p (-1: as it is) and a reload beside it (see `reloads_at`); how long."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    k = d.slot[r].kind
    at, end, count = n + r, n + slots + r, 0
    while at != end:
        if at != n + r:
            desk.seq[count] = at if at < n else -1 - x.at[at].node
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
        at = x.at[at].succ
    return count


@kernel
def take_out(d, x, desk, i, removed, changed):
    """Stop i leaves its route, with its other half."""
    changed = note(d, x, desk, x.at[i].slot, changed)
    unlink(d, x, i)
    desk.removed[removed].stop = i
    removed += 1
    j = d.stop[i].mate
    if j >= 0 and x.at[j].slot >= 0 and not d.stop[j].stays:
        changed = note(d, x, desk, x.at[j].slot, changed)
        unlink(d, x, j)
    return removed, changed


@kernel
def tidy(d, x, r):
    """Take out the reloads of route r with no trip before or behind them."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    i = x.at[n + r].succ
    while i != n + slots + r:
        s, p = x.at[i].succ, x.at[i].pred
        if i >= n and (p >= n or s == n + slots + r):
            unlink(d, x, i)
        i = s


@kernel
def ruin(d, x, desk, state):
    """Remove strings around a random stop; how many are out, how many routes changed, and that stop."""
    n = d.stop.shape[0]
    served = n - x.size[1]
    removed, changed, ruined = 0, 0, 0
    seed = below(state, n)
    if served == 0:
        return removed, changed, seed
    longest = min(LONGEST, served / max(1, x.size[0]))
    strings = np.int64(1.0 + draw(state) * (4.0 * REMOVED / (1.0 + longest) - 1.0))
    for j in range(-1, d.near.shape[1]):
        c = seed if j < 0 else d.near[seed, j]
        r = x.at[c].slot
        if r < 0 or d.stop[c].stays or desk.changed[r].is_changed:
            continue
        size = x.route[r].visits - d.slot[r].kept
        length = min(np.int64(1.0 + draw(state) * min(longest, np.float64(size))), size)
        skip = 0
        if 1 < length < size and draw(state) < SPLIT_STRING:
            skip = 1
            while length + skip < size and draw(state) < SPLIT_LONGER:
                skip += 1
        span = length + skip
        back = below(state, span)
        start, ahead, after, at = c, 0, 0, c
        while ahead < back and x.at[start].pred < n and not d.stop[x.at[start].pred].stays:
            start = x.at[start].pred
            ahead += 1
        while after < span - 1 - ahead and x.at[at].succ < n:
            at = x.at[at].succ
            after += 1
        while ahead + after < span - 1 and x.at[start].pred < n and not d.stop[x.at[start].pred].stays:
            start = x.at[start].pred
            ahead += 1
        keep_from = 1 + below(state, length - 1) if skip > 0 else span
        at = start
        for i in range(span):
            onward = x.at[at].succ
            if (i < keep_from or i >= keep_from + skip) and x.at[at].slot >= 0:
                removed, changed = take_out(d, x, desk, at, removed, changed)
            while onward < n and x.at[onward].slot < 0:  # the other half of a shipment that just left
                onward = x.at[onward].succ
            at = onward
            if at >= n:
                break
        ruined += 1
        if ruined >= strings:
            break
    for j in range(changed):
        tidy(d, x, desk.changed[j].route)
        refresh(d, x, desk.changed[j].route)
    return removed, changed, seed


@kernel
def drive_by(d, x, desk, r, k):
    """What route r would cost if a vehicle of kind k drove it; infinity: it may not."""
    count = written(d, x, desk, r, -1, -1, 0)
    cost, _ = walk(d, k, desk.seq, count, 0, desk.pending)
    return cost


@inlined
def unused(d, x, k):
    """A vehicle of kind k that does not drive; -1: none."""
    for r in range(d.vehicle[k].slot_from, d.vehicle[k].slot_to):
        if x.route[r].visits == 0 and d.slot[r].kept == 0:
            return r
    return -1


@kernel
def hand_over(d, x, desk, r, other, changed):
    """The stops of route r go to a vehicle that does not drive; how many routes changed."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    changed = note(d, x, desk, r, changed)
    changed = note(d, x, desk, other, changed)
    p, i = n + other, x.at[n + r].succ
    while i != n + slots + r:
        s = x.at[i].succ
        unlink(d, x, i)
        if i >= n:
            node, i = x.at[i].node, free_reload(d, x, other)
            x.at[i].node = node
        link(d, x, i, p)
        p, i = i, s
    refresh(d, x, r)
    refresh(d, x, other)
    x.route[r].cost, x.route[other].cost = 0.0, price(d, x, desk, other)
    return changed


@kernel
def retype(d, x, desk, changed, state):
    """Give one of the changed routes to another kind of vehicle, if that may drive it; how many routes changed."""
    if changed == 0:
        return changed
    r = desk.changed[below(state, changed)].route
    k = below(state, d.vehicle.shape[0])
    if x.route[r].visits == 0 or k == d.slot[r].kind or d.slot[r].kept > 0:
        return changed
    other = unused(d, x, k)
    if other < 0 or drive_by(d, x, desk, r, k) == np.inf:
        return changed
    return hand_over(d, x, desk, r, other, changed)


@kernel
def choose_kinds(d, x, desk, changed):
    """Every changed route goes to the kind of vehicle that drives it for least; how many routes changed."""
    for j in range(changed):
        r = desk.changed[j].route
        if x.route[r].visits == 0 or d.slot[r].kept > 0:
            continue
        best, chosen = x.route[r].cost - d.epsilon, -1
        for k in range(d.vehicle.shape[0]):
            if k != d.slot[r].kind:
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
    a, b = d.vehicle[0].start, d.vehicle[0].price
    for j in range(removed):
        i = desk.removed[j].stop
        if dice < 4.0:
            desk.removed[j].key = draw(state)
        elif dice < 8.0:
            desk.removed[j].key = -(d.amount[i, 0, BRINGS] + d.amount[i, 0, TAKES])
        elif dice < 10.0:
            desk.removed[j].key = -d.cost[b, a, i]
        elif dice < 11.0:
            desk.removed[j].key = d.cost[b, a, i]
        elif dice < 13.0:
            desk.removed[j].key = d.window[i, 0, 1] - d.window[i, 0, 0]
        elif dice < 15.0:
            desk.removed[j].key = d.window[i, 0, 0]
        else:
            desk.removed[j].key = -d.window[i, 0, 1]
    for j in range(1, removed):
        key, c = desk.removed[j].key, desk.removed[j].stop
        at = j - 1
        while at >= 0 and desk.removed[at].key > key:
            desk.removed[at + 1].key = desk.removed[at].key
            desk.removed[at + 1].stop = desk.removed[at].stop
            at -= 1
        desk.removed[at + 1].key = key
        desk.removed[at + 1].stop = c


@kernel
def behind_kept(d, x, r, p):
    """Whether p comes at the end of the stops that route r begins with, or later."""
    n = d.stop.shape[0]
    i, seen = n + r, 0
    while i != p:
        i = x.at[i].succ
        if i < n:
            seen += 1
    return seen >= d.slot[r].kept


@inlined
def place_cost(d, x, r, p, i, best):
    """What it costs to put i behind p in route r, by labels; infinity if it does not fit, or not for less than `best`.

    Where routes are walked it is an estimate: time that is not driven may come to it, or waiting may take it in.
    """
    s = x.at[p].succ
    if d.slot[r].kept > 0 and not behind_kept(d, x, r, p):
        return np.inf
    k = d.slot[r].kind
    c = d.vehicle[k].price
    a, b = x.at[p].node, x.at[s].node
    delta = d.cost[c, a, i] + d.cost[c, i, b]
    delta += d.vehicle[k].fixed if x.route[r].visits == 0 else -d.cost[c, a, b]
    if d.vehicle[k].time_cost > 0:
        m = d.vehicle[k].profile
        delta += d.vehicle[k].time_cost * (d.time[m, a, i] + d.time[m, i, b] - d.time[m, a, b] + d.stop[i].service)
    if delta >= best or not fits(d, x, k, p, i, s):
        return np.inf
    return delta


@inlined
def reload_cost(d, x, r, p, i, reload, best):
    """As `place_cost`, with a reload before i or behind it."""
    n, s, k = d.stop.shape[0], x.at[p].succ, d.slot[r].kind
    m, c, at = d.vehicle[k].profile, d.vehicle[k].price, reloads_at(d, k, reload)
    if (p >= n and reload > 0) or (s >= n and reload < 0) or at < 0:  # none, or one for an empty trip
        return np.inf
    if d.slot[r].kept > 0 and not behind_kept(d, x, r, p):
        return np.inf
    a, b = x.at[p].node, x.at[s].node
    first, second = (at, i) if reload > 0 else (i, at)
    driven = d.time[m, a, first] + d.time[m, first, second] + d.time[m, second, b]
    delta = d.cost[c, a, first] + d.cost[c, first, second] + d.cost[c, second, b] - d.cost[c, a, b]
    delta += d.vehicle[k].time_cost * (driven - d.time[m, a, b] + d.stop[i].service + d.vehicle[k].reload_time)
    if delta >= best:
        return np.inf
    arrival = x.at[p].ready + d.time[m, a, first]
    if reload > 0:
        arrival += d.vehicle[k].reload_time + d.time[m, at, i]
    start = begins(d, i, arrival)
    on = d.time[m, i, b] if reload > 0 else d.time[m, i, at] + d.vehicle[k].reload_time + d.time[m, at, b]
    if start == np.inf or start + d.stop[i].service + on > x.at[s].latest + SLACK:
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
    k = d.slot[r].kind
    if not d.allowed[k, i] or x.route[r].visits >= d.vehicle[k].max_stops:
        return False
    return not d.simple or x.route[r].load + d.amount[i, 0, BRINGS] <= d.capacity[k, 0] + SLACK


@inlined
def list_places(d, x, desk, i):
    """Write the ids behind which stop i may go to the desk; how many.

    Those beside its neighbours, or all where there is none or the round is small; and one vehicle of each kind that
    does not drive yet.
    """
    n, slots = d.stop.shape[0], d.slot.shape[0]
    count = 0
    if n > WHOLE:
        for j in range(d.beside.shape[1]):
            v = d.beside[i, j]
            r = x.at[v].slot
            if r >= 0 and takes(d, x, r, i):
                p = x.at[v].pred
                if count == 0 or desk.places[count - 1] != p:
                    desk.places[count] = p
                    count += 1
                desk.places[count] = v
                count += 1
    if count == 0:
        for u in range(x.size[0]):
            r = x.route[u].used
            if takes(d, x, r, i):
                p = n + r
                while p != n + slots + r:
                    desk.places[count] = p
                    count += 1
                    p = x.at[p].succ
    for k in range(d.vehicle.shape[0]):
        if d.allowed[k, i]:
            for r in range(d.vehicle[k].slot_from, d.vehicle[k].slot_to):
                if x.route[r].visits == 0:
                    if takes(d, x, r, i):
                        desk.places[count] = n + r
                        count += 1
                    break
    return count


@inlined
def consider(desk, kept, cost, p, reload):
    """Keep the place among the TOP cheapest; how many are kept."""
    at = kept if kept < TOP else TOP - 1
    while at > 0 and desk.top[at - 1].cost > cost:
        desk.top[at].cost = desk.top[at - 1].cost
        desk.top[at].before = desk.top[at - 1].before
        desk.top[at].reload = desk.top[at - 1].reload
        at -= 1
    desk.top[at].cost = cost
    desk.top[at].before = p
    desk.top[at].reload = reload
    return min(kept + 1, TOP)


@kernel
def best_place(d, x, desk, i, blink, state):
    """Where stop i costs least: (cost, id before, reload); -1: nowhere.

    Where routes are walked, the best of the few places that are cheapest by estimate.
    """
    n, slots = d.stop.shape[0], d.slot.shape[0]
    best, before, kept = np.inf, -1, 0
    for j in range(list_places(d, x, desk, i)):
        p = desk.places[j]
        cost = place_cost(d, x, x.at[p].slot, p, i, best)
        if cost < best and not (blink and draw(state) < BLINK):
            if d.walked:
                kept = consider(desk, kept, cost, p, 0)
                best = desk.top[TOP - 1].cost if kept == TOP else np.inf
            else:
                best, before = cost, p
    if not d.walked:
        return best, before, 0
    if d.reloading:
        for u in range(x.size[0]):
            r = x.route[u].used
            if d.vehicle[d.slot[r].kind].trips > 1 and takes(d, x, r, i) and free_reload(d, x, r) >= 0:
                p = n + r
                while p != n + slots + r:
                    for way in range(-d.reloads.shape[1], d.reloads.shape[1] + 1):
                        if way != 0:
                            cost = reload_cost(d, x, r, p, i, way, best)
                            if cost < best and not (blink and draw(state) < BLINK):
                                kept = consider(desk, kept, cost, p, way)
                                best = desk.top[TOP - 1].cost if kept == TOP else np.inf
                    p = x.at[p].succ
    best, reload = np.inf, 0
    for j in range(kept):
        p = desk.top[j].before
        r = x.at[p].slot
        if best < np.inf and desk.top[j].cost >= best and d.vehicle[d.slot[r].kind].time_cost == 0:
            break
        count = written(d, x, desk, r, i, p, desk.top[j].reload)
        cost, _ = walk(d, d.slot[r].kind, desk.seq, count, d.slot[r].kept, desk.pending)
        if cost - x.route[r].cost < best:
            best, before, reload = cost - x.route[r].cost, p, desk.top[j].reload
    return best, before, reload


@inlined
def free_reload(d, x, r):
    """A reload that route r may still make; -1: none."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    for i in range(n + 2 * slots + d.slot[r].reload_from, n + 2 * slots + d.slot[r].reload_to):
        if x.at[i].slot < 0:
            return i
    return -1


@inlined
def put_reload(d, x, r, p, reload):
    """A reload goes behind p, for a stop that goes before or behind it; behind which id that stop goes."""
    j = free_reload(d, x, r)
    x.at[j].node = reloads_at(d, d.slot[r].kind, reload)
    link(d, x, j, p)
    return j if reload > 0 else p


@inlined
def aboard(x, p, q):
    """The load with which a vehicle leaves p."""
    return x.ahead[p, q, 1] + x.behind[x.at[p].succ, q, 0]


@kernel
def best_pair(d, x, desk, i, j, blink, state):
    """Where pickup i and delivery j cost least: (cost, id before i, id before j, or i itself)."""
    n, slots, dims = d.stop.shape[0], d.slot.shape[0], d.capacity.shape[1]
    best, before_i, before_j = np.inf, -1, -1
    kinds = d.vehicle.shape[0]
    for u in range(x.size[0] + kinds):
        if u < x.size[0]:
            r = x.route[u].used
        else:
            r = -1
            for e in range(d.vehicle[u - x.size[0]].slot_from, d.vehicle[u - x.size[0]].slot_to):
                if x.route[e].visits == 0:
                    r = e
                    break
            if r < 0:
                continue
        k = d.slot[r].kind
        if not d.allowed[k, i] or not d.allowed[k, j] or x.route[r].visits + 2 > d.vehicle[k].max_stops:
            continue
        m, c = d.vehicle[k].profile, d.vehicle[k].price
        opening = d.vehicle[k].fixed if x.route[r].visits == 0 else 0.0
        end = n + slots + r
        p = n + r
        while p != end:
            s = x.at[p].succ
            room = d.slot[r].kept == 0 or behind_kept(d, x, r, p)
            for q in range(dims):
                room &= aboard(x, p, q) + d.amount[i, q, TAKES] <= d.capacity[k, q] + SLACK
            a = x.at[p].node
            start = begins(d, i, x.at[p].ready + d.time[m, a, i])
            if start == np.inf and d.stop[i].windows == 1:
                break
            if room and start < np.inf:
                t, at, nxt = start + d.stop[i].service, i, s
                base = opening + d.cost[c, a, i] - (d.cost[c, a, x.at[s].node] if x.route[r].visits > 0 else 0.0)
                while True:
                    v, w = x.at[at].node if at != i else i, x.at[nxt].node
                    if at == i:
                        delta = base + d.cost[c, i, j] + d.cost[c, j, w]
                    else:
                        delta = base + d.cost[c, i, x.at[s].node] + d.cost[c, v, j] + d.cost[c, j, w] - d.cost[c, v, w]
                    if delta < best:
                        there = begins(d, j, t + d.time[m, v, j])
                        on_time = (
                            there < np.inf and there + d.stop[j].service + d.time[m, j, w] <= x.at[nxt].latest + SLACK
                        )
                        if on_time and not (blink and draw(state) < BLINK):
                            if d.walked:
                                count = pair_written(d, x, desk, r, i, p, j, at)
                                cost, _ = walk(d, k, desk.seq, count, d.slot[r].kept, desk.pending)
                                delta = cost - x.route[r].cost
                            if delta < best:
                                best, before_i, before_j = delta, p, at
                    if nxt >= n:
                        break
                    begun = begins(d, nxt, t + d.time[m, v, w])
                    if begun == np.inf or begun > x.at[nxt].latest + SLACK:
                        break
                    t = begun + d.stop[nxt].service
                    for q in range(dims):
                        room &= aboard(x, nxt, q) + d.amount[i, q, TAKES] <= d.capacity[k, q] + SLACK
                    if not room:
                        break
                    at, nxt = nxt, x.at[nxt].succ
            p = s
    return best, before_i, before_j


@kernel
def best_behind(d, x, desk, i, j):
    """Where delivery i costs least in the route that has its pickup j: (cost, id before)."""
    n, r = d.stop.shape[0], x.at[j].slot
    best, before, p = np.inf, -1, j
    while p < n:
        s = x.at[p].succ
        if behind_kept(d, x, r, p):
            count = written(d, x, desk, r, i, p, 0)
            cost, _ = walk(d, d.slot[r].kind, desk.seq, count, d.slot[r].kept, desk.pending)
            if cost - x.route[r].cost < best:
                best, before = cost - x.route[r].cost, p
        p = s
    return best, before


@kernel
def pair_written(d, x, desk, r, i, p, j, before_j):
    """Route r on the desk, with a shipment in it; how long."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    at, end, count = n + r, n + slots + r, 0
    while at != end:
        if at != n + r:
            desk.seq[count] = at if at < n else -1 - x.at[at].node
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
        at = x.at[at].succ
    return count


@kernel
def recreate(d, x, desk, removed, changed, blink, state):
    """Put those removed where they cost least, if that is less than leaving them out; how many routes changed."""
    for at in range(removed):
        i = desk.removed[at].stop
        j = d.stop[i].mate
        if j >= 0:
            if d.stop[i].second:
                i, j = j, i
            if x.at[i].slot >= 0:  # the pickup is kept
                i, j = j, i
                cost, p = best_behind(d, x, desk, i, j)
                q, left_out = -1, d.stop[i].unserved
            else:
                cost, p, q = best_pair(d, x, desk, i, j, blink, state)
                left_out = d.stop[i].unserved + d.stop[j].unserved
            if p < 0 or cost >= left_out:
                continue
            reload = 0
        else:
            cost, p, reload = best_place(d, x, desk, i, blink, state)
            if p < 0 or cost >= d.stop[i].unserved:
                continue
            q = -1
        r = x.at[p].slot
        changed = note(d, x, desk, r, changed)
        if reload != 0:
            p = put_reload(d, x, r, p, reload)
        link(d, x, i, p)
        if q >= 0:
            link(d, x, j, q)
        refresh(d, x, r)
        x.route[r].cost = price(d, x, desk, r)
    return changed


@inlined
def retry(d, x, desk, removed, seed, state):
    """Add some of the stops that nobody visits to those removed, half of them near the seed; how many then."""
    count = min(RETRIED, x.size[1])
    at = 0
    for k in range(count):
        i = seed
        if 2 * k < count:
            while at < d.near.shape[1] and x.at[i].out < 0:
                i = d.near[seed, at]
                at += 1
        if x.at[i].out < 0 or 2 * k >= count:
            i = x.out[below(state, x.size[1])]
        if d.stop[i].mate >= 0 and d.stop[i].second:
            i = d.stop[i].mate
        known = False
        for j in range(removed):
            known |= desk.removed[j].stop == i
        if not known:
            desk.removed[removed].stop = i
            removed += 1
    return removed


@inlined
def cost_out(d, x, i):
    """How much more than before is left out with stop i."""
    now, before = x.at[i].slot < 0, x.at[i].out >= 0
    return d.stop[i].unserved * (np.float64(now) - np.float64(before))


@inlined
def settle_out(x, i):
    """Whether stop i is out, as it now is."""
    now, at = x.at[i].slot < 0, x.at[i].out
    if now and at < 0:
        x.at[i].out = x.size[1]
        x.out[x.size[1]] = i
        x.size[1] += 1
    elif not now and at >= 0:
        last = x.out[x.size[1] - 1]
        x.out[at] = last
        x.at[last].out = at
        x.at[i].out = -1
        x.size[1] -= 1


@inlined
def apart(d, x):
    """How far routes differ beyond what is allowed, in stops and mean legs."""
    if x.size[0] == 0:
        return 0.0
    few, many, short, long = np.inf, -np.inf, np.inf, -np.inf
    for u in range(x.size[0]):
        r = x.route[u].used
        few, many = min(few, x.route[r].visits), max(many, x.route[r].visits)
        short, long = min(short, x.route[r].lasts), max(long, x.route[r].lasts)
    return max(many - few - d.stops_apart, 0.0) + max(long - short - d.time_apart - SLACK, 0.0) / d.mean_leg


@inlined
def unequal(d, x):
    """The price of that in the search."""
    if not d.apart:
        return 0.0
    return d.much * apart(d, x)


@inlined
def keep_best(d, x, desk):
    """Write down the plan as it is."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    at = 0
    for u in range(x.size[0]):
        r = x.route[u].used
        desk.best[at] = r
        at += 1
        i = x.at[n + r].succ
        while i != n + slots + r:
            desk.best[at] = i if i < n else -2 - x.at[i].node
            at += 1
            i = x.at[i].succ
        desk.best[at] = -1
        at += 1
    desk.best[at] = -1


@kernel
def load(d, x, desk, plan):
    """Take up a plan, written as `keep_best` does."""
    n = d.stop.shape[0]
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
                x.at[i].node = node
            link(d, x, i, p)
            if i < n:
                settle_out(x, i)
            p = i
            at += 1
        at += 1
        refresh(d, x, r)
        x.route[r].cost = price(d, x, desk, r)
    total = unequal(d, x)
    for u in range(x.size[0]):
        total += x.route[x.route[u].used].cost
    for j in range(x.size[1]):
        total += d.stop[x.out[j]].unserved
    desk.real[COST] = total


@inlined
def step(d, x, desk, temperature, filling, state):
    """Ruin and recreate once; or, filling, insert all stops that nobody visits."""
    uneven = unequal(d, x)
    removed, changed, possible = 0, 0, True
    if filling:
        for j in range(x.size[1]):
            i = x.out[j]
            if d.stop[i].mate < 0 or not d.stop[i].second or d.stop[d.stop[i].mate].stays:
                desk.removed[removed].stop = i
                removed += 1
    else:
        removed, changed, seed = ruin(d, x, desk, state)
        for j in range(changed):
            r = desk.changed[j].route
            x.route[r].cost = price(d, x, desk, r)
            possible &= x.route[r].cost < np.inf  # where legs break the triangle inequality, one less may be too late
        removed = retry(d, x, desk, removed, seed, state)
    delta = 0.0
    if possible:
        order(d, desk, removed, state)
        several = d.vehicle.shape[0] > 1 and not filling
        if several and draw(state) < RETYPED:
            changed = retype(d, x, desk, changed, state)
        changed = recreate(d, x, desk, removed, changed, not filling, state)
        if several and draw(state) < CHOSEN:
            changed = choose_kinds(d, x, desk, changed)
        delta = unequal(d, x) - uneven
        for j in range(changed):
            delta += x.route[desk.changed[j].route].cost - desk.changed[j].cost
        for j in range(removed):
            i = desk.removed[j].stop
            delta += cost_out(d, x, i)
            if d.stop[i].mate >= 0:
                delta += cost_out(d, x, d.stop[i].mate)
    if filling or (possible and delta < -temperature * np.log(1.0 - draw(state))):
        desk.real[COST] += delta
        for j in range(removed):
            i = desk.removed[j].stop
            settle_out(x, i)
            if d.stop[i].mate >= 0:
                settle_out(x, d.stop[i].mate)
        if desk.real[COST] < desk.real[BEST] - d.epsilon:
            desk.real[BEST] = desk.real[COST]
            keep_best(d, x, desk)
    else:
        restore(d, x, desk, changed)
    for j in range(changed):
        desk.changed[desk.changed[j].route].is_changed = False


@kernel
def anneal(d, x, desk, temperature, iterations, filling, state):
    """Ruin and recreate `iterations` times at one temperature."""
    for _ in range(iterations):
        step(d, x, desk, temperature, filling, state)
