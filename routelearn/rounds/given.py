"""A plan from a file, as drives of a round: our JSON of either version, our CSV, a `.sol`, or VROOM's answer."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from routelearn.data.files import read_text
from routelearn.data.numbers import shown
from routelearn.errors import InputError
from routelearn.rounds.files.clock import Times
from routelearn.rounds.model import Round, Vehicle, Window
from routelearn.rounds.plan import Drive
from routelearn.rounds.timing import beginning, last_end, plan_of, schedule
from routelearn.rounds.units import DAY, told
from routelearn.solving.resume import read_routes

HALVES = ("pickup", "delivery")
DEPOT = "0"  # in a `.sol`, where a vehicle reloads
SKIPPED = ("start", "end", "break")  # of steps: what timing adds itself


def read_plan(path: str | Path) -> tuple[list[Mapping[str, Any]], dict[str, Any]]:
    """(routes, what else the file says). A route has `stops` or VROOM's `steps`, and perhaps `vehicle` and `visits`.

    A round of VROOM's whose vehicles have steps is a plan, too, and its own source.
    """
    if (steps := _planned(path)) is not None:
        return steps, {"source": str(path)}
    names, said = read_routes(path)
    return routes_of(said, str(path)) if said.get("routes") else [{"stops": route} for route in names], said


def _planned(path: str | Path) -> list[Mapping[str, Any]] | None:
    """The steps of the vehicles in a document of VROOM's; None if it is none."""
    if Path(path).suffix.lower() != ".json":
        return None
    with suppress(ValueError, RecursionError):  # whoever reads it next says what is wrong
        document = json.loads(read_text(path))
        vehicles = document.get("vehicles") if isinstance(document, dict) and "routes" not in document else None
        if isinstance(vehicles, list) and ("jobs" in document or "shipments" in document):
            return [
                {"vehicle": one.get("id"), "steps": one["steps"]}
                for one in vehicles
                if isinstance(one, dict) and isinstance(one.get("steps"), list)
            ]
    return None


def routes_of(document: Mapping[str, Any], source: str) -> list[Mapping[str, Any]]:
    """The routes of a decoded JSON, each an object."""
    routes = document.get("routes")
    if not isinstance(routes, list):
        raise InputError(f"{source}: no list of routes; a plan has 'routes'")
    return [route if isinstance(route, dict) else {"stops": route} for route in routes]


class Given(NamedTuple):
    """What a plan says of a round."""

    drives: tuple[Drive, ...]
    kept: tuple[int, ...]  # how many stops at the beginning of each drive are marked as kept
    starts: tuple[Mapping[tuple[str, str], Any], ...] = ()  # in each drive, by kind and id, as the plan says


def given_plan(round_: Round, routes: Sequence[Mapping[str, Any]], source: str, *, numbered: bool = False) -> Given:
    """What each vehicle does, in order; InputError for a stop or a vehicle that the round does not have.

    Rules are not looked at: a stop may be there twice or not at all. `numbered`: stops by number from 1, as in `.sol`,
    and 0 where a vehicle reloads.
    """
    names = [str(k + 1) for k in range(len(round_.stops))] if numbered else [stop.id for stop in round_.stops]
    ids = {name: stop for stop, name in enumerate(names)}
    taken = [0] * len(round_.vehicles)
    drives, kept, starts = [], [], []
    for i, route in enumerate(routes, 1):
        where = f"{source}: route {i}"
        vehicle = _vehicle(round_, route.get("vehicle"), route.get("description"), taken, where)
        if order := tuple(_order(round_, round_.vehicles[vehicle], route, ids, where, numbered)):
            taken[vehicle] += 1
            drives.append(Drive(vehicle, order))
            kept.append(_marked(route))
            told_of = [visit for visit in route.get("visits") or [] if isinstance(visit, dict) and "start" in visit]
            starts.append({(str(one.get("kind", "stop")), str(one.get("id"))): one["start"] for one in told_of})
    return Given(tuple(drives), tuple(kept), tuple(starts))


def _vehicle(round_: Round, name: Any, described: Any, taken: Sequence[int], where: str) -> int:
    """The vehicle of that id of which there are some left; without a name, the first that is free."""
    able = [k for k, one in enumerate(round_.vehicles) if name is None or one.id in (str(name), described)]
    if not able and isinstance(name, str):  # as the itinerary tells those that are alike apart: "van (2)"
        able = [k for k, one in enumerate(round_.vehicles) if name.startswith(f"{one.id} (")]
    if not able:
        known = ", ".join(dict.fromkeys(one.id for one in round_.vehicles[:12]))
        raise InputError(f"{where} has the vehicle {shown(name)}, which the round does not have; it has {known}")
    free = (k for k in able if (number := round_.vehicles[k].number) is None or taken[k] < number)
    return next(free, able[-1])


def _order(
    round_: Round, vehicle: Vehicle, route: Mapping[str, Any], ids: Mapping[str, int], where: str, numbered: bool
) -> Iterator[int]:
    """Numbers of stops, and `~place` where the vehicle reloads."""
    reloads = {round_.places[place]: place for place in vehicle.reloads}
    if numbered and vehicle.reloads:
        reloads = {DEPOT: vehicle.reloads[0]}
    idle = {round_.places[place] for place in (vehicle.start, vehicle.end) if place is not None}
    idle |= {rest.id for rest in vehicle.breaks}
    steps = list(_steps(route, where))
    for position, (kind, names) in enumerate(steps):
        if kind in HALVES:  # VROOM's: a job may have the id of a shipment's half
            names = [f"{kind} {names[-1]}", *names]
        stop = next((ids[name] for name in names if name in ids), None)
        place = next((reloads[name] for name in names if name in reloads), None)
        if kind in (None, "stop", "job", *HALVES) and stop is not None:
            yield stop
        elif kind in (None, "reload") and place is not None and 0 < position < len(steps) - 1:
            yield ~place
        elif not (kind in SKIPPED or (kind is None and names[0] in idle)):
            raise InputError(f"{where} visits {shown(names[-1])}, which is not among the stops")


def _steps(route: Mapping[str, Any], where: str) -> Iterator[tuple[str | None, list[str]]]:
    """(kind, what it is called) of each visit. Where stops and visits disagree, somebody changed the stops."""
    stops, visits = route.get("stops"), route.get("visits", route.get("steps"))
    if isinstance(visits, list):
        steps = [_step(visit, where) for visit in visits]
        if stops is None or [names[0] for kind, names in steps if kind == "stop"] == [str(stop) for stop in stops]:
            yield from steps
            return
    if not isinstance(stops, list) or not all(isinstance(stop, str | int) for stop in stops):
        raise InputError(f"{where} is not a list of ids")
    yield from ((None, [str(stop)]) for stop in stops)


def _step(visit: Any, where: str) -> tuple[str, list[str]]:
    """VROOM's ids are numbers: where ours are none, they are its descriptions."""
    if not isinstance(visit, dict):
        raise InputError(f"{where}: a visit is {shown(visit)}; an object is needed")
    names = [visit[key] for key in ("description", "id", "job") if visit.get(key) is not None]
    return str(visit.get("kind", visit.get("type", "stop"))), [str(name) for name in names or [""]]


# ------------------------------------------------------------------------------------------ what is kept


def without_cancelled(
    round_: Round, routes: Sequence[Mapping[str, Any]], until: str | None, *, marked: bool = False
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """(the routes without stops that the round no longer has and that are not kept, these stops).

    What is kept is what begins by a moment, else what the plan marks, else (unless `marked`) all of it.
    """
    known = {stop.id for stop in round_.stops}
    found: list[Mapping[str, Any]] = []
    gone: list[str] = []
    now = None if until is None else moment_of(round_, until, f"--until {until}")
    everything = now is None and not marked and not any(map(_marked, routes))
    for route in routes:
        begun, stops = 0, _stops(route)
        for i, visit in enumerate(stops, 1):
            start = None if now is None or "start" not in visit else moment_of(round_, visit["start"], "a start")
            begun = i if now is not None and (start is None or start <= now) else begun
        begun = begun if now is not None else _marked(route)
        later = {str(visit.get("id")) for visit in stops[begun:]} - known
        if later and not everything and isinstance(route.get("stops"), list):
            gone += sorted(later)
            route = {
                **route,
                "stops": [stop for stop in route["stops"] if str(stop) not in later],
                "visits": [one for one in route["visits"] if one not in stops or str(one.get("id")) not in later],
            }
        found.append(route)
    return found, gone


def _marked(route: Mapping[str, Any]) -> int:
    """How many stops at the beginning of a route are marked as kept."""
    return max((i for i, visit in enumerate(_stops(route), 1) if visit.get("kept")), default=0)


def _stops(route: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The visits of a route that are stops."""
    visits = route.get("visits") or []
    return [visit for visit in visits if isinstance(visit, dict) and visit.get("kind", "stop") == "stop"]


def keeping(round_: Round, drives: Sequence[Drive], counts: Sequence[int]) -> tuple[Round, tuple[Drive, ...]]:
    """(the round in which the vehicles begin with the first `counts` stops of these drives, the drives in it).

    Of several vehicles that are alike, one that keeps something becomes a vehicle of its own, under the same id.
    """
    vehicles: list[Vehicle] = []
    moved = list(drives)
    for k, vehicle in enumerate(round_.vehicles):
        mine = [i for i, drive in enumerate(drives) if drive.vehicle == k]
        begun = [i for i in mine if counts[i] > 0]
        for n, i in enumerate(begun):
            moved[i] = Drive(len(vehicles), drives[i].order)
            kept = tuple(at for at in drives[i].order if at >= 0)[: counts[i]]
            there = vehicle.number is None or n < vehicle.number
            vehicles.append(replace(vehicle, number=1 if there else 0, kept=kept))
        for i in mine:
            if i not in begun:
                moved[i] = Drive(len(vehicles), drives[i].order)
        left = None if vehicle.number is None else max(0, vehicle.number - len(begun))
        if left != 0 or len(begun) < len(mine):  # of those that are too many, the referee tells
            vehicles.append(replace(vehicle, number=left))
    return replace(round_, vehicles=tuple(vehicles), vehicles_where=()), tuple(moved)


def kept_until(
    round_: Round, given: Given, source: str, until: str | None, *, marked: bool = False
) -> tuple[Round, tuple[Drive, ...]]:
    """As `keeping`: what begins by a moment, else what the plan marks, else (unless `marked`) all of it.

    With a moment the plan goes on from it: a kept stop and a break began when the plan says, and nothing else begins
    before; a break whose windows are over since the vehicle left is taken at once. A vehicle that has left on its only
    trip takes no goods that come later.
    With `marked` the marks count beside a moment, too.
    """
    counts = list(given.kept)
    if until is None:
        everything = not marked and not any(counts)
        return keeping(round_, given.drives, [len(one.order) for one in given.drives] if everything else counts)
    now = moment_of(round_, until, f"--until {until}")
    began: list[dict[int, float]] = []
    rested: list[dict[str, float]] = []
    left: list[float] = []
    for route, said in zip(plan_of(round_, given.drives).routes, given.starts, strict=True):
        starts = [
            (
                visit,
                moment_of(round_, said.get((visit.kind, visit.id), told(round_, visit.start)), f"{source}: {visit.id}"),
            )
            for visit in route.visits
            if visit.kind in ("stop", "break")
        ]
        left.append(route.visits[0].departure)
        began.append({visit.stop: start for visit, start in starts if visit.stop is not None})
        rested.append({visit.id: start for visit, start in starts if visit.kind == "break" and start <= now})
    if not marked:
        counts = [sum(start <= now for start in starts.values()) for starts in began]
    kept, drives = keeping(round_, given.drives, counts)
    first = {stop: at for starts, count in zip(began, counts, strict=True) for stop, at in [*starts.items()][:count]}
    out = _departed(kept, {drive.vehicle: at for drive, at in zip(drives, left, strict=True)})
    stops = tuple(
        replace(stop, windows=((first[i], first[i]),))
        if i in first
        else replace(
            stop,
            windows=_left(stop.windows, now) or stop.windows,
            forbidden=stop.forbidden | {name for name, at in out.items() if stop.release > at},
        )
        for i, stop in enumerate(kept.stops)
    )
    breaks = {
        drive.vehicle: tuple(
            replace(rest, windows=_left(rest.windows, starts.get(rest.id, now)) or ((now, now),))
            if out_at < last_end(rest.windows)
            else rest  # over before the vehicle left, so that it is not due
            for rest in kept.vehicles[drive.vehicle].breaks
        )
        for drive, starts, out_at in zip(drives, rested, left, strict=True)
    }
    vehicles = tuple(
        replace(one, breaks=breaks.get(k, one.breaks))
        if one.kept
        else replace(one, shift=(max(beginning(one), now), one.shift[1]))
        for k, one in enumerate(kept.vehicles)
    )
    return replace(kept, stops=stops, vehicles=vehicles), drives


def _departed(kept: Round, left: Mapping[int, float]) -> dict[str, float]:
    """When the last vehicle of an id left, where all of them have, for good: goods that come later go with none."""
    found: dict[str, float] = {}
    for k, one in enumerate(kept.vehicles):
        stays = one.number != 0 and not (one.kept and one.trips <= 1)
        found[one.id] = max(found.get(one.id, -math.inf), math.inf if stays else left.get(k, -math.inf))
    return {name: at for name, at in found.items() if at < math.inf}


def _left(windows: tuple[Window, ...], now: float) -> tuple[Window, ...]:
    """What is left of windows at a moment."""
    return tuple((max(low, now), high) for low, high in windows if high >= now)


def driven_on(round_: Round, drives: Sequence[Drive]) -> tuple[Drive, ...]:
    """The drives, each only as far as its vehicle keeps it, with the reloads between, if the rest breaks a rule."""
    found, used = [], Counter[int]()
    for drive in drives:
        vehicle, order = round_.vehicles[drive.vehicle], list(drive.order)
        free = vehicle.number is None or used[drive.vehicle] < vehicle.number
        if not free or schedule(round_, drive)[1]:
            while order and len(vehicle.kept) < sum(at >= 0 for at in order):
                order.pop()
            while order and order[-1] < 0:
                order.pop()
        if order:
            used[drive.vehicle] += 1
            found.append(drive._replace(order=tuple(order)))
    return tuple(found)


def _latest(round_: Round) -> float:
    """The last time that a round's file gives."""
    windows = [window for stop in round_.stops for window in stop.windows]
    windows += [window for one in round_.vehicles for rest in one.breaks for window in rest.windows]
    times = [time for window in (*windows, *(one.shift for one in round_.vehicles)) for time in window]
    return max(
        (time for time in (*times, *(stop.release for stop in round_.stops)) if math.isfinite(time)), default=0.0
    )


def moment_of(round_: Round, raw: Any, what: str) -> float:
    """A time that somebody gives beside a round, as the round's own are."""
    times = Times(what)
    times.look([raw])
    if round_.day:  # its times count from this day, in this zone
        times.first, times.zone = date.fromisoformat(round_.day), round_.zone
        times.last = times.last if _latest(round_) > DAY else times.first  # of one day: a time needs no date
    try:
        found = times.at(raw, what, "the time")
    except InputError:
        if times.clock:
            raise
        found = math.nan
    if times.clock != (round_.day is not None) or math.isnan(found):
        wanted = "a clock time such as 12:00" if round_.day is not None else "a number of seconds"
        raise InputError(f"{what}: the round's times need {wanted}")
    return found
