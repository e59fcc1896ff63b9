"""CVRPLIB files (`.vrp`): the TSPLIB family with a depot, a capacity and demands."""

from __future__ import annotations

from dataclasses import replace

from routelearn.data.numbers import exact
from routelearn.data.stops import Stops
from routelearn.data.tsplib import capacity_of, document, places
from routelearn.errors import InputError


def parse(text: str, source: str, rounded: bool = True) -> Stops:
    """The customers of a `.vrp` text; lengths as in tsplib, rounded unless told otherwise."""
    parts = document(text, source)
    if "DEMAND_SECTION" not in parts.sections:
        raise InputError(f"{source}: no DEMAND_SECTION; a .vrp file gives every node's demand")
    capacity = capacity_of(parts)
    if capacity is None:
        raise InputError(f"{source}: no CAPACITY")
    stops = places(parts, rounded)
    numbers = {int(node): i for i, node in enumerate(stops.ids)}
    rows = parts.by_node("DEMAND_SECTION", numbers, 1)
    demand = tuple(exact(words[0], parts.at(line), "the demand") for line, words in rows)
    # Without a DEPOT_SECTION the first node is the depot, as in every library.
    where = {"demand": tuple(f"line {line}" for line, _ in rows)}
    return replace(stops, demand=demand, capacity=capacity, depot=stops.depot or 0, field_where=where)
