"""Times, loads, breaks and cost of a sequence of visits, and every rule it breaks (docs/guides/rounds.md, "Times")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from routelearn.rounds.model import FOREVER, Amounts, Break, Round, Stop, Vehicle, Window
from routelearn.rounds.plan import Drive, Kind, Plan, Route, Unassigned, Violation, Visit
from routelearn.rounds.units import length, spoken

BY_NUMBER = (  # the names of the rules, by their numbers in docs/guides/rounds.md (0: what a plan says of itself)
    ("itinerary", "load", "cost"), ("start", "release"), ("leg",), ("window",), ("service",), ("capacity", "shipment"),
    ("backhauls",), ("reload", "trips"), ("end",), ("max_duration", "max_distance", "max_driving", "max_stops"),
    ("break",), ("skills", "vehicle", "number"), ("kept",), ("stops_apart", "time_apart"), ("once", "unassigned"),
)  # fmt: skip
RULES = {name: number for number, names in enumerate(BY_NUMBER) for name in names}

SECONDS = 1e-6  # how far times may pass a limit: errors of adding up, no more
SHARE = 1e-7  # and amounts and lengths, of the limit


# Windows


def next_start(windows: Sequence[Window], time: float) -> float:
    """The first moment at or after a time that is inside a window; infinite: there is none."""
    best = FOREVER
    for begin, end in windows:
        if time <= end + SECONDS:
            best = min(best, max(begin, time))
    return best


def last_end(windows: Sequence[Window]) -> float:
    return max(end for _, end in windows)


def lateness(windows: Sequence[Window], time: float) -> float:
    """How long after the end of the last window that had begun; 0 inside a window and before all of them."""
    ends = [end for begin, end in windows if begin <= time]
    return max(0.0, time - max(ends)) if ends else 0.0


def beginning(vehicle: Vehicle) -> float:
    """Of its shift; one without a beginning begins at 0."""
    return vehicle.shift[0] if vehicle.shift[0] > -FOREVER else 0.0


def still_out(rest: Break) -> float:
    """A vehicle that is out after this moment must have had the break."""
    close = last_end(rest.windows)
    return close if close < FOREVER else max(begin for begin, _ in rest.windows)


# One vehicle


@dataclass
class Node:
    """One line of an itinerary while its times are found."""

    kind: Kind
    place: int | None
    stop: int | None = None
    rest: int | None = None  # in the vehicle's breaks
    distance: float = 0.0
    driving: float = 0.0
    cost: float = 0.0  # of the leg by itself
    windows: tuple[Window, ...] = ((-FOREVER, FOREVER),)
    service: float = 0.0
    strict: bool = False  # it may not be late
    arrival: float = 0.0
    start: float = 0.0

    @property
    def departure(self) -> float:
        return self.start + self.service

    def come(self, time: float) -> None:
        """Arrive, and begin in the next window; at once if there is none to come."""
        self.arrival = time
        start = next_start(self.windows, time)
        self.start = start if start < FOREVER else time

    def slack(self) -> float:
        """How much later it could begin in the window that it uses."""
        ends = [end for begin, end in self.windows if begin <= self.start <= end + SECONDS]
        return max(0.0, max(ends) - self.start) if ends else 0.0


def trips_of(order: Sequence[int]) -> list[list[int]]:
    """The stops of each trip."""
    trips: list[list[int]] = [[]]
    for at in order:
        if at < 0:
            trips.append([])
        else:
            trips[-1].append(at)
    return trips


def number_kept(vehicle: Vehicle, order: Sequence[int]) -> int:
    """How many of the vehicle's kept stops a drive begins with."""
    stops = [at for at in order if at >= 0]
    count = 0
    while count < min(len(stops), len(vehicle.kept)) and stops[count] == vehicle.kept[count]:
        count += 1
    return count


def nodes_of(round: Round, drive: Drive) -> list[Node]:
    """Start, visits, reloads and end with their legs and windows, without breaks."""
    vehicle = round.vehicles[drive.vehicle]
    legs = round.legs_of(vehicle)
    releases = [max((round.stops[i].release for i in trip), default=-FOREVER) for trip in trips_of(drive.order)]
    nodes = [Node("start", vehicle.start, windows=((max(beginning(vehicle), releases[0]), FOREVER),))]
    trip = 0
    for at in drive.order:
        if at < 0:
            trip += 1
            ready = releases[trip] - vehicle.reload_time
            nodes.append(Node("reload", ~at, windows=((ready, FOREVER),), service=vehicle.reload_time))
        else:
            stop = round.stops[at]
            setup = stop.setup if nodes[-1].place != stop.place else 0.0
            node = Node("stop", stop.place, at, windows=stop.windows, service=stop.service + setup)
            node.strict = stop.late_cost is None and at not in vehicle.kept
            nodes.append(node)
    nodes.append(Node("end", vehicle.end))
    for before, node in pairwise(nodes):
        if before.place is not None and node.place is not None:
            node.distance = float(legs.distance[before.place, node.place])
            node.driving = float(legs.duration[before.place, node.place])
            node.cost = 0.0 if legs.cost is None else float(legs.cost[before.place, node.place])
    return nodes


def with_breaks(nodes: Sequence[Node], breaks: Sequence[Break], due: Sequence[int]) -> list[Node]:
    """The nodes, everything as early as possible, and the breaks that are due where they are taken."""
    pending = list(due)
    done = [nodes[0]]
    nodes[0].come(nodes[0].windows[0][0])

    def rather_after(node: Node, rest: Break, moment: float, time: float, way: float) -> bool:
        """Whether a break at a moment makes the next stop late, and it can still be taken after the stop."""
        served = next_start(node.windows, time + way)
        late = next_start(node.windows, moment + rest.service + way) == FOREVER
        return node.strict and late and served + node.service <= last_end(rest.windows) + SECONDS

    def take(node: Node, time: float, way: float, free_until: float, busy_until: float) -> bool:
        """Take the next break that begins while the vehicle stands, or cannot begin after what comes next.

        `way` is what is still to be driven to the node.
        """
        moments = {i: next_start(breaks[i].windows, time) for i in pending}
        now_or_never = [moments[i] for i in pending if busy_until > last_end(breaks[i].windows) + SECONDS]
        forced = min(now_or_never, default=FOREVER)
        free_until = max(free_until, forced) if forced < FOREVER else free_until
        ready = [i for i in pending if moments[i] < FOREVER and moments[i] <= free_until]
        ready = [i for i in ready if not rather_after(node, breaks[i], moments[i], time, way)]
        if not ready:
            return False
        first = min(ready, key=lambda i: moments[i])
        pending.remove(first)
        rest = breaks[first]
        line = Node("break", None, None, first, windows=rest.windows, service=rest.service)
        if not way:  # on arrival: the leg is the break's
            line.distance, line.driving = node.distance, node.driving
            node.distance = node.driving = 0.0
        line.come(time)
        done.append(line)
        return True

    for node in nodes[1:]:
        left = done[-1].departure
        while pending and take(node, left, node.driving, left, left + node.driving):  # before leaving
            left = done[-1].departure
        if node.kind == "end":  # the vehicle is back: only breaks without an end are taken still
            pending = [i for i in pending if last_end(breaks[i].windows) == FOREVER]
        node.come(left + node.driving)
        while pending and take(node, node.arrival, 0.0, node.start, node.departure):  # on arrival
            node.come(done[-1].departure)
        done.append(node)
    return done


def leave_late(nodes: Sequence[Node]) -> None:
    """Delay the start by as much as leaves the end as it is."""
    delay, waited = FOREVER, 0.0
    for node in nodes[1:]:
        waited += node.start - node.arrival
        delay = min(delay, waited + (0.0 if node.kind == "end" else node.slack()))
    if delay <= 0.0:
        return
    drive_through(nodes, nodes[0].start + delay)


def drive_through(nodes: Sequence[Node], start: float) -> None:
    """Give the nodes their times, each as early as it can be after a start."""
    nodes[0].come(start)
    for before, node in pairwise(nodes):
        node.come(before.departure + node.driving)


def is_due(rest: Break, left: float, end: float) -> bool:
    return left < last_end(rest.windows) and end > still_out(rest) + SECONDS


def timed(round: Round, drive: Drive) -> tuple[list[Node], list[Break]]:
    """The lines of an itinerary, and the breaks that were due and not taken."""
    breaks = round.vehicles[drive.vehicle].breaks
    due: list[int] = []
    while True:
        nodes = with_breaks(nodes_of(round, drive), breaks, due)
        leave_late(nodes)
        now = [i for i, rest in enumerate(breaks) if is_due(rest, nodes[0].departure, nodes[-1].departure)]
        if set(now) <= set(due):
            break
        due = sorted({*due, *now})
    taken = {node.rest for node in nodes}
    return nodes, [breaks[i] for i in now if i not in taken]


def added(a: Sequence[float], b: Sequence[float], sign: float = 1.0) -> Amounts:
    """Sum of amounts; dimensions that one does not name are 0 there."""
    if len(a) == len(b):
        return tuple([one + sign * other for one, other in zip(a, b, strict=True)])
    size = max(len(a), len(b))
    return tuple((a[i] if i < len(a) else 0.0) + sign * (b[i] if i < len(b) else 0.0) for i in range(size))


def loads_of(round: Round, nodes: Sequence[Node]) -> list[Amounts]:
    """What is aboard when the vehicle leaves each line."""
    none = (0.0,) * round.size
    trips: list[Amounts] = [none]
    for node in nodes:
        if node.kind == "reload":
            trips.append(none)
        elif node.stop is not None and node.stop != round.shipment_of.get(node.stop, (-1, -1))[1]:  # not one on its way
            trips[-1] = added(trips[-1], round.stops[node.stop].delivery)
    loads, trip, load = [], 0, trips[0]
    for node in nodes:
        if node.kind == "reload":
            trip += 1
            load = trips[trip]
        elif node.stop is not None:
            stop = round.stops[node.stop]
            load = added(added(load, stop.delivery, -1.0), stop.pickup)
        loads.append(load)
    return loads


def schedule(round: Round, drive: Drive) -> tuple[Route, tuple[Violation, ...]]:
    """One vehicle's itinerary and cost, and the rules that it breaks (as of route 0)."""
    vehicle = round.vehicles[drive.vehicle]
    nodes, missed = timed(round, drive)
    distance = driving = late = 0.0
    visits = []
    unheld = set(vehicle.kept[: number_kept(vehicle, drive.order)])
    for node, load in zip(nodes, loads_of(round, nodes), strict=True):
        distance += node.distance
        driving += node.driving
        visits.append(
            Visit(
                kind=node.kind,
                stop=node.stop,
                place=node.place,
                id=name_of(round, drive.vehicle, node),
                arrival=node.arrival,
                start=node.start,
                departure=node.departure,
                load=load,
                distance=node.distance,
                driving=node.driving,
                distance_so_far=distance,
                driving_so_far=driving,
            )
        )
        if node.stop is not None and node.stop not in unheld:
            stop = round.stops[node.stop]
            late += (stop.late_cost or 0.0) * lateness(stop.windows, node.start)
    duration = nodes[-1].departure - nodes[0].departure
    cost = vehicle.fixed_cost + vehicle.distance_cost * distance + vehicle.driving_cost * driving
    cost += vehicle.time_cost * duration + late + sum(node.cost for node in nodes)
    cost += vehicle.overtime_cost * max(0.0, nodes[-1].arrival - vehicle.shift[1])
    route = Route(drive.vehicle, tuple(visits), cost)
    found = [*broken_in_time(round, route, missed, unheld), *broken_in_order(round, drive, route)]
    return route, tuple(found)


def name_of(round: Round, vehicle: int, node: Node) -> str:
    if node.stop is not None:
        return round.stops[node.stop].id
    if node.rest is not None:
        return round.vehicles[vehicle].breaks[node.rest].id
    return "" if node.place is None else round.places[node.place]


def broken_in_time(round: Round, route: Route, missed: Sequence[Break], unheld: set[int]) -> Iterator[Violation]:
    """Windows, the end, limits, breaks."""
    vehicle, day, last = round.vehicles[route.vehicle], round.day, len(route.visits) - 1
    for i, visit in enumerate(route.visits):
        if visit.stop is None or visit.stop in unheld:
            continue
        stop = round.stops[visit.stop]
        by = lateness(stop.windows, visit.start)
        if by > SECONDS and stop.late_cost is None:
            until = spoken(day, visit.start - by)
            words = f"stop {visit.id} is served at {spoken(day, visit.start)}; its window ends at {until}"
            yield Violation(0, i, "window", words, by)
    end = route.visits[-1].arrival
    by = end - vehicle.shift[1] - vehicle.overtime
    if by > SECONDS:
        until = f"its shift ends at {spoken(day, vehicle.shift[1])}"
        until += f" with at most {length(day, vehicle.overtime)} of overtime" if vehicle.overtime else ""
        yield Violation(0, last, "end", f"{vehicle.called} ends at {spoken(day, end)}; {until}", by)
    limits: list[tuple[str, str, float, float]] = [
        ("max_duration", "is out for", route.duration, vehicle.max_duration),
        ("max_distance", "drives a distance of", route.distance, vehicle.max_distance),
        ("max_driving", "drives for", route.driving, vehicle.max_driving),
        ("max_stops", "makes", len(route.stops), FOREVER if vehicle.max_stops is None else vehicle.max_stops),
    ]
    for rule, verb, value, most in limits:
        if value > most + (SECONDS if rule in ("max_duration", "max_driving") else SHARE * max(1.0, most)):
            timely = rule in ("max_duration", "max_driving")
            has, may = (length(day, value), length(day, most)) if timely else (f"{value:.10g}", f"{most:.10g}")
            has += " stops" if rule == "max_stops" else ""
            are = "are" if rule == "max_stops" and most > 1 else "is"
            yield Violation(0, last, rule, f"{vehicle.called} {verb} {has}; at most {may} {are} allowed", value - most)
    for rest in missed:
        words = f"{vehicle.called} is still out at {spoken(day, still_out(rest))} without its break {rest.id}"
        yield Violation(0, None, "break", words, end - still_out(rest))


def broken_in_order(round: Round, drive: Drive, route: Route) -> Iterator[Violation]:
    """Loads, shipments, backhauls, reloads, who may serve, what is kept."""
    vehicle = round.vehicles[route.vehicle]
    line = {visit.stop: i for i, visit in enumerate(route.visits) if visit.stop is not None}
    for i, visit in enumerate(route.visits):
        over = [load - most for load, most in zip(visit.load, vehicle.capacity, strict=False)]
        slack = [SHARE * max(1.0, most) for most in vehicle.capacity]
        worst = max(range(len(over)), key=lambda d: over[d] - slack[d], default=None)
        if worst is not None and over[worst] > slack[worst]:
            unit = f" {round.dimensions[worst]}" if worst < len(round.dimensions) else ""
            where = f"after {visit.id}" if visit.kind != "start" else "from the start"
            words = f"{vehicle.called} has {visit.load[worst]:.10g}{unit} aboard {where}"
            yield Violation(0, i, "capacity", f"{words}; it holds {vehicle.capacity[worst]:.10g}", over[worst])
    trips = trips_of(drive.order)
    trip_of = {at: (number, i) for number, trip in enumerate(trips) for i, at in enumerate(trip)}
    for pickup, delivery in sorted({round.shipment_of[at] for at in trip_of if at in round.shipment_of}):
        if pickup in trip_of and delivery in trip_of:
            ids = f"{round.stops[pickup].id} to {round.stops[delivery].id}"
            if trip_of[pickup][0] != trip_of[delivery][0]:
                yield Violation(0, line[delivery], "shipment", f"shipment {ids} is carried across a reload", 1.0)
            elif trip_of[pickup] > trip_of[delivery]:
                yield Violation(0, line[delivery], "shipment", f"shipment {ids} is delivered before its pickup", 1.0)
    if round.backhauls == "last":
        for trip in trips:
            picked: Stop | None = None
            for at in trip:
                stop = round.stops[at]
                if at in round.shipment_of:
                    continue
                if picked is not None and any(stop.delivery):
                    words = f"delivery to stop {stop.id} comes after the pickup at {picked.id}"
                    yield Violation(0, line[at], "backhauls", words, 1.0)
                if any(stop.pickup):
                    picked = picked or stop
    if len(trips) > vehicle.trips:
        words = f"{vehicle.called} makes {len(trips)} trips; at most {vehicle.trips} are allowed"
        yield Violation(0, None, "trips", words, len(trips) - vehicle.trips)
    if not all(trips) and drive.order:
        yield Violation(0, None, "trips", f"{vehicle.called} has a trip without stops", 1.0)
    for i, visit in enumerate(route.visits):
        if visit.kind == "reload" and visit.place not in vehicle.reloads:
            yield Violation(0, i, "reload", f"{vehicle.called} may not reload at {visit.id}", 1.0)
        if visit.stop is None:
            continue
        stop = round.stops[visit.stop]
        if not stop.skills <= vehicle.skills:
            lacking = ", ".join(sorted(stop.skills - vehicle.skills))
            words = f"stop {stop.id} needs skill {lacking}, which {vehicle.called} does not have"
            yield Violation(0, i, "skills", words, len(stop.skills - vehicle.skills))
        if not round.named(vehicle, stop):
            yield Violation(0, i, "vehicle", f"{vehicle.called} may not serve stop {stop.id}", 1.0)
    if number_kept(vehicle, drive.order) < len(vehicle.kept) and (
        vehicle.number == 1 or set(vehicle.kept) & set(drive.order)
    ):
        yield Violation(0, None, "kept", f"{vehicle.called} does not begin with the stops that are kept", 1.0)


# A whole plan


def plan_of(round: Round, drives: Iterable[Drive], unassigned: Sequence[Unassigned] | None = None) -> Plan:
    """The plan with all times, its cost, and every rule that it breaks. Drives without stops are left out.

    `unassigned` gives the reasons of stops in no drive; those it does not name are listed all the same.
    """
    routes: list[Route] = []
    violations: list[Violation] = []
    drives = [drive for drive in drives if drive.order]
    for drive in drives:
        route, found = schedule(round, drive)
        violations += [violation._replace(route=len(routes)) for violation in found]
        routes.append(route)
    times_served = Counter(at for drive in drives for at in drive.order if at >= 0)
    out = [i for i in range(len(round.stops)) if not times_served[i]]
    given = {entry.stop: entry for entry in unassigned or ()}
    listed = tuple(given.get(i) or Unassigned(i, why_out(round.stops[i])) for i in out)
    violations += broken_in_all(round, drives, routes, times_served, out)
    cost = sum(route.cost for route in routes) + sum(round.stops[i].penalty or 0.0 for i in out)
    return Plan(tuple(routes), listed, cost, tuple(violations))


def why_out(stop: Stop) -> str:
    return "not assigned" if stop.penalty is None else f"left out at its penalty of {stop.penalty:.10g}"


def broken_in_all(
    round: Round, drives: Sequence[Drive], routes: Sequence[Route], times_served: Counter[int], out: Sequence[int]
) -> Iterator[Violation]:
    """The rules that concern several vehicles."""
    for i, times in sorted(times_served.items()):
        if times > 1:
            yield Violation(None, None, "once", f"stop {round.stops[i].id} is visited {times} times", times - 1)
    for i in out:
        if round.stops[i].penalty is None and not round.allow_unassigned:
            yield Violation(None, None, "unassigned", f"stop {round.stops[i].id} is not visited", 1.0)
    used = Counter(drive.vehicle for drive in drives)
    yield from too_many(round, used)
    for k, vehicle in enumerate(round.vehicles):
        tried = [drive for drive in drives if drive.vehicle == k and set(vehicle.kept) & set(drive.order)]
        if vehicle.kept and not tried and not (vehicle.number == 1 and used[k]):
            words = f"{vehicle.called} does not begin with the stops that are kept"
            yield Violation(None, None, "kept", words, 1.0)
    served_by = {at: number for number, drive in enumerate(drives) for at in drive.order if at >= 0}
    for pickup, delivery in round.shipments:
        if served_by.get(pickup) != served_by.get(delivery):
            ids = f"{round.stops[pickup].id} to {round.stops[delivery].id}"
            split = pickup in served_by and delivery in served_by
            words = f"shipment {ids} is " + ("on two vehicles" if split else "served by half")
            yield Violation(None, None, "shipment", words, 1.0)
    if routes:
        counts, durations = [len(route.stops) for route in routes], [route.duration for route in routes]
        by = max(counts) - min(counts) - round.most_stops_apart
        if by > SHARE:
            words = f"routes have between {min(counts)} and {max(counts)} stops"
            yield Violation(None, None, "stops_apart", f"{words}; they may differ by {round.most_stops_apart:.10g}", by)
        by = max(durations) - min(durations) - round.most_time_apart
        if by > SECONDS:
            words = f"routes take between {length(round.day, min(durations))} and {length(round.day, max(durations))}"
            apart = length(round.day, round.most_time_apart)
            yield Violation(None, None, "time_apart", f"{words}; they may differ by {apart}", by)


def too_many(round: Round, used: Counter[int]) -> Iterator[Violation]:
    """More vehicles of a kind than there are."""
    for k, vehicle in enumerate(round.vehicles):
        if vehicle.number is not None and used[k] > vehicle.number:
            words = f"{used[k]} of {vehicle.called} are used; the round has {vehicle.number}"
            yield Violation(None, None, "number", words, used[k] - vehicle.number)


def rank(round: Round, plan: Plan) -> tuple[float, ...]:
    """What is compared between plans that keep the rules, least first.

    Stops left out without a penalty, those of the highest priority first; vehicles, where they come first; the cost.
    """
    out = [round.stops[entry.stop].priority for entry in plan.unassigned if round.stops[entry.stop].penalty is None]
    left_out = [float(out.count(level)) for level in sorted({stop.priority for stop in round.stops}, reverse=True)]
    return (*left_out, float(len(plan.routes)) if round.objective == "vehicles" else 0.0, plan.cost)
