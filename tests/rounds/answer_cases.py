"""A small round whose plan can be followed by hand, and a search that stands in for the real one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routelearn.rounds.model import ANY, Break, Legs, Round, Stop, Vehicle
from routelearn.rounds.plan import Drive
from routelearn.rounds.timing import plan_of

HOUR = 3600.0


def city(**changes) -> Round:
    """A depot and five stops on a line, 1 km and 10 minutes apart, and two vans; clock times of no date."""
    places = ("yard", "p1", "p2", "p3", "p4", "p5")
    apart = np.abs(np.arange(6)[:, None] - np.arange(6)).astype(float)
    stops = tuple(
        Stop(id=name, place=i, delivery=(amount,), windows=((low * HOUR, high * HOUR),), service=300.0, columns=columns)
        for i, (name, amount, low, high, columns) in enumerate(
            [
                ("Ana", 2.0, 8, 9, {"street": "Elm 1", "phone": "1;2"}),
                ("Bo", 3.0, 8, 12, {"street": "Elm 2"}),
                ("Cy", 1.5, 10, 12, {}),
                ("Di", 2.0, 8, 16, {"street": "Oak, 4"}),
                ("Ed", 4.0, 8, 16, {}),
            ],
            1,
        )
    )
    vans = (
        Vehicle(id="van", capacity=(10.0,), start=0, end=0, shift=(8 * HOUR, 16 * HOUR)),
        Vehicle(id="bike", number=2, capacity=(4.0,), start=0, end=0, shift=(8 * HOUR, 16 * HOUR), distance_cost=0.5),
    )
    made = Round(
        source="city.csv", stops=stops, vehicles=vans, legs={ANY: Legs(apart, apart * 600)}, places=places, day="",
        latlon=np.array([[52.0, 4.0 + 0.01 * i] for i in range(6)]), length_unit="km",
    )  # fmt: skip
    return replace(made, **changes)


DRIVES = (Drive(0, (0, 1, 2)), Drive(1, (3,)), Drive(1, (4,)))


def planned(round_: Round | None = None, drives=DRIVES):
    """The round's plan by the package's own timing, as an answer."""
    from routelearn.rounds.answers import RoundSolution

    found = city() if round_ is None else round_
    return RoundSolution(found, plan_of(found, drives))


def with_lunch() -> Round:
    """The van reloads once and has a break at noon."""
    base = city()
    lunch = Break(id="lunch", windows=((8.5 * HOUR, 9 * HOUR),), service=900.0)
    van = replace(base.vehicles[0], breaks=(lunch,), trips=2, reloads=(0,), reload_time=600.0, capacity=(5.0,))
    return replace(base, vehicles=(van, base.vehicles[1]))


def insertion(round_: Round, **asked) -> tuple[Drive, ...]:
    """Each stop where it costs least and breaks nothing, else nowhere: the interface of `search_round`."""
    drives = [
        Drive(k, tuple(vehicle.kept))
        for k, vehicle in enumerate(round_.vehicles)
        for _ in range(3 if vehicle.number is None else vehicle.number)
    ]
    free = replace(round_, allow_unassigned=True)
    placed = {at for drive in drives for at in drive.order}
    for stop in range(len(round_.stops)):
        if stop in placed:
            continue
        best = None
        for i, drive in enumerate(drives):
            kept = len(round_.vehicles[drive.vehicle].kept)
            for at in range(kept, len(drive.order) + 1):
                tried = list(drives)
                tried[i] = Drive(drive.vehicle, (*drive.order[:at], stop, *drive.order[at:]))
                plan = plan_of(free, tried)
                if not plan.violations and (best is None or plan.cost < best[0]):
                    best = (plan.cost, tried)
        if best is not None:
            drives = best[1]
    return tuple(drive for drive in drives if drive.order)
