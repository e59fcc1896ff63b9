"""Plans as files for other programs: an itinerary as CSV, VROOM's answer, GeoJSON."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routelearn.data import csv_file
from routelearn.data.files import STDIN
from routelearn.data.geojson import feature
from routelearn.errors import InputError
from routelearn.rounds.plan import Route, Violation, Visit
from routelearn.rounds.units import METRES, amount, number, told

if TYPE_CHECKING:
    from routelearn.rounds.answers import RoundSolution

VROOM = "vroom.json"
# Our rules, as VROOM calls what breaks them; others keep their names.
CAUSES = {
    "window": "delay", "end": "delay", "start": "lead_time", "release": "lead_time", "capacity": "load",
    "vehicle": "skills", "shipment": "precedence", "break": "missing_break", "max_driving": "max_travel_time",
    "max_stops": "max_tasks",
}  # fmt: skip


def kind_of(path: str) -> str:
    """The format that a name's end says; standard output is JSON."""
    if path == STDIN:
        return "json"
    return VROOM if path.lower().endswith(f".{VROOM}") else Path(path).suffix.lower().removeprefix(".")


def places_of(solution: RoundSolution) -> tuple[tuple[str, str], Any] | None:
    """(names of the two columns, [P, 2]), if places came in."""
    if solution.round.latlon is not None:
        return ("lat", "lon"), solution.round.latlon
    return None if solution.round.xy is None else (("x", "y"), solution.round.xy)


def to_json(solution: RoundSolution) -> str:
    return json.dumps(solution.document(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


# -------------------------------------------------------------------------------------------------- CSV


def to_csv(solution: RoundSolution) -> str:
    """One line for each visit in driving order, then the stops left out; separated as the table that came in."""
    round_, output = solution.round, io.StringIO()
    own = list(dict.fromkeys(name for stop in round_.stops for name in stop.columns))
    places = places_of(solution)
    dimensions = max((len(visit.load) for route in solution.plan.routes for visit in route.visits), default=0)
    numbered = [str(i + 1) for i in range(dimensions)]
    names = round_.dimensions if len(round_.dimensions) == dimensions else numbered
    loads = ["load"] if dimensions == 1 else [f"load {name}" for name in names]
    head = ["route", "vehicle", "position", "id", "kind", "arrival", "start", "departure", "wait", *loads]
    head += ["distance", "driving", "distance_so_far", "driving_so_far", *(() if places is None else places[0])]
    left = solution.plan.unassigned
    head += [name if name not in head else f"{name} (given)" for name in own] + (["reason"] if left else [])
    write = csv_file.writer(output, round_.separator)

    def cell(value: Any) -> Any:
        if value is None:
            return ""
        return str(value).replace(".", round_.decimal) if isinstance(value, float) else value

    def location(place: int | None) -> list[Any]:
        if places is None:
            return []
        return ["", ""] if place is None else [cell(float(part)) for part in places[1][place]]

    def given(stop: int | None) -> list[str]:
        return ["" if stop is None else round_.stops[stop].columns.get(name, "") for name in own]

    write(head)
    for i, route in enumerate(solution.plan.routes):
        for position, visit in enumerate(route.visits):
            moments = (told(round_, at, between=" ") for at in (visit.arrival, visit.start, visit.departure))
            figures = [visit.wait, *visit.load, visit.distance, visit.driving]
            figures += [visit.distance_so_far, visit.driving_so_far]
            row = [i + 1, solution.labels[i], position, visit.id, visit.kind, *map(cell, moments)]
            row += [cell(number(value)) for value in figures]
            row += [*location(visit.place), *given(visit.stop)] + ([""] if left else [])
            write(row)
    for one in left:
        stop = round_.stops[one.stop]
        blank = [""] * (5 + len(loads) + 4)
        write(["", "", "", stop.id, "left out", *blank[1:], *location(stop.place), *given(one.stop), one.reason])
    return output.getvalue()


# ------------------------------------------------------------------------------------------------ VROOM


def to_vroom(solution: RoundSolution) -> str:
    """VROOM's answer: whole seconds, its own field names. Reloading, which it does not have, is a step `reload`."""
    round_ = solution.round
    halves = {stop: kind for pair in round_.shipments for stop, kind in zip(pair, ("pickup", "delivery"), strict=True)}
    jobs = numbers([stop.id.removeprefix(f"{halves.get(i, '')} ") for i, stop in enumerate(round_.stops)])
    vehicles = numbers([vehicle.id for vehicle in round_.vehicles])

    def job(stop: int) -> dict[str, Any]:
        return {"id": jobs[stop], "type": halves.get(stop, "job"), **described(round_.stops[stop].id, jobs[stop])}

    routes = [
        {"vehicle": vehicles[route.vehicle], **described(solution.vehicle(route).id, vehicles[route.vehicle]),
         **vroom_route(solution, i, route, job)}
        for i, route in enumerate(solution.plan.routes)
    ]  # fmt: skip
    left = [
        {**job(one.stop), **location(solution, round_.stops[one.stop].place), "reason": one.reason}
        for one in solution.plan.unassigned
    ]
    sums = ("setup", "service", "duration", "waiting_time", "priority", "distance")
    document = {
        "code": 0,
        "summary": {
            "cost": whole(solution.cost),
            "routes": len(routes),
            "unassigned": len(left),
            **added(routes, "delivery"),
            **added(routes, "pickup"),
            **{name: sum(route[name] for route in routes) for name in sums},
            "violations": [cause(one) for one in solution.plan.violations],
        },
        "unassigned": left,
        "routes": routes,
    }
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def vroom_route(solution: RoundSolution, i: int, route: Route, job: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """What VROOM tells of a route, with its steps."""
    round_, broken = solution.round, [one for one in solution.plan.violations if one.route == i]
    steps = []
    for position, visit in enumerate(route.visits):
        setup, service = setup_and_service(solution, visit)
        at = {} if visit.stop is None else job(visit.stop)
        if visit.kind in ("break", "reload"):
            at = {"description": visit.id}
        steps.append(
            {
                "type": visit.kind,
                **at,
                **({} if visit.stop is None else {"job": at["id"]}),
                **location(solution, visit.place),
                "arrival": whole(visit.arrival),
                "duration": whole(visit.driving_so_far),
                "distance": metres(solution, visit.distance_so_far),
                "setup": setup,
                "service": service,
                "waiting_time": whole(visit.start) - whole(visit.arrival) if visit.kind != "start" else 0,
                **({"load": [number(part) for part in visit.load]} if visit.load else {}),
                "violations": [cause(one) for one in broken if one.visit == position],
            }
        )
    stops = [round_.stops[stop] for stop in route.stops]
    count = max((len(visit.load) for visit in route.visits), default=0)
    brought, taken = ([number(math.fsum(padded(part, count, at) for part in parts)) for at in range(count)]
                      for parts in ([stop.delivery for stop in stops], [stop.pickup for stop in stops]))  # fmt: skip
    return {
        "cost": whole(route.cost),
        **({"delivery": brought, "pickup": taken} if count else {}),
        "setup": sum(step["setup"] for step in steps),
        "service": sum(step["service"] for step in steps),
        "duration": whole(route.driving),
        "waiting_time": sum(step["waiting_time"] for step in steps),
        "priority": sum(stop.priority for stop in stops),
        "distance": metres(solution, route.distance),
        "steps": steps,
        "violations": [cause(one) for one in broken],
    }


def padded(amounts: Sequence[float], count: int, at: int) -> float:
    return amounts[at] if len(amounts) == count else 0.0


def setup_and_service(solution: RoundSolution, visit: Visit) -> tuple[int, int]:
    """Whole seconds of each, which together are the time from the start of service to leaving."""
    if visit.kind in ("start", "end"):
        return 0, 0
    lasting = whole(visit.departure) - whole(visit.start)
    if visit.stop is None:
        return 0, lasting
    service = min(lasting, whole(solution.round.stops[visit.stop].service))
    return lasting - service, service


def numbers(ids: Sequence[str]) -> list[int]:
    """VROOM's ids are whole numbers: the ids themselves if all of them are, else numbers from 1."""
    if all(name.isascii() and name.isdigit() and str(int(name)) == name for name in ids):
        return [int(name) for name in ids]
    return list(range(1, len(ids) + 1))


def described(name: str, as_number: int) -> dict[str, str]:
    """The id as it came in, where a number stands for it."""
    return {} if name == str(as_number) else {"description": name}


def location(solution: RoundSolution, place: int | None) -> dict[str, Any]:
    if place is None:
        return {}
    if solution.round.latlon is None:
        return {"location_index": place}
    latitude, longitude = solution.round.latlon[place].tolist()
    return {"location": [longitude, latitude]}


def whole(value: float) -> int:
    return math.floor(value + 0.5) if math.isfinite(value) else 0


def metres(solution: RoundSolution, value: float) -> int:
    """A length in VROOM's unit; in the user's where nobody says which that is."""
    return whole(value * METRES.get(solution.round.length_unit, 1.0))


def added(routes: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """The sum over the routes, in each dimension."""
    columns = zip(*(route[name] for route in routes if name in route), strict=True)
    total = [number(math.fsum(column)) for column in columns]
    return {name: total} if total else {}


def cause(one: Violation) -> dict[str, Any]:
    """A broken rule as VROOM tells it."""
    named = CAUSES.get(one.rule, one.rule)
    timed = named in ("delay", "lead_time", "max_travel_time") and math.isfinite(one.by)
    return {"cause": named, **({"duration": math.ceil(one.by)} if timed else {})}


# ---------------------------------------------------------------------------------------------- GeoJSON


def to_geojson(solution: RoundSolution) -> str:
    """A LineString for each route and a Point for each visit, longitude first."""
    if solution.round.latlon is None:
        raise InputError("GeoJSON needs places on the globe; these stops have no lat and lon (choose json or csv)")
    collection = {"type": "FeatureCollection", "features": list(features(solution))}
    return json.dumps(collection, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def features(solution: RoundSolution) -> Iterator[dict[str, Any]]:
    assert solution.round.latlon is not None
    latlon = solution.round.latlon.tolist()

    def at(place: int) -> list[float]:
        return [latlon[place][1], latlon[place][0]]

    for i, route in enumerate(solution.plan.routes):
        told_of = {key: value for key, value in solution.route_document(route).items() if key != "visits"}
        line = [at(visit.place) for visit in route.visits if visit.place is not None]
        if len(line) > 1:
            yield feature("LineString", line, {"route": i + 1, **told_of})
    for i, route in enumerate(solution.plan.routes):
        for position, visit in enumerate(route.visits):
            if visit.place is not None:
                told_of = solution.visit_document(route, visit)
                yield feature("Point", at(visit.place), {"route": i + 1, "position": position, **told_of})
    for one in solution.plan.unassigned:
        stop = solution.round.stops[one.stop]
        yield feature("Point", at(stop.place), {"id": stop.id, "route": None, "reason": one.reason,
                                                "amount": amount(stop.delivery)})  # fmt: skip


# -------------------------------------------------------------------------------------------------- .sol


def to_sol(solution: RoundSolution) -> str:
    """As the libraries have it: stops numbered from 1 in the order of the file, 0 for a reload, without vehicles."""
    lines = []
    for i, route in enumerate(solution.plan.routes, 1):
        at = [0 if v.stop is None else v.stop + 1 for v in route.visits if v.stop is not None or v.kind == "reload"]
        lines.append(f"Route #{i}: {' '.join(map(str, at))}")
    return "\n".join([*lines, f"Cost {number(solution.cost)}"]) + "\n"


WRITERS: dict[str, Callable[[RoundSolution], str]] = {
    "json": to_json,
    VROOM: to_vroom,
    "geojson": to_geojson,
    "csv": to_csv,
    "sol": to_sol,
}
