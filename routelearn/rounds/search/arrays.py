"""A round as arrays for compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from routelearn.rounds.model import Legs, Round, Vehicle, Window
from routelearn.search.graph import Floats, nearest

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]  # of one kind with all numbers in kernels, so that none is compiled for two
Numbers = NDArray[np.uint32]  # indices of the innermost loop: numba looks whether others are negative

NEAR, BESIDE = 100, 32  # neighbours that a ruin may reach, and beside which a stop may be inserted
BLOCK = 4  # so many of the latter are passed over at once
CLOSE = 5  # neighbours that tell the cost of a leg to a near one
WAITING, LATE = 0.2, 1.0  # weights of the time between two stops in what makes them neighbours (Vidal et al. 2013)


BRINGS, TAKES = 0, 1  # the two amounts of a stop
NONE, ZERO = np.int64(-1), np.int64(0)  # for calls of kernels: numba compiles another one for a number written there
STOP = np.dtype(
    [
        ("service", "f8"), ("setup", "f8"), ("release", "f8"), ("late_cost", "f8"),  # -1: it may not be late
        ("unserved", "f8"),  # what it costs to leave it out
        ("mate", "i8"), ("second", "?"),  # the other half of a shipment, -1: none; it is the delivery
        ("stays", "?"), ("windows", "i8"),  # it may not move; how many windows it has
    ],
    align=True,
)  # fmt: skip
VEHICLE = np.dtype(
    [
        ("start", "i8"), ("end", "i8"), ("profile", "i8"), ("price", "i8"),  # nodes; which times and costs of legs
        ("slot_from", "i8"), ("slot_to", "i8"), ("max_stops", "i8"), ("trips", "i8"),
        *((name, "f8") for name in (
            "fixed", "time_cost", "shift_from", "shift_to", "overtime", "overtime_cost", "max_duration",
            "max_distance", "max_driving", "reload_time",
        )),
    ],
    align=True,
)  # fmt: skip
SLOT = np.dtype([("kind", "i8"), ("kept", "i8"), ("reload_from", "i8"), ("reload_to", "i8")], align=True)
REST = np.dtype([("service", "f8"), ("windows", "i8")], align=True)
Records = NDArray[np.void]


class Data(NamedTuple):
    """What a search may read: few arrays, of records, because numba compiles slowly what is handed many.

    Nodes are stops, then the other places that vehicles go to, then nowhere. A slot is a vehicle that may drive.
    """

    cost: Floats  # [C, V, V]: of legs, by what vehicles cost
    back: Floats  # [C, V, V]: the same from the second node to the first, so that both ways of a stop lie in one row
    time: Floats  # [M, V, V]: by profile
    length: Floats  # [M, V, V]; [M, 0, 0] where no vehicle has a longest way
    place: Ints  # [V], -1: nowhere
    stop: Records  # [n] STOP
    window: Floats  # [n, W, 2]
    amount: Floats  # [n, Q, 2]
    near: Ints  # [n, NEAR]: by the cost of legs
    before: Numbers  # [n, BESIDE]: those from which to go to a stop, by cost and time
    after: Numbers  # [n, BESIDE]: those to go to from there
    vehicle: Records  # [T] VEHICLE: kinds of them
    capacity: Floats  # [T, Q]
    allowed: Flags  # [T, n]
    reloads: Ints  # [T, L] nodes, -1 = no more
    rest: Records  # [T, B] REST: breaks
    rest_window: Floats  # [T, B, W, 2]
    slot: Records  # [R] SLOT
    simple: bool  # one dimension, deliveries only: a route's load is a sum
    plain: bool  # a label of time depends on the one beside it alone, and loads are simple
    lasting: bool  # some vehicle has a longest duration
    limited: bool  # some vehicle has a longest way or time of driving
    released: bool  # some goods come late
    walked: bool  # some rule is beyond labels: routes are walked
    last: bool  # backhauls come last
    paired: bool  # there are shipments
    reloading: bool  # some vehicle makes several trips
    apart: bool  # routes must be alike in some way
    stops_apart: float
    time_apart: float
    mean_leg: float  # seconds of a mean leg
    much: float  # the price of a rule broken on the way to a plan
    near_leg: float  # the mean cost of a leg to one of the nearest stops
    epsilon: float  # gains below are rounding


def slots_of(vehicle: Vehicle, stops: int) -> int:
    """How many vehicles of a kind can be of use."""
    return stops if vehicle.number is None else min(vehicle.number, max(stops, 1))


def walks(vehicle: Vehicle) -> bool:
    """Whether a vehicle has a rule that needs the whole route."""
    return (
        vehicle.time_cost > 0 or vehicle.overtime > 0 or bool(vehicle.breaks) or (vehicle.trips > 1 and ends(vehicle))
    )


def ends(vehicle: Vehicle) -> bool:
    """Whether its routes may only be so long."""
    return min(vehicle.max_duration, vehicle.max_distance, vehicle.max_driving) < np.inf


def padded(rows: Sequence[Sequence[float]], fill: float, least: int = 1) -> Floats:
    """Rows of different length, as one array."""
    wide = max([least, *map(len, rows)])
    return np.array([[*row, *[fill] * (wide - len(row))] for row in rows], dtype=np.float64).reshape(len(rows), wide)


def windows_of(windows: Sequence[Sequence[tuple[float, float]]]) -> Floats:
    """[rows, W, 2], in order."""
    ends = [padded([[w[end] for w in sorted(own)] for own in windows], np.inf) for end in (0, 1)]
    return np.ascontiguousarray(np.stack(ends, axis=-1))


class NodeLegs(NamedTuple):
    """Legs by node, and which of them each kind of vehicle has."""

    cost: Floats
    back: Floats
    time: Floats
    length: Floats
    profile: list[int]
    price: list[int]


def legs_of(x: Round, places: NDArray[np.int64]) -> NodeLegs:
    """The legs between the places of all nodes; those from and to nowhere are 0."""

    def by_node(matrices: list[Floats]) -> Floats:
        return np.stack([np.pad(one[np.ix_(places, places)].astype(np.float64), ((0, 1), (0, 1))) for one in matrices])

    own = [x.legs_of(v) for v in x.vehicles]
    first = [next(k for k, other in enumerate(own) if other is one) for one in own]
    kinds = sorted(set(first))
    legs, profile = [own[k] for k in kinds], [kinds.index(k) for k in first]
    priced = [(m, v.distance_cost, v.driving_cost) for m, v in zip(profile, x.vehicles, strict=True)]
    prices = sorted(set(priced))
    limited = any(v.max_distance < np.inf for v in x.vehicles)

    def priced_by(one: Legs, by_length: float, by_time: float) -> Floats:
        found: Floats = one.distance * by_length + one.duration * by_time
        return found if one.cost is None else found + one.cost

    cost = by_node([priced_by(legs[m], by_length, by_time) for m, by_length, by_time in prices])
    time = by_node([one.duration for one in legs])
    if np.array_equal(cost, time):
        cost = time  # half the memory that a search reaches for
    back = cost.transpose(0, 2, 1)
    return NodeLegs(
        cost,
        cost if np.array_equal(cost, back) else np.ascontiguousarray(back),
        time,
        by_node([one.distance for one in legs]) if limited else np.zeros((len(legs), 0, 0)),
        profile,
        [prices.index(one) for one in priced],
    )


def stops_of(x: Round, much: float) -> Records:
    """`much`: what it costs to leave out a stop that must be visited."""
    stop = np.zeros(len(x.stops), STOP)
    levels = sorted({one.priority for one in x.stops})
    most = max(max(sum(one.delivery) for one in x.stops), 1e-30)
    for i, one in enumerate(x.stops):
        late_cost = -1.0 if one.late_cost is None else one.late_cost
        unserved = one.penalty
        if unserved is None:
            unserved = much * 10.0 ** min(levels.index(one.priority), 6)
            if not x.allow_unassigned:  # all must fit: the more there is to carry, the harder it is to place at last
                unserved *= 1.0 + sum(one.delivery) / most
        windows = len(one.windows)
        stop[i] = (one.service, one.setup, one.release, late_cost, unserved, -1, False, False, windows)
    for v in x.vehicles:
        stop["stays"][list(v.kept)] = True
    for a, b in x.shipments:
        stop["mate"][a], stop["mate"][b], stop["second"][b] = b, a, True
        if stop["stays"][a]:
            stop["unserved"][b] += 100.0 * much  # it is aboard already
    return stop


def data_of(x: Round) -> Data:
    stops, vehicles, n = x.stops, x.vehicles, len(x.stops)
    terminals = sorted({place for v in vehicles for place in (v.start, v.end, *v.reloads) if place is not None})
    node: dict[int | None, int] = {place: n + k for k, place in enumerate(terminals)} | {None: n + len(terminals)}
    places = np.array([*(stop.place for stop in stops), *terminals], dtype=np.int64)
    legs = legs_of(x, places)
    dims = max([1, *(len(one) for s in stops for one in (s.delivery, s.pickup)), *(len(v.capacity) for v in vehicles)])
    typical, fixed = float(legs.cost[:, :n, :n].mean()), max(v.fixed_cost for v in vehicles)
    # Dearer than any way to serve a stop: one more vehicle where these count; leaving out one that must be visited.
    by_time = max(v.time_cost + v.overtime_cost for v in vehicles) + max(s.late_cost or 0.0 for s in stops)
    dear = 1.0 + 4.0 * float(legs.cost.max()) + fixed + typical + by_time * _span(x)
    much = 10.0 * dear
    stop, window = stops_of(x, much), windows_of([s.windows for s in stops])

    vehicle = np.zeros(len(vehicles), VEHICLE)
    slot_kinds: list[int] = []
    for k, v in enumerate(vehicles):
        one, first = vehicle[k], len(slot_kinds)
        slot_kinds += [k] * slots_of(v, n)
        one["start"], one["end"], one["profile"], one["price"] = (
            node[v.start],
            node[v.end],
            legs.profile[k],
            legs.price[k],
        )
        one["slot_from"], one["slot_to"] = first, len(slot_kinds)
        one["max_stops"] = n if v.max_stops is None else v.max_stops
        one["trips"] = v.trips if v.reloads else 1
        one["fixed"] = v.fixed_cost + (dear if x.objective == "vehicles" else 0.0)
        one["shift_from"], one["shift_to"] = v.shift[0] if v.shift[0] > -np.inf else 0.0, v.shift[1]
        same = ("time_cost", "overtime", "overtime_cost", "max_duration", "max_distance", "max_driving", "reload_time")
        for name in same:
            one[name] = getattr(v, name)
    slot = np.zeros(len(slot_kinds), SLOT)
    slot["kind"] = slot_kinds
    slot["reload_to"] = np.cumsum(vehicle["trips"][slot_kinds] - 1)
    slot["reload_from"] = slot["reload_to"] - (vehicle["trips"][slot_kinds] - 1)
    for k, v in enumerate(vehicles):
        if v.kept:
            slot["kept"][vehicle["slot_from"][k]] = len(v.kept)

    breaks = max(len(v.breaks) for v in vehicles)
    rest = np.zeros((len(vehicles), breaks), REST)
    rests: list[list[tuple[Window, ...]]] = [
        [b.windows for b in v.breaks] + [()] * (breaks - len(v.breaks)) for v in vehicles
    ]
    for k, v in enumerate(vehicles):
        for j, one_break in enumerate(v.breaks):
            rest[k, j] = (one_break.service, len(one_break.windows))
    rest_window = windows_of([own for row in rests for own in row])

    walked = (
        any(map(walks, vehicles))
        or window.shape[1] > 1
        or any(s.setup > 0 or s.late_cost is not None for s in stops)
        or bool(np.isfinite([x.most_stops_apart, x.most_time_apart]).any())
        or bool(stop["stays"].any())
        or (bool(x.shipments) and any(ends(v) or v.trips > 1 for v in vehicles))
    )
    simple = dims == 1 and not any(any(s.pickup) for s in stops) and not x.shipments and not slot["reload_to"].any()
    lasting, released = any(v.max_duration < np.inf for v in vehicles), any(s.release > -np.inf for s in stops)
    few, there, onward = max(0, n - 1), legs.cost[0, :n, :n], _onward(legs, window, stop["service"])
    near = nearest(there + there.T, min(NEAR, few)).astype(np.int64)
    amounts = [padded([getattr(s, name) for s in stops], 0.0, dims) for name in ("delivery", "pickup")]
    return Data(
        cost=legs.cost, back=legs.back, time=legs.time, length=legs.length,
        place=np.append(places, -1).astype(np.int64),
        stop=stop, window=window, amount=np.ascontiguousarray(np.stack(amounts, axis=-1)),
        near=near,
        before=nearest(np.ascontiguousarray(onward.T), min(BESIDE, few)).astype(np.uint32),
        after=nearest(onward, min(BESIDE, few)).astype(np.uint32),
        vehicle=vehicle, capacity=padded([v.capacity for v in vehicles], np.inf, dims),
        allowed=np.array([[x.serves(v, s) for s in stops] for v in vehicles], dtype=np.bool_),
        reloads=padded([[node[p] for p in v.reloads] for v in vehicles], -1).astype(np.int64),
        rest=rest, rest_window=rest_window.reshape(*rest.shape, *rest_window.shape[1:]), slot=slot,
        simple=bool(simple), plain=bool(simple) and not lasting and not released, lasting=lasting,
        limited=any(min(v.max_distance, v.max_driving) < np.inf for v in vehicles), released=released,
        walked=walked, last=x.backhauls == "last", paired=bool(x.shipments),
        reloading=bool(slot["reload_to"].any()), apart=bool(np.isfinite([x.most_stops_apart, x.most_time_apart]).any()),
        stops_apart=float(x.most_stops_apart), time_apart=float(x.most_time_apart),
        mean_leg=max(float(legs.time.mean()), 1e-9), much=much,
        near_leg=float(np.take_along_axis(there, near[:, :CLOSE], 1).mean()) if few else typical,
        epsilon=1e-9 * max(typical, 1e-30),
    )  # fmt: skip


def _span(x: Round) -> float:
    """The longest that a day can be, where something says so."""
    ends = [end for v in x.vehicles for end in (v.shift[1],)] + [b for s in x.stops for _, b in s.windows]
    return max((end for end in ends if np.isfinite(end)), default=0.0)


def _onward(legs: NodeLegs, window: Floats, service: Floats) -> Floats:
    """[n, n]: how far it is from one stop (row) to the next, in cost and time."""
    n = len(service)
    cost, time = legs.cost[0, :n, :n], legs.time[0, :n, :n]
    scale = cost.sum() / max(time.sum(), 1e-30)  # what a second of driving costs
    first, closes = window[:, 0, 0], window[..., 1]
    last = np.where(np.isfinite(closes), closes, -np.inf).max(axis=1)
    last = np.where(np.isfinite(last), last, 1e18)
    leaves = service[:, None] + time
    waiting = np.maximum(first[None] - last[:, None] - leaves, 0.0)
    late = np.maximum(first[:, None] + leaves - last[None], 0.0)
    return np.asarray(cost + scale * (WAITING * waiting + LATE * late))
