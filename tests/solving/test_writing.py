"""Solutions as files: what people and other programs read back."""

import csv
import io
import json
from pathlib import Path

import pytest
import torch

from routelearn.data import csv_file, to_instance
from routelearn.errors import Infeasible, InputError, OutOfSpace
from routelearn.solving import make_solution
from routelearn.solving.writing import to_csv, to_geojson, to_json, to_sol, write_solution


def solved(text, tour, **options):
    stops = csv_file.parse(text, "stops.csv")
    return make_solution(to_instance(stops, **options), torch.tensor(tour))


DELIVERIES = "id,x,y,demand,depot\na,3,4,2,\nb,0,1,1.5,\nhub,0,0,,1\n"
GLOBE = "id,lat,lon\nAmsterdam,52.3702,4.8952\nRotterdam,51.9244,4.4777\nUtrecht,52.0907,5.1214\n"


def test_routes_carry_the_users_ids_lengths_and_loads():
    solution = solved(DELIVERIES, [1, 0, 2, 0, 0], capacity=2)
    assert solution.routes == [["a"], ["b"]]
    assert (solution.lengths, solution.loads, solution.cost, solution.depot) == ([10, 2], [2, 1.5], 12, "hub")
    document = json.loads(to_json(solution))
    assert document["routes"] == [{"stops": ["a"], "length": 10, "load": 2}, {"stops": ["b"], "length": 2, "load": 1.5}]
    assert (document["cost"], document["depot"], document["problem"], document["unvisited"]) == (12, "hub", "cvrp", [])


def test_a_tour_that_breaks_a_rule_is_never_written():
    with pytest.raises(Infeasible, match="capacity"):
        solved(DELIVERIES, [1, 2], capacity=2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_full_disk_is_told_apart_from_bad_input():
    with pytest.raises(OutOfSpace, match="/dev/full: cannot be written"):
        write_solution("/dev/full", solved(DELIVERIES, [1, 0, 2, 0, 0], capacity=2), "json")


def test_a_split_delivery_is_loaded_once():
    solution = solved("x,y,demand\n0,0,0\n1,0,5\n2,0,3\n", [1, 0, 1, 2, 0], capacity=4, problem="sdvrp")
    assert solution.routes == [[2], [2, 3]]
    assert solution.loads == [4, 4]


def test_a_split_delivery_says_what_each_visit_brings():
    text = "id,lat,lon,demand\nhub,0,0,0\na,0,1,2.5\nb,0,2,1.5\n"
    solution = solved(text, [1, 0, 1, 2, 0], capacity=2, problem="sdvrp")
    assert solution.amounts == [[2], [0.5, 1.5]]
    assert [route["amounts"] for route in json.loads(to_json(solution))["routes"]] == [[2], [0.5, 1.5]]
    rows = list(csv.DictReader(io.StringIO(to_csv(solution))))
    assert [(row["id"], row["amount"]) for row in rows] == [
        ("hub", ""), ("a", "2.0"), ("hub", ""), ("hub", ""), ("a", "0.5"), ("b", "1.5"), ("hub", ""),
    ]  # fmt: skip
    features = [feature["properties"] for feature in json.loads(to_geojson(solution))["features"]]
    assert [f["amounts"] for f in features if "amounts" in f] == [[2], [0.5, 1.5]]
    assert [(f["id"], f["amount"]) for f in features if "amount" in f] == [("a", 2), ("a", 0.5), ("b", 1.5)]


def test_whole_deliveries_need_no_amounts():
    solution = solved(DELIVERIES, [1, 0, 2, 0, 0], capacity=2)
    assert solution.amounts is None
    assert "amount" not in to_json(solution) + to_csv(solution)


def test_a_tour_without_a_depot_begins_with_the_first_stop():
    solution = solved("id,x,y\na,0,0\nb,3,0\nc,3,4\n", [1, 2, 0])
    assert solution.routes == [["a", "b", "c"]]
    assert solution.depot is None
    assert (solution.cost, solution.length) == (12, 12)
    with pytest.raises(InputError, match="routes from a depot"):
        to_sol(solution)


def test_prizes_and_what_was_left_out():
    text = "id,x,y,prize,penalty\nd,0,0,0,0\na,0,3,5,1\nb,4,0,7,2.5\n"
    solution = solved(text, [1, 0], min_prize=5)
    assert (solution.cost, solution.prize, solution.unvisited) == (8.5, 5, ["b"])
    assert json.loads(to_json(solution))["prize"] == 5
    nothing = solved("id,x,y,prize\nd,0,0,0\na,0,3,5\nb,4,0,7\n", [0], max_length=1)
    assert (nothing.routes, nothing.cost, nothing.length, nothing.unvisited) == ([], 0, 0, ["a", "b"])
    json.loads(to_json(nothing))


def test_geojson_draws_closed_lines_longitude_first():
    solution = solved(GLOBE, [0, 2, 1])
    document = json.loads(to_geojson(solution))
    lines = [f for f in document["features"] if f["geometry"]["type"] == "LineString"]
    points = [f for f in document["features"] if f["geometry"]["type"] == "Point"]
    assert len(lines) == 1
    assert len(points) == 3
    line = lines[0]["geometry"]["coordinates"]
    assert line[0] == line[-1] == [4.8952, 52.3702]
    assert [f["properties"]["id"] for f in points] == ["Amsterdam", "Utrecht", "Rotterdam"]
    with pytest.raises(InputError, match="places on the globe"):
        to_geojson(solved(DELIVERIES, [1, 0, 2], capacity=2))


def test_csv_lists_visits_in_driving_order_and_quotes_ids():
    text = 'id,x,y,demand,depot\n"Smith, J.",3,4,2,\nb,0,1,1,\nhub,0,0,,1\n'
    rows = list(csv.DictReader(io.StringIO(to_csv(solved(text, [1, 2], capacity=3)))))
    assert [(row["route"], row["position"], row["id"]) for row in rows] == [
        ("1", "0", "hub"),
        ("1", "1", "Smith, J."),
        ("1", "2", "b"),
        ("1", "3", "hub"),
    ]
    assert (rows[1]["x"], rows[1]["y"]) == ("3.0", "4.0")


def test_writing_by_suffix_and_to_standard_output(tmp_path, capsys):
    solution = solved(GLOBE, [0, 1, 2])
    for suffix, begins in (("json", "{"), ("geojson", "{"), ("csv", "route,position,id,lon,lat")):
        write_solution(tmp_path / f"a.{suffix}", solution)
        assert (tmp_path / f"a.{suffix}").read_text().startswith(begins)
    write_solution("-", solution)
    assert json.loads(capsys.readouterr().out)["unit"] == "km"
    with pytest.raises(InputError, match="the choices are json, geojson, csv, sol"):
        write_solution(tmp_path / "a.xlsx", solution)
    with pytest.raises(InputError, match="cannot be written"):
        write_solution(tmp_path / "none" / "a.json", solution)
