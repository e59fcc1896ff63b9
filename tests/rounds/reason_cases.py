"""Plans that leave stops out, and every way to insert one more, written apart from the package's reasons."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from random_rounds import random_round

from routelearn.rounds.model import ANY, Legs, Round, Stop, Vehicle
from routelearn.rounds.plan import Drive, Plan
from routelearn.rounds.timing import plan_of, schedule


def insertions(round: Round, drives: tuple[Drive, ...], group: tuple[int, ...]) -> Iterator[tuple[Drive, ...]]:
    """Every plan with a stop or a shipment more, written again for the test."""
    for number in range(len(drives) + 1):
        kinds = [drives[number].vehicle] if number < len(drives) else range(len(round.vehicles))
        for kind in kinds:
            old = drives[number].order if number < len(drives) else ()
            orders = {old}
            if old and sum(at < 0 for at in old) + 1 < round.vehicles[kind].trips:
                for reload in round.vehicles[kind].reloads:
                    orders |= {(*old[:i], ~reload, *old[i:]) for i in range(len(old) + 1)}
            for part in group:
                orders = {(*order[:i], part, *order[i:]) for order in orders for i in range(len(order) + 1)}
            for order in orders:
                yield (*drives[:number], Drive(kind, order), *drives[number + 1 :])


def group_of(round: Round, number: int) -> tuple[int, ...]:
    return next((pair for pair in round.shipments if number in pair), (number,))


def fits(round: Round, plan: Plan, number: int) -> bool:
    free = replace(round, allow_unassigned=True)
    group = group_of(round, number)
    return any(not plan_of(free, drives).violations for drives in insertions(free, plan.drives, group))


def scarce(seed: int) -> tuple[Round, Plan]:
    """A round with too few vehicles, and a plan from insertion that serves what it can."""
    rng = random.Random(seed)
    round = random_round(seed, most_stops=8)
    vehicles = [replace(v, number=1, kept=()) for v in round.vehicles[: rng.randint(1, 2)]]
    round = replace(round, vehicles=tuple(vehicles), allow_unassigned=True)
    if rng.random() < 0.3:  # one that nobody can take
        stops = list(round.stops)
        stops[0] = replace(stops[0], skills=frozenset({"9"}))
        round = replace(round, stops=tuple(stops))
    drives: tuple[Drive, ...] = ()
    groups = {group_of(round, i) for i in range(len(round.stops))}
    for group in rng.sample(sorted(groups), len(groups)):
        better = [new for new in insertions(round, drives, group) if not plan_of(round, new).violations]
        drives = min(better, key=lambda new: plan_of(round, new).cost, default=drives)
    return round, plan_of(round, drives)


def crowded(seed: int, count: int) -> tuple[Round, Plan]:
    """A day with about twice the stops that five vans can serve, and a plan from insertion."""
    rng = random.Random(f"crowded {seed}")
    xy = np.array([[rng.uniform(0, 100), rng.uniform(0, 100)] for _ in range(count + 1)])
    distance = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))
    stops = []
    for i in range(count):
        begin = rng.uniform(0, 25_000)
        windows = ((begin, begin + rng.uniform(1800, 7200)),) if rng.random() < 0.6 else ((0.0, 30_000.0),)
        skills = frozenset({rng.choice("1234")}) if rng.random() < 0.25 else frozenset()
        amount = (float(rng.randint(1, 8)), float(rng.randint(0, 5)))
        stops.append(
            Stop(id=f"s{i}", place=i + 1, delivery=amount, windows=windows, service=rng.uniform(60, 900), skills=skills)
        )
    share = count / 10  # of the stops, for one van of five
    tight = rng.choice(("amounts", "stops", "times"))  # what is short
    loads = share if tight == "amounts" else 10 * share
    vans = [
        Vehicle(
            id=f"v{k}", number=1, start=0, end=0, capacity=(2.0 * loads, 1.2 * loads), shift=(0.0, 28_800.0),
            skills=frozenset(rng.sample("123", 2)), max_stops=int(share / 3) if tight == "stops" else None,
            max_duration=20_000.0 if tight == "times" and k % 2 else 28_800.0,
            max_distance=250.0 if tight == "times" and k == 2 else 1e9,
        )
        for k in range(5)
    ]  # fmt: skip
    round_ = Round(
        source="crowded", stops=tuple(stops), vehicles=tuple(vans), legs={ANY: Legs(distance, 60 * distance)},
        places=tuple(map(str, range(count + 1))), xy=xy, dimensions=("kg", "boxes"), allow_unassigned=True,
    )  # fmt: skip
    drives = [Drive(k, ()) for k in range(5)]
    for i in rng.sample(range(count), count):
        for k in rng.sample(range(5), 5):
            at = rng.randint(0, len(drives[k].order))
            for p in (at, *range(len(drives[k].order) + 1)):
                order = (*drives[k].order[:p], i, *drives[k].order[p:])
                if not schedule(round_, Drive(k, order))[1]:
                    drives[k] = Drive(k, order)
                    break
            else:
                continue
            break
    return round_, plan_of(round_, drives)


def one_more(round_: Round, plan: Plan, stop: int) -> Plan | None:
    """A plan with the stop in one of the drives or vehicles, if there is one; for rounds without reloads or pairs."""
    for number, drive in enumerate(plan.drives):
        for p in range(len(drive.order) + 1):
            new = Drive(drive.vehicle, (*drive.order[:p], stop, *drive.order[p:]))
            if not schedule(round_, new)[1]:
                return plan_of(round_, (*plan.drives[:number], new, *plan.drives[number + 1 :]))
    for k in range(len(round_.vehicles)):
        found = plan_of(round_, (*plan.drives, Drive(k, (stop,))))
        if not found.violations:
            return found
    return None
