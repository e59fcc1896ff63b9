"""The routes of a plan as linked lists, with labels that tell in constant time whether a stop fits between two others.

Ids are those of the stops, then the start of every slot, its end, and the reloads it may make. A label of time holds
from the start to a stop (`ready`: when the vehicle may leave it at the earliest) or from a stop to the end (`latest`:
when service must have begun). Loads have three numbers a stretch: what comes from the depot, what is aboard at its
end, and the most aboard (Vidal et al. 2014); durations three: how long, and the earliest and latest start. Loads, goods
and the stretches before a stop are those of its trip.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routelearn.rounds.search.arrays import BRINGS, NONE, TAKES, Data, Ints
from routelearn.search.compiling import merged, part
from routelearn.search.graph import Floats

SLACK = 1e-7  # what rounding may add to times and amounts


VISIT = np.dtype(
    [
        ("succ", "i8"), ("pred", "i8"), ("slot", "i8"),  # -1: not in a route
        ("node", "i8"), ("ready", "f8"), ("latest", "f8"),  # node: where it is
        ("out", "i8"), ("trip", "i8"),  # where among those out, -1: visited; the start or reload before its trip
        ("picked", "?"), ("brings", "?"),  # a pickup comes at or before it, a delivery at or after it, on this trip
        ("before", "f8"), ("before_from", "f8"), ("before_by", "f8"),  # the trip's duration up to here, and its start
        ("after", "f8"), ("after_from", "f8"),  # the duration from here on, and the earliest start
        ("goods", "f8"), ("goods_after", "f8"),  # when those for the trip's stops up to here are there; from here on
        ("free", "f8"),  # where a trip begins: when the vehicle could leave if no goods were late
    ],
    align=True,
)  # fmt: skip
# What an insertion reads of many stops, apart from the rest: the nodes before and behind a stop, and the costs of the
# legs between; -inf: it is in no route. Unsigned, see `arrays.Numbers`.
BESIDE = np.dtype([("pred", "u4"), ("succ", "u4"), ("price", "u8"), ("to", "f8"), ("onward", "f8")], align=True)
ROUTE = np.dtype(
    [
        ("visits", "i8"), ("used", "i8"), ("rank", "i8"),  # used: the slots that drive, in any order; rank: where there
        ("load", "f8"), ("cost", "f8"), ("lasts", "f8"),  # a sum, where loads are simple; 0 for one that does not drive
        ("length", "f8"), ("driving", "f8"),  # where some vehicle may only drive so far or so long
    ],
    align=True,
)  # fmt: skip


class Routes(NamedTuple):
    at: NDArray[np.void]  # [I] VISIT
    beside: NDArray[np.void]  # [I] BESIDE
    route: NDArray[np.void]  # [R] ROUTE
    ahead: Floats  # [I, Q, 3]
    behind: Floats  # [I, Q, 3]
    size: Ints  # [2]: how many drive; how many stops are out
    out: Ints  # [n]: the stops that nobody visits


def new_routes(d: Data) -> Routes:
    """Routes that `clear` has yet to make."""
    n, slots, dims = len(d.stop), len(d.slot), d.capacity.shape[1]
    ids = n + 2 * slots + int(d.slot["reload_to"].max(initial=0))
    at = np.zeros(ids, VISIT)
    at["node"][:n] = np.arange(n)
    at["node"][n : n + slots] = d.vehicle["start"][d.slot["kind"]]
    at["node"][n + slots : n + 2 * slots] = d.vehicle["end"][d.slot["kind"]]
    return Routes(
        at, np.zeros(ids, BESIDE), np.zeros(slots, ROUTE), np.zeros((ids, dims, 3)), np.zeros((ids, dims, 3)),
        np.zeros(2, np.int64), np.zeros(n, np.int64),
    )  # fmt: skip


@part
def clear(d, x):
    """No vehicle drives."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    x.size[0] = 0
    x.size[1] = n
    for i in range(x.at.shape[0]):
        x.at[i].slot = -1
        x.beside[i].to, x.beside[i].onward = -np.inf, -np.inf
    for i in range(n):
        x.out[i] = i
        x.at[i].out = i
    for r in range(slots):
        a, b = n + r, n + slots + r
        x.at[a].succ, x.at[b].pred = b, a
        x.at[a].slot = r
        x.at[b].slot = r
        x.route[r].visits = 0
        x.route[r].rank = -1
        k = d.slot[r].kind
        x.at[b].latest = d.vehicle[k].shift_to + d.vehicle[k].overtime
        x.at[b].after, x.at[b].after_from = 0.0, -np.inf
        end_trip(d, x, b)
        refresh(d, x, r, NONE)


@merged
def link(d, x, i, p):
    """Put i behind p."""
    r, s = x.at[p].slot, x.at[p].succ
    x.at[p].succ = i
    x.at[i].pred = p
    x.at[i].succ = s
    x.at[s].pred = i
    x.at[i].slot = r
    if i < d.stop.shape[0]:
        if x.route[r].visits == 0:
            x.route[r].rank = x.size[0]
            x.route[x.size[0]].used = r
            x.size[0] += 1
        x.route[r].visits += 1
        x.route[r].load += d.amount[i, 0, BRINGS]


@merged
def unlink(d, x, i):
    """Take i out of its route."""
    r, p, s = x.at[i].slot, x.at[i].pred, x.at[i].succ
    x.at[p].succ = s
    x.at[s].pred = p
    x.at[i].slot = -1
    x.beside[i].to, x.beside[i].onward = -np.inf, -np.inf
    if i < d.stop.shape[0]:
        x.route[r].visits -= 1
        if x.route[r].visits == 0:
            last = x.route[x.size[0] - 1].used
            x.route[x.route[r].rank].used = last
            x.route[last].rank = x.route[r].rank
            x.route[r].rank = -1
            x.size[0] -= 1


@merged
def may_be_late(d, i):
    """Whether the windows of stop i may be missed: at a price, or because it is kept."""
    return d.stop[i].late_cost >= 0 or d.stop[i].stays


@merged
def begins(d, i, arrival):
    """When service at stop i begins for a vehicle that is there at `arrival`; infinity: too late."""
    for w in range(d.stop[i].windows):
        if arrival <= d.window[i, w, 1] + SLACK:
            return max(arrival, d.window[i, w, 0])
    return arrival if may_be_late(d, i) else np.inf


@merged
def begins_by(d, i, time):
    """The latest moment up to `time` at which service at stop i may begin; minus infinity: there is none."""
    if may_be_late(d, i):
        return time if time >= d.window[i, 0, 0] else -np.inf
    for w in range(d.stop[i].windows - 1, -1, -1):
        if time >= d.window[i, w, 0] - SLACK:
            return min(time, d.window[i, w, 1])
    return -np.inf


@merged
def closes(d, i):
    """When service at stop i must begin at last."""
    return np.inf if may_be_late(d, i) else d.window[i, d.stop[i].windows - 1, 1]


@merged
def begin_trip(d, x, i, free):
    """Labels of the start or reload i, which a vehicle may leave at `free` as soon as the goods are there."""
    x.at[i].trip, x.at[i].picked = i, False
    x.at[i].free, x.at[i].ready = free, max(free, x.at[i].goods_after)
    x.at[i].before, x.at[i].before_from, x.at[i].before_by = 0.0, -np.inf, np.inf
    x.at[i].goods = -np.inf
    for q in range(d.capacity.shape[1]):
        x.ahead[i, q, 0], x.ahead[i, q, 1], x.ahead[i, q, 2] = 0.0, 0.0, 0.0


@merged
def end_trip(d, x, i):
    """The other labels of the end or reload i: nothing of a trip comes behind it."""
    x.at[i].brings, x.at[i].goods_after = False, -np.inf
    for q in range(d.capacity.shape[1]):
        x.behind[i, q, 0], x.behind[i, q, 1], x.behind[i, q, 2] = 0.0, 0.0, 0.0


@part
def refresh(d, x, r, new):
    """Compute the labels of route r anew: those that stop `new` changed; -1: all, its load, and its cost by legs.

    Where labels are plain, it ends at the first that stays as it was.
    """
    n, slots, dims = d.stop.shape[0], d.slot.shape[0], d.capacity.shape[1]
    k = d.slot[r].kind
    m, c = d.vehicle[k].profile, d.vehicle[k].price
    first, end = n + r, n + slots + r
    p, s = first, end
    length, driving = 0.0, 0.0
    if new >= 0:
        p, s = first if d.released else x.at[new].pred, x.at[new].succ
        if d.limited:
            more, longer = detour(d, k, x.at[x.at[new].pred].node, new, x.at[s].node)
            x.route[r].length += more
            x.route[r].driving += longer
    while s != first:
        i = x.at[s].pred
        drive = d.time[m, x.at[i].node, x.at[s].node]
        by = x.at[s].latest - drive
        if i < n:
            latest = begins_by(d, i, by - d.stop[i].service)
            if d.plain and new >= 0 and i != new and latest == x.at[i].latest:
                break  # so are those before it
            x.at[i].latest = latest
            x.at[i].goods_after = max(goods_from(d, x, s), d.stop[i].release)
            if d.lasting:
                join_after(d, x, i, s, drive)
            if not d.simple:
                for q in range(dims):
                    join_behind(d, x, i, s, q)
                x.at[i].brings = x.at[s].brings | (d.last and d.stop[i].mate < 0 and any_of(d, i, BRINGS))
        else:
            x.at[i].latest = by - (d.vehicle[k].reload_time if i != first else 0.0)
            end_trip(d, x, i)
            x.at[i].goods_after = goods_from(d, x, s)  # for the trip that begins here
        s = i
    if new < 0 or not d.plain:
        begin_trip(d, x, first, d.vehicle[k].shift_from)
    x.at[first].before_by = d.vehicle[k].shift_to + d.vehicle[k].overtime
    load, cost = 0.0, 0.0
    while p != end:
        i = x.at[p].succ
        a, b = x.at[p].node, x.at[i].node
        leg = d.cost[c, a, b]
        x.beside[p].onward, x.beside[p].succ = leg, b
        x.beside[i].to, x.beside[i].pred, x.beside[i].price = leg, a, c
        cost += leg
        drive = d.time[m, a, b]
        driving += drive
        if d.length.shape[1] > 0:
            length += d.length[m, a, b]
        arrival = x.at[p].ready + drive
        if i < n:
            x.at[i].trip = x.at[p].trip
            ready = begins(d, i, arrival) + d.stop[i].service
            if d.plain and new >= 0 and i != new and ready == x.at[i].ready:
                break  # so are those behind it
            x.at[i].ready = ready
            if d.lasting or d.released:
                join_before(d, x, p, i, drive)
            if d.simple:
                load += d.amount[i, 0, BRINGS]
            else:
                for q in range(dims):
                    join_ahead(d, x, p, i, q)
                x.at[i].picked = x.at[p].picked | (d.last and d.stop[i].mate < 0 and any_of(d, i, TAKES))
        elif i != end:
            begin_trip(d, x, i, arrival + d.vehicle[k].reload_time)
        p = i
    if new >= 0:
        return
    x.route[r].load, x.route[r].length, x.route[r].driving = load, length, driving
    x.route[r].cost = cost + d.vehicle[k].fixed if x.route[r].visits > 0 else 0.0
    in_time = arrival < np.inf and arrival <= d.vehicle[k].shift_to + d.vehicle[k].overtime + SLACK
    if d.lasting and not d.walked:
        in_time &= x.at[x.at[end].pred].before + drive <= d.vehicle[k].max_duration + SLACK
    in_time &= not d.limited or near_enough(d, k, length, driving)
    if not in_time and not d.walked and x.route[r].visits > 0:
        x.route[r].cost = np.inf


@merged
def detour(d, k, a, i, b):
    """How much longer a vehicle of kind k drives from node a to b over i: in length, where that counts, and time."""
    m, length = d.vehicle[k].profile, 0.0
    if d.length.shape[1] > 0:
        length = d.length[m, a, i] + d.length[m, i, b] - d.length[m, a, b]
    return length, d.time[m, a, i] + d.time[m, i, b] - d.time[m, a, b]


@merged
def near_enough(d, k, length, driving):
    """Whether a vehicle of kind k may drive so far and so long."""
    return length <= d.vehicle[k].max_distance * (1.0 + SLACK) and driving <= d.vehicle[k].max_driving + SLACK


@merged
def any_of(d, i, way):
    positive = False
    for q in range(d.amount.shape[1]):
        positive |= d.amount[i, q, way] > 0
    return positive


@merged
def amounts_of(d, i, q):
    """Stop i alone: what comes from the depot, what it changes, what is aboard at most (the depot's part included)."""
    if d.stop[i].mate < 0:
        return d.amount[i, q, BRINGS], d.amount[i, q, TAKES], max(d.amount[i, q, BRINGS], d.amount[i, q, TAKES])
    if d.stop[i].second:
        return 0.0, -d.amount[i, q, BRINGS], 0.0
    return 0.0, d.amount[i, q, TAKES], d.amount[i, q, TAKES]


@merged
def join_ahead(d, x, p, i, q):
    """Two stretches: from the depot both; aboard at the end both; most: the first with the second's goods, or so on."""
    bring, leave, most = amounts_of(d, i, q)
    x.ahead[i, q, 2] = max(x.ahead[p, q, 2] + bring, x.ahead[p, q, 1] + most)
    x.ahead[i, q, 0] = x.ahead[p, q, 0] + bring
    x.ahead[i, q, 1] = x.ahead[p, q, 1] + leave


@merged
def join_behind(d, x, i, s, q):
    bring, leave, most = amounts_of(d, i, q)
    x.behind[i, q, 2] = max(most + x.behind[s, q, 0], leave + x.behind[s, q, 2])
    x.behind[i, q, 0] = bring + x.behind[s, q, 0]
    x.behind[i, q, 1] = leave + x.behind[s, q, 1]


@merged
def join_before(d, x, p, i, drive):
    """The duration up to the end of service at i, with the start as late as need be."""
    so_far = x.at[p].before + drive
    opens = d.window[i, 0, 0] - so_far
    wait = max(opens - x.at[p].before_by, 0.0)
    x.at[i].before = so_far + wait + d.stop[i].service
    x.at[i].before_from = max(x.at[p].before_from, opens) - wait
    x.at[i].before_by = min(x.at[p].before_by, closes(d, i) - so_far)
    x.at[i].goods = max(x.at[p].goods, d.stop[i].release)


@merged
def join_after(d, x, i, s, drive):
    """The duration from the start of service at i on."""
    on = d.stop[i].service + drive
    wait = max(x.at[s].after_from - on - closes(d, i), 0.0)
    x.at[i].after = on + wait + x.at[s].after
    x.at[i].after_from = max(x.at[s].after_from - on, d.window[i, 0, 0]) - wait


@merged
def leaves(d, x, p, goods):
    """When a vehicle may leave p if its trip up to there waits for `goods`; infinity: too late for a stop on it."""
    if not d.released:
        return x.at[p].ready
    left = max(x.at[x.at[p].trip].free, goods)
    return max(left, x.at[p].before_from) + x.at[p].before if left <= x.at[p].before_by + SLACK else np.inf


@merged
def goods_from(d, x, s):
    """When the goods for stop s and those behind it on its trip are there."""
    return x.at[s].goods_after if s < d.stop.shape[0] else -np.inf


@merged
def fits(d, x, k, p, i, s):
    """Whether stop i may go between p and s in a vehicle of kind k, by the rules that labels know."""
    m = d.vehicle[k].profile
    there, on = d.time[m, x.at[p].node, i], d.time[m, i, x.at[s].node]
    goods = max(x.at[x.at[p].trip].goods_after, d.stop[i].release) if d.released else -np.inf
    start = begins(d, i, leaves(d, x, p, goods) + there)
    if start == np.inf or start + d.stop[i].service + on > x.at[s].latest + SLACK:
        return False
    if not d.simple:
        if d.last and d.stop[i].mate < 0:
            if x.at[p].picked and any_of(d, i, BRINGS):
                return False
            if x.at[s].brings and any_of(d, i, TAKES):
                return False
        for q in range(d.capacity.shape[1]):
            bring, leave, most = amounts_of(d, i, q)
            most = max(x.ahead[p, q, 2] + bring, x.ahead[p, q, 1] + most)
            leave += x.ahead[p, q, 1]
            if max(most + x.behind[s, q, 0], leave + x.behind[s, q, 2]) > d.capacity[k, q] + SLACK:
                return False
    if d.limited:
        r = x.at[p].slot
        more, longer = detour(d, k, x.at[p].node, i, x.at[s].node)
        if not near_enough(d, k, x.route[r].length + more, x.route[r].driving + longer):
            return False
    if d.lasting and d.vehicle[k].max_duration < np.inf:
        so_far = x.at[p].before + there
        wait = max(d.window[i, 0, 0] - so_far - x.at[p].before_by, 0.0)
        lasts = so_far + wait + d.stop[i].service + on
        by = min(x.at[p].before_by, closes(d, i) - so_far)
        wait = max(x.at[s].after_from - lasts - by, 0.0)
        if lasts + wait + x.at[s].after > d.vehicle[k].max_duration + SLACK:
            return False
    return True


@part
def behind_kept(d, x, r, p):
    """Whether p comes at the end of the stops that route r begins with, or later."""
    n = d.stop.shape[0]
    i, seen = n + r, 0
    while i != p:
        i = x.at[i].succ
        if i < n:
            seen += 1
    return seen >= d.slot[r].kept


@merged
def reloads_at(d, k, reload):
    """The node of a reload: of the kind's first place before (1) or behind (-1) a stop, its second (2, -2), ..."""
    return d.reloads[k, abs(reload) - 1]


@merged
def free_reload(d, x, r):
    """A reload that route r may still make; -1: none."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    for i in range(n + 2 * slots + d.slot[r].reload_from, n + 2 * slots + d.slot[r].reload_to):
        if x.at[i].slot < 0:
            return i
    return -1


@merged
def may_reload(d, x, r):
    """Whether the vehicle of route r drives, and may make one trip more."""
    return x.route[r].visits > 0 and d.vehicle[d.slot[r].kind].trips > 1 and free_reload(d, x, r) >= 0


@merged
def put_reload(d, x, r, p, reload):
    """A reload goes behind p, for a stop that goes before or behind it; behind which id that stop goes."""
    j = free_reload(d, x, r)
    x.at[j].node = reloads_at(d, d.slot[r].kind, reload)
    link(d, x, j, p)
    return j if reload > 0 else p
