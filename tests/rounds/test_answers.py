"""Answers to rounds as JSON, CSV, VROOM's JSON, GeoJSON and .sol: every figure where it belongs, and read back."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from answer_cases import DRIVES, city, planned, with_lunch

from routelearn.errors import InputError
from routelearn.rounds.given import given_plan, keeping, read_plan, routes_of
from routelearn.rounds.plan import Drive, Unassigned
from routelearn.rounds.timing import plan_of
from routelearn.rounds.units import told


def test_the_document_has_all_of_version_one_and_adds_to_it():
    document = planned().document()
    assert document["format_version"] == 2
    assert document["problem"] == "vrp"
    first = {
        "format",
        "source",
        "cost",
        "length",
        "unit",
        "depot",
        "routes",
        "unvisited",
        "seconds",
        "history",
        "notes",
    }
    assert first <= set(document)
    assert (document["unit"], document["depot"], document["unvisited"]) == ("km", "yard", [])
    assert document["length"] == 6 + 8 + 10
    assert document["cost"] == 6 + (8 + 10) / 2
    van, *bikes = document["routes"]
    assert (van["vehicle"], van["stops"], van["length"], van["load"]) == ("van", ["Ana", "Bo", "Cy"], 6, 6.5)
    assert [bike["vehicle"] for bike in bikes] == ["bike", "bike"]
    assert document["values"]["windows"]["Ana"] == [["08:00:00", "09:00:00"]]
    assert document["values"]["delivery"]["Cy"] == 1.5


def test_a_visit_can_be_followed_by_hand():
    visits = planned().document()["routes"][0]["visits"]
    assert [visit["kind"] for visit in visits] == ["start", "stop", "stop", "stop", "end"]
    # Cy opens at 10:00 and is 10 minutes beyond Bo; Ana closes at 9:00, so the wait before Cy is what is left.
    ana, bo, cy = visits[1:4]
    assert (ana["id"], ana["start"], ana["departure"]) == ("Ana", "09:00:00", "09:05:00")
    assert (bo["arrival"], bo["start"], bo["departure"], bo["wait"]) == ("09:15:00", "09:15:00", "09:20:00", 0)
    assert (cy["arrival"], cy["start"], cy["wait"]) == ("09:30:00", "10:00:00", 1800)
    assert [visit["load"] for visit in visits] == [6.5, 4.5, 1.5, 0, 0]
    assert (cy["distance"], cy["driving"], cy["distance_so_far"], cy["driving_so_far"]) == (1, 600, 3, 1800)
    assert (visits[-1]["arrival"], visits[-1]["distance_so_far"]) == ("10:35:00", 6)
    assert ana["columns"] == {"street": "Elm 1", "phone": "1;2"}
    assert "columns" not in cy


@pytest.mark.parametrize(
    ("day", "seconds", "text"),
    [
        ("", 8 * 3600 + 299.6, "08:05:00"),
        ("", 25 * 3600 + 61, "25:01:01"),
        ("2026-11-16", 25 * 3600, "2026-11-17T01:00:00"),
        (None, 12.5, 12.5),
        (None, 12.0, 12),
        ("", float("inf"), None),
    ],
)
def test_clock_times_come_out_only_if_they_came_in(day, seconds, text):
    assert told(city(day=day), seconds) == text


def test_loads_in_two_dimensions_are_lists():
    base = city()
    stops = tuple(replace(stop, delivery=(*stop.delivery, 1.0)) for stop in base.stops)
    vans = tuple(replace(van, capacity=(*van.capacity, 9.0)) for van in base.vehicles)
    answer = planned(replace(base, stops=stops, vehicles=vans, dimensions=("kg", "boxes")))
    assert answer.document()["routes"][0]["load"] == [6.5, 3]
    assert "load kg,load boxes" in answer.to_csv().splitlines()[0]


def test_stops_left_out_have_a_reason_everywhere():
    answer = planned(city(allow_unassigned=True), DRIVES[:2])
    answer = replace(answer, plan=replace(answer.plan, unassigned=(Unassigned(4, "no van is free; sorry"),)))
    document = answer.document()
    assert document["unvisited"] == ["Ed"]
    assert document["unassigned"] == [{"id": "Ed", "reason": "no van is free; sorry"}]
    vroom = json.loads(answer.to_vroom())
    assert (vroom["summary"]["unassigned"], vroom["unassigned"][0]["description"]) == (1, "Ed")
    last = list(csv.DictReader(io.StringIO(answer.to_csv())))[-1]
    assert (last["route"], last["id"], last["kind"], last["reason"]) == ("", "Ed", "left out", "no van is free; sorry")
    points = [f["properties"] for f in json.loads(answer.to_geojson())["features"] if f["properties"]["route"] is None]
    assert points[0]["reason"] == "no van is free; sorry"


# --------------------------------------------------------------------------------------------------- CSV


def test_the_itinerary_as_csv_has_a_line_for_each_visit():
    rows = list(csv.DictReader(io.StringIO(planned().to_csv())))
    assert len(rows) == 5 + 3 + 3
    ana = rows[1]
    assert (ana["vehicle"], ana["position"], ana["id"], ana["arrival"]) == ("van", "1", "Ana", "09:00:00")
    assert (ana["street"], ana["phone"], ana["lat"], ana["lon"]) == ("Elm 1", "1;2", "52.0", "4.01")
    assert [row["vehicle"] for row in rows[5::3]] == ["bike (1)", "bike (2)"]
    assert rows[3]["wait"] == "1800"


def test_separator_and_decimal_sign_are_those_that_came_in():
    text = planned(city(separator=";", decimal=",")).to_csv()
    rows = list(csv.DictReader(io.StringIO(text), delimiter=";"))
    assert (rows[0]["load"], rows[1]["lon"], rows[1]["phone"]) == ("6,5", "4,01", "1;2")
    assert rows[1]["arrival"] == "09:00:00"


def test_a_column_of_the_user_does_not_hide_one_of_ours():
    base = city()
    stops = (replace(base.stops[0], columns={"load": "heavy"}), *base.stops[1:])
    rows = list(csv.DictReader(io.StringIO(planned(replace(base, stops=stops)).to_csv())))
    assert (rows[1]["load"], rows[1]["load (given)"]) == ("4.5", "heavy")


def test_dates_in_tables_have_no_letter_between():
    rows = list(csv.DictReader(io.StringIO(planned(city(day="2026-11-16")).to_csv())))
    assert rows[1]["arrival"] == "2026-11-16 09:00:00"
    for zone, words in ((0.0, "Z"), (-12_600.0, "-03:30"), (7200.0, "+02:00")):
        rows = list(csv.DictReader(io.StringIO(planned(city(day="2026-11-16", zone=zone)).to_csv())))
        assert rows[1]["arrival"] == f"2026-11-16 09:00:00{words}"


# ------------------------------------------------------------------------------------------------- VROOM


def test_vroom_has_its_own_names_and_whole_seconds():
    document = json.loads(planned().to_vroom())
    assert document["code"] == 0
    assert document["summary"]["routes"] == 3
    assert document["summary"]["delivery"] == [12.5]
    assert document["summary"]["waiting_time"] == 1800
    assert document["summary"]["duration"] == 24 * 600
    assert document["summary"]["service"] == 1500
    assert document["summary"]["distance"] == 24_000, "metres, as VROOM has them"
    steps = document["routes"][0]["steps"]
    assert [step["type"] for step in steps] == ["start", "job", "job", "job", "end"]
    cy = steps[3]
    assert (cy["arrival"], cy["waiting_time"], cy["service"], cy["duration"], cy["load"]) == (
        34200,
        1800,
        300,
        1800,
        [0],
    )
    assert (cy["id"], cy["job"], cy["description"], cy["location"]) == (3, 3, "Cy", [4.03, 52.0])
    assert all(step["violations"] == [] for step in steps)
    for route in document["routes"]:
        for values in route["steps"]:
            assert all(
                isinstance(values[name], int) for name in ("arrival", "duration", "setup", "service", "waiting_time")
            )


def test_vroom_keeps_ids_that_are_numbers_and_tells_shipments():
    base = city(latlon=None, shipments=((3, 4),))
    stops = [replace(stop, id=str(10 + i)) for i, stop in enumerate(base.stops)]
    stops[3] = replace(stops[3], delivery=(), pickup=(2.0,))
    stops[4] = replace(stops[4], delivery=(2.0,))
    document = json.loads(planned(replace(base, stops=tuple(stops)), (Drive(0, (3, 4)), Drive(1, (0,)))).to_vroom())
    steps = document["routes"][0]["steps"]
    assert [(step["type"], step.get("id"), step.get("location_index")) for step in steps] == [
        ("start", None, 0), ("pickup", 13, 4), ("delivery", 14, 5), ("end", None, 0),
    ]  # fmt: skip
    assert "description" not in steps[1]


def test_vroom_tells_what_is_broken():
    answer = planned(drives=(Drive(0, (2, 0, 1)), *DRIVES[1:]))  # Cy opens at 10, so Ana is late
    document = json.loads(answer.to_vroom())
    causes = {one["cause"] for one in document["summary"]["violations"]}
    assert causes == {"delay"}
    assert document["routes"][0]["steps"][2]["violations"][0]["duration"] > 3600


# ----------------------------------------------------------------------------------- GeoJSON and the rest


def test_geojson_has_lines_and_points_longitude_first():
    features = json.loads(planned().to_geojson())["features"]
    lines = [one for one in features if one["geometry"]["type"] == "LineString"]
    assert [line["properties"]["vehicle"] for line in lines] == ["van", "bike", "bike"]
    assert lines[0]["geometry"]["coordinates"][1] == [4.01, 52.0]
    point = next(one for one in features if one["properties"].get("id") == "Cy")
    assert (point["properties"]["arrival"], point["properties"]["wait"]) == ("09:30:00", 1800)


def test_geojson_needs_the_globe():
    with pytest.raises(InputError, match="no lat and lon"):
        planned(city(latlon=None, xy=np.zeros((6, 2)))).to_geojson()


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"unknown format 'txt' of a plan; the choices are json, vroom\.json"):
        planned().write(tmp_path / "plan.txt")


# --------------------------------------------------------------------------------------------- read back


@pytest.mark.parametrize("name", ["plan.json", "plan.vroom.json", "plan.csv", "plan.sol"])
def test_every_file_gives_the_drives_back(tmp_path, name):
    round_ = city()
    planned(round_).write(tmp_path / name)
    routes, said = read_plan(tmp_path / name)
    numbered = bool(said.get("numbered"))
    drives = given_plan(round_, routes, name, numbered=numbered).drives
    if numbered:  # a .sol has no vehicles: they come in the order of the round
        assert [drive.order for drive in drives] == [drive.order for drive in DRIVES]
    else:
        assert drives == DRIVES


@pytest.mark.parametrize("name", ["plan.json", "plan.vroom.json", "plan.csv", "plan.sol"])
def test_reloads_come_back_and_breaks_do_not_get_in_the_way(tmp_path, name):
    round_ = with_lunch()
    drives = (Drive(0, (0, 1, ~0, 2)), Drive(1, (3,)), Drive(1, (4,)))
    answer = planned(round_, drives)
    assert [visit.kind for visit in answer.plan.routes[0].visits].count("break") == 1
    answer.write(tmp_path / name)
    routes, said = read_plan(tmp_path / name)
    assert given_plan(round_, routes, name, numbered=bool(said.get("numbered"))).drives == drives


def test_a_sol_of_a_plan_that_leaves_all_stops_out_is_read_back(tmp_path):
    planned(city(allow_unassigned=True), ()).write(tmp_path / "plan.sol")
    assert read_plan(tmp_path / "plan.sol")[0] == []


def test_version_one_still_reads_and_vehicles_come_in_order():
    routes = routes_of({"format_version": 1, "routes": [{"stops": ["Ana"]}, {"stops": ["Di"]}, ["Ed"]]}, "old.json")
    assert given_plan(city(), routes, "old.json").drives == (Drive(0, (0,)), Drive(1, (3,)), Drive(1, (4,)))


def test_stops_that_were_changed_count_more_than_the_visits_beside_them():
    route = planned().document()["routes"][0]
    route["stops"] = ["Bo", "Ana"]
    assert given_plan(city(), [route], "x").drives == (Drive(0, (1, 0)),)


@pytest.mark.parametrize(
    ("route", "words"),
    [
        ({"stops": ["Nobody"]}, "plan: route 1 visits 'Nobody', which is not among the stops"),
        (
            {"stops": ["Ana"], "vehicle": "truck"},
            "plan: route 1 has the vehicle 'truck', which the round does not have; it has van, bike",
        ),
        ({"stops": 3}, "plan: route 1 is not a list of ids"),
        ({"visits": [1]}, "plan: route 1: a visit is 1; an object is needed"),
    ],
)
def test_what_the_round_does_not_have_is_refused(route, words):
    with pytest.raises(InputError) as error:
        given_plan(city(), [route], "plan")
    assert str(error.value) == words


# --------------------------------------------------------------------------------------------- what is kept


def test_what_is_kept_is_marked_and_read_again():
    round_, drives = keeping(city(), DRIVES, [2, 0, 1])
    assert [(van.id, van.number, van.kept) for van in round_.vehicles] == [
        ("van", 1, (0, 1)), ("bike", 1, (4,)), ("bike", 1, ()),
    ]  # fmt: skip
    assert [drive.order for drive in drives] == [drive.order for drive in DRIVES]
    plan = plan_of(round_, drives)
    assert not plan.violations
    document = planned(round_, drives).document()
    assert [visit.get("kept", False) for visit in document["routes"][0]["visits"]] == [False, True, True, False, False]
    assert given_plan(city(), document["routes"], "x").kept == (2, 0, 1)


def test_a_plan_that_begins_otherwise_breaks_what_is_kept():
    round_, _ = keeping(city(), DRIVES, [2, 0, 0])
    plan = plan_of(round_, (Drive(0, (1, 0, 2)), *DRIVES[1:]))
    assert "kept" in {one.rule for one in plan.violations}
