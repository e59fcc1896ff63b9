"""An answer to a round: who visits what in which order, with all times, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from routelearn.rounds.model import Amounts

Kind = Literal["start", "stop", "break", "reload", "end"]


class Drive(NamedTuple):
    """What one vehicle does, without times: numbers of stops, and `~place` where it reloads between two trips.

    `timing` adds breaks and times to it.
    """

    vehicle: int  # in `Round.vehicles`; where `number` of them are alike, each has a drive of its own
    order: tuple[int, ...]


@dataclass(frozen=True)
class Visit:
    """One line of an itinerary."""

    kind: Kind
    stop: int | None  # in `Round.stops`
    place: int | None  # None: a break, or the start or end of an open route
    id: str  # of the stop, break or place
    arrival: float
    start: float  # of service; before it the vehicle waits
    departure: float
    load: Amounts  # aboard when it leaves
    distance: float  # of the leg to here
    driving: float  # the seconds of that leg
    distance_so_far: float
    driving_so_far: float

    @property
    def wait(self) -> float:
        return self.start - self.arrival


@dataclass(frozen=True)
class Route:
    """The itinerary of one vehicle, from start to end."""

    vehicle: int
    visits: tuple[Visit, ...]
    cost: float  # fixed, by distance and time, lateness and overtime

    @property
    def stops(self) -> tuple[int, ...]:
        return tuple(v.stop for v in self.visits if v.stop is not None)

    @property
    def distance(self) -> float:
        return self.visits[-1].distance_so_far

    @property
    def driving(self) -> float:
        return self.visits[-1].driving_so_far

    @property
    def duration(self) -> float:
        """From leaving to the end."""
        return self.visits[-1].departure - self.visits[0].departure


class Unassigned(NamedTuple):
    stop: int
    reason: str


class Violation(NamedTuple):
    """A rule that a plan breaks."""

    route: int | None  # None: of the whole plan
    visit: int | None  # in the route's itinerary
    rule: str  # "window", "capacity", ...: one of `timing.RULES`
    words: str  # one line for people
    by: float  # how far


@dataclass(frozen=True)
class Plan:
    routes: tuple[Route, ...]
    unassigned: tuple[Unassigned, ...] = ()
    cost: float = 0.0  # of all routes, and the penalties of stops left out
    violations: tuple[Violation, ...] = ()

    @property
    def drives(self) -> tuple[Drive, ...]:
        """What can be timed again, or improved."""
        return tuple(
            Drive(
                route.vehicle,
                tuple(
                    v.stop if v.stop is not None else ~v.place  # type: ignore[operator]
                    for v in route.visits
                    if v.kind in ("stop", "reload")
                ),
            )
            for route in self.routes
        )
