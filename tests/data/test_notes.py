"""Odd places are noted: a stop far from all others, and stops at one place."""

import time

import numpy as np
import pytest

from routelearn.data.notes import on_places
from routelearn.solving import solve, stops_of

TOWN = np.random.default_rng(5).uniform((53.4, 9.8), (53.6, 10.2), (40, 2))


def note(places, **kind):
    return on_places(stops_of(**{**({"latlon": places} if not kind else {}), **kind}))


def test_swapped_degrees_are_noted():
    places = TOWN.copy()
    places[7] = places[7, ::-1]
    assert note(places) == ("far from all others: 7 (row 7); lat and lon may be swapped there",)
    places[[9, 11, 12]] = places[[9, 11, 12], ::-1]  # together they are near each other, and still off
    told = "far from all others: 7 (row 7), 9 (row 9), 11 (row 11) and 1 more; lat and lon may be swapped there"
    assert note(places) == (told,)
    assert solve(latlon=places, seconds=0, policy=False).notes == (told,)


def test_a_stop_that_is_only_far_is_noted_without_a_guess():
    places = np.vstack((TOWN, (40.0, -3.0)))
    assert note(places) == ("far from all others: 40 (row 40)",)
    grid = np.stack(np.meshgrid(range(5), range(5)), -1).reshape(-1, 2).astype(float)
    assert note(None, coords=np.vstack((grid, (900, 2)))) == ("far from all others: 25 (row 25)",)


@pytest.mark.parametrize(
    "places",
    [
        TOWN,
        np.vstack((TOWN[:20], TOWN[20:] + 5)),  # two regions
        np.vstack((TOWN, (53.5, 10.6))),  # a village outside
        TOWN[:3],
        np.array([[50.0, 8.0], [50.1, 8.0], [50.0, 8.1], [51.0, 8.0]]),
        np.random.default_rng(1).normal(20, 3, (500, 2)),
        np.random.default_rng(2).exponential(2, (300, 2)),
    ],
)
def test_ordinary_places_are_not(places):
    assert note(places) == ()


def test_identical_places_are_counted():
    places = TOWN.copy()
    places[[3, 8]] = places[1]
    places[20] = places[30]
    told = "identical places: 5 stops have the coordinates of another, such as 1 (row 1), 3 (row 3), 8 (row 8)"
    assert note(places) == (told,)
    assert note(np.ones((6, 2)))[0].startswith("identical places: 6 stops")
    assert len(note(np.ones((6, 2)))) == 1


def test_with_a_matrix_places_decide_nothing():
    assert note(None, coords=np.ones((4, 2)), matrix=np.ones((4, 4))) == ()


def test_many_stops_take_no_time():
    places = np.random.default_rng(0).random((8_000, 2))
    stops = stops_of(coords=places)
    began = time.perf_counter()
    assert on_places(stops) == ()
    assert time.perf_counter() - began < 1
