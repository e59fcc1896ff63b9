"""What is odd about the places of stops, in words: a stop far from all others, and stops at one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from routelearn.data.geometry import project
from routelearn.data.numbers import shown
from routelearn.data.stops import Stops
from routelearn.errors import first_few

FEWEST = 4  # stops; of fewer nobody can say which one is off
SHARE = 10  # at most one in so many is off: otherwise these are two regions
TIMES = 20  # the usual distance to the nearest stop, beyond which a stop is off
SAMPLE = 256  # stops that tell what is usual
NAMED = 3


class Placed(NamedTuple):
    """The places of stops, and how messages name them."""

    ids: Sequence[str | int]
    where: Sequence[str]
    xy: np.ndarray | None
    latlon: np.ndarray | None


def far_off(stops: Placed) -> tuple[str, ...]:
    """A note on the few stops that lie far from all others, if there are any."""
    places = stops.xy if stops.latlon is None else stops.latlon
    return () if places is None else tuple(_far(stops, places))


def on_places(stops: Stops) -> tuple[str, ...]:
    """Notes for the user, one line each. Where a matrix gives the lengths, places decide nothing."""
    places = stops.xy if stops.latlon is None else stops.latlon
    if places is None or stops.matrix is not None:
        return ()
    return (*_same(stops, places), *_far(stops, places))


def _same(stops: Stops, places: np.ndarray) -> list[str]:
    """Stops that have the very coordinates of another."""
    if len(set(map(tuple, places.tolist()))) == len(places):  # nearly always, and sorting them takes ten times as long
        return []
    _, group, count = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    found = np.flatnonzero(count[group.reshape(-1)] > 1)
    first = found[group.reshape(-1)[found] == group.reshape(-1)[found[0]]]
    words = _listed(stops, first)
    return [f"identical places: {len(found)} stops have the coordinates of another, such as {words}"]


def _far(stops: Stops | Placed, places: np.ndarray) -> list[str]:
    """The few stops that lie farther from all others than these lie from each other."""
    count = len(places)
    if count < FEWEST:
        return []
    plane = places if stops.latlon is None else project(places)
    from_middle = np.linalg.norm(plane - np.median(plane, axis=0), axis=1)
    order = np.argsort(from_middle, kind="stable")
    low, high = (bound.accumulate(plane[order], axis=0) for bound in (np.minimum, np.maximum))
    extent = np.linalg.norm(high - low, axis=1)  # of the first 1, 2, ... stops from the middle
    most = max(1, count // SHARE)
    gaps = np.diff(from_middle[order])[-most:]  # gap i lies behind the first count - most + i stops
    wide = np.flatnonzero(gaps > extent[:-1][-most:])
    for inner in count - most + wide:
        bulk = plane[order[:inner]]
        gap = from_middle[order[inner]] - from_middle[order[inner - 1]]
        if extent[inner - 1] > 0 and gap > TIMES * _usual_distance(bulk):
            off = np.sort(order[inner:])
            return [f"far from all others: {_listed(stops, off)}{_swapped(stops, places, order[:inner], off)}"]
    return []


def _usual_distance(plane: np.ndarray) -> float:
    """The median distance from a stop to its nearest neighbour, of some stops."""
    some = np.arange(0, len(plane), -(-len(plane) // SAMPLE))
    apart = np.hypot(*(plane[some, None, axis] - plane[None, :, axis] for axis in (0, 1)))
    apart[np.arange(len(some)), some] = np.inf
    return float(np.median(apart.min(1)))


def _swapped(stops: Stops | Placed, places: np.ndarray, bulk: np.ndarray, off: np.ndarray) -> str:
    """A guess, where the two numbers the other way round would lie among the others."""
    low, high = places[bulk].min(0), places[bulk].max(0)
    margin = high - low
    turned = places[off][:, ::-1]
    if not ((turned >= low - margin) & (turned <= high + margin)).all():
        return ""
    return f"; {'x and y' if stops.latlon is None else 'lat and lon'} may be swapped there"


def _listed(stops: Stops | Placed, which: np.ndarray) -> str:
    """The first of these stops by id, and where they stand in the file."""
    return first_few([f"{shown(stops.ids[i])} ({stops.where[i]})" for i in which], NAMED)
