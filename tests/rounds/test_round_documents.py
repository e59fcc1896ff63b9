"""Rounds from real files through the commands, and rounds as documents that give the same round again."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from answer_cases import HOUR, city, with_lunch
from random_rounds import drawn, random_round

from routelearn.rounds.answers import RoundSolution
from routelearn.rounds.document import document_of
from routelearn.rounds.files import parse_round, read_round, round_from_document
from routelearn.rounds.given import given_plan, read_plan
from routelearn.rounds.model import FOREVER, Round
from routelearn.rounds.solving import solve_round
from routelearn.rounds.timing import plan_of

BAKERY = Path(__file__).parents[2] / "examples" / "bakery"
GERMAN = """Name;Lat;Lon;Menge;Zeitfenster_von;Zeitfenster_bis;Servicezeit;Straße
Lager;53,54;10,03;;08:00;16:00;;Hof 1
Ana;53,55;10,04;2,5;08:00;10:00;5;Elm 1
Bo;53,56;10,01;3;09:00;12:00;8;Elm 2
"""


def amounts_of(round_):
    yield from (part for stop in round_.stops for part in (stop.delivery, stop.pickup))
    yield from (vehicle.capacity for vehicle in round_.vehicles)


def comparable(of, size, **changes):
    """A stop or vehicle with all of its dimensions, and without what a document calls otherwise."""
    amounts = {name: getattr(of, name) for name in ("delivery", "pickup", "capacity") if hasattr(of, name)}
    empty = {"delivery": 0.0, "pickup": 0.0, "capacity": FOREVER}
    return replace(of, **changes, **{name: value or (empty[name],) * size for name, value in amounts.items()})


def same(a: Round, b: Round) -> None:
    """Two rounds with the same stops and vehicles, whatever their places are called."""
    size = max(len(part) for one in (a, b) for part in amounts_of(one))
    stops = [[comparable(stop, size, place=0, columns={}) for stop in one.stops] for one in (a, b)]
    assert stops[0] == stops[1]
    assert a.shipments == b.shipments
    for name in ("objective", "backhauls", "allow_unassigned", "most_stops_apart", "most_time_apart"):
        assert getattr(a, name) == getattr(b, name), name
    assert b.day in (a.day, None)  # None: there is no time in the whole round
    fleets = [[comparable(v, size, start=None, end=None, reloads=()) for v in one.vehicles] for one in (a, b)]
    assert fleets[0] == fleets[1]
    for one, other in zip(a.vehicles, b.vehicles, strict=True):
        rows_a = [one.start, one.end, *one.reloads, *(stop.place for stop in a.stops)]
        rows_b = [other.start, other.end, *other.reloads, *(stop.place for stop in b.stops)]
        assert [row is None for row in rows_a] == [row is None for row in rows_b]
        kept_a, kept_b = ([row for row in rows if row is not None] for rows in (rows_a, rows_b))
        for of_a, of_b in zip(a.legs_of(one).__dict__.values(), b.legs_of(other).__dict__.values(), strict=True):
            assert (of_a is None) == (of_b is None)
            assert of_a is None or np.allclose(of_a[np.ix_(kept_a, kept_a)], of_b[np.ix_(kept_b, kept_b)])


@pytest.mark.parametrize("made", [city, with_lunch], ids=["city", "lunch"])
def test_a_document_gives_the_round_again(made):
    round_ = made()
    same(round_, round_from_document(document_of(round_), "again"))


def test_the_example_as_a_document_gives_the_round_again():
    found = read_round(BAKERY / "stops.csv", vehicles=BAKERY / "vans.csv", options={"speed": 25})
    assert found is not None
    assert len(found.stops) == 30
    again = round_from_document(document_of(found), "again")
    same(found, again)
    assert again.stops[0].columns["contact"] == found.stops[0].columns["contact"]


@pytest.mark.parametrize("seed", range(60))
def test_random_rounds_as_documents_give_the_round_again(seed):
    round_ = random_round(seed)
    same(round_, round_from_document(document_of(round_), "again"))


@pytest.mark.parametrize("name", ["plan.json", "plan.vroom.json", "plan.csv"])
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_plans_come_back_from_every_file(tmp_path, name, first):
    for seed in range(first, first + 20):
        round_, drives = drawn(seed)
        plan = plan_of(round_, drives)
        RoundSolution(round_, plan).write(tmp_path / name)
        routes, _ = read_plan(tmp_path / name)
        assert given_plan(round_, routes, name).drives == plan.drives, seed


def test_the_itinerary_goes_out_as_the_table_came_in(inserting):
    found = parse_round(GERMAN.encode(), "tour.csv", options={"vehicles": 1, "capacity": 10, "speed": 30})
    assert found is not None
    answer = solve_round(found, seconds=0)
    rows = list(csv.DictReader(io.StringIO(answer.to_csv()), delimiter=";"))
    assert rows[0]["load"] == "5,5"
    ana = next(row for row in rows if row["id"] == "Ana")
    assert (ana["lat"], ana["Straße"], ana["departure"][2:3]) == ("53,55", "Elm 1", ":")


def test_points_stay_points_where_semicolons_separate(inserting):
    text = GERMAN.replace("53,5", "53.5").replace("10,0", "10.0").replace("2,5", "2.5")
    found = parse_round(text.encode(), "tour.csv", options={"vehicles": 1, "capacity": 10, "speed": 30})
    rows = list(csv.DictReader(io.StringIO(solve_round(found, seconds=0).to_csv()), delimiter=";"))
    assert rows[0]["load"] == "5.5"


def test_the_example_can_be_served_in_time(inserting):
    found = read_round(BAKERY / "stops.csv", vehicles=BAKERY / "vans.csv", options={"speed": 25})
    answer = solve_round(replace(found, allow_unassigned=True), seconds=0)
    served = [visit for route in answer.plan.routes for visit in route.visits if visit.stop is not None]
    assert len(served) >= 28  # insertion alone
    assert all(6 * HOUR <= visit.start <= 13 * HOUR for visit in served)
