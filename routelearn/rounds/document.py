"""A round as a document that `round_from_document` reads: for the page, and for whoever sends a file's round."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from routelearn.rounds.answers import plain
from routelearn.rounds.model import FOREVER, Round, Stop, Vehicle, attributes_of
from routelearn.rounds.units import told

LISTED = ("objective", "backhauls", "most_stops_apart", "most_time_apart")


def document_of(round_: Round) -> dict[str, Any]:
    """The keys of a request. Legs are given in full, between the places of depots and stops in their order."""
    ends = sorted({place for vehicle in round_.vehicles for place in _places(vehicle)})
    own = {place: round_.places[place] for place in ends}
    taken = {stop.id for stop in round_.stops}
    for place, name in own.items():  # a depot may be called as a stop is
        while own[place] in taken:
            own[place] = f"{own[place]} (depot)" if own[place] == name else f"{own[place]}*"
        taken.add(own[place])
    rows = [*ends, *(stop.place for stop in round_.stops)]
    found: dict[str, Any] = {
        "depots": [{"id": own[place], **_location(round_, place)} for place in ends],
        "stops": [_stop(round_, stop) for stop in round_.stops],
        "vehicles": [_vehicle(round_, vehicle, own) for vehicle in round_.vehicles],
        "profiles": {
            name: {
                "durations": legs.duration[np.ix_(rows, rows)].tolist(),
                "distances": legs.distance[np.ix_(rows, rows)].tolist(),
                **({} if legs.cost is None else {"costs": legs.cost[np.ix_(rows, rows)].tolist()}),
            }
            for name, legs in round_.legs.items()
        },
    }
    if round_.shipments:
        found["shipments"] = [[round_.stops[a].id, round_.stops[b].id] for a, b in round_.shipments]
    for name in LISTED:
        if (value := getattr(round_, name)) != Round.__dataclass_fields__[name].default:
            found[name] = value
    if round_.allow_unassigned:
        found["allow_unassigned"] = True
    return found


def _places(vehicle: Vehicle) -> list[int]:
    return [place for place in (vehicle.start, vehicle.end, *vehicle.reloads) if place is not None]


def _location(round_: Round, place: int) -> dict[str, float]:
    if round_.latlon is not None:
        return dict(zip(("lat", "lon"), round_.latlon[place].tolist(), strict=True))
    return {} if round_.xy is None else dict(zip(("x", "y"), round_.xy[place].tolist(), strict=True))


def _changed(of: Stop | Vehicle) -> list[str]:
    """The declared attributes that are not what every stop or vehicle has."""
    fields = {one.name: one for one in dataclasses.fields(of)}
    kind: type = type(of)
    return [a.name for a in attributes_of(kind) if getattr(of, a.name) != fields[a.name].default]


def _stop(round_: Round, stop: Stop) -> dict[str, Any]:
    values = {name: plain(round_, name, getattr(stop, name)) for name in _changed(stop)}
    taken = {*values, "id", "lat", "lon", "x", "y"}  # the user's own columns must not be taken for something else
    own = {name: text for name, text in stop.columns.items() if name not in taken}
    return {"id": stop.id, **_location(round_, stop.place), **values, **own}


def _vehicle(round_: Round, vehicle: Vehicle, own: dict[int, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"id": vehicle.id, "number": vehicle.number}
    for name in ("start", "end"):
        place = getattr(vehicle, name)
        found[name] = None if place is None else own[place]
    for name in _changed(vehicle):
        value = getattr(vehicle, name)
        if name == "shift":
            found[name] = [told(round_, end) for end in value]
        elif value != FOREVER:
            found[name] = plain(round_, name, value)
    if vehicle.breaks:
        found["breaks"] = [
            {"id": rest.id, "windows": plain(round_, "windows", rest.windows) or None, "service": rest.service}
            for rest in vehicle.breaks
        ]
    if vehicle.reloads:
        found["reloads"] = [own[place] for place in vehicle.reloads]
    if vehicle.kept:
        found["kept"] = [round_.stops[stop].id for stop in vehicle.kept]
    return found
