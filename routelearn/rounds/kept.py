"""Beginnings of plans, kept or given: refused where no search could go on from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from routelearn.data.numbers import shown
from routelearn.errors import InputError
from routelearn.rounds.model import Round, Vehicle
from routelearn.rounds.plan import Drive
from routelearn.rounds.timing import SHARE, added, trips_of


def check_kept(given: Round, source: str | None = None) -> None:
    """Refuse kept stops from which no search can go on; `source` is the plan that says what is kept."""
    keeper: dict[int, int] = {}
    half_of = {d: p for p, d in given.shipments}
    for k, vehicle in enumerate(given.vehicles):
        at = f"{given.vehicle_at(k)}:" if source is None else f"{source}: {vehicle.called}"
        for n, stop in enumerate(vehicle.kept):
            if not 0 <= stop < len(given.stops):
                raise InputError(f"{at} keeps stop {stop}, but there are {len(given.stops)}")
            if stop in keeper:
                raise InputError(f"{at} keeps {shown(given.stops[stop].id)}, which is kept already")
            keeper[stop] = k
            if stop in half_of and half_of[stop] not in vehicle.kept[:n]:
                raise InputError(
                    f"{at} keeps the delivery {shown(given.stops[stop].id)} of a shipment, but not its pickup before it"
                )
        if vehicle.kept and vehicle.number == 0:
            there = sum(one.number or 0 for one in given.vehicles if one.id == vehicle.id)
            are = "is" if there == 1 else "are"
            raise InputError(f"{at} keeps stops, but only {there} of its kind {are} there; say that there are more")
        if vehicle.kept and (trips := trips_needed(given, vehicle)) > max(1, vehicle.trips):
            raise InputError(
                f"{at} keeps stops whose amounts take {trips} trips, but may make {vehicle.trips}; allow more trips"
            )


def trips_needed(given: Round, vehicle: Vehicle) -> int:
    """How many trips the stops take that a vehicle keeps: a further one wherever the next stop is too much."""
    limits = [capacity * (1 + SHARE) + SHARE for capacity in vehicle.capacity]
    nothing = [0.0] * given.size
    most: Sequence[float] = nothing
    last: Sequence[float] = nothing
    trips, picked = 1, False
    for n, i in enumerate(vehicle.kept):
        stop, shipment = given.stops[i], given.shipment_of.get(i)
        brought, handed = (stop.delivery, ()) if shipment is None or i == shipment[0] else ((), stop.delivery)
        gained = added(added(nothing, stop.pickup), handed, -1.0)
        grown = [max(a, b) for a, b in zip(added(most, brought), added(last, gained), strict=True)]
        backhaul = given.backhauls == "last" and shipment is None
        full = any(part > limit for part, limit in zip(grown, limits, strict=False))
        if n and vehicle.reloads and (full or (backhaul and picked and any(stop.delivery))):
            trips, last, picked = trips + 1, nothing, False
            grown = [max(a, b) for a, b in zip(added(nothing, brought), gained, strict=True)]
        most, last = grown, added(last, gained)
        picked |= backhaul and any(stop.pickup)
    return trips


def check_start(given: Round, drives: Sequence[Drive], source: str) -> None:
    """Refuse drives that a search cannot take up: of vehicles, stops or reloads that are not there, or too often."""
    used: Counter[int] = Counter()
    seen: set[int] = set()
    for i, drive in enumerate(drives, 1):
        at = f"{source}: route {i}"
        if not 0 <= drive.vehicle < len(given.vehicles):
            raise InputError(f"{at} has vehicle {drive.vehicle}, but there are {len(given.vehicles)} kinds, from 0")
        vehicle = given.vehicles[drive.vehicle]
        used[drive.vehicle] += 1
        if vehicle.number is not None and used[drive.vehicle] > vehicle.number:
            raise InputError(f"{at} is of {vehicle.called}, of which there are only {vehicle.number}")
        trips = trips_of(drive.order)
        if len(trips) > max(1, vehicle.trips):
            raise InputError(f"{at} has {len(trips)} trips, but {vehicle.called} may make {vehicle.trips}")
        if not all(trips) or any(at < 0 and ~at not in vehicle.reloads for at in drive.order):
            raise InputError(f"{at} reloads where {vehicle.called} may not, or has a trip without stops")
        for stop in (stop for trip in trips for stop in trip):
            if stop >= len(given.stops):
                raise InputError(f"{at} has stop {stop}, but there are {len(given.stops)}, from 0")
            if stop in seen:
                raise InputError(f"{at} visits {shown(given.stops[stop].id)}, which was visited before")
            seen.add(stop)
