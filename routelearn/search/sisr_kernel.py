"""Slack induction by string removals (Christiaens and Vanden Berghe 2020) under any rules, and with split deliveries.

Ruin: strings of neighbouring customers leave a few neighbouring routes. Recreate: greedy insertion with blinks.
Accept: simulated annealing. Insertion looks at the places beside the nearest customers only (a granular
neighbourhood), at all places if none of those fits. All steps keep the direction of travel, so legs may be
asymmetric. Split deliveries have one rule, the load of the vehicles, whose resource reads the amounts of the routes.
"""

from __future__ import annotations

import numpy as np

from routelearn.search.compiling import inlined, kernel
from routelearn.search.graph import below, draw
from routelearn.search.routes import copy_all, copy_route, link, turn_round, unlink
from routelearn.search.rules import fill_up, fits_between, grow, has_room, keeps, needs, refresh, restore, save

REMOVED, LONGEST = 10.0, 10.0  # customers removed on average, longest string: the paper's values
SPLIT_STRING, SPLIT_LONGER, BLINK = 0.5, 0.01, 0.01
LENGTH, BEST = 0, 1


@kernel
def mark(r, dirty, is_dirty, count):
    """Note that route r changed; the number of routes noted."""
    if is_dirty[r]:
        return count
    is_dirty[r] = True
    dirty[count] = r
    return count + 1


@kernel
def take_out(routes, c, out, removed, demand, legs, dirty, is_dirty, changed):
    """Remove a customer, all its tails, and every customer whose tail stands in a route that is full no more.

    Gives (change of length, number out, routes changed).
    """
    delta = 0.0
    begin = removed
    out[removed] = c
    removed += 1
    delta_here = unlink_noting(routes, c, legs, dirty, is_dirty, changed)
    delta += delta_here[0]
    changed = delta_here[1]
    if routes.tails.shape[0] == 0:
        return delta, removed, changed
    while begin < removed:
        c = out[begin]
        begin += 1
        if routes.tails[c] > 0:
            for r in range(routes.visits.shape[0]):
                if routes.end[r] == c:
                    p = routes.last[r]
                    delta += legs[p, 0] - legs[p, c] - legs[c, 0]
                    routes.end[r] = 0
                    changed = mark(r, dirty, is_dirty, changed)
            routes.tails[c] = 0
        routes.amount[c] = demand[c]
        # The route that c left is full no more: its own tail must go, with its customer.
        r = routes.pred[c]  # unlink_noting keeps the old route here
        loose = routes.end[r]
        if loose != 0 and routes.route[loose] >= 0:
            out[removed] = loose
            removed += 1
            delta_here = unlink_noting(routes, loose, legs, dirty, is_dirty, changed)
            delta += delta_here[0]
            changed = delta_here[1]
    return delta, removed, changed


@kernel
def unlink_noting(routes, c, legs, dirty, is_dirty, changed):
    """Unlink c, note its route as changed and leave the route's number in pred[c]."""
    r = routes.route[c]
    delta = unlink(routes, c, legs)
    routes.pred[c] = r
    return delta, mark(r, dirty, is_dirty, changed)


@kernel
def routes_used(routes):
    used = 0
    for r in range(routes.visits.shape[0]):
        if routes.visits[r] > 0:
            used += 1
        elif r > 4 * used + 64:
            break
    return used


@inlined
def string(size, longest, state):
    """How many of a route's customers leave, and how many between them stay."""
    length = min(np.int64(1.0 + draw(state) * min(longest, np.float64(size))), size)
    skip = 0
    if 1 < length < size and draw(state) < SPLIT_STRING:
        skip = 1
        while length + skip < size and draw(state) < SPLIT_LONGER:
            skip += 1
    return length, skip


@kernel
def ruin(routes, rules, legs, near, demand, served, customers, used, out, dirty, is_dirty, state):
    """Remove strings around a random customer. Gives (change of length, number out, routes changed)."""
    longest = min(LONGEST, customers / max(used, 1))
    strings = np.int64(1.0 + draw(state) * (4.0 * REMOVED / (1.0 + longest) - 1.0))
    seed = served[below(state, customers)]
    delta = 0.0
    removed = 0
    changed = 0
    ruined = 0
    for k in range(-1, near.shape[1]):
        c = seed if k < 0 else near[seed, k]
        if c == 0 or routes.route[c] < 0:
            continue
        r = routes.route[c]
        if is_dirty[r]:
            continue
        size = routes.visits[r]
        length, skip = string(size, longest, state)
        # The string (with the stretch it skips) starts up to `span` - 1 places before c.
        span = length + skip
        back = below(state, span)
        start = c
        ahead = 0
        while ahead < back and routes.pred[start] != 0:
            start = routes.pred[start]
            ahead += 1
        after = 0
        node = c
        while after < span - 1 - ahead and routes.succ[node] != 0:
            node = routes.succ[node]
            after += 1
        while ahead + after < span - 1 and routes.pred[start] != 0:
            start = routes.pred[start]
            ahead += 1
        keep_from = 1 + below(state, length - 1) if skip > 0 else span
        node = start
        for i in range(span):
            onward = routes.succ[node]
            if (i < keep_from or i >= keep_from + skip) and routes.route[node] >= 0:
                change, removed, changed = take_out(
                    routes, node, out, removed, demand, legs, dirty, is_dirty, changed
                )  # fmt: skip
                delta += change
            node = onward
            if node == 0 or routes.route[node] != r:
                break
        changed = mark(r, dirty, is_dirty, changed)
        ruined += 1
        if ruined >= strings:
            break
    for i in range(changed):
        refresh(rules, routes, legs, dirty[i])
    return delta, removed, changed


@kernel
def order(out, removed, demand, legs, keys, state):
    """Sort those out, in place: at random, most demand, farthest or nearest first, with weights 4, 4, 2, 1."""
    dice = draw(state) * 11.0
    for i in range(removed):
        if dice < 4.0:
            keys[i] = draw(state)
        elif dice < 8.0:
            keys[i] = -np.float64(demand[out[i]])
        elif dice < 10.0:
            keys[i] = -legs[0, out[i]]
        else:
            keys[i] = legs[0, out[i]]
    for i in range(1, removed):
        key, c = keys[i], out[i]
        j = i - 1
        while j >= 0 and keys[j] > key:
            keys[j + 1] = keys[j]
            out[j + 1] = out[j]
            j -= 1
        keys[j + 1] = key
        out[j + 1] = c


@kernel
def best_place(routes, rules, c, legs, back, near, wide, blink, state):
    """The cheapest place for c beside its nearest neighbours: (cost, route, node before); route -1 = none."""
    best = np.inf
    best_route = -1
    best_before = 0
    need = needs(rules, c)  # no rows of legs as variables: their references would be counted
    for k in range(wide):
        v = near[c, k]
        r = routes.route[v]
        if r < 0 or not has_room(rules, need, r):
            continue
        p, s = routes.pred[v], routes.succ[v]
        cost = back[c, p] + legs[c, v] - back[v, p]
        if cost < best and fits_between(rules, routes, legs, p, c, v):
            if blink and draw(state) < BLINK:
                continue
            best = cost
            best_route = r
            best_before = p
        if s == 0:
            s = routes.end[r]
        cost = back[c, v] + legs[c, s] - legs[v, s]
        if cost < best and fits_between(rules, routes, legs, v, c, s):
            if blink and draw(state) < BLINK:
                continue
            best = cost
            best_route = r
            best_before = v
    return best, best_route, best_before


@kernel
def any_place(routes, rules, c, legs):
    """As `best_place`, over all places of all routes."""
    best = np.inf
    best_route = -1
    best_before = 0
    need = needs(rules, c)
    for r in range(routes.visits.shape[0]):
        if routes.visits[r] == 0 or not has_room(rules, need, r):
            continue
        p = 0
        while True:
            s = routes.first[r] if p == 0 else routes.succ[p]
            onward = s if s != 0 else routes.end[r]
            cost = legs[p, c] + legs[c, onward] - legs[p, onward]
            if cost < best and fits_between(rules, routes, legs, p, c, s):
                best = cost
                best_route = r
                best_before = p
            if s == 0:
                break
            p = s
    return best, best_route, best_before


@kernel
def best_split(routes, load, c, limit, demand, capacity, legs, back, near, wide, symmetric, seen, cost_at, before_at):
    """The cheapest way to serve c by a tail of one route and a visit in another, if cheaper than `limit`.

    Gives (cost, tail's route, tail at the route's start, node's route, node before); tail's route -1 = none.
    """
    found = 0
    to, fro = legs[c], back[c]
    for k in range(wide):
        v = near[c, k]
        r = routes.route[v]
        if r < 0 or load[r] >= capacity:
            continue
        place = -1
        for i in range(found):
            if seen[i] == r:
                place = i
                break
        if place < 0:
            if found == seen.shape[0]:
                continue
            place = found
            seen[place] = r
            cost_at[place] = np.inf
            found += 1
        p, s = routes.pred[v], routes.succ[v]
        cost = fro[p] + to[v] - back[v, p]
        if cost < cost_at[place]:
            cost_at[place] = cost
            before_at[place] = p
        cost = fro[v] + to[s] - legs[v, s]
        if cost < cost_at[place]:
            cost_at[place] = cost
            before_at[place] = v
    best = limit
    tail_route, at_start, node_route, before = -1, False, -1, 0
    for i in range(found):
        a = seen[i]
        rest = demand[c] - (capacity - load[a])
        if rest <= 0:
            continue
        p = routes.last[a]
        tail_cost = legs[p, c] + legs[c, 0] - legs[p, 0]
        start_cost = legs[0, c] + legs[c, routes.first[a]] - legs[0, routes.first[a]] if symmetric else np.inf
        tail_best = min(tail_cost, start_cost)
        if tail_best >= best:
            continue
        for j in range(found):
            if j != i and load[seen[j]] + rest <= capacity and tail_best + cost_at[j] < best:
                best = tail_best + cost_at[j]
                tail_route, at_start, node_route, before = a, start_cost < tail_cost, seen[j], before_at[j]
    return best, tail_route, at_start, node_route, before


@kernel
def open_route(routes):
    """The first place for routes that holds none."""
    for r in range(routes.visits.shape[0]):
        if routes.visits[r] == 0:
            return r
    return -1


@kernel
def put_back(
    routes, rules, c, demand, capacity, legs, back, near, wide, split, symmetric, blink, scratch, dirty, is_dirty,
    changed, state,
):  # fmt: skip
    """Serve customer c where it costs least. Gives (change of length, routes changed)."""
    if split:
        routes.amount[c] = demand[c]
    cost, r, p = best_place(routes, rules, c, legs, back, near, wide, blink, state)
    if r < 0:
        cost, r, p = any_place(routes, rules, c, legs)
    alone = legs[0, c] + legs[c, 0]
    delta = 0.0
    if split:
        seen, before_at, cost_at = scratch
        load = rules[0].total
        limit = min(cost, alone)
        _, tail_route, at_start, node_route, before = best_split(
            routes, load, c, limit, demand, capacity, legs, back, near, wide, symmetric, seen, cost_at, before_at
        )
        if tail_route >= 0 and (not blink or draw(state) >= BLINK):
            if at_start:
                turn_round(routes, tail_route)
            p = routes.last[tail_route]
            delta = legs[p, c] + legs[c, 0] - legs[p, 0]
            routes.end[tail_route] = c
            routes.tails[c] = 1
            routes.amount[c] -= capacity - load[tail_route]
            fill_up(rules, tail_route, capacity)
            changed = mark(tail_route, dirty, is_dirty, changed)
            r, p, cost, alone = node_route, before, 0.0, 1.0
    if r < 0 or alone < cost:
        r = open_route(routes)
        p = 0
    delta += link(routes, c, r, p, legs)
    grow(rules, routes, legs, r, c)
    return delta, mark(r, dirty, is_dirty, changed)


@kernel
def anneal(
    now, kept, best, rules, legs, back, near, demand, capacity, served, wide, split, symmetric, epsilon, temperature,
    out, keys, scratch, dirty, is_dirty, real, state, iterations,
):  # fmt: skip
    """Ruin and recreate `iterations` times at one temperature.

    `now` and `kept` hold the same solution before and after, `rules` the labels of `now`; `best` the shortest met.
    """
    customers, used = served.shape[0], routes_used(now)
    for _ in range(iterations):
        delta, removed, changed = ruin(
            now, rules, legs, near, demand, served, customers, used, out, dirty, is_dirty, state
        )
        order(out, removed, demand, legs, keys, state)
        for i in range(removed):
            change, changed = put_back(
                now, rules, out[i], demand, capacity, legs, back, near, wide, split, symmetric, True, scratch, dirty,
                is_dirty, changed, state,
            )  # fmt: skip
            delta += change
        accepted = delta < -temperature * np.log(1.0 - draw(state))
        for i in range(changed):
            accepted &= now.visits[dirty[i]] == 0 or keeps(rules, dirty[i])
        for i in range(changed):
            r = dirty[i]
            is_dirty[r] = False
            if accepted:
                copy_route(now, kept, r)
                save(rules, r)
            else:
                copy_route(kept, now, r)
                restore(rules, now, legs, r)
        if accepted:
            real[LENGTH] += delta
            used = routes_used(now)
            if real[LENGTH] < real[BEST] - epsilon:
                real[BEST] = real[LENGTH]
                copy_all(now, best)


@kernel
def settle(routes, rules, legs, capacity):
    """The labels of all routes, which are to be fallen back to."""
    for r in range(routes.visits.shape[0]):
        refresh(rules, routes, legs, r)
        if routes.end[r] != 0:
            fill_up(rules, r, capacity)
        save(rules, r)
