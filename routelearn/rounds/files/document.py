"""Rounds as JSON of our own: `stops`, `vehicles`, matrices and settings, under the names of the model's fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routelearn.data.json_file import matrix_of
from routelearn.data.numbers import blank, shown
from routelearn.data.records import Row
from routelearn.errors import InputError
from routelearn.rounds.files.build import Builder
from routelearn.rounds.files.columns import BEYOND
from routelearn.rounds.files.lengths import Given, in_unit, of_document
from routelearn.rounds.files.table import OPTIONS, Table, beyond
from routelearn.rounds.model import Round, Stop

LENGTHS = ("matrix", "durations", "distances", "profiles")
KEYS = ("stops", "depot", "depots", "vehicles", "shipments", *LENGTHS, "problem", "name", "description")
ONLY_ROUNDS = ("depots", "shipments", "durations", "distances", "profiles", "vehicles")


def parse(
    data: Mapping[str, Any], source: str, options: Mapping[str, Any], given: Given | None, must: bool
) -> Round | None:
    """The round of a decoded document; None where it is one of the older problems and need not be a round."""
    stray = [key for key in data if key not in KEYS and key not in OPTIONS]
    if stray and not must and not any(key in data for key in ONLY_ROUNDS):
        return None
    stops = Table(source, _rows(data, source), document=True)
    asked = {key: data[key] for key in OPTIONS if data.get(key) is not None and key not in ("vehicles", "depot")}
    asked |= {key: value for key, value in options.items() if value is not None}
    vehicles = data.get("vehicles")
    fleet: Table | None = None
    if isinstance(vehicles, list):
        fleet = Table(source, [_vehicle(v, source, k) for k, v in enumerate(vehicles, 1)], document=True)
    elif vehicles is not None and "vehicles" not in asked:
        asked["vehicles"] = vehicles
    stops.understand(Stop)
    if not must and not any(data.get(key) is not None for key in ONLY_ROUNDS) and not beyond(stops, asked):
        return None
    if stray:
        known = ", ".join(dict.fromkeys((*KEYS, *OPTIONS)))
        raise InputError(f"{source}: {stray[0][:40]!r} is not known; the keys are {known}")
    if fleet is not None and options.get("vehicles") is not None:
        raise InputError(f"{source}: gives its vehicles; leave --vehicles out")
    depot = data.get("depot")
    profiles = _profiles(data.get("profiles"), source)
    if profiles and given is not None:
        raise InputError(f"{source}: gives the legs of its profiles; leave --matrix out")
    builder = Builder(
        stops,
        fleet,
        asked,
        given if given is not None else _given(data, source, asked),
        profiles,
        shipments=data.get("shipments"),
        depot=None if isinstance(depot, dict | list) else depot,
    )
    return builder.build()


def _given(data: Mapping[str, Any], source: str, options: Mapping[str, Any]) -> Given | None:
    if data.get("durations") is not None or data.get("distances") is not None:
        if data.get("matrix") is not None:
            raise InputError(f"{source}: both 'matrix' and 'durations' or 'distances'; keep the latter")
        return of_document(data, source)
    if (rows := data.get("matrix")) is None:
        return None
    return in_unit(matrix_of(rows, source, "matrix"), options)


def _profiles(raw: Any, source: str) -> dict[str, Given]:
    """Legs by profile."""
    if raw is None:
        return {}
    if not isinstance(raw, dict) or not raw or not all(isinstance(one, dict) for one in raw.values()):
        raise InputError(f"{source}: 'profiles' is {shown(raw)}; an object of durations and distances is needed")
    found = {}
    for name, one in raw.items():
        given = of_document(one, f"{source}, profile {shown(name)}")
        if given.distances is None and given.durations is None:
            raise InputError(f"{source}, profile {shown(name)}: neither durations nor distances")
        found[name] = given
    return found


def _rows(data: Mapping[str, Any], source: str) -> list[Row]:
    """The depots with places of their own, then the stops; every one has an id."""
    raw = data.get("stops")
    if not isinstance(raw, list) or not raw:
        told = "no 'stops'" if raw is None else f"'stops' is {'empty' if raw == [] else shown(raw)}"
        raise InputError(f"{source}: {told}; a list of stops is needed")
    stops = [_stop(stop, source, i) for i, stop in enumerate(raw, 1)]
    if all(blank(stop.get("id")) for stop in stops):
        names = [str(stop.get("name") or "").strip() for stop in stops]
        use = all(names) and len(set(names)) == len(names)
        stops = [{**stop, "id": names[i] if use else str(i + 1)} for i, stop in enumerate(stops)]
    own = data.get("depots")
    if own is not None and isinstance(data.get("depot"), dict | list):
        raise InputError(f"{source}: both 'depot' and 'depots'; put all of them into 'depots'")
    if own is None:
        own = [data["depot"]] if isinstance(data.get("depot"), dict | list) else []
    if not isinstance(own, list):
        raise InputError(f"{source}: 'depots' is {shown(own)}; a list of places is needed")
    depots = [dict(_stop(depot, source, k, "depot")) for k, depot in enumerate(own, 1)]
    for k, depot in enumerate(depots, 1):
        if blank(depot.get("id")):
            depot["id"] = depot.get("name") or ("depot" if len(depots) == 1 else f"depot {k}")
        depot["depot"] = 1
    many = len(depots) > 1
    rows: list[Row] = [(f"depot {k}" if many else "depot", depot) for k, depot in enumerate(depots, 1)]
    return [*rows, *((f"stop {i}", stop) for i, stop in enumerate(stops, 1))]


def _stop(raw: Any, source: str, number: int, what: str = "stop") -> dict[str, Any]:
    if isinstance(raw, list) and len(raw) == 2:
        return {"x": raw[0], "y": raw[1]}
    if not isinstance(raw, dict):
        raise InputError(f"{source}, {what} {number}: {shown(raw)}; an object with x and y, or lat and lon, is needed")
    return raw


def _vehicle(raw: Any, source: str, number: int) -> Row:
    if not isinstance(raw, dict):
        raise InputError(f"{source}, vehicle {number}: {shown(raw)}; an object is needed")
    return f"vehicle {number}", raw


def seems_round(data: Mapping[str, Any]) -> bool:
    """Whether a document has keys that only rounds have, before anything is read."""
    stops = data.get("stops")
    first = stops[0] if isinstance(stops, list) and stops and isinstance(stops[0], dict) else {}
    return any(data.get(key) is not None for key in ONLY_ROUNDS) or any(key in first for key in BEYOND)
