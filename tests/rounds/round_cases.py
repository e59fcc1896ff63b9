"""Rounds on a line, whose times can be had by hand: place p is at 10 p, a unit takes a second, stop i is at i + 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from routelearn.rounds.model import ANY, Legs, Round, Stop, Vehicle

PLACES = 6


def stop(i: int, **attributes: Any) -> Stop:
    return Stop(**{"id": f"s{i}", "place": i + 1, **attributes})


def van(**attributes: Any) -> Vehicle:
    return Vehicle(**{"id": "van", "start": 0, "end": 0, **attributes})


def line(stops: list[Stop] | int, *vehicles: Vehicle, **attributes: Any) -> Round:
    x = 10.0 * np.arange(PLACES)
    away = np.abs(x[:, None] - x)
    return Round(
        **{
            "source": "line",
            "stops": tuple(stops if isinstance(stops, list) else [stop(i) for i in range(stops)]),
            "vehicles": vehicles or (van(),),
            "legs": {ANY: Legs(away, away)},
            "places": tuple(f"p{p}" for p in range(PLACES)),
            **attributes,
        }
    )
