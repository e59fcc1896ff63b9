"""Routes change the kind of vehicle that drives them."""

from __future__ import annotations

import numpy as np

from routelearn.rounds.search.arrays import NONE, ZERO
from routelearn.rounds.search.desk import note, price, written
from routelearn.rounds.search.routes import free_reload, link, refresh, unlink
from routelearn.rounds.search.walking import walk
from routelearn.search.compiling import inlined, merged, part
from routelearn.search.graph import below


@part
def drive_by(d, x, desk, r, k):
    """What route r would cost if a vehicle of kind k drove it; infinity: it may not."""
    count = written(d, x, desk, r, NONE, NONE, ZERO, NONE, NONE)
    cost, _ = walk(d, k, desk.seq, count, ZERO, desk.pending)
    return cost


@merged
def unused(d, x, k):
    """A vehicle of kind k that does not drive; -1: none."""
    for r in range(d.vehicle[k].slot_from, d.vehicle[k].slot_to):
        if x.route[r].visits == 0 and d.slot[r].kept == 0:
            return r
    return NONE


@part
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
    refresh(d, x, r, NONE)
    refresh(d, x, other, NONE)
    x.route[r].cost, x.route[other].cost = 0.0, price(d, x, desk, other)
    return changed


@inlined
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


@inlined
def choose_kinds(d, x, desk, changed):
    """Every changed route goes to the kind of vehicle that drives it for least; how many routes changed."""
    for j in range(changed):
        r = desk.changed[j].route
        if x.route[r].visits == 0 or d.slot[r].kept > 0:
            continue
        best, chosen = x.route[r].cost - d.epsilon, NONE
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
