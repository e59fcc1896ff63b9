"""Where a stop or a shipment goes for least: beside its neighbours, on a trip of its own, or with an unused vehicle."""

from __future__ import annotations

import numpy as np

from routelearn.rounds.search.arrays import BLOCK, BRINGS, NONE, TAKES, ZERO
from routelearn.rounds.search.desk import TOP, note, price, written
from routelearn.rounds.search.routes import (
    SLACK,
    amounts_of,
    any_of,
    begins,
    behind_kept,
    fits,
    goods_from,
    leaves,
    link,
    may_reload,
    put_reload,
    refresh,
    reloads_at,
)
from routelearn.rounds.search.walking import walk
from routelearn.search.compiling import inlined, merged, part
from routelearn.search.graph import draw
from routelearn.search.sisr_kernel import BLINK

WHOLE = 64  # stops up to which every place is looked at
FICKLE = 0.05  # how often a stop is visited or left out against its price, where that may make routes alike


@merged
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
    delta = d.back[c, i, a] + d.cost[c, i, b] + (d.vehicle[k].fixed if x.route[r].visits == 0 else -x.beside[p].onward)
    if d.vehicle[k].time_cost > 0:
        m = d.vehicle[k].profile
        delta += d.vehicle[k].time_cost * (d.time[m, a, i] + d.time[m, i, b] - d.time[m, a, b] + d.stop[i].service)
    if delta >= best or not fits(d, x, k, p, i, s):
        return np.inf
    return delta


@merged
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
    own, behind = d.stop[i].release, goods_from(d, x, s)
    goods = x.at[p].goods if reload > 0 else max(x.at[p].goods, own)
    t = leaves(d, x, p, goods) + d.time[m, a, first]
    if reload > 0:
        t = max(t + d.vehicle[k].reload_time, own, behind) + d.time[m, at, i]
    t = begins(d, i, t) + d.stop[i].service
    if reload < 0:
        t = max(t + d.time[m, i, at] + d.vehicle[k].reload_time, behind)
    if t == np.inf or t + d.time[m, second, b] > x.at[s].latest + SLACK:
        return np.inf
    mixed = x.at[s].brings and any_of(d, i, TAKES) if reload > 0 else x.at[p].picked and any_of(d, i, BRINGS)
    if d.last and mixed:
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


@merged
def takes(d, x, r, i):
    """Whether route r has room for stop i at all."""
    k = d.slot[r].kind
    if not d.allowed[k, i] or x.route[r].visits >= d.vehicle[k].max_stops:
        return False
    return not d.simple or x.route[r].load + d.amount[i, 0, BRINGS] <= d.capacity[k, 0] + SLACK


@merged
def listed(desk, p, count):
    """Write id p to the desk once; how many are there."""
    if desk.listed[1 + p] == desk.listed[0]:
        return count
    desk.listed[1 + p] = desk.listed[0]
    desk.places[count] = p
    return count + 1


@merged
def room_beside(d, x, i):
    """Whether a route of one of its neighbours has room for stop i; False where all places are looked at."""
    if d.stop.shape[0] > WHOLE:
        for j in range(d.before.shape[1]):
            r, s = x.at[d.before[i, j]].slot, x.at[d.after[i, j]].slot
            if (r >= 0 and takes(d, x, r, i)) or (s >= 0 and takes(d, x, s, i)):
                return True
    return False


@inlined
def list_places(d, x, desk, i, count):
    """Write more ids behind which stop i may go to the desk, where `count` are beside its neighbours; how many then.

    All places if no neighbour's route has room; where vehicles reload, the ends of each trip; and one vehicle of each
    kind that does not drive yet.
    """
    n, slots = d.stop.shape[0], d.slot.shape[0]
    if count == 0 and not room_beside(d, x, i):
        for u in range(x.size[0]):
            r = x.route[u].used
            if takes(d, x, r, i):
                p = n + r
                while p != n + slots + r:
                    desk.places[count] = p
                    count += 1
                    p = x.at[p].succ
    elif d.reloading:
        for u in range(x.size[0]):
            r = x.route[u].used
            if may_reload(d, x, r) and takes(d, x, r, i):
                q = n + slots + r
                while q != n + r:
                    p = x.at[q].pred
                    count = listed(desk, p, count)
                    q = x.at[p].trip
    for k in range(d.vehicle.shape[0]):
        if d.allowed[k, i]:
            for r in range(d.vehicle[k].slot_from, d.vehicle[k].slot_to):
                if x.route[r].visits == 0:
                    if takes(d, x, r, i):
                        desk.places[count] = n + r
                        count += 1
                    break
    return count


@merged
def detours(d, x, desk, i):
    """Write to the desk what the legs over stop i cost more at each place beside a neighbour, and the least by block.

    It is what most places fail by, so nothing else is read of them. Infinity if the neighbour is in no route.
    """
    for block in range(d.before.shape[1] // BLOCK):
        least = np.inf
        for j in range(block * BLOCK, (block + 1) * BLOCK):
            p, s = d.before[i, j], d.after[i, j]
            c, m = x.beside[p].price, x.beside[s].price
            behind = d.back[c, i, p] + d.cost[c, i, x.beside[p].succ] - x.beside[p].onward
            ahead = d.back[m, i, x.beside[s].pred] + d.cost[m, i, s] - x.beside[s].to
            desk.detour[2 * j], desk.detour[2 * j + 1] = behind, ahead
            least = behind if behind < least else least
            least = ahead if ahead < least else least
        desk.least[block] = least


@merged
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


@inlined
def best_place(d, x, desk, i, limit, blink, state):
    """Where stop i costs least: (cost, id before, reload); -1: nowhere.

    Where routes are walked, the best of the few places that are cheapest by estimate; else only if it is below `limit`.
    """
    best, before, reload, kept = np.inf if d.walked else limit, NONE, 0, 0
    beside = 0
    if d.stop.shape[0] > WHOLE:
        beside = 2 * d.before.shape[1]
        detours(d, x, desk, i)
    desk.listed[0] += 1
    count, j, at = 0, 0, -1
    while True:
        if j < beside:
            bound = np.inf if d.walked else best
            if j % (2 * BLOCK) == 0 and desk.least[j // (2 * BLOCK)] >= bound:
                j += 2 * BLOCK
                continue
            j += 1
            if desk.detour[j - 1] >= bound:
                continue
            p = x.at[d.after[i, j // 2 - 1]].pred if j % 2 == 0 else np.int64(d.before[i, j // 2])
            if not takes(d, x, x.at[p].slot, i):
                continue
            known = count
            count = listed(desk, p, count)
            if count == known:
                continue
        else:
            if at < 0:
                at, count = count, list_places(d, x, desk, i, count)
            if at == count:
                break
            p = desk.places[at]
            at += 1
        r = x.at[p].slot
        ways = d.reloads.shape[1] if d.reloading and may_reload(d, x, r) else 0
        for way in range(-ways, ways + 1):
            cost = place_cost(d, x, r, p, i, best) if way == 0 else reload_cost(d, x, r, p, i, way, best)
            if cost < best and not (blink and draw(state) < BLINK):
                if d.walked:
                    kept = consider(desk, kept, cost, p, way)
                    best = desk.top[TOP - 1].cost if kept == TOP else np.inf
                else:
                    best, before, reload = cost, p, way
    if not d.walked:
        return best, before, reload
    best = np.inf
    for j in range(kept):
        p = desk.top[j].before
        r = x.at[p].slot
        if best < np.inf and desk.top[j].cost >= best and d.vehicle[d.slot[r].kind].time_cost == 0:
            break
        count = written(d, x, desk, r, i, p, desk.top[j].reload, NONE, NONE)
        cost, _ = walk(d, d.slot[r].kind, desk.seq, count, d.slot[r].kept, desk.pending)
        if cost - x.route[r].cost < best:
            best, before, reload = cost - x.route[r].cost, p, desk.top[j].reload
    return best, before, reload


@merged
def aboard(x, p, q):
    """The load with which a vehicle leaves p."""
    return x.ahead[p, q, 1] + x.behind[x.at[p].succ, q, 0]


@inlined
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
            goods = max(x.at[x.at[p].trip].goods_after, d.stop[i].release, d.stop[j].release)
            start = begins(d, i, leaves(d, x, p, goods) + d.time[m, a, i])
            if start == np.inf and d.stop[i].windows == 1 and not d.released:
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
                                count = written(d, x, desk, r, i, p, ZERO, j, at)
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


@inlined
def best_behind(d, x, desk, i, j):
    """Where delivery i costs least in the route that has its pickup j: (cost, id before)."""
    n, r = d.stop.shape[0], x.at[j].slot
    best, before, p = np.inf, -1, j
    while p < n:
        s = x.at[p].succ
        if behind_kept(d, x, r, p):
            count = written(d, x, desk, r, i, p, ZERO, NONE, NONE)
            cost, _ = walk(d, d.slot[r].kind, desk.seq, count, d.slot[r].kept, desk.pending)
            if cost - x.route[r].cost < best:
                best, before = cost - x.route[r].cost, p
        p = s
    return best, before


@part
def recreate(d, x, desk, removed, changed, blink, opening, most, state):
    """Put those removed where they cost least, if that is less than leaving them out; how many routes changed.

    With `opening`, the first that would stay out for its price is visited: a route may pay only with several stops.
    It ends early, with False, when the plan is sure to cost more than before by over `most`: insertions save no legs.
    """
    more, hope = 0.0, 0.0  # what the plan costs more so far; what visiting stops that were out may save yet
    for at in range(changed):
        more += x.route[desk.changed[at].route].cost - desk.changed[at].cost
    for at in range(removed):
        i = desk.removed[at].stop
        if x.at[i].out >= 0:
            hope += d.stop[i].unserved + (d.stop[d.stop[i].mate].unserved if d.stop[i].mate >= 0 else 0.0)
    for at in range(removed):
        if more - hope > most:
            return changed, False
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
            reload = 0
        else:
            q, left_out = -1, d.stop[i].unserved
            limit = most - more + hope + (left_out if x.at[i].out >= 0 else 0.0)
            cost, p, reload = best_place(d, x, desk, i, limit, blink, state)
        stays = p < 0 or cost >= left_out
        if d.apart and blink and draw(state) < FICKLE:
            stays = not stays
        if opening and stays and p >= 0 and left_out < d.much:
            stays, opening = False, False
        if p < 0 or stays:
            more += left_out if x.at[i].out < 0 else 0.0
            continue
        more += cost - (left_out if x.at[i].out >= 0 else 0.0)
        r = x.at[p].slot
        changed = note(d, x, desk, r, changed)
        if reload != 0:
            p = put_reload(d, x, r, p, reload)
        link(d, x, i, p)
        if q >= 0:
            link(d, x, j, q)
        cost += x.route[r].cost
        refresh(d, x, r, i if reload == 0 and q < 0 else NONE)
        x.route[r].cost = price(d, x, desk, r) if d.apart else cost  # its duration counts, too
    return changed, True
