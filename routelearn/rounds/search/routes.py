"""The routes of a plan as linked lists, with labels that tell in constant time whether a stop fits between two others.

Ids are those of the stops, then the start of every slot, its end, and the reloads it may make. A label of time holds
from the start to a stop (`ready`: when the vehicle may leave it at the earliest) or from a stop to the end (`latest`:
when service must have begun). Loads have three numbers a stretch: what comes from the depot, what is aboard at its
end, and the most aboard (Vidal et al. 2014); durations three: how long, and the earliest and latest start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from routelearn.rounds.search.arrays import Data, Flags
from routelearn.search.compiling import inlined, kernel
from routelearn.search.graph import Floats, Ints

SLACK = 1e-7  # what rounding may add to times and amounts


class Routes(NamedTuple):
    succ: Ints  # [I]
    pred: Ints
    slot: Ints  # -1: not in a route
    node: Ints  # where it is
    visits: Ints  # [R]
    load: Floats  # [R], where loads are simple
    cost: Floats  # [R], 0 for one that does not drive
    lasts: Floats  # [R] duration, where it is known
    ready: Floats  # [I]
    latest: Floats
    before: Floats  # [I, 2]: duration and latest start, up to here
    after: Floats  # [I, 2]: duration and earliest start, from here on
    ahead: Floats  # [I, Q, 3]
    behind: Floats  # [I, Q, 3]
    picked: Flags  # [I]: a pickup comes at or before it, on this trip
    brings: Flags  # [I]: a delivery comes at or after it, on this trip
    used: Ints  # [R]: the slots that drive
    rank: Ints  # [R]: where in `used`
    size: Ints  # [2]: how many drive; how many stops are out
    out: Ints  # [n]: the stops that nobody visits
    out_at: Ints  # [n]: where in `out`; -1: visited


def new_routes(d: Data) -> Routes:
    """No vehicle drives."""
    n, slots, dims = len(d.service), len(d.kind), d.capacity.shape[1]
    extra = d.trips[d.kind] - 1
    ids = n + 2 * slots + int(extra.sum())
    whole = np.int32
    node = np.zeros(ids, whole)
    node[:n] = np.arange(n)
    node[n : n + slots] = d.start[d.kind]
    node[n + slots : n + 2 * slots] = d.end[d.kind]
    routes = Routes(
        np.zeros(ids, whole), np.zeros(ids, whole), np.full(ids, -1, whole), node, np.zeros(slots, whole),
        np.zeros(slots), np.zeros(slots), np.zeros(slots), np.zeros(ids), np.zeros(ids), np.zeros((ids, 2)),
        np.zeros((ids, 2)), np.zeros((ids, dims, 3)), np.zeros((ids, dims, 3)), np.zeros(ids, np.bool_),
        np.zeros(ids, np.bool_), np.zeros(slots, whole), np.full(slots, -1, whole), np.zeros(2, whole),
        np.zeros(n, whole), np.zeros(n, whole),
    )  # fmt: skip
    clear(d, routes)
    return routes


@kernel
def clear(d, x):
    n, slots = d.service.shape[0], d.kind.shape[0]
    x.size[0] = 0
    x.size[1] = n
    for i in range(x.slot.shape[0]):
        x.slot[i] = -1
    for i in range(n):
        x.out[i] = i
        x.out_at[i] = i
    for r in range(slots):
        a, b = n + r, n + slots + r
        x.succ[a], x.pred[b] = b, a
        x.slot[a] = r
        x.slot[b] = r
        x.visits[r] = 0
        x.rank[r] = -1
        refresh(d, x, r)


@inlined
def link(d, x, i, p):
    """Put i behind p."""
    r, s = x.slot[p], x.succ[p]
    x.succ[p] = i
    x.pred[i] = p
    x.succ[i] = s
    x.pred[s] = i
    x.slot[i] = r
    if i < d.service.shape[0]:
        if x.visits[r] == 0:
            x.rank[r] = x.size[0]
            x.used[x.size[0]] = r
            x.size[0] += 1
        x.visits[r] += 1


@inlined
def unlink(d, x, i):
    """Take i out of its route."""
    r, p, s = x.slot[i], x.pred[i], x.succ[i]
    x.succ[p] = s
    x.pred[s] = p
    x.slot[i] = -1
    if i < d.service.shape[0]:
        x.visits[r] -= 1
        if x.visits[r] == 0:
            last = x.used[x.size[0] - 1]
            x.used[x.rank[r]] = last
            x.rank[last] = x.rank[r]
            x.rank[r] = -1
            x.size[0] -= 1


@inlined
def begins(d, i, arrival):
    """When service at stop i begins for a vehicle that is there at `arrival`; infinity: too late."""
    for w in range(d.windows[i]):
        if arrival <= d.closes[i, w] + SLACK:
            return max(arrival, d.opens[i, w])
    return np.inf if d.late_cost[i] < 0 else arrival


@inlined
def begins_by(d, i, time):
    """The latest moment up to `time` at which service at stop i may begin; minus infinity: there is none."""
    if d.late_cost[i] >= 0:
        return time if time >= d.opens[i, 0] else -np.inf
    for w in range(d.windows[i] - 1, -1, -1):
        if time >= d.opens[i, w] - SLACK:
            return min(time, d.closes[i, w])
    return -np.inf


@kernel
def refresh(d, x, r):
    """Compute the labels of route r anew, and its cost where legs and the vehicle make it."""
    n, slots, dims = d.service.shape[0], d.kind.shape[0], d.capacity.shape[1]
    k = d.kind[r]
    m, c = d.profile[k], d.price[k]
    first, end = n + r, n + slots + r
    p = first
    x.ready[p] = d.shift_from[k]
    x.before[p, 0], x.before[p, 1] = 0.0, d.shift_to[k] + d.overtime[k]
    x.picked[p] = False
    for q in range(dims):
        x.ahead[p, q, 0], x.ahead[p, q, 1], x.ahead[p, q, 2] = 0.0, 0.0, 0.0
    load, cost = 0.0, 0.0
    i = x.succ[p]
    while True:
        a, b = x.node[p], x.node[i]
        cost += d.cost[c, a, b]
        drive = d.time[m, a, b]
        arrival = x.ready[p] + drive
        if i < n:
            start = begins(d, i, arrival)
            x.ready[i] = start + d.service[i]
            if d.lasting:
                join_before(d, x, p, i, drive)
            if d.simple:
                load += d.delivery[i, 0]
            else:
                for q in range(dims):
                    join_ahead(d, x, p, i, q)
                x.picked[i] = x.picked[p] | (d.last and d.mate[i] < 0 and any_of(d.pickup, i))
        else:
            x.ready[i] = arrival + (d.reload_time[k] if i != end else 0.0)
            x.picked[i] = False
            for q in range(dims):
                x.ahead[i, q, 0], x.ahead[i, q, 1], x.ahead[i, q, 2] = 0.0, 0.0, 0.0
            if i == end:
                x.before[i, 0] = x.before[p, 0] + drive
                break
        p, i = i, x.succ[i]
    x.load[r] = load
    x.cost[r] = cost + d.fixed[k] if x.visits[r] > 0 else 0.0
    in_time = x.ready[end] < np.inf and x.ready[end] <= d.shift_to[k] + d.overtime[k] + SLACK
    if d.lasting and not d.walked:
        in_time &= x.before[end, 0] <= d.max_duration[k] + SLACK
    if not in_time and not d.walked:
        x.cost[r] = np.inf
    s = end
    x.latest[s] = d.shift_to[k] + d.overtime[k]
    x.after[s, 0], x.after[s, 1] = 0.0, -np.inf
    x.brings[s] = False
    for q in range(dims):
        x.behind[s, q, 0], x.behind[s, q, 1], x.behind[s, q, 2] = 0.0, 0.0, 0.0
    i = x.pred[s]
    while True:
        drive = d.time[m, x.node[i], x.node[s]]
        by = x.latest[s] - drive
        if i < n:
            x.latest[i] = begins_by(d, i, by - d.service[i])
            if d.lasting:
                join_after(d, x, i, s, drive)
            if not d.simple:
                for q in range(dims):
                    join_behind(d, x, i, s, q)
                x.brings[i] = x.brings[s] | (d.last and d.mate[i] < 0 and any_of(d.delivery, i))
        else:
            x.latest[i] = by - (d.reload_time[k] if i != first else 0.0)
            x.brings[i] = False
            for q in range(dims):
                x.behind[i, q, 0], x.behind[i, q, 1], x.behind[i, q, 2] = 0.0, 0.0, 0.0
            if i == first:
                break
        s, i = i, x.pred[i]


@inlined
def any_of(amounts, i):
    positive = False
    for q in range(amounts.shape[1]):
        positive |= amounts[i, q] > 0
    return positive


@inlined
def amounts_of(d, i, q):
    """Stop i alone: what comes from the depot, what it changes, what is aboard at most (the depot's part included)."""
    if d.mate[i] < 0:
        return d.delivery[i, q], d.pickup[i, q], max(d.delivery[i, q], d.pickup[i, q])
    if d.second[i]:
        return 0.0, -d.delivery[i, q], 0.0
    return 0.0, d.pickup[i, q], d.pickup[i, q]


@inlined
def join_ahead(d, x, p, i, q):
    """Two stretches: from the depot both; aboard at the end both; most: the first with the second's goods, or so on."""
    bring, leave, most = amounts_of(d, i, q)
    x.ahead[i, q, 2] = max(x.ahead[p, q, 2] + bring, x.ahead[p, q, 1] + most)
    x.ahead[i, q, 0] = x.ahead[p, q, 0] + bring
    x.ahead[i, q, 1] = x.ahead[p, q, 1] + leave


@inlined
def join_behind(d, x, i, s, q):
    bring, leave, most = amounts_of(d, i, q)
    x.behind[i, q, 2] = max(most + x.behind[s, q, 0], leave + x.behind[s, q, 2])
    x.behind[i, q, 0] = bring + x.behind[s, q, 0]
    x.behind[i, q, 1] = leave + x.behind[s, q, 1]


@inlined
def join_before(d, x, p, i, drive):
    """The duration up to the end of service at i, with the start as late as need be."""
    so_far = x.before[p, 0] + drive
    wait = max(d.opens[i, 0] - so_far - x.before[p, 1], 0.0)
    x.before[i, 0] = so_far + wait + d.service[i]
    x.before[i, 1] = min(x.before[p, 1], d.closes[i, d.windows[i] - 1] - so_far)


@inlined
def join_after(d, x, i, s, drive):
    """The duration from the start of service at i on."""
    on = d.service[i] + drive
    wait = max(x.after[s, 1] - on - d.closes[i, d.windows[i] - 1], 0.0)
    x.after[i, 0] = on + wait + x.after[s, 0]
    x.after[i, 1] = max(x.after[s, 1] - on, d.opens[i, 0]) - wait


@inlined
def fits(d, x, k, p, i, s):
    """Whether stop i may go between p and s in a vehicle of kind k, by the rules that labels know."""
    m = d.profile[k]
    there, on = d.time[m, x.node[p], i], d.time[m, i, x.node[s]]
    start = begins(d, i, x.ready[p] + there)
    if start == np.inf or start + d.service[i] + on > x.latest[s] + SLACK:
        return False
    if not d.simple:
        if d.last and d.mate[i] < 0:
            if x.picked[p] and any_of(d.delivery, i):
                return False
            if x.brings[s] and any_of(d.pickup, i):
                return False
        for q in range(d.capacity.shape[1]):
            bring, leave, most = amounts_of(d, i, q)
            most = max(x.ahead[p, q, 2] + bring, x.ahead[p, q, 1] + most)
            leave += x.ahead[p, q, 1]
            if max(most + x.behind[s, q, 0], leave + x.behind[s, q, 2]) > d.capacity[k, q] + SLACK:
                return False
    if d.lasting and d.max_duration[k] < np.inf:
        so_far = x.before[p, 0] + there
        wait = max(d.opens[i, 0] - so_far - x.before[p, 1], 0.0)
        lasts = so_far + wait + d.service[i] + on
        by = min(x.before[p, 1], d.closes[i, d.windows[i] - 1] - so_far)
        wait = max(x.after[s, 1] - lasts - by, 0.0)
        if lasts + wait + x.after[s, 0] > d.max_duration[k] + SLACK:
            return False
    return True
