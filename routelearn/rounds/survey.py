"""Where in a plan a further stop might go: all places at once, by what each would probably break.

Reasons are found by trying places one by one, which is exact and slow; this says which to try first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from routelearn.rounds.model import FOREVER, Matrix, Round, Vehicle
from routelearn.rounds.plan import Drive, Plan
from routelearn.rounds.timing import SECONDS, drive_through, last_end, nodes_of, plan_of, schedule

NEAR = 1e-3  # of a broken rule: what the longest of all detours counts


class Survey:
    """A plan's drives, what they break, and every gap in them; after them an empty drive of each kind of vehicle."""

    def __init__(self, round: Round, plan: Plan) -> None:
        self.round, self.drives = round, plan.drives
        now = plan_of(round, self.drives)
        self.costs = [route.cost for route in now.routes]
        self.served = {stop for route in now.routes for stop in route.stops}
        self.before = {violation.words for violation in now.violations}
        self.used = Counter(drive.vehicle for drive in self.drives)
        self.positions: list[int] = []  # of each gap in its drive's order
        self.spans: list[slice] = []  # the gaps of each drive
        rows: list[tuple[float, ...]] = []
        room: list[tuple[np.ndarray, np.ndarray]] = []
        fresh = [Drive(k, ()) for k in range(len(round.vehicles))]
        for drive in (*self.drives, *fresh):
            vehicle = round.vehicles[drive.vehicle]
            first = first_free(vehicle, drive.order)
            for row, free in self._gaps(drive)[first:]:
                rows.append((drive.vehicle, *row))
                room.append(free)
            self.positions += range(first, len(drive.order) + 1)
            self.spans.append(slice(len(self.positions) - (len(drive.order) + 1 - first), len(self.positions)))
        table = np.array(rows)
        self.kind, self.previous, self.following = (table[:, c].astype(np.int64) for c in range(3))
        self.ready, self.latest, self.more_stops = table[:, 3], table[:, 4], table[:, 5]
        self.more_distance, self.more_driving, self.taken = table[:, 6], table[:, 7], table[:, 8]
        self.before_it, self.after_it = (np.array([free[side] for free in room]) for side in (0, 1))
        self.there, self.on = self.previous >= 0, self.following >= 0
        legs = [round.legs_of(vehicle) for vehicle in round.vehicles]
        self.profiles = [  # legs, and the gaps of vehicles that have them
            (one, np.flatnonzero(np.array([other is one for other in legs])[self.kind]))
            for one in {id(one): one for one in legs}.values()
        ]

    def _gaps(self, drive: Drive) -> list[tuple[tuple[float, ...], tuple[np.ndarray, np.ndarray]]]:
        """(places before and after, earliest departure, latest arrival, what limits leave), room for amounts."""
        round_, vehicle = self.round, self.round.vehicles[drive.vehicle]
        nodes = nodes_of(round_, drive)
        drive_through(nodes, nodes[0].windows[0][0])
        latest = [vehicle.shift[1] + vehicle.overtime] * len(nodes)
        for i in range(len(nodes) - 2, 0, -1):
            close = nodes[i].start + nodes[i].slack() if nodes[i].strict else FOREVER
            latest[i] = min(close, latest[i + 1] - nodes[i + 1].driving - nodes[i].service)
        size = round_.size
        capacity = np.array(vehicle.capacity) if len(vehicle.capacity) == size else np.full(size, FOREVER)
        route = schedule(round_, drive)[0] if drive.order else None
        loads = [visit.load for visit in route.visits if visit.kind != "break"] if route else [(0.0,) * size] * 2
        free = capacity - np.array(loads).reshape(len(nodes), size)
        ends = [0, *(i for i, node in enumerate(nodes) if node.kind == "reload"), len(nodes) - 1]
        distance, driving = (route.distance, route.driving) if route else (0.0, 0.0)
        stops = FOREVER if vehicle.max_stops is None else vehicle.max_stops - sum(at >= 0 for at in drive.order)
        taken = not drive.order and vehicle.number is not None and self.used[drive.vehicle] >= vehicle.number
        found: list[tuple[tuple[float, ...], tuple[np.ndarray, np.ndarray]]] = []
        for i, (before, node) in enumerate(pairwise(nodes)):
            begin = max(end for end in ends if end <= i)
            close = min(end for end in ends if end > i)
            limits = (stops, vehicle.max_distance - distance, vehicle.max_driving - driving, float(taken))
            places = (-1 if before.place is None else before.place, -1 if node.place is None else node.place)
            rooms = free[begin : i + 1].min(axis=0), free[i:close].min(axis=0)
            found.append(((*places, before.departure, latest[i + 1], *limits), rooms))
        return found

    def scores(self, stop: int) -> Matrix:
        """For every gap about how many rules the stop would break there; among equals the shortest detour is least."""
        one = self.round.stops[stop]
        distance, driving, onward, arrival = (np.zeros(len(self.kind)) for _ in range(4))
        for legs, at in self.profiles:
            there, on = self.there[at], self.on[at]
            before, after = self.previous[at], self.following[at]
            to, onward[at] = there * legs.duration[before, one.place], on * legs.duration[one.place, after]
            arrival[at] = self.ready[at] + to
            driving[at] = to + onward[at] - (there & on) * legs.duration[before, after]
            distance[at] = there * legs.distance[before, one.place] + on * legs.distance[one.place, after]
            distance[at] -= (there & on) * legs.distance[before, after]
        begin = np.full(len(arrival), FOREVER)
        for low, high in one.windows:
            begin = np.where(arrival <= high + SECONDS, np.minimum(begin, np.maximum(low, arrival)), begin)
        begin = np.where(begin < FOREVER, begin, arrival)
        kinds = [(not one.skills <= v.skills) + (not self.round.named(v, one)) for v in self.round.vehicles]
        broken = np.array(kinds, dtype=float)[self.kind] + self.taken + (self.more_stops < 1)
        if one.late_cost is None:
            broken += arrival > last_end(one.windows) + SECONDS
        broken += begin + one.service + one.setup + onward > self.latest + SECONDS
        broken += (np.array(one.delivery) > self.before_it).any(axis=1) if any(one.delivery) else 0.0
        broken += (np.array(one.pickup) > self.after_it).any(axis=1) if any(one.pickup) else 0.0
        broken += (distance > self.more_distance) + (driving > self.more_driving)
        cost: Matrix = broken + NEAR * distance / max(1e-9, float(np.abs(distance).max()))
        return cost


def first_free(vehicle: Vehicle, order: Sequence[int]) -> int:
    """The first position in an order after the stops that are kept."""
    return max((i + 1 for i, at in enumerate(order) if at in vehicle.kept), default=0)
