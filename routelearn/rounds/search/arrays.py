"""A round as arrays for compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routelearn.rounds.model import ALWAYS, Round, Stop, Vehicle
from routelearn.search.graph import Floats, Ints, nearest

Flags = NDArray[np.bool_]

NEAR, BESIDE = 100, 40  # neighbours that a ruin may reach, and beside which a stop may be inserted
WAITING, LATE = 0.2, 1.0  # weights of the time between two stops in what makes them neighbours (Vidal et al. 2013)


class Data(NamedTuple):
    """What a search may read. Nodes are stops, then the other places that vehicles go to, then nowhere."""

    # legs, by profile and by what they cost
    cost: Floats  # [C, V, V]
    time: Floats  # [M, V, V]
    length: Floats  # [M, V, V]; [M, 0, 0] where no vehicle has a longest way
    place: Ints  # [V], -1: nowhere
    # stops
    delivery: Floats  # [n, Q]
    pickup: Floats  # [n, Q]
    opens: Floats  # [n, W]
    closes: Floats  # [n, W]
    windows: Ints  # [n]
    service: Floats
    setup: Floats
    release: Floats
    late_cost: Floats  # -1: not allowed
    unserved: Floats  # what it costs to leave a stop out
    mate: Ints  # -1: not of a shipment
    second: Flags  # the delivery of a shipment
    near: Ints  # [n, NEAR]: by the cost of legs
    beside: Ints  # [n, BESIDE]: by cost and time
    # kinds of vehicles
    allowed: Flags  # [T, n]
    start: Ints  # [T] nodes
    end: Ints
    profile: Ints
    price: Ints  # which cost of legs
    capacity: Floats  # [T, Q]
    fixed: Floats
    time_cost: Floats
    shift_from: Floats
    shift_to: Floats
    overtime: Floats
    overtime_cost: Floats
    max_duration: Floats
    max_distance: Floats
    max_driving: Floats
    max_stops: Ints
    trips: Ints
    reloads: Ints  # [T, L] nodes, -1 = no more
    reload_time: Floats
    break_opens: Floats  # [T, B, W]
    break_closes: Floats
    break_windows: Ints  # [T, B], 0 = no more
    break_service: Floats  # [T, B]
    # slots: one for every vehicle that may drive
    kind: Ints  # [R]
    slots: Ints  # [T + 1]: kind k has slots[k] to slots[k + 1]
    kept: Ints  # [R]: how many stops it begins with that may not move
    stays: Flags  # [n]: the stops that may not
    reload_from: Ints  # [R + 1]: the reloads of each slot
    # of the whole
    simple: bool  # one dimension, deliveries only: a route's load is a sum
    lasting: bool  # some vehicle has a longest duration
    walked: bool  # some rule is beyond labels: routes are walked
    last: bool  # backhauls come last
    reloading: bool  # some vehicle makes several trips
    apart: bool  # routes must be alike in some way
    stops_apart: float
    time_apart: float
    much: float  # the price of a rule broken on the way to a plan
    epsilon: float  # gains below are rounding


def windows_of(stop: Stop) -> list[tuple[float, float]]:
    return sorted(stop.windows or (ALWAYS,))


def slots_of(vehicle: Vehicle, stops: int) -> int:
    """How many vehicles of a kind can be of use."""
    return stops if vehicle.number is None else min(vehicle.number, max(stops, 1))


def walks(vehicle: Vehicle) -> bool:
    """Whether a vehicle has a rule that needs the whole route."""
    return (
        vehicle.time_cost > 0
        or vehicle.overtime > 0
        or bool(vehicle.breaks)
        or vehicle.trips > 1
        or vehicle.max_distance < np.inf
        or vehicle.max_driving < np.inf
    )


def reals(values: Sequence[float]) -> Floats:
    """Of one type whatever came in, so that no kernel compiles twice."""
    return np.array(values, dtype=np.float64)


def wholes(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int32)


def padded(rows: Sequence[Sequence[float]], fill: float, least: int = 1) -> Floats:
    """Rows of different length, as one array."""
    wide = max([least, *map(len, rows)])
    return np.array([[*row, *[fill] * (wide - len(row))] for row in rows], dtype=np.float64).reshape(len(rows), wide)


def data_of(x: Round) -> Data:
    stops, vehicles, n = x.stops, x.vehicles, len(x.stops)
    wanted = {place for v in vehicles for place in (v.start, v.end, *v.reloads) if place is not None}
    terminals = sorted(wanted)
    node = {place: n + k for k, place in enumerate(terminals)}
    nowhere = n + len(terminals)
    places = np.array([*(stop.place for stop in stops), *terminals], dtype=np.int64)
    profiles = sorted({v.profile if v.profile in x.legs else "" for v in vehicles})
    legs = [x.legs_of(next(v for v in vehicles if (v.profile if v.profile in x.legs else "") == p)) for p in profiles]
    profile = [profiles.index(v.profile if v.profile in x.legs else "") for v in vehicles]

    def expanded(matrix: Floats) -> Floats:
        """By nodes, with no legs from and to nowhere."""
        return np.pad(matrix[np.ix_(places, places)].astype(np.float64), ((0, 1), (0, 1)))

    priced = [(m, v.distance_cost, v.driving_cost) for m, v in zip(profile, vehicles, strict=True)]
    prices = sorted(set(priced))
    cost = np.stack([expanded(legs[m].distance * a + legs[m].duration * b) for m, a, b in prices])
    time = np.stack([expanded(one.duration) for one in legs])
    measured = any(v.max_distance < np.inf for v in vehicles)
    length = np.stack([expanded(one.distance) for one in legs]) if measured else np.zeros((len(legs), 0, 0))
    dims = max(
        [1, *(len(v.capacity) for v in vehicles), *(len(s.delivery) for s in stops), *(len(s.pickup) for s in stops)]
    )
    delivery, pickup = (padded([getattr(s, name) for s in stops], 0.0, dims) for name in ("delivery", "pickup"))
    capacity = padded([v.capacity for v in vehicles], np.inf, dims)
    windows = [windows_of(stop) for stop in stops]
    opens = padded([[a for a, _ in own] for own in windows], np.inf)
    closes = padded([[b for _, b in own] for own in windows], np.inf)
    mate, second = np.full(n, -1, np.int32), np.zeros(n, np.bool_)
    for a, b in x.shipments:
        mate[a], mate[b], second[b] = b, a, True
    counts = [slots_of(v, n) for v in vehicles]
    kind = np.repeat(np.arange(len(vehicles)), counts).astype(np.int32)
    slots = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    kept, stays = np.zeros(len(kind), np.int32), np.zeros(n, np.bool_)
    for k, v in enumerate(vehicles):
        if v.kept:
            kept[slots[k]] = len(v.kept)
            stays[list(v.kept)] = True
    service = reals([s.service for s in stops])
    shift_to = reals([v.shift[1] for v in vehicles])
    breaks = max([0, *(len(v.breaks) for v in vehicles)])
    break_width = max([1, *(len(b.windows) for v in vehicles for b in v.breaks)])
    break_opens, break_closes = (np.full((len(vehicles), breaks, break_width), np.inf) for _ in range(2))
    break_windows, break_service = np.zeros((len(vehicles), breaks), np.int32), np.zeros((len(vehicles), breaks))
    for k, v in enumerate(vehicles):
        for j, rest in enumerate(v.breaks):
            own = sorted(rest.windows)
            break_windows[k, j], break_service[k, j] = len(own), rest.service
            break_opens[k, j, : len(own)], break_closes[k, j, : len(own)] = zip(*own, strict=True)
    reloads = padded([[node[p] for p in v.reloads] for v in vehicles], -1).astype(np.int32)
    loaded = any(np.any(s.pickup) for s in stops) or bool(x.shipments)
    walked = (
        any(map(walks, vehicles))
        or any(len(own) > 1 for own in windows)
        or any(s.setup > 0 or s.release > 0 or s.late_cost is not None for s in stops)
        or bool(np.isfinite([x.most_stops_apart, x.most_time_apart]).any())
        or bool(kept.any())
        or (bool(x.shipments) and any(v.max_duration < np.inf for v in vehicles))
    )
    extra = wholes([v.trips - 1 if v.reloads else 0 for v in vehicles])[kind]
    fixed = reals([v.fixed_cost for v in vehicles])
    typical = float(cost[:, :n, :n].mean()) if n else 0.0
    # Dearer than any way to serve a stop: leaving out one that must be visited, one more vehicle where these count.
    dear = 4.0 * float(cost.max(initial=0.0)) + float(fixed.max(initial=0.0)) + typical
    dear += max(v.time_cost + v.overtime_cost for v in vehicles) * _span(x)
    much = 10.0 * dear
    if x.objective == "vehicles":
        fixed = fixed + dear
    unserved = reals([much * (1 + s.priority) if s.penalty is None else s.penalty for s in stops])
    for a, b in x.shipments:
        if stays[a]:
            unserved[b] += 100.0 * much  # it is aboard already
    both = cost[0, :n, :n] + cost[0, :n, :n].T
    few = max(0, n - 1)
    return Data(
        cost=cost, time=time, length=length, place=np.append(places, -1).astype(np.int32),
        delivery=delivery, pickup=pickup, opens=opens, closes=closes,
        windows=wholes([len(own) for own in windows]), service=service,
        setup=reals([s.setup for s in stops]), release=reals([s.release for s in stops]),
        late_cost=reals([-1.0 if s.late_cost is None else s.late_cost for s in stops]),
        unserved=unserved, mate=mate, second=second,
        near=nearest(both, min(NEAR, few)),
        beside=nearest(_between(cost[0], time[0], opens, closes, service), min(BESIDE, few)),
        allowed=np.array([[x.serves(v, s) for s in stops] for v in vehicles], dtype=np.bool_).reshape(len(vehicles), n),
        start=wholes([nowhere if v.start is None else node[v.start] for v in vehicles]),
        end=wholes([nowhere if v.end is None else node[v.end] for v in vehicles]),
        profile=np.array(profile, dtype=np.int32),
        price=wholes([prices.index(one) for one in priced]),
        capacity=capacity, fixed=fixed,
        time_cost=reals([v.time_cost for v in vehicles]),
        shift_from=reals([v.shift[0] if v.shift[0] > -np.inf else 0.0 for v in vehicles]), shift_to=shift_to,
        overtime=reals([v.overtime for v in vehicles]),
        overtime_cost=reals([v.overtime_cost for v in vehicles]),
        max_duration=reals([v.max_duration for v in vehicles]),
        max_distance=reals([v.max_distance for v in vehicles]),
        max_driving=reals([v.max_driving for v in vehicles]),
        max_stops=wholes([n if v.max_stops is None else v.max_stops for v in vehicles]),
        trips=wholes([v.trips if v.reloads else 1 for v in vehicles]), reloads=reloads,
        reload_time=reals([v.reload_time for v in vehicles]),
        break_opens=break_opens, break_closes=break_closes, break_windows=break_windows, break_service=break_service,
        kind=kind, slots=slots, kept=kept, stays=stays, reload_from=np.append(0, np.cumsum(extra)).astype(np.int32),
        simple=dims == 1 and not loaded and not any(v.trips > 1 for v in vehicles),
        lasting=any(v.max_duration < np.inf for v in vehicles), walked=walked, last=x.backhauls == "last",
        reloading=bool(extra.any()), apart=bool(np.isfinite([x.most_stops_apart, x.most_time_apart]).any()),
        stops_apart=float(x.most_stops_apart), time_apart=float(x.most_time_apart), much=much,
        epsilon=1e-9 * max(typical, 1e-30),
    )  # fmt: skip


def _span(x: Round) -> float:
    """The longest that a day can be, where something says so."""
    ends = [end for v in x.vehicles for end in (v.shift[1],)] + [b for s in x.stops for _, b in s.windows]
    return max((end for end in ends if np.isfinite(end)), default=0.0)


def _between(cost: Floats, time: Floats, opens: Floats, closes: Floats, service: Floats) -> Floats:
    """[n, n]: how far apart two stops are, in cost and time, in the better of the two orders."""
    n = len(service)
    scale = cost[:n, :n].sum() / max(time[:n, :n].sum(), 1e-30)  # what a second of driving costs
    first, last = opens[:, 0], np.where(np.isfinite(closes), closes, -np.inf).max(axis=1)
    last = np.where(np.isfinite(last), last, 1e18)
    reached = first[:, None] + service[:, None] + time[:n, :n]
    latest = np.minimum(last, 1e18)[:, None] + service[:, None] + time[:n, :n]
    waiting, late = np.maximum(first[None] - latest, 0.0), np.maximum(reached - last[None], 0.0)
    one_way = cost[:n, :n] + scale * (WAITING * waiting + LATE * late)
    return np.minimum(one_way, one_way.T)
