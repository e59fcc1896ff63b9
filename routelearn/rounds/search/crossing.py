"""Two routes exchange their ends (2-opt*, Potvin and Rousseau 1995): what ruins of a few stops seldom bring about."""

from __future__ import annotations

import numpy as np

from routelearn.rounds.search.arrays import BRINGS, NONE, ZERO
from routelearn.rounds.search.desk import empty, note
from routelearn.rounds.search.fleet import drive_by
from routelearn.rounds.search.routes import SLACK, link, refresh
from routelearn.search.compiling import merged, part
from routelearn.search.graph import below


@merged
def leg(d, x, k, p, s):
    """What the way from p to s costs; nothing where nobody is visited between the start and the end."""
    if p >= d.stop.shape[0] and s >= d.stop.shape[0]:
        return -d.vehicle[k].fixed
    return d.cost[d.vehicle[k].price, x.at[p].node, x.at[s].node]


@merged
def in_time(d, x, k, p, s):
    """Whether the stretch that begins with s can follow the one up to p."""
    drive = d.time[d.vehicle[k].profile, x.at[p].node, x.at[s].node]
    return x.at[p].ready + drive <= x.at[s].latest + SLACK


@merged
def alike(d, k, other):
    """Whether both kinds of vehicle drive the same legs for the same price to the same end."""
    a, b = d.vehicle[k], d.vehicle[other]
    return k == other or (a.price == b.price and a.profile == b.profile and a.end == b.end)


@merged
def load_up_to(d, x, i):
    """What the vehicle brings to stop or start i and those before it."""
    load = 0.0
    while i < d.stop.shape[0]:
        load += d.amount[i, 0, BRINGS]
        i = x.at[i].pred
    return load


@merged
def room(d, x, k, c, other, p):
    """Whether a vehicle of kind k has room for its load up to c and that of another route behind p."""
    return load_up_to(d, x, c) + x.route[other].load - load_up_to(d, x, p) <= d.capacity[k, 0] + SLACK


@part
def cross(d, x, desk, most, state):
    """A random stop is followed by the end of another route, if that costs less than so much; how many routes changed.

    Where labels of stretches do not tell all, the new routes are walked; one that breaks a rule costs infinity.
    """
    n = d.stop.shape[0]
    c = below(state, n)
    r = x.at[c].slot
    if r < 0 or d.slot[r].kept > 0:
        return ZERO
    k, b = d.slot[r].kind, x.at[c].succ
    best, first = most, NONE
    for j in range(d.after.shape[1]):
        s = np.int64(d.after[c, j])
        other = x.at[s].slot
        if other < 0 or other == r or d.slot[other].kept > 0 or not alike(d, k, d.slot[other].kind):
            continue
        p, m = x.at[s].pred, d.slot[other].kind
        more = leg(d, x, k, c, s) + leg(d, x, m, p, b) - leg(d, x, k, c, b) - leg(d, x, m, p, s)
        if more < best and in_time(d, x, k, c, s) and in_time(d, x, m, p, b):
            best, first = more, s
    if first < 0:
        return ZERO
    other, p = x.at[first].slot, x.at[first].pred
    known = d.plain and not d.walked and d.vehicle.shape[0] == 1  # of several kinds, another may have room
    if known and not (room(d, x, k, c, other, p) and room(d, x, k, p, r, c)):
        return ZERO
    changed = note(d, x, desk, other, note(d, x, desk, r, ZERO))
    half, end = desk.changed[0].saved_to, desk.changed[1].saved_to
    empty(d, x, r)
    empty(d, x, other)
    p, q, over = n + r, n + other, False  # behind which the next stop of each route goes
    for at in range(half):
        i = desk.saved[at, 0]
        link(d, x, i, q if over else p)
        p, q = (p, i) if over else (i, q)
        over |= i == c
    q, over = n + other, False  # its new end is there; the stops that stay go before it
    for at in range(half, end):
        i = desk.saved[at, 0]
        over |= i == first
        link(d, x, i, p if over else q)
        p, q = (i, q) if over else (p, i)
    for one in (r, other):
        refresh(d, x, one, NONE)
        if x.route[one].visits > 0 and not (known and x.route[one].visits <= d.vehicle[k].max_stops):
            x.route[one].cost = drive_by(d, x, desk, one, d.slot[one].kind)
    return changed
