"""The optimum of tiny rounds by enumeration: all orders of all sets of stops, with all reloads, through `timing`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product

from routelearn.rounds.model import FOREVER, Round, Vehicle
from routelearn.rounds.plan import Drive, Plan
from routelearn.rounds.timing import plan_of, rank, schedule

MOST_STOPS = 7


def optimum(round: Round) -> Plan | None:
    """A best plan (`timing.rank`); None: no plan keeps all rules."""
    assert len(round.stops) <= MOST_STOPS, "too many stops to enumerate"
    best: Plan | None = None
    for drives in divisions(round, routes_of(round), frozenset(range(len(round.stops))), []):
        plan = plan_of(round, drives)
        if not plan.violations and (best is None or rank(round, plan) < rank(round, best)):
            best = plan
    return best


def routes_of(round: Round) -> dict[frozenset[int], list[Drive]]:
    """Drives that keep the rules of one vehicle, by their stops: each vehicle's cheapest, or all if time counts."""
    found: dict[frozenset[int], list[Drive]] = {}
    partner = {a: b for pair in round.shipments for a, b in (pair, pair[::-1])}
    for k, vehicle in enumerate(round.vehicles):
        may = [i for i, stop in enumerate(round.stops) if round.serves(vehicle, stop)]
        for size in range(1, len(may) + 1):
            for stops in combinations(may, size):
                if any(partner.get(i, i) not in stops for i in stops):
                    continue
                costs: dict[Drive, float] = {}
                for order in permutations(stops):
                    for with_reloads in reloaded(vehicle, order):
                        route, violations = schedule(round, Drive(k, with_reloads))
                        if not violations:
                            costs[Drive(k, with_reloads)] = route.cost
                if costs:
                    every = round.most_time_apart < FOREVER
                    found.setdefault(frozenset(stops), []).extend(
                        costs if every else [min(costs, key=costs.__getitem__)]
                    )
    return found


def reloaded(vehicle: Vehicle, order: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """An order with every choice of reloads between its stops."""
    for number in range(min(vehicle.trips, len(order))):
        for gaps in combinations(range(1, len(order)), number):
            for places in product(vehicle.reloads, repeat=number):
                at = dict(zip(gaps, places, strict=True))
                yield tuple(x for i, stop in enumerate(order) for x in ([~at[i], stop] if i in at else [stop]))


def divisions(
    round: Round, routes: dict[frozenset[int], list[Drive]], open_stops: frozenset[int], drives: list[Drive]
) -> Iterator[list[Drive]]:
    """Every choice of drives that have no stop in common; stops that may be are left out, too."""
    if not open_stops:
        yield drives
        return
    first = min(open_stops)
    if round.allow_unassigned or round.stops[first].penalty is not None:
        yield from divisions(round, routes, open_stops - {first}, drives)
    for stops, choices in routes.items():
        if first in stops and stops <= open_stops:
            for drive in choices:
                number = round.vehicles[drive.vehicle].number
                if number is None or sum(other.vehicle == drive.vehicle for other in drives) < number:
                    yield from divisions(round, routes, open_stops - stops, [*drives, drive])
