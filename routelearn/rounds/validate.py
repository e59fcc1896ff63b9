"""Check a round before anybody plans it: one line for what is wrong, with the file, the row and the remedy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from routelearn.data.numbers import shown
from routelearn.errors import InputError, first_few
from routelearn.rounds.kept import check_kept
from routelearn.rounds.model import (
    ALWAYS,
    ANY,
    FOREVER,
    Amounts,
    Backhauls,
    Break,
    Matrix,
    Objective,
    Round,
    Stop,
    Vehicle,
    Window,
    attributes_of,
)
from routelearn.rounds.units import told_apart

NAMED = 3  # stops in one message
MOST_WINDOWS, MOST_BREAKS, MOST_DIMENSIONS = 500, 50, 50  # of a stop or break, of a vehicle, of amounts
MOST_TRIPS = 1_000_000  # of all vehicles together that could drive
SLACK = 1e-6  # what sums of doubles may be off by

Flags = NDArray[np.bool_]


def checked(given: Round) -> Round:
    """The round with its windows in order and its amounts in all dimensions, or InputError."""
    if not given.stops:
        raise InputError(f"{given.source}: no stops")
    if not given.vehicles:
        raise InputError(f"{given.source}: no vehicles; give them in a table, or their number")
    _check_choices(given)
    _check_ids(given)
    _check_numbers(given)
    _check_places(given)
    tidy = _possible_trips(_same_dimensions(_ordered(given)))
    _check_shipments(tidy)
    check_kept(tidy)
    _check_names(tidy)
    return _servable(tidy)


def _check_choices(given: Round) -> None:
    for name, value, choices in (
        ("objective", given.objective, get_args(Objective)),
        ("backhauls", given.backhauls, get_args(Backhauls)),
    ):
        if value not in choices:
            raise InputError(f"{given.source}: {name} is {shown(value)}; the choices are {', '.join(choices)}")


def _check_ids(given: Round) -> None:
    first: dict[str, int] = {}
    for i, stop in enumerate(given.stops):
        if (other := first.setdefault(stop.id, i)) != i:
            place = given.where[other] if given.where else f"stop {other + 1}"
            raise InputError(f"{given.at(i)}: the id {shown(stop.id)} is already used in {place}; rename one")
    first = {}
    for k, vehicle in enumerate(given.vehicles):
        if (other := first.setdefault(vehicle.id, k)) != k:
            raise InputError(
                f"{given.vehicle_at(k)}: the id {shown(vehicle.id)} is already used in {given.vehicle_at(other)}; "
                "rename one, or give their number"
            )


def _check_numbers(given: Round) -> None:
    """Finite numbers of the declared sign; windows and shifts that do not end before they begin."""
    for i, stop in enumerate(given.stops):
        _check_fields(stop, given.at(i))
        if not stop.windows:
            raise InputError(f"{given.at(i)}: no window, so that service can never begin; leave it out for any time")
        _check_count(len(stop.windows), MOST_WINDOWS, given.at(i), "windows")
        _check_count(max(len(stop.delivery), len(stop.pickup)), MOST_DIMENSIONS, given.at(i), "dimensions of an amount")
    for k, vehicle in enumerate(given.vehicles):
        where = given.vehicle_at(k)
        _check_fields(vehicle, where)
        _check_count(len(vehicle.breaks), MOST_BREAKS, where, "breaks")
        for pause in vehicle.breaks:
            _check_count(len(pause.windows), MOST_WINDOWS, where, "windows of a break")
            for window in pause.windows:
                _check_window(window, f"{where}, break {shown(pause.id)}", "window")
            _check_number(pause.service, "not negative", f"{where}, break {shown(pause.id)}", "its length")
            if not pause.windows:
                raise InputError(f"{where}, break {shown(pause.id)}: no window; leave it out for any time")
        if vehicle.trips > 1 and not vehicle.reloads:
            raise InputError(f"{where}: {vehicle.trips} trips, but no place to reload; give one, or 1 trip")
    for one in attributes_of(Round):
        value = getattr(given, one.name)
        if isinstance(value, int | float):
            _check_number(value, one.sign, given.source, one.called)


def _check_count(count: int, most: int, where: str, what: str) -> None:
    if count > most:
        raise InputError(f"{where}: {count:,} {what}; at most {most} are allowed")


def _possible_trips(given: Round) -> Round:
    """The round with trips that can be counted: if they are too many, no more than stops, since no trip is empty."""
    count = len(given.stops)

    def trips(vehicles: Iterable[Vehicle]) -> int:
        return sum(min(count, count if v.number is None else v.number) * v.trips for v in vehicles)

    if trips(given.vehicles) <= MOST_TRIPS:
        return given
    vehicles = tuple(replace(v, trips=min(v.trips, count)) for v in given.vehicles)
    if trips(vehicles) > MOST_TRIPS:
        raise InputError(
            f"{given.source}: {trips(vehicles):,} trips of all vehicles together; at most {MOST_TRIPS:,} are allowed: "
            "say how many vehicles there are (number), and how many trips each may make (trips)"
        )
    return replace(given, vehicles=vehicles)


def _check_fields(thing: Stop | Vehicle, where: str) -> None:
    for one in attributes_of(Stop if isinstance(thing, Stop) else Vehicle):
        value = getattr(thing, one.name)
        if one.name == "windows":
            for window in value:
                _check_window(window, where, "window")
        elif one.name == "shift":
            _check_window(value, where, "shift")
        elif one.unit == "amount":
            for number in value:
                _check_number(number, one.sign, where, one.called)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            _check_number(value, one.sign, where, one.called)


def _check_number(value: float, sign: str, where: str, what: str) -> None:
    if math.isnan(value):
        raise InputError(f"{where}: {what} is not a number; give one, or leave it out")
    if value < 0 and sign != "any":
        raise InputError(f"{where}: {what} is {value:g}; it cannot be negative")
    if value <= 0 and sign == "positive":
        raise InputError(f"{where}: {what} is {value:g}; it must be positive")


def _check_window(window: Window, where: str, what: str) -> None:
    low, high = window
    if math.isnan(low) or math.isnan(high):
        raise InputError(f"{where}: the {what} is not a number; give one, or leave it out")
    if high < low:
        raise InputError(f"{where}: the {what} ends ({high:g}) before it begins ({low:g}); swap them?")


def _check_places(given: Round) -> None:
    """Every place has its row and column in all legs, and all legs are lengths."""
    count = len(given.places)
    for profile, legs in given.legs.items():
        named = "" if profile == ANY else f" of the profile {shown(profile)}"
        for what, matrix in (("distances", legs.distance), ("durations", legs.duration), ("costs", legs.cost)):
            if matrix is None:
                continue
            if matrix.shape != (count, count):
                rows = " x ".join(map(str, matrix.shape))
                raise InputError(f"{given.source}: {count} places, but the {what}{named} are {rows}; one row for each")
            bad = ~(np.isfinite(matrix) & (matrix >= 0))
            if bad.any():
                row, column = np.argwhere(bad)[0] + 1
                raise InputError(
                    f"{given.source}: row {row}, column {column} of the {what}{named} is negative or not a finite "
                    "number; every place must be reachable from every other"
                )
    for i, stop in enumerate(given.stops):
        if not 0 <= stop.place < count:
            raise InputError(f"{given.at(i)}: place {stop.place}, but there are {count}, counted from 0")
    for k, vehicle in enumerate(given.vehicles):
        for place in (vehicle.start, vehicle.end, *vehicle.reloads):
            if place is not None and not 0 <= place < count:
                raise InputError(f"{given.vehicle_at(k)}: place {place}, but there are {count}, counted from 0")
        if vehicle.profile not in given.legs and ANY not in given.legs:
            known = ", ".join(map(shown, list(given.legs)[:5]))
            raise InputError(
                f"{given.vehicle_at(k)}: no legs of the profile {shown(vehicle.profile)}; there are those of {known}"
            )


def _ordered(given: Round) -> Round:
    """Windows in the order of their begin, joined where they overlap; breaks of one vehicle told apart."""
    stops = tuple(replace(s, windows=_joined(s.windows)) if len(s.windows) > 1 else s for s in given.stops)

    def fixed(one: Break, name: str) -> Break:
        return replace(one, id=name, windows=_joined(one.windows)) if len(one.windows) > 1 or one.id != name else one

    vehicles = tuple(
        replace(v, breaks=tuple(map(fixed, v.breaks, told_apart([one.id for one in v.breaks])))) if v.breaks else v
        for v in given.vehicles
    )
    return replace(given, stops=stops, vehicles=vehicles)


def _joined(windows: Iterable[Window]) -> tuple[Window, ...]:
    found: list[Window] = []
    for low, high in sorted(windows):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def _same_dimensions(given: Round) -> Round:
    """Amounts and capacities with a number for each dimension; a vehicle without a capacity holds anything."""
    sizes = [len(a) for stop in given.stops for a in (stop.delivery, stop.pickup)]
    size = max(sizes) or len(given.dimensions)
    for i, stop in enumerate(given.stops):
        for amounts in (stop.delivery, stop.pickup):
            if amounts and len(amounts) != size:
                raise InputError(
                    f"{given.at(i)}: an amount in {_dimensions(len(amounts))}, but others are in {size}; "
                    "write a 0 where there is nothing"
                )
    for k, vehicle in enumerate(given.vehicles):
        if vehicle.capacity and size and len(vehicle.capacity) != size:
            raise InputError(
                f"{given.vehicle_at(k)}: a capacity in {_dimensions(len(vehicle.capacity))}, but amounts in {size}; "
                "give one number for each"
            )
    none, all_of_it = (0.0,) * size, (FOREVER,) * size
    stops = tuple(
        s if s.delivery and s.pickup else replace(s, delivery=s.delivery or none, pickup=s.pickup or none)
        for s in given.stops
    )
    vehicles = tuple(
        replace(v, capacity=(v.capacity or all_of_it)[:size]) if len(v.capacity) != size else v for v in given.vehicles
    )
    return replace(given, stops=stops, vehicles=vehicles)


def _dimensions(count: int) -> str:
    return "one dimension" if count == 1 else f"{count} dimensions"


def _check_shipments(given: Round) -> None:
    used: dict[int, int] = {}
    for n, (pickup, delivery) in enumerate(given.shipments):
        for half in (pickup, delivery):
            if not 0 <= half < len(given.stops):
                raise InputError(f"{given.source}: shipment {n + 1} has no other half; it names stop {half}")
            if half in used or pickup == delivery:
                raise InputError(f"{given.at(half)}: a half of two shipments; every half is a stop of its own")
        used[pickup] = used[delivery] = n
        one, other = given.stops[pickup], given.stops[delivery]
        if any(one.delivery) and not any(one.pickup):
            raise InputError(
                f"{given.at(pickup)}: {shown(one.id)} is where a shipment begins, but has a delivery and no pickup; "
                f"give its {_amount(one.delivery)} as pickup"
            )
        if one.pickup != other.delivery or any(one.delivery) or any(other.pickup):
            raise InputError(
                f"{given.at(delivery)}: {_amount(other.delivery)} of a shipment are unloaded, but "
                f"{_amount(one.pickup)} are taken along at {shown(one.id)}; both halves need the same amount"
            )


def _amount(amounts: Amounts) -> str:
    return " ; ".join(f"{amount:g}" for amount in amounts) or "0"


def _check_names(given: Round) -> None:
    """Stops name only vehicles that there are."""
    known = {vehicle.id for vehicle in given.vehicles}
    for i, stop in enumerate(given.stops):
        if stray := sorted(((stop.only or frozenset()) | stop.forbidden) - known):
            some = ", ".join(map(shown, sorted(known)[:5]))
            raise InputError(
                f"{given.at(i)}: no vehicle is called {shown(stray[0])}; there are {some} (or rename the column)"
            )
        if stop.only is not None and not stop.only:
            raise InputError(f"{given.at(i)}: no vehicle is allowed; leave it empty to allow all")


# ------------------------------------------------------------------------------- what no vehicle can serve


def _servable(given: Round) -> Round:
    """Refuse shifts too short for any trip, and stops that nobody can serve where these may not be left out."""
    arrays = _Arrays(given)
    reasons: dict[int, str] = {}
    reachable = np.zeros(len(given.stops), dtype=bool)
    fits = np.zeros(len(given.stops), dtype=bool)
    may = np.zeros(len(given.stops), dtype=bool)
    short: list[int] = []
    asked: dict[Vehicle, tuple[Flags, Flags]] = {}
    for k, vehicle in enumerate(given.vehicles):
        key = replace(vehicle, id="", number=1, fixed_cost=0.0, kept=())
        names = arrays.named[:, k]
        if key not in asked:
            loads = arrays.fits(vehicle)
            asked[key] = loads, arrays.in_time(vehicle)
        loads, in_time = asked[key]
        able = names & arrays.skilled(vehicle)
        may |= able
        fits |= able & loads
        reachable |= able & loads & in_time
        if vehicle.shift != ALWAYS and (able & loads).any() and not (able & loads & arrays.in_shift(vehicle)).any():
            short.append(k)
    kept = [stop for vehicle in given.vehicles for stop in vehicle.kept]
    reachable[kept] = fits[kept] = may[kept] = True
    if short and not given.allow_unassigned and not any(v.kept for v in given.vehicles):
        low, high = given.vehicles[short[0]].shift
        raise InputError(
            f"{given.vehicle_at(short[0])}: the shift of {_long(high - low)} is too short for a trip to any stop; "
            "give a longer one, or check the unit of the durations"
        )
    needed = np.array([stop.penalty is None for stop in given.stops])
    for i in np.flatnonzero(needed & ~reachable):
        reasons[int(i)] = _reason(given, int(i), bool(may[i]), bool(fits[i]))
    if not reasons or given.allow_unassigned:
        return given
    first = next(iter(reasons))
    others = [given.stops[i].id for i in reasons if i != first]
    more = f" (nor can {first_few([shown(name) for name in others], NAMED)})" if others else ""
    raise InputError(
        f"{given.at(first)}: {shown(given.stops[first].id)} {reasons[first]}{more}; change it, or allow stops to be "
        "left out (--allow-unassigned)"
    )


def _long(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:g} min"


def _reason(given: Round, i: int, may: bool, fits: bool) -> str:
    stop = given.stops[i]
    if not may:
        has = frozenset().union(*(vehicle.skills for vehicle in given.vehicles))
        if unknown := sorted(stop.skills - has):
            return f"needs the skill {shown(unknown[0])}, which no vehicle has"
        if stop.skills:
            return f"needs {', '.join(map(shown, sorted(stop.skills)))}, and no vehicle that may serve it has them all"
        return "may be served by no vehicle"
    if not fits:
        amount = _amount(max(stop.delivery, stop.pickup))
        return f"has an amount of {amount}, more than any vehicle that may serve it holds"
    return "cannot be reached and left in time by any vehicle that may serve it (window, shift, limits)"


class _Arrays:
    """The stops of a round as arrays, to ask each vehicle about all of them at once."""

    def __init__(self, given: Round) -> None:
        self.given = given
        stops = given.stops
        self.place = np.array([stop.place for stop in stops])
        self.amounts = np.array([[*np.maximum(stop.delivery, stop.pickup)] for stop in stops]).reshape(len(stops), -1)
        self.service = np.array([stop.service for stop in stops])
        self.release = np.array([stop.release for stop in stops])
        self.open = np.array([stop.windows[0][0] for stop in stops])
        soft = np.array([stop.late_cost is not None for stop in stops])
        self.close = np.where(soft, FOREVER, [stop.windows[-1][1] for stop in stops])
        self.named = np.ones((len(stops), len(given.vehicles)), dtype=bool)
        for i, stop in enumerate(stops):
            if stop.only is not None or stop.forbidden:
                self.named[i] = [given.named(vehicle, stop) for vehicle in given.vehicles]
        self._skills: dict[frozenset[str], Flags] = {}
        self._shortest: dict[tuple[int, int, bool], Matrix] = {}

    def skilled(self, vehicle: Vehicle) -> Flags:
        if vehicle.skills not in self._skills:
            self._skills[vehicle.skills] = np.array([stop.skills <= vehicle.skills for stop in self.given.stops])
        return self._skills[vehicle.skills]

    def fits(self, vehicle: Vehicle) -> Flags:
        capacity = np.array(vehicle.capacity)
        if not len(capacity):
            return np.ones(len(self.place), dtype=bool)
        found: Flags = np.all(self.amounts <= capacity * (1 + 1e-9) + SLACK, axis=1)
        return found

    def _ways(self, matrix: Matrix, place: int | None, towards: bool) -> Matrix:
        """[stops] the shortest way from a place to each stop, or towards it; over other places, if that is shorter."""
        if place is None:
            return np.zeros(len(self.place))
        key = (id(matrix), place, towards)
        if key not in self._shortest:
            self._shortest[key] = shortest(matrix.T if towards else matrix, place)
        return self._shortest[key][self.place]

    def _trip(self, vehicle: Vehicle) -> tuple[Matrix, Matrix, Matrix]:
        legs = self.given.legs_of(vehicle)
        out = self._ways(legs.duration, vehicle.start, False)
        back = self._ways(legs.duration, vehicle.end, True)
        starts = [p for p in (vehicle.start, *vehicle.reloads) if p is not None]
        for place in starts[1:]:
            out = np.minimum(out, self._ways(legs.duration, place, False))
        way = self._ways(legs.distance, vehicle.start, False) + self._ways(legs.distance, vehicle.end, True)
        return out, back, way

    def in_shift(self, vehicle: Vehicle) -> Flags:
        """Whether the shift is long enough for each stop alone, whenever its window is."""
        out, back, _ = self._trip(vehicle)
        low, high = vehicle.shift
        found: Flags = out + self.service + back <= high - low + vehicle.overtime + SLACK
        return found

    def in_time(self, vehicle: Vehicle) -> Flags:
        """Whether each stop alone can be served in its window, in the shift and within all limits: never too strict."""
        out, back, way = self._trip(vehicle)
        leave = np.maximum(vehicle.shift[0], self.release)
        begin = np.maximum(leave + out, self.open)
        with np.errstate(invalid="ignore"):
            end = np.where(np.isfinite(begin), begin + self.service + back, -FOREVER)
        found: Flags = (
            (begin <= self.close + SLACK)
            & (end <= vehicle.shift[1] + vehicle.overtime + SLACK)
            & (out + self.service + back <= vehicle.max_duration + SLACK)
            & (out + back <= vehicle.max_driving + SLACK)
            & (way <= vehicle.max_distance * (1 + 1e-9) + SLACK)
            & (vehicle.max_stops is None or vehicle.max_stops > 0)
        )
        return found


def shortest(matrix: Matrix, start: int) -> Matrix:
    """[P] the shortest way from one place to all others, over any places (Dijkstra)."""
    best: Matrix = matrix[start].copy()
    best[start] = 0.0
    if _triangle(matrix, best):
        return best
    done = np.zeros(len(best), dtype=bool)
    for _ in range(len(best)):
        at = int(np.argmin(np.where(done, np.inf, best)))
        done[at] = True
        np.minimum(best, best[at] + matrix[at], out=best)
    return best


def _triangle(matrix: Matrix, best: Matrix) -> bool:
    """Whether no way over one other place is shorter than going there at once."""
    rows = 256  # at a time
    return all(
        bool((best <= (best[low : low + rows, None] + matrix[low : low + rows]).min(0)).all())
        for low in range(0, len(best), rows)
    )
