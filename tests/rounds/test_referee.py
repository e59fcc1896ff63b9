"""The referee agrees with timing on random rounds, and finds whatever is planted in a plan."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from random_rounds import drawn
from round_cases import line, stop, van

from routelearn.rounds.model import FOREVER, Break, Round, Stop, Vehicle
from routelearn.rounds.plan import Drive, Plan, Route, Unassigned, Visit
from routelearn.rounds.referee import judge
from routelearn.rounds.timing import RULES, plan_of

Planted = tuple[Round, Plan] | None


def shuffled(round: Round, drives: tuple[Drive, ...], rng: random.Random) -> list[Drive]:
    """Some stops, and sometimes reloads, moved anywhere."""
    orders = [list(drive.order) for drive in drives]
    for _ in range(rng.randint(1, 4)):
        source = rng.choice([order for order in orders if order])
        moved = source.pop(rng.randrange(len(source)))
        target = rng.choice(orders)
        if rng.random() < 0.9:
            target.insert(rng.randint(0, len(target)), moved)
        if rng.random() < 0.2:
            target.insert(rng.randint(0, len(target)), ~rng.randrange(len(round.places)))
        if not any(orders):
            break
    return [Drive(rng.randrange(len(round.vehicles)) if rng.random() < 0.2 else d.vehicle, tuple(order))
            for d, order in zip(drives, orders, strict=True)]  # fmt: skip


def test_agrees_with_timing_on_random_sequences() -> None:
    rules: set[str] = set()
    feasible = 0
    for seed in range(600):
        rng = random.Random(seed)
        round, drives = drawn(seed)
        for sequence in (drives, shuffled(round, drives, rng), shuffled(round, drives, rng)):
            plan = plan_of(round, sequence)
            verdict = judge(round, plan)
            assert {v.rule for v in verdict.violations} == {v.rule for v in plan.violations}, seed
            assert verdict.cost == pytest.approx(plan.cost, rel=1e-6, abs=1e-6), seed
            rules |= {v.rule for v in plan.violations}
            feasible += not plan.violations
        assert not plan_of(round, drives).violations, seed
    assert feasible > 700
    stated = {name for name, number in RULES.items() if number == 0}
    never = {"once", "start", "release", "leg", "service"}  # stops are moved, not copied; timing keeps the others
    assert rules == set(RULES) - stated - never


# Planting: each takes a plan that keeps all rules, and breaks one, in the plan or in the round


def with_visit(plan: Plan, route: int, at: int, **changed: Any) -> Plan:
    visits = list(plan.routes[route].visits)
    visits[at] = replace(visits[at], **changed)
    return with_route(plan, route, replace(plan.routes[route], visits=tuple(visits)))


def with_route(plan: Plan, route: int, changed: Route) -> Plan:
    return replace(plan, routes=(*plan.routes[:route], changed, *plan.routes[route + 1 :]))


def moved(visit: Visit, by: float) -> Visit:
    return replace(visit, arrival=visit.arrival + by, start=visit.start + by, departure=visit.departure + by)


def delayed(plan: Plan, route: int, begin: int, by: float) -> Plan:
    """All lines from one on are later."""
    visits = plan.routes[route].visits
    later = tuple(moved(visit, by) if i >= begin else visit for i, visit in enumerate(visits))
    return with_route(plan, route, replace(plan.routes[route], visits=later))


def with_vehicle(round: Round, vehicle: int, **changed: Any) -> Round:
    vehicles = list(round.vehicles)
    vehicles[vehicle] = replace(vehicles[vehicle], **changed)
    return replace(round, vehicles=tuple(vehicles))


def with_stop(round: Round, number: int, **changed: Any) -> Round:
    stops = list(round.stops)
    stops[number] = replace(stops[number], **changed)
    return replace(round, stops=tuple(stops))


class Planter:
    """One plan of a round, and a route and a visit of it to break something at."""

    def __init__(self, round: Round, plan: Plan, rng: random.Random) -> None:
        self.round, self.plan, self.rng = round, plan, rng
        self.route = rng.randrange(len(plan.routes))
        self.visits = plan.routes[self.route].visits
        self.at = rng.choice([i for i, visit in enumerate(self.visits) if visit.stop is not None])
        self.visit = self.visits[self.at]
        assert self.visit.stop is not None
        self.number: int = self.visit.stop
        self.stop: Stop = round.stops[self.number]
        self.k = plan.routes[self.route].vehicle
        self.vehicle: Vehicle = round.vehicles[self.k]
        self.duration = plan.routes[self.route].duration

    def itinerary(self) -> Planted:
        return self.round, with_visit(self.plan, self.route, self.at, place=(self.visit.place or 0) + 1)

    def load(self) -> Planted:
        more = tuple(amount + 0.1 for amount in self.visit.load)
        return (self.round, with_visit(self.plan, self.route, self.at, load=more)) if more else None

    def cost(self) -> Planted:
        if self.rng.random() < 0.5:
            return self.round, replace(self.plan, cost=self.plan.cost + 0.01)
        route = self.plan.routes[self.route]
        return self.round, with_route(self.plan, self.route, replace(route, cost=route.cost * 0.99 - 1))

    def start(self) -> Planted:
        begin = self.vehicle.shift[0] if self.vehicle.shift[0] > -FOREVER else 0.0
        return self.round, delayed(self.plan, self.route, 0, begin - self.visits[0].departure - 1)

    def release(self) -> Planted:
        leaves = max(i for i in range(self.at) if self.visits[i].kind in ("start", "reload"))
        return with_stop(self.round, self.number, release=self.visits[leaves].departure + 1), self.plan

    def leg(self) -> Planted:
        at = self.rng.randrange(1, len(self.visits))
        visit = self.visits[at]
        how = self.rng.randrange(4)
        if how == 0:
            return self.round, with_visit(self.plan, self.route, at, arrival=visit.arrival - 1)
        if how == 1:
            return self.round, with_visit(self.plan, self.route, at, distance=visit.distance + 1)
        if how == 2:  # a second less of driving, times to match
            shorter = with_visit(self.plan, self.route, at, driving=visit.driving - 1)
            return self.round, delayed(shorter, self.route, at, -1)
        return self.round, with_visit(self.plan, self.route, at, driving_so_far=visit.driving_so_far + 1)

    def window(self) -> Planted:
        if self.number in self.vehicle.kept:
            return None
        before = self.rng.random() < 0.5
        window = (self.visit.start + 1, self.visit.start + 99) if before else (-1.0, self.visit.start - 1)
        price = 1.0 if before and self.rng.random() < 0.5 else None  # no price lets service begin before the window
        return with_stop(self.round, self.number, windows=(window,), late_cost=price), self.plan

    def service(self) -> Planted:
        if self.rng.random() < 0.5:
            return self.round, with_visit(self.plan, self.route, self.at, start=self.visit.arrival - 1)
        longer = with_visit(self.plan, self.route, self.at, departure=self.visit.departure + 1)
        return self.round, delayed(longer, self.route, self.at + 1, 1)

    def capacity(self) -> Planted:
        most = [max(visit.load[d] for visit in self.visits) for d in range(len(self.visit.load))]
        if not any(most):
            return None
        d = self.rng.choice([d for d, value in enumerate(most) if value])
        capacity = tuple(value * 0.99 if i == d else FOREVER for i, value in enumerate(most))
        return with_vehicle(self.round, self.k, capacity=capacity), self.plan

    def shipment(self) -> Planted:
        stops = [at for drive in self.plan.drives for at in drive.order if at >= 0]
        halves = {half for pair in self.round.shipments for half in pair}
        free = [at for at in stops if at not in halves]
        if len(free) < 2:
            return None
        first, second = sorted(self.rng.sample(free, 2), key=stops.index)
        return replace(self.round, shipments=(*self.round.shipments, (second, first))), self.plan

    def backhauls(self) -> Planted:
        plain = [v.stop for v in self.visits if v.kind == "stop"]
        if len(plain) < 2 or self.round.shipments or any(v.kind == "reload" for v in self.visits):
            return None
        round = with_stop(self.round, plain[0] or 0, pickup=(1.0,))
        return replace(with_stop(round, plain[-1] or 0, delivery=(1.0,)), backhauls="last"), self.plan

    def reload(self) -> Planted:
        if not any(visit.kind == "reload" for visit in self.visits):
            return None
        if self.rng.random() < 0.5:
            return with_vehicle(self.round, self.k, reloads=()), self.plan
        return with_vehicle(self.round, self.k, reload_time=self.vehicle.reload_time + 1), self.plan

    def trips(self) -> Planted:
        if not any(visit.kind == "reload" for visit in self.visits):
            empty = tuple(visit for visit in self.visits if visit.stop is None)
            return self.round, with_route(self.plan, self.route, replace(self.plan.routes[self.route], visits=empty))
        return with_vehicle(self.round, self.k, trips=1), self.plan

    def end(self) -> Planted:
        begin, most = self.vehicle.shift[0], self.vehicle.overtime
        return with_vehicle(self.round, self.k, shift=(begin, self.visits[-1].arrival - most - 1)), self.plan

    def max_duration(self) -> Planted:
        return with_vehicle(self.round, self.k, max_duration=self.duration - 1), self.plan

    def max_distance(self) -> Planted:
        return with_vehicle(self.round, self.k, max_distance=self.plan.routes[self.route].distance - 1), self.plan

    def max_driving(self) -> Planted:
        return with_vehicle(self.round, self.k, max_driving=self.plan.routes[self.route].driving - 1), self.plan

    def max_stops(self) -> Planted:
        return with_vehicle(self.round, self.k, max_stops=len(self.plan.routes[self.route].stops) - 1), self.plan

    def break_(self) -> Planted:
        taken = [i for i, visit in enumerate(self.visits) if visit.kind == "break"]
        if taken:
            at = self.rng.choice(taken)
            how = self.rng.randrange(3)
            if how == 0:  # cut short
                return self.round, with_visit(self.plan, self.route, at, departure=self.visits[at].departure - 1)
            if how == 1:  # taken twice
                twice = (*self.visits[: at + 1], *self.visits[at:])
                return self.round, with_route(
                    self.plan, self.route, replace(self.plan.routes[self.route], visits=twice)
                )
            rests = tuple(replace(rest, windows=((self.visits[at].start + 1, 1e9),)) for rest in self.vehicle.breaks)
            return with_vehicle(self.round, self.k, breaks=rests), self.plan
        middle = self.visits[0].departure + self.duration / 2
        window = (middle - 1, middle) if self.rng.random() < 0.5 else (middle, FOREVER)
        rest = Break(id="new", windows=(window,), service=1.0)
        return (with_vehicle(self.round, self.k, breaks=(rest,)), self.plan) if self.duration > 10 else None

    def skills(self) -> Planted:
        return with_stop(self.round, self.number, skills=self.stop.skills | {"unheard of"}), self.plan

    def vehicle_(self) -> Planted:
        if self.rng.random() < 0.5:
            return with_stop(self.round, self.number, only=frozenset({"nobody"})), self.plan
        return with_stop(self.round, self.number, forbidden=frozenset({self.vehicle.id})), self.plan

    def number_(self) -> Planted:
        used = sum(route.vehicle == self.k for route in self.plan.routes)
        return (with_vehicle(self.round, self.k, number=used - 1), self.plan) if used > 1 else None

    def kept(self) -> Planted:
        stops = self.plan.routes[self.route].stops
        return (with_vehicle(self.round, self.k, kept=(stops[1], stops[0])), self.plan) if len(stops) > 1 else None

    def stops_apart(self) -> Planted:
        counts = [len(route.stops) for route in self.plan.routes]
        apart = max(counts) - min(counts)
        return (replace(self.round, most_stops_apart=apart - 1), self.plan) if apart else None

    def time_apart(self) -> Planted:
        times = [route.duration for route in self.plan.routes]
        apart = max(times) - min(times)
        return (replace(self.round, most_time_apart=apart - 1), self.plan) if apart > 1 else None

    def once(self) -> Planted:
        if self.rng.random() < 0.5:
            return self.round, replace(self.plan, unassigned=(*self.plan.unassigned, Unassigned(self.number, "why")))
        return self.round, replace(self.plan, routes=(*self.plan.routes, self.plan.routes[self.route]))

    def unassigned(self) -> Planted:
        if self.plan.unassigned and self.rng.random() < 0.5:
            return self.round, replace(self.plan, unassigned=self.plan.unassigned[1:])
        routes = tuple(route for i, route in enumerate(self.plan.routes) if i != self.route)
        return self.round, replace(self.plan, routes=routes)


@pytest.mark.parametrize("rule", RULES)
def test_finds_what_is_planted(rule: str) -> None:
    plant: Callable[[Planter], Planted] = getattr(Planter, rule, None) or getattr(Planter, f"{rule}_")
    planted = 0
    for seed in range(1000, 1400):
        round, drives = drawn(seed)
        plan = plan_of(round, drives)
        case = plant(Planter(round, plan, random.Random(f"{seed} {rule}")))
        if case is None:
            continue
        assert rule in {violation.rule for violation in judge(*case).violations}, (seed, rule)
        planted += 1
        if planted == 15:
            return
    pytest.fail(f"only {planted} rounds to plant {rule} in")


def test_a_delayed_plan_is_judged_by_its_own_times() -> None:
    """Not the earliest times, but right ones: nothing is broken, and duration and lateness cost what they are."""
    round = line([stop(0, windows=((0.0, 20.0),), late_cost=2.0), stop(1)], van(time_cost=1.0))
    plan = plan_of(round, [Drive(0, (0, 1))])
    assert judge(round, plan) == ((), 40 + 40)
    later = delayed(plan, 0, 1, 15.0)
    later = with_visit(later, 0, 1, arrival=10.0)  # it waits there
    assert {v.rule for v in judge(round, later).violations} == {"cost"}
    assert judge(round, later).cost == 40 + 55 + 2 * 5


def test_a_break_may_be_before_or_after_the_drive_but_not_within() -> None:
    round = line(1, van(breaks=(Break(id="tea", windows=((0.0, 15.0),), service=5.0),)))
    plan = plan_of(round, [Drive(0, (0,))])
    before = plan.routes[0]
    assert [v.kind for v in before.visits] == ["start", "break", "stop", "end"]
    rest, there = before.visits[1], before.visits[2]
    within = replace(rest, arrival=4.0, start=4.0, departure=9.0, distance=4.0, driving=4.0, distance_so_far=4.0,
                     driving_so_far=4.0)  # fmt: skip
    visits = (before.visits[0], within, replace(there, distance=6.0, driving=6.0), before.visits[3])
    assert {v.rule for v in judge(round, with_route(plan, 0, replace(before, visits=visits))).violations} == {"leg"}
    after = replace(rest, arrival=10.0, start=10.0, departure=15.0, distance=10.0, driving=10.0, distance_so_far=10.0,
                    driving_so_far=10.0)  # fmt: skip
    visits = (before.visits[0], after, replace(there, distance=0.0, driving=0.0), before.visits[3])
    assert not judge(round, with_route(plan, 0, replace(before, visits=visits))).violations


@pytest.mark.parametrize("wrong", [{"arrival": float("nan")}, {"stop": 99}, {"kind": "break"}, {"kind": "end"}])
def test_an_itinerary_that_makes_no_sense_is_said_to(wrong: dict[str, Any]) -> None:
    round = line(2)
    plan = plan_of(round, [Drive(0, (0, 1))])
    assert "itinerary" in {v.rule for v in judge(round, with_visit(plan, 0, 1, **wrong)).violations}
