"""Strings of neighbouring stops leave a few neighbouring routes, shipments whole."""

from __future__ import annotations

import numpy as np

from routelearn.rounds.search.arrays import NONE
from routelearn.rounds.search.desk import note
from routelearn.rounds.search.routes import SLACK, leaves, refresh, unlink
from routelearn.search.compiling import merged, part
from routelearn.search.graph import below, draw
from routelearn.search.sisr_kernel import LONGEST, REMOVED, string


@merged
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


@part
def tidy(d, x, r):
    """Take out the reloads of route r with no trip before or behind them."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    i = x.at[n + r].succ
    while i != n + slots + r:
        s, p = x.at[i].succ, x.at[i].pred
        if i >= n and (p >= n or s == n + slots + r):
            unlink(d, x, i)
        i = s


@merged
def needed(d, x, r, i):
    """Whether the trips before and behind reload i cannot be one, by the rules that labels know."""
    k, p, s = d.slot[r].kind, x.at[i].pred, x.at[i].succ
    m, c = d.vehicle[k].profile, d.vehicle[k].price
    a, at, b = x.at[p].node, x.at[i].node, x.at[s].node
    dearer = d.cost[c, a, b] > d.cost[c, a, at] + d.cost[c, at, b]
    if dearer or d.slot[r].kept > 0 or (x.at[p].picked and x.at[s].brings):
        return True
    for q in range(d.capacity.shape[1]):
        most = max(x.ahead[p, q, 2] + x.behind[s, q, 0], x.ahead[p, q, 1] + x.behind[s, q, 2])
        if most > d.capacity[k, q] + SLACK:
            return True
    t = leaves(d, x, p, max(x.at[p].goods, x.at[s].goods_after)) + d.time[m, a, b]
    return t == np.inf or t > x.at[s].latest + SLACK


@part
def join_trips(d, x, r):
    """Take out the reloads that route r can do without."""
    n, slots = d.stop.shape[0], d.slot.shape[0]
    i = x.at[n + r].succ
    while i != n + slots + r:
        s = x.at[i].succ
        if i >= n and not needed(d, x, r, i):
            unlink(d, x, i)
            refresh(d, x, r, NONE)
        i = s


@part
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
        length, skip = string(size, longest, state)
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
        r = desk.changed[j].route
        if d.reloading:
            tidy(d, x, r)
        refresh(d, x, r, NONE)
        if d.reloading:
            join_trips(d, x, r)
    return removed, changed, seed
