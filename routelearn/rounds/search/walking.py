"""All rules on one route, walked from start to end: what labels cannot tell, as docs/guides/rounds.md has it."""

from __future__ import annotations

import numpy as np

from routelearn.rounds.search.arrays import BRINGS, TAKES
from routelearn.search.compiling import kernel, merged, part

SECONDS, SHARE = 1e-6, 1e-7  # how far rounding may pass a limit, in seconds and of amounts


@merged
def next_start(window, count, time):
    """The first moment at or after a time that is inside a window; infinity: there is none."""
    for w in range(count):
        if time <= window[w, 1] + SECONDS:
            return max(window[w, 0], time)
    return np.inf


@kernel
def carries(d, k, seq, count):
    """Whether a vehicle of kind k has room on all trips, shipments stay on theirs, and backhauls are last."""
    j = 0
    while j <= count:
        end = j
        while end < count and seq[end] >= 0:
            end += 1
        for q in range(d.capacity.shape[1]):
            most = d.capacity[k, q] * (1.0 + SHARE) + SHARE
            load = 0.0
            for at in range(j, end):
                if not d.stop[seq[at]].second:
                    load += d.amount[seq[at], q, BRINGS]
            if load > most:
                return False
            for at in range(j, end):
                load += d.amount[seq[at], q, TAKES] - d.amount[seq[at], q, BRINGS]
                if load > most:
                    return False
        picked = False
        for at in range(j, end):
            i = seq[at]
            mate = d.stop[i].mate
            if mate >= 0 and not d.stop[i].second:
                found, elsewhere = False, False
                for later in range(at + 1, count):
                    found |= later < end and seq[later] == mate
                    elsewhere |= later >= end and seq[later] == mate
                if elsewhere or not (found or d.stop[i].stays):  # one that is kept may wait for its delivery
                    return False
            if d.last and mate < 0:
                for q in range(d.capacity.shape[1]):
                    if picked and d.amount[i, q, BRINGS] > 0:
                        return False
                for q in range(d.capacity.shape[1]):
                    picked |= d.amount[i, q, TAKES] > 0
        j = end + 1
    return True


@merged
def released(d, seq, at, count):
    """When the trip that begins with place `at` may leave."""
    time = -np.inf
    while at < count and seq[at] >= 0:
        time = max(time, d.stop[seq[at]].release)
        at += 1
    return time


@merged
def closes_last(d, k, b):
    """The end of a break's last window."""
    last = -np.inf
    for w in range(d.rest[k, b].windows):
        last = max(last, d.rest_window[k, b, w, 1])
    return last


@part
def take_break(d, k, pending, node, strict, time, way, free_until, busy_until, service):
    """The break to be taken now, and when it begins; -1: none.

    One that begins while the vehicle stands, or cannot begin after what comes next; but after the next stop rather than
    make that late. `way` is what is still to be driven to the node.
    """
    forced = np.inf
    for b in range(pending.shape[0]):
        if pending[b] == 1 and busy_until > closes_last(d, k, b) + SECONDS:
            forced = min(forced, next_start(d.rest_window[k, b], d.rest[k, b].windows, time))
    if forced < np.inf:
        free_until = max(free_until, forced)
    chosen, begin = -1, np.inf
    for b in range(pending.shape[0]):
        if pending[b] != 1:
            continue
        moment = next_start(d.rest_window[k, b], d.rest[k, b].windows, time)
        if moment >= begin or moment > free_until:
            continue
        if strict:
            after = moment + d.rest[k, b].service + way
            late = next_start(d.window[node], d.stop[node].windows, after) == np.inf
            served = next_start(d.window[node], d.stop[node].windows, time + way)
            if late and served + service <= closes_last(d, k, b) + SECONDS:
                continue
        chosen, begin = b, moment
    return chosen, begin


@merged
def rest_slack(d, k, b, begin):
    """How much later a break could begin in the window that it uses."""
    slack = 0.0
    for w in range(d.rest[k, b].windows):
        if d.rest_window[k, b, w, 0] <= begin <= d.rest_window[k, b, w, 1] + SECONDS:
            slack = max(slack, d.rest_window[k, b, w, 1] - begin)
    return slack


@part
def drive(d, k, seq, count, kept, pending):
    """Times with the breaks that are pending (1): (left, end, lateness cost, on time, all breaks taken).

    Everything as early as possible; then the start as late as the end allows.
    """
    m, n = d.vehicle[k].profile, d.stop.shape[0]
    left = max(d.vehicle[k].shift_from, released(d, seq, 0, count))
    t, waited, delay, late, on_time, stops = left, 0.0, np.inf, 0.0, True, 0
    prev = d.vehicle[k].start
    for j in range(count + 1):
        node = d.vehicle[k].end if j == count else seq[j] if seq[j] >= 0 else -1 - seq[j]
        driving = d.time[m, prev, node]
        strict = node < n and d.stop[node].late_cost < 0 and not d.stop[node].stays
        service = 0.0
        if node < n:
            service = d.stop[node].service
            if d.place[prev] != d.place[node]:
                service += d.stop[node].setup
        elif j < count:
            service = d.vehicle[k].reload_time
        while True:  # breaks before leaving
            b, begin = take_break(d, k, pending, node, strict, t, driving, t, t + driving, service)
            if b < 0:
                break
            pending[b] = 2
            waited += begin - t
            delay = min(delay, waited + rest_slack(d, k, b, begin))
            t = begin + d.rest[k, b].service
        t += driving
        if j == count:
            for b in range(pending.shape[0]):
                if pending[b] == 1 and closes_last(d, k, b) < np.inf:
                    pending[b] = 3  # the vehicle is back: too late
        while True:  # breaks on arrival
            begin = t
            if node < n:
                begin = next_start(d.window[node], d.stop[node].windows, t)
                if begin == np.inf:
                    begin = t
            elif j < count:
                begin = max(t, released(d, seq, j + 1, count) - d.vehicle[k].reload_time)
            b, rest = take_break(d, k, pending, node, strict, t, 0.0, begin, begin + service, service)
            if b < 0:
                break
            pending[b] = 2
            waited += rest - t
            delay = min(delay, waited + rest_slack(d, k, b, rest))
            t = rest + d.rest[k, b].service
        waited += begin - t
        if node < n:
            slack, passed, inside = 0.0, -np.inf, False
            for w in range(d.stop[node].windows):
                if d.window[node, w, 0] <= begin:
                    passed = max(passed, d.window[node, w, 1])
                    if begin <= d.window[node, w, 1] + SECONDS:
                        inside = True
                        slack = max(slack, d.window[node, w, 1] - begin)
            delay = min(delay, waited + slack)
            if not inside and stops >= kept:
                if d.stop[node].late_cost < 0:
                    on_time = False
                else:
                    late += d.stop[node].late_cost * max(0.0, begin - passed)
            stops += 1
        elif j == count:
            delay = min(delay, waited)
        t = begin + service
        prev = node
    return left + max(delay, 0.0), t, late, on_time


@part
def walk(d, k, seq, count, kept, pending):
    """What a drive costs and how long it lasts, for a vehicle of kind k; infinity: it breaks a rule.

    seq: stops, or -1 - node for a reload.
    """
    stops, trips = 0, 1
    m, c = d.vehicle[k].profile, d.vehicle[k].price
    prev, cost, distance, driving = d.vehicle[k].start, 0.0, 0.0, 0.0
    for j in range(count + 1):
        if j == count:
            node = d.vehicle[k].end
        elif seq[j] >= 0:
            node = seq[j]
            stops += 1
            if not d.allowed[k, node]:
                return np.inf, 0.0
        else:
            node = -1 - seq[j]
            trips += 1
            known = False
            for place in range(d.reloads.shape[1]):
                known |= d.reloads[k, place] == node
            if not known:
                return np.inf, 0.0
        cost += d.cost[c, prev, node]
        driving += d.time[m, prev, node]
        if d.length.shape[1] > 0:
            distance += d.length[m, prev, node]
        prev = node
    if stops > d.vehicle[k].max_stops or trips > d.vehicle[k].trips or driving > d.vehicle[k].max_driving + SECONDS:
        return np.inf, 0.0
    if distance > d.vehicle[k].max_distance * (1.0 + SHARE) or not carries(d, k, seq, count):
        return np.inf, 0.0
    for b in range(pending.shape[0]):
        pending[b] = 0
    while True:
        left, end, late, on_time = drive(d, k, seq, count, kept, pending)
        more, missed = False, False
        for b in range(pending.shape[0]):
            windows = d.rest[k, b].windows
            if windows == 0:
                continue
            last = closes_last(d, k, b)
            out_after = last if last < np.inf else d.rest_window[k, b, windows - 1, 0]
            due = left < last and end > out_after + SECONDS
            if pending[b] == 0 and due:
                pending[b] = 1
                more = True
            elif pending[b] != 0:
                missed |= due and pending[b] != 2
        if not more:
            break
        for b in range(pending.shape[0]):
            if pending[b] > 1:
                pending[b] = 1
    lasts = end - left
    over = end - d.vehicle[k].shift_to
    if not on_time or missed or over > d.vehicle[k].overtime + SECONDS or lasts > d.vehicle[k].max_duration + SECONDS:
        return np.inf, 0.0
    cost += d.vehicle[k].fixed + d.vehicle[k].time_cost * lasts + late
    if over > 0.0:
        cost += d.vehicle[k].overtime_cost * over
    return cost, lasts
