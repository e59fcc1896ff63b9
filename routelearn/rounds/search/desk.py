"""What a step of the search works with: the routes it changed as they were, a route to be walked, the best plan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routelearn.rounds.search.arrays import BLOCK, NONE, ZERO, Data, Ints
from routelearn.rounds.search.routes import link, refresh, reloads_at, unlink
from routelearn.rounds.search.walking import walk
from routelearn.search.compiling import inlined, merged, part
from routelearn.search.graph import Floats

TOP = 6  # places that are walked for one stop
COST, BEST, BEST_ABOVE, WEIGHT = 0, 1, 2, 3  # in Desk.real
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
    detour: Floats  # [2 BESIDE]: what places beside neighbours cost more in legs
    least: Floats  # [BESIDE / BLOCK]: the least of each block of them
    places: Ints  # [2 I]: where a stop may go
    listed: Ints  # [1 + I]: how many times places were listed; by id, when it was the last time
    top: NDArray[np.void]  # [TOP] PLACE: the cheapest of them
    seq: Ints  # [I]: one route, for a walk
    pending: Ints  # [B]: breaks, for a walk
    best: Ints  # [I + 2 R]: the best plan: each route as its slot, its stops and reloads (-2 - node), and -1
    real: Floats  # [4]: cost of the plan and of the best one, how unequal the best one is, and what that costs


def new_desk(d: Data) -> Desk:
    slots = len(d.slot)
    ids = len(d.stop) + 2 * slots + int(d.slot["reload_to"].max(initial=0))
    whole = np.int64
    return Desk(
        np.zeros(2 * len(d.stop) + 1, REMOVED_STOP), np.zeros(slots, CHANGED_ROUTE), np.zeros((ids + slots, 2), whole),
        np.zeros(2 * d.before.shape[1]), np.zeros(d.before.shape[1] // BLOCK),
        np.zeros(2 * ids, whole), np.zeros(1 + ids, whole), np.zeros(TOP, PLACE), np.zeros(ids + 1, whole),
        np.zeros(d.rest.shape[1], whole),
        np.full(ids + 2 * slots + 1, -1, whole), np.array([np.inf, np.inf, np.inf, d.near_leg]),
    )  # fmt: skip


@merged
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


@merged
def empty(d, x, r):
    """Nobody is visited by route r."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    i = x.at[n + r].succ
    while i != n + slots + r:
        s = x.at[i].succ
        unlink(d, x, i)
        i = s


@inlined
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
        refresh(d, x, r, NONE)
        x.route[r].cost, x.route[r].lasts = desk.changed[j].cost, desk.changed[j].lasts


@part
def written(d, x, desk, r, i, p, reload, j, before_j):
    """Route r on the desk, with stop i behind p (-1: as it is) and a reload beside it (see `reloads_at`); how long.

    Of a shipment j is the delivery, which goes behind `before_j` (i itself: right behind it); otherwise -1.
    """
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
        if j >= 0 and (at == before_j or (at == p and before_j == i)):
            desk.seq[count] = j
            count += 1
        at = x.at[at].succ
    return count


@part
def price(d, x, desk, r):
    """What route r costs, its labels being up to date; infinity: it breaks a rule."""
    if x.route[r].visits == 0:
        return 0.0
    if not d.walked:
        return x.route[r].cost
    count = written(d, x, desk, r, NONE, NONE, ZERO, NONE, NONE)
    cost, lasts = walk(d, d.slot[r].kind, desk.seq, count, d.slot[r].kept, desk.pending)
    x.route[r].lasts = lasts
    if cost == np.inf and d.slot[r].kept > 0:  # what is kept may need another stop, for a break say
        cost = 1000.0 * d.much
    return cost
