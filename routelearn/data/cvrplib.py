"""CVRPLIB files (`.vrp`): the TSPLIB family with a depot, a capacity and demands."""

from __future__ import annotations

from dataclasses import replace

from routelearn.data.stops import Stops
from routelearn.data.tsplib import document, places
from routelearn.errors import InputError


def parse(text: str, source: str, rounded: bool = True, problem: str | None = None) -> Stops:
    """The customers of a `.vrp` text; lengths as in tsplib, rounded unless told otherwise."""
    parts = document(text, source, problem)
    if "DEMAND_SECTION" not in parts.sections:
        raise InputError(f"{source}: no DEMAND_SECTION; a .vrp file gives every node's demand")
    if "CAPACITY" not in parts.values:
        raise InputError(f"{source}: no CAPACITY")
    stops = places(parts, rounded, problem)
    return replace(stops, depot=stops.depot or 0)  # without a DEPOT_SECTION the first node, as in every library
