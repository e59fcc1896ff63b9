"""What vehicles keep, and plans to go on from: refused in words where no search could take them up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from answer_cases import city, with_lunch

from routelearn.cli import main
from routelearn.errors import InputError
from routelearn.rounds.files import round_from_document
from routelearn.rounds.given import given_plan, keeping, kept_until
from routelearn.rounds.kept import check_kept, check_start, trips_needed
from routelearn.rounds.model import Round
from routelearn.rounds.plan import Drive
from routelearn.rounds.solving import check_round, solve_round


def three(**vehicle) -> Round:
    """Three deliveries of 5, a pickup of 1, and a vehicle that holds 6 and keeps some of them."""
    stops = [{"id": name, "x": x, "y": 2, "delivery": 5} for x, name in enumerate("abc", 1)]
    return round_from_document(
        {
            "depot": {"id": "D", "x": 0, "y": 0},
            "stops": [*stops, {"id": "p", "x": 5, "y": 5, "pickup": 1}],
            "vehicles": [{"id": "v", "capacity": 6, **vehicle}],
            "allow_unassigned": True,
        }
    )


def test_more_trips_than_a_vehicle_makes_are_refused():
    with pytest.raises(InputError, match="request, vehicle 1: keeps stops whose amounts take 3 trips, but may make 2;"):
        three(trips=2, kept=["a", "b", "c"])
    assert three(trips=3, kept=["a", "b", "c"]).vehicles[0].kept == (0, 1, 2)


@pytest.mark.parametrize(
    ("kept", "backhauls", "trips"),
    [((), "mixed", 1), ((0, 3), "mixed", 1), ((0, 1), "mixed", 2), ((3, 0), "last", 2), ((0, 3), "last", 1)],
)
def test_trips_are_counted_by_amounts_and_backhauls(kept, backhauls, trips):
    round_ = replace(three(trips=3), backhauls=backhauls)
    assert trips_needed(round_, replace(round_.vehicles[0], kept=kept)) == trips


def test_amounts_of_shipments_count_between_their_halves():
    stops = [{"id": "from", "x": 1, "y": 1, "pickup": 4}, {"id": "to", "x": 2, "y": 1, "delivery": 4}]
    stops += [{"id": "a", "x": 3, "y": 1, "delivery": 3}]
    document = {"depot": {"id": "D", "x": 0, "y": 0}, "stops": stops, "shipments": [["from", "to"]]}
    round_ = round_from_document({**document, "vehicles": [{"id": "v", "capacity": 6, "trips": 2}]})
    for kept, trips in (((2, 0, 1), 1), ((0, 1, 2), 2)):  # 3 leave the vehicle before 4 come aboard, or not
        assert trips_needed(round_, replace(round_.vehicles[0], kept=kept)) == trips


def test_more_vehicles_than_there_are_is_told_by_the_check_and_refused_by_the_search():
    base = city()
    routes = [{"vehicle": "van", "stops": [name]} for name in ("Ana", "Bo")]
    kept, drives = kept_until(base, given_plan(base, routes, "m.json"), "m.json", None)
    assert "number" in [one.rule for one in check_round(kept, drives).plan.violations]
    with pytest.raises(InputError, match=r"m\.json: vehicle van keeps stops, but only 1 of its kind is there"):
        check_kept(kept, "m.json")


def test_a_stop_that_two_keep_is_refused_before_the_search():
    base = city()
    kept, _ = keeping(base, (Drive(0, (0, 1)), Drive(1, (1,))), (2, 1))
    with pytest.raises(InputError, match="vehicle bike keeps 'Bo', which is kept already"):
        check_kept(kept, "m.json")
    with pytest.raises(InputError, match="which is kept already"):
        solve_round(kept, seconds=0.1)


@pytest.mark.parametrize(
    ("drives", "words"),
    [
        ((Drive(0, (0,)), Drive(0, (1,))), "route 2 is of vehicle van, of which there are only 1"),
        ((Drive(0, (0, 1, 0)),), "route 1 visits 'Ana', which was visited before"),
        ((Drive(0, (0,)), Drive(1, (0,))), "route 2 visits 'Ana', which was visited before"),
        ((Drive(0, (0, ~0, 1, ~0, 2)),), "route 1 has 3 trips, but vehicle van may make 2"),
        ((Drive(1, (0, ~0, 1)),), "route 1 has 2 trips, but vehicle bike may make 1"),
        ((Drive(0, (0, ~1, 1)),), "route 1 reloads where vehicle van may not, or has a trip without stops"),
        ((Drive(0, (~0, 1)),), "route 1 reloads where vehicle van may not, or has a trip without stops"),
        ((Drive(7, (0,)),), "route 1 has vehicle 7, but there are 2 kinds, from 0"),
        ((Drive(0, (99,)),), "route 1 has stop 99, but there are 5, from 0"),
    ],
)
def test_a_start_that_no_search_can_take_up_is_refused(drives, words):
    with pytest.raises(InputError, match=f"m.json: {words}"):
        check_start(with_lunch(), drives, "m.json")
    with pytest.raises(InputError, match=words):
        solve_round(with_lunch(), seconds=0.1, start=drives)
    check_start(with_lunch(), (Drive(0, (0, ~0, 1)), Drive(1, (2,))), "m.json")


def test_a_plan_that_visits_a_stop_twice_is_not_kept(tmp_path, monkeypatch, capsys, inserting):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("id,x,y,demand\nD,0,0,\na,3,4,1\nb,6,8,1\n")
    (tmp_path / "m.json").write_text('{"routes": [{"stops": ["a", "b"]}, {"stops": ["a"]}]}')
    with pytest.raises(SystemExit) as end:
        main(["solve", "a.csv", "--vehicles", "2", "--capacity", "5", "--keep", "m.json"])
    assert end.value.code == 2
    assert "error: m.json: a vehicle keeps 'a', which is kept already" in capsys.readouterr().err
    assert not inserting
