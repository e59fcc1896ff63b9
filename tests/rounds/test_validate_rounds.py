"""Checks of a round: what is refused, in one line that names the row; what is only put in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from round_cases import line, stop, van

from routelearn.errors import InputError
from routelearn.rounds.model import ALWAYS, ANY, FOREVER, Break, Legs, Round, Stop, Vehicle
from routelearn.rounds.plan import Drive
from routelearn.rounds.referee import judge
from routelearn.rounds.timing import plan_of
from routelearn.rounds.validate import checked, shortest

XY = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
LENGTHS = np.hypot(*(XY[:, None] - XY).transpose(2, 0, 1))
FIRST = Stop(id="a", place=1, delivery=(3.0,), windows=((0.0, 100.0),), service=2.0)
SECOND = Stop(id="b", place=2, delivery=(4.0,))
VAN = Vehicle(id="v", capacity=(10.0,), start=0, end=0, shift=(0.0, 200.0))
BASE = Round(
    source="tour.csv",
    stops=(FIRST, SECOND),
    vehicles=(VAN,),
    legs={ANY: Legs(LENGTHS, LENGTHS)},
    places=("d", "a", "b"),
    where=("line 3", "line 4"),
    vehicles_where=("vans.csv, line 2",),
)


def with_stop(**changes: object) -> Round:
    return replace(BASE, stops=(replace(FIRST, **changes), SECOND))  # type: ignore[arg-type]


def with_van(**changes: object) -> Round:
    return replace(BASE, vehicles=(replace(VAN, **changes),))  # type: ignore[arg-type]


def with_legs(matrix: np.ndarray) -> Round:
    return replace(BASE, legs={ANY: Legs(LENGTHS, matrix)})


NAN = float("nan")
BAD = [
    (replace(BASE, stops=()), "tour.csv: no stops"),
    (replace(BASE, vehicles=()), "no vehicles; give them in a table, or their number"),
    (with_stop(windows=((9.0, 3.0),)), "tour.csv, line 3: the window ends (3) before it begins (9)"),
    (with_stop(windows=()), "line 3: no window"),
    (with_stop(windows=((NAN, 3.0),)), "line 3: the window is not a number"),
    (with_stop(service=-1.0), "line 3: service is -1; it cannot be negative"),
    (with_stop(service=NAN), "line 3: service is not a number"),
    (with_stop(delivery=(-3.0,)), "line 3: delivery is -3; it cannot be negative"),
    (with_stop(penalty=-1.0), "line 3: penalty is -1"),
    (with_stop(id="b"), "line 4: the id 'b' is already used in line 3"),
    (with_stop(place=3), "line 3: place 3, but there are 3, counted from 0"),
    (with_stop(delivery=(1.0, 2.0)), "tour.csv, line 4: an amount in one dimension, but others are in 2"),
    (with_van(capacity=(1.0, 2.0)), "vans.csv, line 2: a capacity in 2 dimensions, but amounts in 1"),
    (with_stop(skills=frozenset({"cold"})), "line 3: 'a' needs the skill 'cold', which no vehicle has; change it, or"),
    (with_stop(only=frozenset({"w"})), "line 3: no vehicle is called 'w'; there are 'v'"),
    (with_stop(forbidden=frozenset({"v"})), "line 3: 'a' may be served by no vehicle"),
    (with_stop(delivery=(11.0,)), "line 3: 'a' has an amount of 11, more than any vehicle"),
    (
        with_van(capacity=(2.0,)),
        "line 3: 'a' has an amount of 3, more than any vehicle that may serve it holds (nor can 'b')",
    ),
    (with_stop(windows=((0.0, 4.0),)), "line 3: 'a' cannot be reached and left in time by any vehicle"),
    (with_stop(release=99.0), "line 3: 'a' cannot be reached and left in time"),
    (with_van(max_duration=11.0), "line 3: 'a' cannot be reached and left in time by any vehicle that may serve it"),
    (with_van(max_distance=15.0), "line 4: 'b' cannot be reached and left in time"),
    (with_van(shift=(0.0, 8.0)), "vans.csv, line 2: the shift of 8 s is too short for a trip to any stop"),
    (with_van(shift=(9.0, 3.0)), "vans.csv, line 2: the shift ends (3) before it begins (9)"),
    (with_van(number=0), "vans.csv, line 2: number is 0; it must be positive"),
    (with_van(trips=2), "vans.csv, line 2: 2 trips, but no place to reload"),
    (with_van(start=7), "vans.csv, line 2: place 7, but there are 3"),
    (with_van(kept=(5,)), "vans.csv, line 2: keeps stop 5, but there are 2"),
    (with_van(kept=(0, 0)), "vans.csv, line 2: keeps 'a', which is kept already"),
    (with_van(breaks=(Break(id="x", windows=((5.0, 3.0),)),)), "break 'x': the window ends (3) before it begins (5)"),
    (with_van(breaks=(Break(id="x", service=-3.0),)), "break 'x': its length is -3"),
    (with_legs(LENGTHS[:2, :2]), "3 places, but the durations are 2 x 2; one row for each"),
    (with_legs(np.where(LENGTHS == 5, -1, LENGTHS)), "row 1, column 2 of the durations is negative or not a finite"),
    (replace(BASE, shipments=((0, 5),)), "shipment 1 has no other half"),
    (replace(BASE, shipments=((0, 1),)), "line 3: 'a' is where a shipment begins, but has a delivery and no pickup"),
    (
        replace(with_stop(delivery=(), pickup=(3.0,)), shipments=((0, 1),)),
        "line 4: 4 of a shipment are unloaded, but 3 are taken along at 'a'",
    ),
    (replace(BASE, objective="speed"), "objective is 'speed'; the choices are cost, vehicles"),
    (replace(BASE, backhauls="first"), "backhauls is 'first'; the choices are mixed, last"),
    (replace(BASE, most_stops_apart=-1.0), "most stops apart is -1; it cannot be negative"),
    (replace(BASE, legs={"car": BASE.legs[ANY]}), "no legs of the profile 'any'; there are those of 'car'"),
]


@pytest.mark.parametrize(("given", "words"), BAD, ids=[words[:40] for _, words in BAD])
def test_refused(given: Round, words: str):
    with pytest.raises(InputError) as raised:
        checked(given)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_good_round_passes():
    assert checked(BASE).stops[0] == replace(FIRST, pickup=(0.0,))


def test_stops_that_may_be_left_out_are_no_error():
    for given in (with_stop(delivery=(11.0,)), with_stop(windows=((0.0, 4.0),)), with_stop(skills=frozenset({"x"}))):
        assert checked(replace(given, allow_unassigned=True)).stops
        stop = replace(given.stops[0], penalty=5.0)
        assert checked(replace(given, stops=(stop, SECOND))).stops


def test_late_and_overtime_are_no_error():
    assert checked(with_stop(windows=((0.0, 4.0),), late_cost=1.0))
    assert checked(with_van(shift=(0.0, 19.0), overtime=5.0))


def test_kept_stops_are_no_error():
    assert checked(replace(with_stop(windows=((0.0, 1.0),)), vehicles=(replace(VAN, kept=(0,)),)))


def test_windows_are_put_in_order_and_joined():
    found = checked(with_stop(windows=((50.0, 60.0), (0.0, 20.0), (10.0, 30.0))))
    assert found.stops[0].windows == ((0.0, 30.0), (50.0, 60.0))


def test_a_vehicle_without_capacity_holds_anything():
    assert checked(with_van(capacity=())).vehicles[0].capacity == (FOREVER,)


def test_a_detour_may_be_shorter():
    """No stop is refused that can be reached over another place in time."""
    durations = np.array([[0.0, 1.0, 50.0], [1.0, 0.0, 1.0], [50.0, 1.0, 0.0]])
    np.testing.assert_array_equal(shortest(durations, 0), [0.0, 1.0, 2.0])
    van = replace(VAN, shift=(0.0, 30.0))
    stops = (replace(FIRST, windows=(ALWAYS,)), SECOND)
    given = replace(BASE, stops=stops, vehicles=(van,), legs={ANY: Legs(durations, durations)})
    assert checked(given) is not None


def test_an_open_vehicle_can_reach_any_stop():
    assert checked(replace(with_stop(windows=((0.0, 1.0),)), vehicles=(replace(VAN, start=None),)))


def test_trips_without_number_are_as_many_as_stops() -> None:
    assert checked(line(3, van(trips=10**9, reloads=(0,)))).vehicles[0].trips == 3


def test_sizes_are_limited_before_anything_is_planned() -> None:
    many = [replace(stop(1), id=f"s{i}") for i in range(1001)]
    for round_, words in (
        (line(many, van(number=None, trips=10**9, reloads=(0,))), "1,002,001 trips of all vehicles together"),
        (line([stop(0, windows=tuple((float(i), i + 0.5) for i in range(501)))]), "501 windows; at most 500"),
        (line([stop(0, delivery=(1.0,) * 51)]), "51 dimensions of an amount; at most 50"),
        (line(1, van(breaks=tuple(Break(id=str(i)) for i in range(51)))), "51 breaks; at most 50"),
    ):
        with pytest.raises(InputError, match=words):
            checked(round_)


def test_breaks_of_one_name_are_told_apart():
    """Or the referee would hold one against the windows of the other."""
    pauses = (Break(id="tea", windows=((0.0, 1.0),), service=1.0), Break(id="tea", windows=((5.0, 6.0),), service=1.0))
    found = checked(with_van(breaks=pauses))
    assert [(one.id, one.windows) for one in found.vehicles[0].breaks] == [
        ("tea", ((0.0, 1.0),)),
        ("tea (2)", ((5.0, 6.0),)),
    ]
    assert not judge(found, plan_of(found, (Drive(0, (0, 1)),))).violations
