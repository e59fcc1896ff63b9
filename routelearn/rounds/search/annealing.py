"""Slack induction by string removals (Christiaens and Vanden Berghe 2020) on rounds.

Ruin: strings of neighbouring stops leave. Recreate: each goes where it costs least, or stays out where that is cheaper;
now and then a place is overlooked. Accept: simulated annealing.
"""

from __future__ import annotations

import numpy as np

from routelearn.rounds.search.arrays import BRINGS, NONE, TAKES
from routelearn.rounds.search.crossing import cross
from routelearn.rounds.search.desk import BEST, BEST_ABOVE, COST, WEIGHT, price, restore
from routelearn.rounds.search.fleet import choose_kinds, retype
from routelearn.rounds.search.insertion import recreate
from routelearn.rounds.search.routes import SLACK, clear, free_reload, link, refresh
from routelearn.rounds.search.ruin import ruin
from routelearn.search.compiling import inlined, kernel, merged
from routelearn.search.graph import below, draw

RETRIED = 10  # stops that nobody visits, tried again in each step
OPENED = 0.2  # how often one of them is visited against its price, so that its neighbours can join it
NEIGHBOURS = 30  # and how many are tried then
RETYPED = 0.1  # how often a ruined route goes to a vehicle of another kind, where there are several
CROSSED = 0.2  # how often two routes exchange their ends instead
CHOSEN = 0.1  # and how often the cheapest kind is looked for
DEARER = 1.05  # how fast the price of unequal routes changes
LIGHTEST, HEAVIEST = 0.1, 1000.0  # its least, in costs of a near leg, and its most, in stops left out


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


@inlined
def retry(d, x, desk, removed, seed, opening, state):
    """Add some of the stops that nobody visits to those removed, half or all of them near the seed; how many then."""
    count = min(NEIGHBOURS if opening else RETRIED, x.size[1])
    at = 0
    for k in range(count):
        i = seed
        near = opening or 2 * k < count
        if near:
            while at < d.near.shape[1] and (k > 0 or x.at[i].out < 0):
                i = d.near[seed, at]
                at += 1
                if x.at[i].out >= 0:
                    break
        if x.at[i].out < 0 or not near:
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


@merged
def cost_out(d, x, i):
    """How much more than before is left out with stop i."""
    now, before = x.at[i].slot < 0, x.at[i].out >= 0
    return d.stop[i].unserved * (np.float64(now) - np.float64(before))


@merged
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


@merged
def unequal(d, x):
    """How far routes are above the least of them, beyond what is allowed, in stops and mean legs together."""
    if not d.apart:
        return 0.0
    few, short, above = np.inf, np.inf, 0.0
    for u in range(x.size[0]):
        r = x.route[u].used
        few, short = min(few, x.route[r].visits), min(short, x.route[r].lasts)
    for u in range(x.size[0]):
        r = x.route[u].used
        above += max(x.route[r].visits - few - d.stops_apart, 0.0)
        above += max(x.route[r].lasts - short - d.time_apart - SLACK, 0.0) / d.mean_leg
    return above


@inlined
def weigh(d, desk, above):
    """The price of unequal routes rises as long as there are any, and falls as long as there are none."""
    weight = desk.real[WEIGHT] * (DEARER if above > 0.0 else 1.0 / DEARER)
    desk.real[WEIGHT] = min(max(weight, LIGHTEST * d.near_leg), HEAVIEST * d.much)


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
    """Take up a plan, written as `keep_best` does; how unequal its routes are."""
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
        refresh(d, x, r, NONE)
        x.route[r].cost = price(d, x, desk, r)
    total = 0.0
    for u in range(x.size[0]):
        total += x.route[x.route[u].used].cost
    for j in range(x.size[1]):
        total += d.stop[x.out[j]].unserved
    desk.real[COST] = total
    return unequal(d, x)


@inlined
def take_all(d, x, desk):
    """Take all stops that nobody visits, shipments by their first half; how many."""
    removed = 0
    for j in range(x.size[1]):
        i = x.out[j]
        if d.stop[i].mate < 0 or not d.stop[i].second or d.stop[d.stop[i].mate].stays:
            desk.removed[removed].stop = i
            removed += 1
    return removed


@inlined
def priced(d, x, desk, changed):
    """Price the routes that lost stops; False: one less makes another too late (no triangle inequality)."""
    possible = True
    for j in range(changed):
        r = desk.changed[j].route
        if d.walked:
            x.route[r].cost = price(d, x, desk, r)
        possible &= x.route[r].cost < np.inf
    return possible


@inlined
def difference(d, x, desk, removed, changed):
    """How much more than before the plan costs."""
    delta = 0.0
    for j in range(changed):
        delta += x.route[desk.changed[j].route].cost - desk.changed[j].cost
    for j in range(removed):
        i = desk.removed[j].stop
        delta += cost_out(d, x, i)
        if d.stop[i].mate >= 0:
            delta += cost_out(d, x, d.stop[i].mate)
    return delta


@inlined
def accept(d, x, desk, removed, delta, above):
    """Keep the plan, which costs so much more; its routes are so unequal, which is worse than any cost."""
    desk.real[COST] += delta
    for j in range(removed):
        i = desk.removed[j].stop
        settle_out(x, i)
        if d.stop[i].mate >= 0:
            settle_out(x, d.stop[i].mate)
    cheaper = desk.real[COST] < desk.real[BEST] - d.epsilon
    if above < desk.real[BEST_ABOVE] or (above == desk.real[BEST_ABOVE] and cheaper):
        desk.real[BEST], desk.real[BEST_ABOVE] = desk.real[COST], above
        keep_best(d, x, desk)


@kernel
def anneal(d, x, desk, temperature, iterations, filling, state):
    """Ruin and recreate `iterations` times at one temperature; or, filling, insert all stops that nobody visits."""
    crosses = not d.reloading and not d.paired
    several = d.vehicle.shape[0] > 1 and not filling
    above = unequal(d, x)
    for _ in range(iterations):
        removed, changed, possible, opening, most = 0, 0, True, False, np.inf
        if filling:
            removed = take_all(d, x, desk)
        elif crosses and draw(state) < CROSSED:
            most = -temperature * np.log(1.0 - draw(state))
            changed = cross(d, x, desk, most, state)
            possible = changed > 0
        else:
            removed, changed, seed = ruin(d, x, desk, state)
            possible = priced(d, x, desk, changed)
            opening = x.size[1] > 0 and draw(state) < OPENED
            removed = retry(d, x, desk, removed, seed, opening, state)
            most = -temperature * np.log(1.0 - draw(state))
        if possible:
            order(d, desk, removed, state)
            if several and draw(state) < RETYPED:
                changed = retype(d, x, desk, changed, state)
            choosing = several and draw(state) < CHOSEN
            bound = np.inf if choosing or d.apart else most
            changed, possible = recreate(d, x, desk, removed, changed, not filling, opening, bound, state)
            if possible and choosing:
                changed = choose_kinds(d, x, desk, changed)
        delta, now = np.inf, above
        if possible:
            delta, now = difference(d, x, desk, removed, changed), unequal(d, x)
        if delta + desk.real[WEIGHT] * (now - above) < most:
            accept(d, x, desk, removed, delta, now)
            above = now
        else:
            restore(d, x, desk, changed)
        if d.apart:
            weigh(d, desk, above)
        for j in range(changed):
            desk.changed[desk.changed[j].route].is_changed = False
