"""Random rounds with random combinations of all attributes, by seed.

Each is built around a plan that is drawn first: every attribute is set so that this plan keeps it, mostly only just.
So nearly every round has an answer, and attributes bind, because the drawn plan is not a good one.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from routelearn.rounds.model import ANY, FOREVER, Break, Legs, Round, Stop, Vehicle
from routelearn.rounds.plan import Drive, Plan
from routelearn.rounds.timing import plan_of

MOST_STOPS = 12
SKILLS = ("1", "2", "3")
TIGHT = (1.0, 1.0, 1.02, 1.1, 1.3)  # how much of a limit the drawn plan leaves free


def random_round(seed: int, most_stops: int = MOST_STOPS) -> Round:
    """A round of 1 to `most_stops` stops."""
    return drawn(seed, most_stops)[0]


@lru_cache(maxsize=5000)
def drawn(seed: int, most_stops: int = MOST_STOPS) -> tuple[Round, tuple[Drive, ...]]:
    """A round, and the plan that it was made around: a feasible one."""
    maker = Maker(random.Random(f"rounds {seed}"), most_stops)
    maker.make()
    return maker.round, maker.drives


class Maker:
    """Sets one attribute after another, as long as the drawn plan stays feasible."""

    def __init__(self, rng: random.Random, most_stops: int) -> None:
        self.rng = rng
        self.stops = 1 if rng.random() < 0.03 else rng.randint(min(2, most_stops), most_stops)
        self.drives: tuple[Drive, ...] = ()
        self.left_out: list[int] = []
        self.fewest = self.chance(0.2)
        self.round = self.bare()

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def between(self, low: float, high: float, digits: int = 0) -> float:
        return round(self.rng.uniform(low, high), digits)

    def bare(self) -> Round:
        """Places, legs, stops, and vehicles with where they start and end."""
        rng = self.rng
        depots = rng.choice((1, 1, 2, 3))
        sites = max(1, self.stops - (rng.randint(1, 3) if self.chance(0.3) else 0))
        xy = np.array([[rng.randint(0, 100), rng.randint(0, 100)] for _ in range(depots + sites)], dtype=float)
        distance = np.round(np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1)), 2)
        if self.chance(0.3):  # not symmetric
            distance = np.round(distance * np.array([[rng.uniform(1, 1.5) for _ in xy] for _ in xy]), 2)
        pace = rng.uniform(20, 60)
        duration = np.round(distance * pace)
        if self.chance(0.4):  # not in proportion
            duration = np.round(duration * np.array([[rng.uniform(0.5, 1.5) for _ in xy] for _ in xy]))
        legs = {ANY: Legs(distance, duration)}
        if self.chance(0.25):
            legs["lorry"] = Legs(np.round(distance * rng.uniform(1, 1.3), 2), np.round(duration * rng.uniform(1, 2)))
        where = list(range(depots, depots + sites))
        where += [rng.choice(where) for _ in range(self.stops - sites)]
        rng.shuffle(where)
        stops = tuple(Stop(id=f"s{i}", place=place) for i, place in enumerate(where))
        vehicles = []
        for k in range(rng.choice((1, 2, 2, 3, 3))):
            start = rng.randrange(depots)
            end: int | None = start if self.chance(0.7) else rng.randrange(depots)
            vehicles.append(
                Vehicle(
                    id=f"v{k}",
                    number=rng.choice((1, 1, 1, 2, 3, None)),
                    start=None if self.chance(0.12) else start,
                    end=None if self.chance(0.12) else end,
                    profile="lorry" if "lorry" in legs and self.chance(0.6) else ANY,
                )
            )
        if self.fewest and self.chance(0.6):  # many vehicles would be cheaper
            vehicles[-1] = replace(vehicles[-1], start=None, end=None, number=rng.choice((2, 3, None)))
        return Round(
            source=f"random {rng.random():.4f}",
            stops=stops,
            vehicles=tuple(vehicles),
            legs=legs,
            places=tuple([f"D{d}" for d in range(depots)] + [f"P{p}" for p in range(sites)]),
            xy=xy,
            day=rng.choice((None, "", "2026-11-16")),
        )

    # Helpers

    @property
    def plan(self) -> Plan:
        return plan_of(self.round, self.drives)

    def keeps(self, changed: Round) -> bool:
        """Take over a change if the drawn plan stays feasible."""
        relaxed = replace(changed, allow_unassigned=True)
        if plan_of(relaxed, self.drives).violations:
            return False
        self.round = changed
        return True

    def each_stop(self, change: Callable[[int, Stop], dict[str, Any]], share: float) -> None:
        """Change a share of the stops, each if the plan allows it."""
        for i in range(len(self.round.stops)):
            if self.chance(share):
                stops = list(self.round.stops)
                stops[i] = replace(stops[i], **change(i, stops[i]))
                self.keeps(replace(self.round, stops=tuple(stops)))

    def each_vehicle(self, change: Callable[[int, Vehicle], dict[str, Any]], share: float) -> None:
        for k in range(len(self.round.vehicles)):
            if self.chance(share):
                vehicles = list(self.round.vehicles)
                vehicles[k] = replace(vehicles[k], **change(k, vehicles[k]))
                self.keeps(replace(self.round, vehicles=tuple(vehicles)))

    def routes(self, vehicle: int) -> list[Any]:
        return [route for route in self.plan.routes if route.vehicle == vehicle]

    def starts(self) -> dict[int, float]:
        return {v.stop: v.start for route in self.plan.routes for v in route.visits if v.stop is not None}

    def vehicle_of(self, stop: int) -> int | None:
        return next((drive.vehicle for drive in self.drives if stop in drive.order), None)

    # The drawn plan

    def make(self) -> None:
        self.backhauls = self.chance(0.25) and self.stops > 2
        self.crowded = crowded = self.backhauls and self.chance(0.7)  # on one vehicle, which then has both
        self.balanced = self.chance(0.0 if crowded else 0.25)
        self.ranked = self.chance(0.0 if crowded else 0.25)
        self.limited = self.chance(0.0 if crowded else 0.1 if self.ranked else 0.45)
        self.amounts()
        self.reloading = self.chance(0.4)
        if self.reloading:
            self.several_trips()
        self.draw()
        loaded = 1.0 if self.reloading else 0.35 if self.limited or self.balanced else 0.75
        steps = [
            (0.5, self.service), (0.25, self.setup), (0.15, self.releases), (0.3, self.breaks),
            (0.25 if self.crowded or self.limited else 0.4 if self.ranked else 0.75, self.windows),
            (0.3, self.late), (loaded, self.capacity), (0.4 if self.limited else 0.7, self.shifts),
            (0.25, self.overtime), (self.limited, self.limits), (0.35, self.skills),
            (0.35, self.named), (0.5, self.costs), (self.balanced, self.apart), (0.2, self.kept),
            (0.15 if self.ranked else 0.35, self.penalties), (self.ranked, self.priorities),
        ]  # fmt: skip
        for probability, step in steps:
            if self.chance(probability):
                step()
        self.leg_costs(random.Random(self.round.source))
        self.round = replace(
            self.round,
            objective="vehicles" if self.fewest else "cost",
            allow_unassigned=bool(self.left_out) or self.chance(0.1),
        )

    def amounts(self) -> None:
        """Deliveries, pickups and shipments, in up to three dimensions."""
        rng, n = self.rng, self.stops
        size = rng.choice((0, 1, 1, 1, 2, 3) if not self.backhauls else (1, 1, 2, 3))
        names = ("boxes", "kg", "litres")[:size]
        shipments: list[tuple[int, int]] = []
        if n > 1 and self.chance(0.1 if self.crowded else 0.3):
            order = rng.sample(range(n), n)
            shipments = [(order[2 * i], order[2 * i + 1]) for i in range(rng.randint(1, max(1, n // 3)))]
        halves = {half: shipment for shipment in shipments for half in shipment}
        stops = list(self.round.stops)
        pickups = 0.5 if self.backhauls else rng.choice((0.0, 0.0, 0.4))

        def amount() -> tuple[float, ...]:
            return tuple(float(rng.randint(0 if size > 1 else 1, 20)) for _ in range(size))

        for i in range(n):
            if i in halves:
                continue
            taken = self.chance(pickups)
            both = taken and not self.backhauls and self.chance(0.3)
            stops[i] = replace(
                stops[i], pickup=amount() if taken else (), delivery=amount() if both or not taken else ()
            )
        for pickup, delivery in shipments:
            shipped = amount()
            stops[pickup] = replace(stops[pickup], pickup=shipped)
            stops[delivery] = replace(stops[delivery], delivery=shipped)
        self.round = replace(
            self.round,
            stops=tuple(stops),
            shipments=tuple(shipments),
            dimensions=names,
            backhauls="last" if self.backhauls else "mixed",
        )

    def several_trips(self) -> None:
        depots = [p for p, name in enumerate(self.round.places) if name.startswith("D")]

        def change(k: int, vehicle: Vehicle) -> dict[str, Any]:
            at = depots[0] if vehicle.start is None else vehicle.start
            reloads = tuple(sorted({at, self.rng.choice(depots)}))
            reload_time = self.rng.choice((0.0, 900.0, 1800.0, 3600.0))
            return {"trips": self.rng.choice((2, 3)), "reloads": reloads, "reload_time": reload_time}

        self.each_vehicle(change, 0.7)

    def draw(self) -> None:
        """Stops to vehicles and trips, near ones together but in no good order."""
        rng, round_ = self.rng, self.round
        units = [list(pair) for pair in round_.shipments]
        halves = {half for pair in units for half in pair}
        units += [[i] for i in range(self.stops) if i not in halves]
        rng.shuffle(units)
        if len(units) > 1 and (self.ranked or self.chance(0.05 if self.crowded else 0.15)):
            for _ in range(rng.randint(1, 2)):
                if len(units) > 1:
                    self.left_out += units.pop()
        fleet = [k for k, v in enumerate(round_.vehicles) for _ in range(2 if v.number is None else v.number)]
        rng.shuffle(fleet)
        most = min(4, len(fleet), len(units))
        fleet = fleet[: rng.randint(min(2, most) if self.balanced or self.limited else 1, 1 if self.crowded else most)]
        assert round_.xy is not None
        units.sort(key=lambda unit: math.atan2(*(round_.xy[round_.stops[unit[0]].place] - 50)))  # type: ignore[index]
        cuts = sorted(rng.sample(range(1, len(units)), len(fleet) - 1)) if len(fleet) > 1 else []
        if self.balanced or self.ranked or self.limited:
            cuts = [len(units) * (i + 1) // len(fleet) for i in range(len(fleet) - 1)]
        drives = []
        for vehicle, begin, end in zip(fleet, [0, *cuts], [*cuts, len(units)], strict=True):
            mine = units[begin:end]
            trips = min(round_.vehicles[vehicle].trips, len(mine)) if self.chance(0.8) else 1
            inner = sorted(rng.sample(range(1, len(mine)), trips - 1)) if trips > 1 else []
            order: list[int] = []
            for b, e in zip([0, *inner], [*inner, len(mine)], strict=True):
                if order:
                    order.append(~rng.choice(round_.vehicles[vehicle].reloads))
                order += self.trip(mine[b:e])
            drives.append(Drive(vehicle, tuple(order)))
        if self.ranked:  # no vehicle is spare
            used = sorted(set(fleet))
            drives = [Drive(used.index(drive.vehicle), drive.order) for drive in drives]
            self.round = replace(round_, vehicles=tuple(round_.vehicles[k] for k in used))
        self.drives = tuple(drives)

    def trip(self, units: list[list[int]]) -> list[int]:
        """Stops of one trip, in an order that keeps the rules."""
        if self.backhauls:
            units = sorted(units, key=lambda u: (len(u) == 2) + 2 * bool(len(u) == 1 and self.round.stops[u[0]].pickup))
        elif self.limited:  # a good order, so that limits are tight
            units = self.near(units)
        if self.chance(0.5) or self.backhauls or self.limited:
            return [stop for unit in units for stop in unit]
        firsts = [unit[0] for unit in units]
        for unit in units:  # deliveries of shipments anywhere later
            if len(unit) == 2:
                firsts.insert(self.rng.randint(firsts.index(unit[0]) + 1, len(firsts)), unit[1])
        return firsts

    def near(self, units: list[list[int]]) -> list[list[int]]:
        """Each unit after the one that ends nearest to it."""
        distance, rest, order = self.round.legs[ANY].distance, list(units), [units[0]]
        rest.remove(units[0])
        while rest:
            here = self.round.stops[order[-1][-1]].place
            order.append(min(rest, key=lambda unit: distance[here, self.round.stops[unit[0]].place]))
            rest.remove(order[-1])
        return order

    # Attributes of stops

    def service(self) -> None:
        self.each_stop(lambda i, stop: {"service": self.between(60, 1800)}, 0.8)

    def setup(self) -> None:
        self.each_stop(lambda i, stop: {"setup": self.between(60, 900)}, 0.7)

    def releases(self) -> None:
        """Goods that come late: the trips leave later."""
        self.each_stop(lambda i, stop: {"release": self.between(3600, 30000)}, 0.4)

    def windows(self) -> None:
        """Around the drawn times; sometimes one more before or after. Stops left out have any."""
        wide = self.rng.choice((300, 1800, 3600, 7200))
        starts = self.starts()
        several = self.chance(0.4)
        latest = max(starts.values(), default=0.0)

        def change(i: int, stop: Stop) -> dict[str, Any]:
            start = starts.get(i, self.between(0, latest + 3600))
            begin, end = start - self.between(0, wide), start + self.between(0, wide)
            windows = [(max(0.0, math.floor(begin)), float(math.ceil(end)))]
            if several and self.chance(0.6):
                gap, more = self.between(300, 3600), self.between(300, 3600)
                early = windows[0][0] - gap
                if early > 0 and self.chance(0.5):
                    windows.insert(0, (max(0.0, early - more), early))
                else:
                    windows.append((windows[-1][1] + gap, windows[-1][1] + gap + more))
            return {"windows": tuple(windows)}

        self.each_stop(change, self.rng.choice((0.5, 1.0)))

    def late(self) -> None:
        """A price for lateness, at windows that the drawn plan misses."""

        def change(i: int, stop: Stop) -> dict[str, Any]:
            price = self.rng.choice((0.001, 0.01, 0.1))
            windows = stop.windows
            if self.chance(0.6) and i in starts:
                end = max(0.0, starts[i] - self.between(0, 5400))
                windows = ((max(0.0, end - self.between(600, 7200)), end),)
            return {"windows": windows, "late_cost": price}

        starts = self.starts()
        self.each_stop(change, 0.6)

    def skills(self) -> None:
        self.each_vehicle(lambda k, v: {"skills": frozenset(s for s in SKILLS if self.chance(0.4))}, 1.0)

        def change(i: int, stop: Stop) -> dict[str, Any]:
            vehicle = self.vehicle_of(i)
            has = SKILLS if vehicle is None else sorted(self.round.vehicles[vehicle].skills)
            return {"skills": frozenset(self.rng.sample(has, min(len(has), self.rng.choice((1, 1, 2)))))}

        self.each_stop(change, 0.7)

    def named(self) -> None:
        """Vehicles that may, or may not; seldom if there is one kind only."""
        ids = [vehicle.id for vehicle in self.round.vehicles]
        share_only = self.rng.choice((0.0, 0.5, 1.0))

        def change(i: int, stop: Stop) -> dict[str, Any]:
            vehicle = self.vehicle_of(i)
            if self.chance(share_only):
                return {"only": frozenset([ids[vehicle or 0]] + [name for name in ids if self.chance(0.15)])}
            return {"forbidden": frozenset(n for k, n in enumerate(ids) if k != vehicle and self.chance(0.7))}

        if len(ids) > 1 or self.chance(0.15):
            self.each_stop(change, 0.7)

    def penalties(self) -> None:
        self.each_stop(lambda i, stop: {"penalty": self.between(1, 90)}, 0.4)
        for a, b in self.round.shipments:  # whole or not at all
            stops = list(self.round.stops)
            if (stops[a].penalty is None) != (stops[b].penalty is None):
                stops[a], stops[b] = replace(stops[a], penalty=None), replace(stops[b], penalty=None)
                self.round = replace(self.round, stops=tuple(stops))

    def priorities(self) -> None:
        """Mostly where not all stops can be served, because there are too few vehicles for them."""
        self.each_stop(lambda i, stop: {"priority": self.rng.randint(0, 3)}, 0.9)

        def change(k: int, vehicle: Vehicle) -> dict[str, Any]:
            routes = self.routes(k)
            return {"number": len(routes), "max_stops": max(len(route.stops) for route in routes)}

        if self.chance(0.8):
            self.each_vehicle(change, 1.0)

    # Attributes of vehicles

    def capacity(self) -> None:
        """What the drawn plan carries, or little more; vehicles that it does not use hold anything."""
        size = len(self.round.dimensions)
        most = [max((v.load[d] for r in self.plan.routes for v in r.visits), default=0.0) for d in range(size)]

        def change(k: int, vehicle: Vehicle) -> dict[str, Any]:
            loads = [v.load for route in self.routes(k) for v in route.visits]
            slack = 2.0 if self.crowded else self.rng.choice(TIGHT)
            if loads:
                return {"capacity": tuple(math.ceil(max(load[d] for load in loads) * slack) * 1.0 for d in range(size))}
            return {"capacity": tuple(float(math.ceil(m * self.between(0.3, 1.2, 2))) for m in most)}

        if size:
            self.each_vehicle(change, 1.0)

    def shifts(self) -> None:
        latest = max((route.visits[-1].arrival for route in self.plan.routes), default=0.0)

        def change(k: int, vehicle: Vehicle) -> dict[str, Any]:
            routes = self.routes(k)
            begin = min((route.visits[0].departure for route in routes), default=self.between(0, latest / 2))
            end = max((route.visits[-1].arrival for route in routes), default=latest)
            begin = max(0.0, math.floor(begin - self.between(0, 1200)))
            return {"shift": (begin, float(math.ceil(end + self.rng.choice((0, 0, 600, 3600)))))}

        self.each_vehicle(change, 0.8)

    def overtime(self) -> None:
        def change(k: int, vehicle: Vehicle) -> dict[str, Any]:
            ends = [route.visits[-1].arrival for route in self.routes(k)]
            most = self.rng.choice((900.0, 1800.0, 3600.0))
            end = max(0.0, math.ceil(max(ends) - most * self.between(0.3, 1.0, 2))) if ends else vehicle.shift[1]
            begin = min(vehicle.shift[0], end)
            return {"overtime": most, "overtime_cost": self.between(0.001, 0.03, 4), "shift": (begin, end)}

        self.each_vehicle(change, 0.7)

    def limits(self) -> None:
        def change(limit: str, k: int, vehicle: Vehicle) -> dict[str, Any]:
            routes = self.routes(k)
            value = {
                "max_duration": lambda route: route.duration,
                "max_distance": lambda route: route.distance,
                "max_driving": lambda route: route.driving,
                "max_stops": lambda route: len(route.stops),
            }[limit]
            most = max((value(route) for route in routes), default=value(self.plan.routes[0]))
            return {limit: int(most) if limit == "max_stops" else float(math.ceil(most * self.rng.choice(TIGHT[:3])))}

        limits: tuple[str, ...] = ("max_duration", "max_distance", "max_driving", "max_stops")
        if self.chance(0.3):  # apart from this, it only helps other attributes to bind
            limits = ("max_stops",)
        for limit in self.rng.sample(limits, min(len(limits), self.rng.choice((1, 1, 1, 2)))):
            self.each_vehicle(partial(change, limit), 1.0)

    def costs(self) -> None:
        def change(k: int, vehicle: Vehicle) -> dict[str, Any]:
            prices: dict[str, Callable[[], float]] = {
                "fixed_cost": lambda: self.between(0, 10) if self.fewest else self.between(10, 150),
                "distance_cost": lambda: self.between(0.2, 2, 2),
                "driving_cost": lambda: self.between(0.002, 0.03, 4),
                "time_cost": lambda: self.between(0.002, 0.03, 4),
            }
            return {name: price() for name, price in prices.items() if self.chance(0.5)}

        self.each_vehicle(change, 1.0)

    def breaks(self) -> None:
        """Around a time at which the drawn plan is out."""

        def change(k: int, vehicle: Vehicle) -> dict[str, Any]:
            routes = self.routes(k) or list(self.plan.routes)
            found = []
            for b in range(self.rng.choice((1, 1, 2))):
                route = self.rng.choice(routes)
                left, end = route.visits[0].departure, route.visits[-1].arrival
                middle = left + (end - left) * self.between(0.1, 0.8, 2)
                wide = self.rng.choice((900, 1800, 3600))
                begin = max(0.0, math.floor(middle - self.between(0, wide)))
                windows = [(begin, math.ceil(begin + wide) * 1.0)]
                if self.chance(0.2):
                    windows.append((windows[0][1] + 1800, windows[0][1] + 3600))
                if self.chance(0.1):
                    windows = [(begin, FOREVER)]
                found.append(
                    Break(id=f"b{b}", windows=tuple(windows), service=self.rng.choice((900.0, 1800.0, 2700.0)))
                )
            return {"breaks": tuple(found)}

        self.each_vehicle(change, 0.8)

    def kept(self) -> None:
        drive = self.rng.choice(self.drives)
        stops = [at for at in drive.order if at >= 0]
        number = self.rng.randint(1, min(2, len(stops)))
        vehicles = list(self.round.vehicles)
        vehicles[drive.vehicle] = replace(vehicles[drive.vehicle], kept=tuple(stops[:number]))
        self.keeps(replace(self.round, vehicles=tuple(vehicles)))

    # Attributes of the round

    def leg_costs(self, rng: random.Random) -> None:
        """Costs of legs by themselves, such as tolls; drawn apart, so that all else is as without them."""
        if rng.random() < 0.15:
            size = len(self.round.places)
            tolls = np.array([[float(rng.choice((0, 0, 5, 40))) for _ in range(size)] for _ in range(size)])
            np.fill_diagonal(tolls, 0.0)
            legs = {name: replace(one, cost=tolls) for name, one in self.round.legs.items()}
            self.round = replace(self.round, legs=legs)

    def apart(self) -> None:
        counts = [len(route.stops) for route in self.plan.routes]
        which = self.rng.choice(("stops", "stops", "time", "time", "both"))
        if len(counts) > 1:  # one vehicle is not enough, or all would be in one
            most = min(max(counts) + (self.rng.randint(0, 2) if which == "time" else 1), sum(counts) - 1)
            self.each_vehicle(lambda k, vehicle: {"max_stops": min(most, vehicle.max_stops or most)}, 1.0)
        times = [route.duration for route in self.plan.routes]
        if which != "time":
            self.keeps(replace(self.round, most_stops_apart=float(max(counts) - min(counts))))
        if which != "stops":
            apart = float(math.ceil((max(times) - min(times)) * self.rng.choice(TIGHT[:3])))
            self.keeps(replace(self.round, most_time_apart=apart))


# What a round has, and the round without it

DEFAULTS: dict[type, dict[str, Any]] = {
    kind: {f.name: f.default for f in dataclasses.fields(kind) if f.default is not dataclasses.MISSING}
    for kind in (Stop, Vehicle, Round)
}


def has_field(kind: str, name: str) -> Callable[[Round], bool]:
    owner = {"stops": Stop, "vehicles": Vehicle}[kind]
    return lambda round: any(getattr(one, name) != DEFAULTS[owner][name] for one in getattr(round, kind))


def drop_field(kind: str, *names: str) -> Callable[[Round], Round]:
    owner = {"stops": Stop, "vehicles": Vehicle}[kind]
    blank = {name: DEFAULTS[owner][name] for name in names}
    return lambda round: replace(round, **{kind: tuple(replace(one, **blank) for one in getattr(round, kind))})


def merge_windows(round: Round) -> Round:
    """Only the first window of each stop."""
    return replace(round, stops=tuple(replace(stop, windows=stop.windows[:1]) for stop in round.stops))


def first_dimension(round: Round) -> Round:
    return replace(
        round,
        stops=tuple(replace(s, delivery=s.delivery[:1], pickup=s.pickup[:1]) for s in round.stops),
        vehicles=tuple(replace(v, capacity=v.capacity[:1]) for v in round.vehicles),
        dimensions=round.dimensions[:1],
    )


def one_depot(round: Round) -> Round:
    def moved(place: int | None) -> int | None:
        return None if place is None else 0

    return replace(
        round,
        vehicles=tuple(
            replace(v, start=moved(v.start), end=moved(v.end), reloads=(0,) if v.reloads else ())
            for v in round.vehicles
        ),
    )


def symmetric(round: Round) -> Round:
    legs = {
        k: replace(v, distance=np.minimum(v.distance, v.distance.T), duration=np.minimum(v.duration, v.duration.T))
        for k, v in round.legs.items()
    }
    return replace(round, legs=legs)


ATTRIBUTES: dict[str, tuple[Callable[[Round], bool], Callable[[Round], Round]]] = {
    **{
        name: (has_field("stops", name), drop_field("stops", name))
        for name in (
            "delivery", "pickup", "windows", "service", "setup", "release", "penalty", "priority", "only", "forbidden",
            "late_cost",
        )
    },
    **{
        name: (has_field("vehicles", name), drop_field("vehicles", name))
        for name in (
            "capacity", "shift", "fixed_cost", "distance_cost", "driving_cost", "time_cost", "max_duration",
            "max_distance", "max_driving", "max_stops", "overtime", "overtime_cost", "breaks", "trips", "reload_time",
            "kept", "profile", "number",
        )
    },
    "skills": (has_field("stops", "skills"), drop_field("stops", "skills")),
    "several windows": (lambda r: any(len(s.windows) > 1 for s in r.stops), merge_windows),
    "several dimensions": (lambda r: len(r.dimensions) > 1, first_dimension),
    "several depots": (
        lambda r: len({p for v in r.vehicles for p in (v.start, v.end) if p is not None}) > 1, one_depot,
    ),
    "open start": (
        lambda r: any(v.start is None for v in r.vehicles),
        lambda r: replace(r, vehicles=tuple(replace(v, start=v.start or 0) for v in r.vehicles)),
    ),
    "open end": (
        lambda r: any(v.end is None for v in r.vehicles),
        lambda r: replace(r, vehicles=tuple(replace(v, end=v.end or 0) for v in r.vehicles)),
    ),
    "shipments": (lambda r: bool(r.shipments), lambda r: replace(r, shipments=())),
    "backhauls": (lambda r: r.backhauls == "last", lambda r: replace(r, backhauls="mixed")),
    "vehicles first": (lambda r: r.objective == "vehicles", lambda r: replace(r, objective="cost")),
    "most_stops_apart": (
        lambda r: r.most_stops_apart < FOREVER, lambda r: replace(r, most_stops_apart=FOREVER),
    ),
    "most_time_apart": (lambda r: r.most_time_apart < FOREVER, lambda r: replace(r, most_time_apart=FOREVER)),
    "allow_unassigned": (lambda r: r.allow_unassigned, lambda r: replace(r, allow_unassigned=False)),
    "leg costs": (
        lambda r: any(legs.cost is not None for legs in r.legs.values()),
        lambda r: replace(r, legs={name: replace(legs, cost=None) for name, legs in r.legs.items()}),
    ),
    "not symmetric": (
        lambda r: any(not np.array_equal(legs.distance, legs.distance.T) for legs in r.legs.values()), symmetric,
    ),
}  # fmt: skip


def attributes_in(round: Round) -> frozenset[str]:
    return frozenset(name for name, (present, _) in ATTRIBUTES.items() if present(round))


def without(round: Round, name: str) -> Round:
    """The round as it would be without an attribute."""
    return ATTRIBUTES[name][1](round)
