"""An independent check of a plan as it is stated, its times included: the rules of docs/guides/rounds.md one by one.

Nothing here comes from `timing` or from the search: every answer is judged by it before it leaves the program.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

from routelearn.rounds.model import Round, Stop, Vehicle
from routelearn.rounds.plan import Plan, Route, Violation, Visit
from routelearn.rounds.units import spoken

TOLERANCE = 1e-6  # relative: of times to the route's duration, of amounts, lengths and costs to themselves


class Verdict(NamedTuple):
    violations: tuple[Violation, ...]  # empty: the plan keeps all rules, and its numbers are right
    cost: float  # from the stated times


def judge(round: Round, plan: Plan) -> Verdict:
    """Every rule that the plan breaks as it is stated, and what it costs."""
    found: list[Violation] = []
    cost = 0.0
    for number, route in enumerate(plan.routes):
        malformed = list(broken_form(round, route))
        if malformed:  # nothing else can be said of it
            found += [violation._replace(route=number) for violation in malformed]
            cost += route.cost
            continue
        case = Case(round, route, round.vehicles[route.vehicle])
        for rule in RULES_OF_ROUTES:
            found += [violation._replace(route=number) for violation in rule(case)]
        cost += cost_of(case)
    visited = {stop for route in plan.routes for stop in route.stops}
    cost += sum(stop.penalty or 0.0 for i, stop in enumerate(round.stops) if i not in visited)
    found += broken_by_all(round, plan)
    if differs(plan.cost, cost):
        found.append(
            Violation(None, None, "cost", f"the plan costs {cost:.10g}, not {plan.cost:.10g}", plan.cost - cost)
        )
    return Verdict(tuple(found), cost)


def differs(stated: float, true: float) -> bool:
    return not abs(stated - true) <= TOLERANCE * max(1.0, abs(true))  # "not": nothing equals a NaN


def exceeds(value: float, most: float) -> bool:
    return not value <= most + TOLERANCE * max(1.0, abs(most))


@dataclass(frozen=True)
class Case:
    """A route whose itinerary is well formed, before the referee."""

    round: Round
    route: Route
    vehicle: Vehicle

    @property
    def visits(self) -> tuple[Visit, ...]:
        return self.route.visits

    @property
    def left(self) -> float:
        return self.visits[0].departure

    @property
    def ended(self) -> float:
        return self.visits[-1].departure

    @property
    def moment(self) -> float:
        """What no time may be wrong by."""
        return TOLERANCE * max(1.0, self.ended - self.left)

    def after(self, time: float, limit: float) -> bool:
        return not time <= limit + self.moment

    def apart(self, time: float, other: float) -> bool:
        return not abs(time - other) <= self.moment

    def says(self, visit: int | None, rule: str, words: str, by: float = 1.0) -> Violation:
        return Violation(None, visit, rule, f"{self.vehicle.called}: {words}", by)

    def time(self, seconds: float) -> str:
        return spoken(self.round.day, seconds)

    @cached_property
    def trips(self) -> list[list[int]]:
        """The lines of the stops on each trip."""
        trips: list[list[int]] = [[]]
        for line, visit in enumerate(self.visits):
            if visit.kind == "reload":
                trips.append([])
            elif visit.kind == "stop":
                trips[-1].append(line)
        return trips

    def stop(self, line: int) -> Stop:
        number = self.visits[line].stop
        assert number is not None
        return self.round.stops[number]

    @cached_property
    def kept_lines(self) -> set[int]:
        """The lines of kept stops that are in their place."""
        lines: set[int] = set()
        for kept, line in zip(self.vehicle.kept, (line for trip in self.trips for line in trip), strict=False):
            if self.visits[line].stop != kept:
                break
            lines.add(line)
        return lines

    def lateness(self, line: int) -> float:
        """Seconds after the window; infinite before all windows."""
        start, windows = self.visits[line].start, self.stop(line).windows
        if any(not self.after(begin, start) and not self.after(start, end) for begin, end in windows):
            return 0.0
        return min((start - end for begin, end in windows if begin <= start), default=math.inf)


def broken_form(round: Round, route: Route) -> Iterator[Violation]:
    """What must hold for anything else to be asked: known vehicle, stops and places, one start, one end, real times."""

    def wrong(line: int | None, words: str) -> Violation:
        return Violation(None, line, "itinerary", words, 1.0)

    if not 0 <= route.vehicle < len(round.vehicles):
        yield wrong(None, f"there is no vehicle number {route.vehicle}")
        return
    vehicle = round.vehicles[route.vehicle]
    kinds = [visit.kind for visit in route.visits]
    if len(kinds) < 2 or kinds[0] != "start" or kinds[-1] != "end" or {"start", "end"} & set(kinds[1:-1]):
        yield wrong(None, f"the itinerary of {vehicle.called} does not go from one start to one end")
        return
    if route.visits[0].place != vehicle.start or route.visits[-1].place != vehicle.end:
        yield wrong(None, f"the itinerary of {vehicle.called} does not start and end where the vehicle does")
    for line, visit in enumerate(route.visits):
        if (visit.kind == "stop") != (visit.stop is not None):
            yield wrong(line, f"{visit.kind} {visit.id} does not fit its stop")
        elif visit.stop is not None:
            if not 0 <= visit.stop < len(round.stops):
                yield wrong(line, f"there is no stop number {visit.stop}")
            elif visit.place != round.stops[visit.stop].place or visit.id != round.stops[visit.stop].id:
                yield wrong(line, f"stop {round.stops[visit.stop].id} is visited at another place or by another id")
        elif visit.kind == "break" and (visit.place is not None or visit.id not in {b.id for b in vehicle.breaks}):
            yield wrong(line, f"{vehicle.called} has no break {visit.id}")
        elif visit.kind == "reload" and (visit.place is None or not 0 <= visit.place < len(round.places)):
            yield wrong(line, f"{vehicle.called} reloads nowhere")
        if not all(map(math.isfinite, (visit.arrival, visit.start, visit.departure, visit.distance, visit.driving))):
            yield wrong(line, f"{visit.kind} {visit.id} has a time or a length that is no number")


def rule_1_start(case: Case) -> Iterator[Violation]:
    shift = case.vehicle.shift[0] if math.isfinite(case.vehicle.shift[0]) else 0.0
    start = case.visits[0]
    if case.after(shift, case.left):
        yield case.says(0, "start", f"leaves at {case.time(case.left)}, before its shift", shift - case.left)
    if case.apart(start.arrival, start.departure) or case.apart(start.start, start.departure):
        yield case.says(0, "start", "does not leave when its itinerary begins", start.departure - start.arrival)
    reloads = [line for line, visit in enumerate(case.visits) if visit.kind == "reload"]
    for leaves, trip in zip([0, *reloads], case.trips, strict=True):
        departure = case.visits[leaves].departure
        for line in trip:
            ready = case.stop(line).release
            if case.after(ready, departure):
                words = f"leaves at {case.time(departure)}; the goods for {case.stop(line).id} are there later"
                yield case.says(leaves, "release", words, ready - departure)


def rule_2_legs(case: Case) -> Iterator[Violation]:
    legs = case.round.legs_of(case.vehicle)
    distance_so_far = driving_so_far = 0.0
    for line, visit in enumerate(case.visits):
        distance_so_far += visit.distance
        driving_so_far += visit.driving
        if differs(visit.distance_so_far, distance_so_far) or differs(visit.driving_so_far, driving_so_far):
            yield case.says(line, "leg", f"what was driven until {visit.id} does not add up")
        if line and case.apart(visit.arrival, case.visits[line - 1].departure + visit.driving):
            by = visit.arrival - case.visits[line - 1].departure - visit.driving
            yield case.says(line, "leg", f"arrives at {visit.id} at {case.time(visit.arrival)}, off by {by:.10g}", by)
    if case.visits[0].distance or case.visits[0].driving:
        yield case.says(0, "leg", "drives before it starts")
    placed = [line for line, visit in enumerate(case.visits) if visit.kind != "break"]
    for here, there in pairwise(placed):
        a, b = case.visits[here].place, case.visits[there].place
        distance = 0.0 if a is None or b is None else float(legs.distance[a, b])
        driving = 0.0 if a is None or b is None else float(legs.duration[a, b])
        driven = [visit for visit in case.visits[here + 1 : there + 1] if visit.distance or visit.driving]
        whole = sum(visit.distance for visit in driven), sum(visit.driving for visit in driven)
        if len(driven) > 1 or differs(whole[0], distance) or differs(whole[1], driving):
            to = case.visits[there].id or "its end"
            yield case.says(there, "leg", f"the leg to {to} is {distance:.10g} and takes {driving:.10g}, in one piece")


def rule_3_windows(case: Case) -> Iterator[Violation]:
    for line, visit in enumerate(case.visits):
        if visit.kind == "stop":
            if case.after(visit.arrival, visit.start):
                words = f"service at {visit.id} begins before the arrival"
                yield case.says(line, "service", words, visit.arrival - visit.start)
            late = case.lateness(line)
            if late and line not in case.kept_lines and (case.stop(line).late_cost is None or late == math.inf):
                words = f"service at {visit.id} begins at {case.time(visit.start)}, outside its windows"
                yield case.says(line, "window", words, late)


def rule_4_service(case: Case) -> Iterator[Violation]:
    place: int | None = None  # of the visit before
    for line, visit in enumerate(case.visits):
        if visit.kind == "stop":
            stop = case.stop(line)
            takes = stop.service + (0.0 if place == stop.place else stop.setup)
            if case.apart(visit.departure, visit.start + takes):
                by = visit.departure - visit.start - takes
                yield case.says(line, "service", f"service at {visit.id} takes {takes:.10g}", by)
        if visit.kind != "break":
            place = visit.place


def rule_5_loads(case: Case) -> Iterator[Violation]:
    unloads = {delivery for _, delivery in case.round.shipments}  # of what came aboard on the way
    sizes = [len(amounts) for stop in case.round.stops for amounts in (stop.delivery, stop.pickup)]
    dimensions = max([*sizes, *(len(vehicle.capacity) for vehicle in case.round.vehicles)], default=0)
    trip_of = {case.visits[line].stop: (trip, line) for trip, lines in enumerate(case.trips) for line in lines}
    whole = True
    for pickup, delivery in case.round.shipments:
        first, second = trip_of.get(pickup), trip_of.get(delivery)
        if first is None and second is None:
            continue
        if first is None or second is None or first[0] != second[0] or first[1] > second[1]:
            whole = False
            ids = f"{case.round.stops[pickup].id} to {case.round.stops[delivery].id}"
            line = (second or first or (0, 0))[1]
            yield case.says(line, "shipment", f"shipment {ids} is not picked up and then delivered on one trip")

    def amount(amounts: tuple[float, ...], dimension: int) -> float:
        return amounts[dimension] if dimension < len(amounts) else 0.0

    bounds = [0, *(line for line, visit in enumerate(case.visits) if visit.kind == "reload"), len(case.visits)]
    for begin, end in pairwise(bounds):
        numbers = [visit.stop for visit in case.visits[begin:end]]
        stops = [None if number is None else case.round.stops[number] for number in numbers]
        for d in range(dimensions):
            brought = [
                amount(s.delivery, d) if s and n not in unloads else 0.0 for n, s in zip(numbers, stops, strict=True)
            ]
            taken = [amount(s.pickup, d) if s else 0.0 for s in stops]
            handed = [amount(s.delivery, d) if s and n in unloads else 0.0 for n, s in zip(numbers, stops, strict=True)]
            total = sum(brought)
            sums = zip(accumulate(brought), accumulate(taken), accumulate(handed), strict=True)
            for line, (done, got, given) in enumerate(sums, begin):
                aboard = total - done + got - given
                visit, most = case.visits[line], amount(case.vehicle.capacity, d)
                stated, where = amount(visit.load, d), f"aboard after {visit.id or visit.kind}"
                if whole and not abs(stated - aboard) <= TOLERANCE * max(1.0, total + got):
                    yield case.says(line, "load", f"{aboard:.10g} is {where}, not {stated:.10g}", stated - aboard)
                if d < len(case.vehicle.capacity) and exceeds(aboard, most):
                    yield case.says(line, "capacity", f"{aboard:.10g} is {where}; it holds {most:.10g}", aboard - most)


def rule_6_backhauls(case: Case) -> Iterator[Violation]:
    if case.round.backhauls != "last":
        return
    halves = {half for shipment in case.round.shipments for half in shipment}
    for trip in case.trips:
        plain = [line for line in trip if case.visits[line].stop not in halves]
        deliveries = [line for line in plain if any(case.stop(line).delivery)]
        pickups = [line for line in plain if any(case.stop(line).pickup)]
        for line in deliveries:
            if pickups and min(pickups) < line:
                yield case.says(line, "backhauls", f"delivers to {case.visits[line].id} after a pickup")


def rule_7_reloading(case: Case) -> Iterator[Violation]:
    trips = case.trips
    if len(trips) > case.vehicle.trips:
        words = f"makes {len(trips)} trips of at most {case.vehicle.trips}"
        yield case.says(None, "trips", words, len(trips) - case.vehicle.trips)
    if not all(trips):
        yield case.says(None, "trips", "makes a trip without stops")
    for line, visit in enumerate(case.visits):
        if visit.kind == "reload":
            if visit.place not in case.vehicle.reloads:
                yield case.says(line, "reload", f"may not reload at {visit.id}")
            takes = case.vehicle.reload_time
            if case.apart(visit.departure, visit.start + takes) or case.after(visit.arrival, visit.start):
                yield case.says(line, "reload", f"reloading takes {takes:.10g} after the arrival")


def rule_8_end(case: Case) -> Iterator[Violation]:
    end = case.visits[-1]
    if case.apart(end.arrival, end.departure) or case.apart(end.start, end.departure):
        yield case.says(len(case.visits) - 1, "end", "does not end when it arrives", end.departure - end.arrival)
    latest = case.vehicle.shift[1] + case.vehicle.overtime
    if case.after(end.arrival, latest):
        words = f"ends at {case.time(end.arrival)}; {case.time(latest)} is the latest"
        yield case.says(len(case.visits) - 1, "end", words, end.arrival - latest)


def rule_9_limits(case: Case) -> Iterator[Violation]:
    distance, driving = sum(v.distance for v in case.visits), sum(v.driving for v in case.visits)
    stops = sum(visit.kind == "stop" for visit in case.visits)
    for rule, value, most in (
        ("max_duration", case.ended - case.left, case.vehicle.max_duration),
        ("max_distance", distance, case.vehicle.max_distance),
        ("max_driving", driving, case.vehicle.max_driving),
        ("max_stops", stops, math.inf if case.vehicle.max_stops is None else case.vehicle.max_stops),
    ):
        if exceeds(value, most):
            words = f"has {value:.10g} of at most {most:.10g} ({rule.replace('_', '. ')})"
            yield case.says(None, rule, words, value - most)


def rule_10_breaks(case: Case) -> Iterator[Violation]:
    declared = {rest.id: rest for rest in case.vehicle.breaks}
    for line, visit in enumerate(case.visits):
        if visit.kind != "break":
            continue
        rest = declared[visit.id]
        if not any(not case.after(b, visit.start) and not case.after(visit.start, e) for b, e in rest.windows):
            yield case.says(line, "break", f"break {rest.id} begins at {case.time(visit.start)}, outside its windows")
        if case.apart(visit.departure, visit.start + rest.service) or case.after(visit.arrival, visit.start):
            yield case.says(line, "break", f"break {rest.id} takes {rest.service:.10g} after the arrival")
    taken = Counter(visit.id for visit in case.visits if visit.kind == "break")
    for name, times in Counter(rest.id for rest in case.vehicle.breaks).items():
        due = 0
        for rest in case.vehicle.breaks:
            if rest.id == name:
                begin, close = max(begin for begin, _ in rest.windows), max(end for _, end in rest.windows)
                out_after = close if close < math.inf else begin
                due += case.left < close and case.after(case.ended, out_after)
        if taken[name] < due:
            yield case.says(None, "break", f"break {name} is due and not taken", due - taken[name])
        if taken[name] > times:
            yield case.says(None, "break", f"break {name} is taken more than once", taken[name] - times)


def rule_11_who(case: Case) -> Iterator[Violation]:
    for line, visit in enumerate(case.visits):
        if visit.kind == "stop":
            stop = case.stop(line)
            for skill in sorted(stop.skills):
                if skill not in case.vehicle.skills:
                    yield case.says(line, "skills", f"does not have skill {skill} for {stop.id}")
            if case.vehicle.id in stop.forbidden or not (stop.only is None or case.vehicle.id in stop.only):
                yield case.says(line, "vehicle", f"may not serve {stop.id}")


def rule_12_kept(case: Case) -> Iterator[Violation]:
    kept, stops = case.vehicle.kept, case.route.stops
    concerned = case.vehicle.number == 1 or any(stop in kept for stop in stops)
    if concerned and stops[: len(kept)] != kept:
        yield case.says(None, "kept", "does not begin with the stops that are kept")


def stated_cost(case: Case) -> Iterator[Violation]:
    true = cost_of(case)
    if differs(case.route.cost, true):
        words = f"its route costs {true:.10g}, not {case.route.cost:.10g}"
        yield case.says(None, "cost", words, case.route.cost - true)


RULES_OF_ROUTES: tuple[Callable[[Case], Iterator[Violation]], ...] = (
    rule_1_start,
    rule_2_legs,
    rule_3_windows,
    rule_4_service,
    rule_5_loads,
    rule_6_backhauls,
    rule_7_reloading,
    rule_8_end,
    rule_9_limits,
    rule_10_breaks,
    rule_11_who,
    rule_12_kept,
    stated_cost,
)


def cost_of(case: Case) -> float:
    """Fixed, distance, driving, costs of legs, duration, lateness, overtime."""
    vehicle = case.vehicle
    late = 0.0
    for line, visit in enumerate(case.visits):
        if visit.kind == "stop" and line not in case.kept_lines:
            seconds = case.lateness(line)
            late += (case.stop(line).late_cost or 0.0) * (seconds if math.isfinite(seconds) else 0.0)
    of_legs, costs = 0.0, case.round.legs_of(vehicle).cost
    if costs is not None:
        for here, there in pairwise([visit.place for visit in case.visits if visit.kind != "break"]):
            of_legs += float(costs[here, there]) if here is not None and there is not None else 0.0
    return (
        vehicle.fixed_cost
        + of_legs
        + vehicle.distance_cost * sum(visit.distance for visit in case.visits)
        + vehicle.driving_cost * sum(visit.driving for visit in case.visits)
        + vehicle.time_cost * (case.ended - case.left)
        + vehicle.overtime_cost * max(0.0, case.visits[-1].arrival - vehicle.shift[1])
        + late
    )


def broken_by_all(round: Round, plan: Plan) -> Iterator[Violation]:
    """Numbers of vehicles (11), kept stops of vehicles that stay (12), apart (13), all stops (14)."""

    def wrong(rule: str, words: str, by: float = 1.0) -> Violation:
        return Violation(None, None, rule, words, by)

    used = Counter(route.vehicle for route in plan.routes)
    for number, vehicle in enumerate(round.vehicles):
        if vehicle.number is not None and used[number] > vehicle.number:
            words = f"{used[number]} of {vehicle.called} are used, {vehicle.number} are there"
            yield wrong("number", words, used[number] - vehicle.number)
        firsts = [route.stops[: len(vehicle.kept)] for route in plan.routes if route.vehicle == number]
        if vehicle.kept and vehicle.kept not in firsts:
            yield wrong("kept", f"no {vehicle.called.removeprefix('a ')} begins with the stops that are kept")
    if plan.routes and all(route.visits for route in plan.routes):
        counts = [len(route.stops) for route in plan.routes]
        if exceeds(max(counts) - min(counts), round.most_stops_apart):
            by = max(counts) - min(counts) - round.most_stops_apart
            yield wrong("stops_apart", f"routes have from {min(counts)} to {max(counts)} stops", by)
        times = [route.visits[-1].departure - route.visits[0].departure for route in plan.routes]
        if exceeds(max(times) - min(times), round.most_time_apart):
            by = max(times) - min(times) - round.most_time_apart
            yield wrong("time_apart", f"routes take from {min(times):.10g} to {max(times):.10g}", by)
    visits = Counter(stop for route in plan.routes for stop in route.stops)
    listed = Counter(entry.stop for entry in plan.unassigned)
    reasons = {entry.stop: entry.reason for entry in plan.unassigned}
    for number, stop in enumerate(round.stops):
        if visits[number] + listed[number] > 1:
            yield wrong("once", f"stop {stop.id} is visited {visits[number]} times, left out {listed[number]} times")
        if not visits[number]:
            if stop.penalty is None and not round.allow_unassigned:
                yield wrong("unassigned", f"stop {stop.id} is not visited")
            elif not reasons.get(number):
                yield wrong("unassigned", f"stop {stop.id} is left out without a reason")
    for pickup, delivery in round.shipments:
        if (visits[pickup] > 0) != (visits[delivery] > 0):
            yield wrong(
                "shipment", f"of shipment {round.stops[pickup].id} to {round.stops[delivery].id} half is served"
            )
