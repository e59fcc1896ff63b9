"""A first plan of a round by the policy for variants of vehicle routing (problems/vrp.py).

The policy knows places, depots, open routes, one amount, one window a stop, how long service takes and how long a route
may be. A round may ask for more, so its routes are cut to what the round allows; the search inserts what falls out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from routelearn.data.convert import for_policy
from routelearn.data.geometry import project
from routelearn.models.model_file import Model
from routelearn.problems.base import to_single
from routelearn.problems.vrp import DEPOTS, VRP, Instance
from routelearn.rounds.model import FOREVER, Round, Vehicle
from routelearn.rounds.plan import Drive
from routelearn.rounds.timing import beginning, schedule
from routelearn.solving.anytime import one_torch_thread
from routelearn.solving.guide import Guide

SYMMETRIES = 8
MANY = 200  # stops; beyond, each symmetry would take too long
WHOLE = 10_000  # parts of the capacity in which amounts are counted
CUT = 0.75  # of a route that no vehicle may drive, the share that is tried next


def unknown(x: Round) -> str | None:
    """What a round has that the policy can make nothing of; None if it can plan it."""
    if x.xy is None and x.latlon is None:
        return "places without coordinates"
    if x.shipments:
        return "shipments"
    if any(vehicle.start is None for vehicle in x.vehicles):
        return "vehicles that begin at their first stop"
    if any(vehicle.kept for vehicle in x.vehicles):
        return "stops that are kept"
    return None


def policy_plan(x: Round, model: Model) -> list[Drive]:
    """Drives that break no rule, by a policy that was told of the round; stops may be missing."""
    problem, depots = VRP(), depots_of(x)
    within_reach = problem.servable(instance_of(x, depots, range(len(x.stops))))
    stops = within_reach[0, len(depots) :].nonzero()[:, 0].tolist()
    if not stops:
        return []
    instance = instance_of(x, depots, stops)
    guide = Guide(problem, model, to_single(for_policy(problem, instance)), instance)
    with one_torch_thread():  # for steps as small as these, more lose by waiting for each other
        found = guide.construct(augment=SYMMETRIES if len(stops) <= MANY else 1)
    if found is None:
        return []
    routes = problem.routes(instance, found[0][0, 0].tolist())
    numbered = [(depots[depot], [stops[node - len(depots)] for node in nodes]) for depot, nodes in routes]
    return list(allowed(x, numbered))


# The round as the policy sees it


def depots_of(x: Round) -> list[int]:
    """The places where vehicles start, each once, filled up with the first to as many as the policy was trained on."""
    places = list(dict.fromkeys(vehicle.start for vehicle in x.vehicles if vehicle.start is not None))
    return [*places, *places[:1] * (DEPOTS - len(places))]


def instance_of(x: Round, depots: Sequence[int], stops: Sequence[int]) -> Instance:
    """These stops behind the depots. Where times count, a way is as long as it takes, at the mean speed."""
    legs, chosen = x.legs_of(x.vehicles[0]), [x.stops[i] for i in stops]
    whole, driven = float(legs.duration.sum()), float(legs.distance.sum())
    speed = driven / whole if whole > 0 and driven > 0 else 1.0
    zero = min(beginning(vehicle) for vehicle in x.vehicles)
    windows = [shift_of(x, place) for place in depots]
    for stop in chosen:
        end = max(end for _, end in stop.windows) if stop.late_cost is None else FOREVER
        windows.append((min(begin for begin, _ in stop.windows), end))
    timed = any(end < FOREVER for _, end in windows)
    nodes = [*depots, *(stop.place for stop in chosen)]
    places = x.xy if x.latlon is None else project(x.latlon)
    assert places is not None
    matrix = legs.duration * speed if timed and whole > 0 else legs.distance
    deliveries, pickups = amounts_of(x)
    none = [0] * len(depots)

    def fractions(values: Any, kind: Any = np.float64) -> torch.Tensor:
        return torch.as_tensor(np.asarray(values, dtype=kind))[None]

    wholes = partial(fractions, kind=np.int64)

    return Instance(
        xy=fractions(places[nodes]),
        depots=wholes([1, *(int(place != depots[0]) for place in depots[1:])]),
        delivery=wholes([*none, *deliveries[list(stops)]]),
        pickup=wholes([*none, *pickups[list(stops)]]),
        capacity=wholes(WHOLE),
        window=fractions(np.maximum(np.array(windows) - zero, 0.0) * speed),
        service=fractions([*none, *((stop.service + stop.setup) * speed for stop in chosen)]),
        max_length=fractions(max(min(v.max_distance, v.max_driving * speed) for v in x.vehicles)),
        open=wholes(all(vehicle.end is None for vehicle in x.vehicles)),
        mixed=wholes(x.backhauls == "mixed"),
        distances=fractions(matrix[np.ix_(nodes, nodes)]),
    )


def shift_of(x: Round, place: int) -> tuple[float, float]:
    """When vehicles leave a depot, and when the last is back."""
    own = [vehicle for vehicle in x.vehicles if vehicle.start == place]
    ends = (min(v.shift[1] + v.overtime, beginning(v) + v.max_duration) for v in own)
    return min(map(beginning, own)), max(ends)


def amounts_of(x: Round) -> tuple[np.ndarray, np.ndarray]:
    """What each stop gets and gives, in parts of the largest capacity, of the amount that fills vehicles most."""
    both, fullest = np.zeros((2, len(x.stops))), 0.0
    for k in range(x.size):
        capacity = max(v.capacity[k] if k < len(v.capacity) else FOREVER for v in x.vehicles)
        if 0 < capacity < FOREVER:
            own = [[a[k] if k < len(a) else 0.0 for a in (stop.delivery, stop.pickup)] for stop in x.stops]
            shares = np.array(own).T / capacity
            if (filled := shares.max(0).sum()) > fullest:
                both, fullest = shares, filled
    deliveries, pickups = np.ceil(WHOLE * both - 1e-6).astype(np.int64)
    return deliveries, pickups


# What the policy planned, as the round allows it


def allowed(x: Round, routes: Sequence[tuple[int, list[int]]]) -> Iterator[Drive]:
    """Each route by the vehicle that drives it at the least cost, or as much of it as a vehicle may drive."""
    free = [FOREVER if vehicle.number is None else vehicle.number for vehicle in x.vehicles]
    named = any(stop.only is not None or stop.forbidden for stop in x.stops)
    kinds = [vehicle if named else replace(vehicle, id="", number=1) for vehicle in x.vehicles]
    for place, order in sorted(routes, key=lambda route: -len(route[1])):
        at_hand: dict[Vehicle, int] = {}
        for k, kind in enumerate(kinds):
            if free[k] > 0 and kind.start == place:
                at_hand.setdefault(kind, k)
        while order:
            tried = [(schedule(x, Drive(k, tuple(order))), k) for k in at_hand.values()]
            if fitting := [(route.cost, k) for (route, broken), k in tried if not broken]:
                _, k = min(fitting)
                free[k] -= 1
                yield Drive(k, tuple(order))
                break
            order = order[: int(CUT * len(order))]
