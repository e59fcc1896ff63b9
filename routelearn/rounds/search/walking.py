"""All rules on one route, walked from start to end: what labels cannot tell, as docs/rounds.md has it."""

from __future__ import annotations

import numpy as np

from routelearn.search.compiling import kernel

SECONDS, SHARE = 1e-6, 1e-7  # how far rounding may pass a limit, in seconds and of amounts


@kernel
def next_start(opens, closes, count, time):
    """The first moment at or after a time that is inside a window; infinity: there is none."""
    for w in range(count):
        if time <= closes[w] + SECONDS:
            return max(opens[w], time)
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
                if not d.second[seq[at]]:
                    load += d.delivery[seq[at], q]
            if load > most:
                return False
            for at in range(j, end):
                load += d.pickup[seq[at], q] - d.delivery[seq[at], q]
                if load > most:
                    return False
        picked = False
        for at in range(j, end):
            i = seq[at]
            mate = d.mate[i]
            if mate >= 0 and not d.second[i] and not d.stays[i]:
                found = False
                for later in range(at + 1, end):
                    found |= seq[later] == mate
                if not found:
                    return False
            if d.last and mate < 0:
                for q in range(d.capacity.shape[1]):
                    if picked and d.delivery[i, q] > 0:
                        return False
                for q in range(d.capacity.shape[1]):
                    picked |= d.pickup[i, q] > 0
        j = end + 1
    return True


@kernel
def released(d, seq, at, count):
    """When the trip that begins with place `at` may leave."""
    time = -np.inf
    while at < count and seq[at] >= 0:
        time = max(time, d.release[seq[at]])
        at += 1
    return time


@kernel
def closes_last(d, k, b):
    """The end of a break's last window."""
    last = -np.inf
    for w in range(d.break_windows[k, b]):
        last = max(last, d.break_closes[k, b, w])
    return last


@kernel
def take_break(d, k, pending, node, strict, time, way, free_until, busy_until, service):
    """The break to be taken now, and when it begins; -1: none.

    One that begins while the vehicle stands, or cannot begin after what comes next; but after the next stop rather than
    make that late. `way` is what is still to be driven to the node.
    """
    forced = np.inf
    for b in range(pending.shape[0]):
        if pending[b] == 1 and busy_until > closes_last(d, k, b) + SECONDS:
            forced = min(forced, next_start(d.break_opens[k, b], d.break_closes[k, b], d.break_windows[k, b], time))
    if forced < np.inf:
        free_until = max(free_until, forced)
    chosen, begin = -1, np.inf
    for b in range(pending.shape[0]):
        if pending[b] != 1:
            continue
        moment = next_start(d.break_opens[k, b], d.break_closes[k, b], d.break_windows[k, b], time)
        if moment >= begin or moment > free_until:
            continue
        if strict:
            after = moment + d.break_service[k, b] + way
            late = next_start(d.opens[node], d.closes[node], d.windows[node], after) == np.inf
            served = next_start(d.opens[node], d.closes[node], d.windows[node], time + way)
            if late and served + service <= closes_last(d, k, b) + SECONDS:
                continue
        chosen, begin = b, moment
    return chosen, begin


@kernel
def rest_slack(d, k, b, begin):
    """How much later a break could begin in the window that it uses."""
    slack = 0.0
    for w in range(d.break_windows[k, b]):
        if d.break_opens[k, b, w] <= begin <= d.break_closes[k, b, w] + SECONDS:
            slack = max(slack, d.break_closes[k, b, w] - begin)
    return slack


@kernel
def drive(d, k, seq, count, kept, pending):
    """Times with the breaks that are pending (1): (left, end, lateness cost, on time, all breaks taken).

    Everything as early as possible; then the start as late as the end allows.
    """
    m, n = d.profile[k], d.service.shape[0]
    left = max(d.shift_from[k], released(d, seq, 0, count))
    t, waited, delay, late, on_time, stops = left, 0.0, np.inf, 0.0, True, 0
    prev = d.start[k]
    for j in range(count + 1):
        node = d.end[k] if j == count else seq[j] if seq[j] >= 0 else -1 - seq[j]
        driving = d.time[m, prev, node]
        strict = node < n and d.late_cost[node] < 0 and not d.stays[node]
        service = 0.0
        if node < n:
            service = d.service[node]
            if d.place[prev] != d.place[node]:
                service += d.setup[node]
        elif j < count:
            service = d.reload_time[k]
        while True:  # breaks before leaving
            b, begin = take_break(d, k, pending, node, strict, t, driving, t, t + driving, service)
            if b < 0:
                break
            pending[b] = 2
            waited += begin - t
            delay = min(delay, waited + rest_slack(d, k, b, begin))
            t = begin + d.break_service[k, b]
        t += driving
        if j == count:
            for b in range(pending.shape[0]):
                if pending[b] == 1 and closes_last(d, k, b) < np.inf:
                    pending[b] = 3  # the vehicle is back: too late
        while True:  # breaks on arrival
            begin = t
            if node < n:
                begin = next_start(d.opens[node], d.closes[node], d.windows[node], t)
                if begin == np.inf:
                    begin = t
            elif j < count:
                begin = max(t, released(d, seq, j + 1, count) - d.reload_time[k])
            b, rest = take_break(d, k, pending, node, strict, t, 0.0, begin, begin + service, service)
            if b < 0:
                break
            pending[b] = 2
            waited += rest - t
            delay = min(delay, waited + rest_slack(d, k, b, rest))
            t = rest + d.break_service[k, b]
        waited += begin - t
        if node < n:
            slack, passed, inside = 0.0, -np.inf, False
            for w in range(d.windows[node]):
                if d.opens[node, w] <= begin:
                    passed = max(passed, d.closes[node, w])
                    if begin <= d.closes[node, w] + SECONDS:
                        inside = True
                        slack = max(slack, d.closes[node, w] - begin)
            delay = min(delay, waited + slack)
            if not inside and stops >= kept:
                if d.late_cost[node] < 0:
                    on_time = False
                else:
                    late += d.late_cost[node] * max(0.0, begin - passed)
            stops += 1
        elif j == count:
            delay = min(delay, waited)
        t = begin + service
        prev = node
    return left + max(delay, 0.0), t, late, on_time


@kernel
def walk(d, k, seq, count, kept, pending):
    """What a drive costs and how long it lasts, for a vehicle of kind k; infinity: it breaks a rule.

    seq: stops, or -1 - node for a reload.
    """
    stops, trips = 0, 1
    m, c = d.profile[k], d.price[k]
    prev, cost, distance, driving = d.start[k], 0.0, 0.0, 0.0
    for j in range(count + 1):
        if j == count:
            node = d.end[k]
        elif seq[j] >= 0:
            node = seq[j]
            stops += 1
            if not d.allowed[k, node]:
                return np.inf, 0.0
        else:
            node = -1 - seq[j]
            trips += 1
        cost += d.cost[c, prev, node]
        driving += d.time[m, prev, node]
        if d.length.shape[1] > 0:
            distance += d.length[m, prev, node]
        prev = node
    if stops > d.max_stops[k] or trips > d.trips[k] or driving > d.max_driving[k] + SECONDS:
        return np.inf, 0.0
    if distance > d.max_distance[k] * (1.0 + SHARE) or not carries(d, k, seq, count):
        return np.inf, 0.0
    for b in range(pending.shape[0]):
        pending[b] = 0
    while True:
        left, end, late, on_time = drive(d, k, seq, count, kept, pending)
        more, missed = False, False
        for b in range(pending.shape[0]):
            windows = d.break_windows[k, b]
            if windows == 0:
                continue
            last = closes_last(d, k, b)
            out_after = last if last < np.inf else d.break_opens[k, b, windows - 1]
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
    over = end - d.shift_to[k]
    if not on_time or missed or over > d.overtime[k] + SECONDS or lasts > d.max_duration[k] + SECONDS:
        return np.inf, 0.0
    cost += d.fixed[k] + d.time_cost[k] * lasts + late
    if over > 0.0:
        cost += d.overtime_cost[k] * over
    return cost, lasts
