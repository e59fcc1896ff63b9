"""VROOM's JSON: its defaults and units, what is refused by name, and its own examples."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest

from routelearn.errors import InputError
from routelearn.rounds.document import document_of
from routelearn.rounds.files import parse_round, read_round, round_from_document
from routelearn.rounds.model import ALWAYS, FOREVER
from routelearn.rounds.plan import Drive
from routelearn.rounds.referee import judge
from routelearn.rounds.timing import plan_of

FOLDER = os.environ.get("ROUTELEARN_ROUNDS")
DURATIONS = [[0, 60, 120], [60, 0, 90], [120, 90, 0]]
DISTANCES = [[0, 600, 1200], [600, 0, 900], [1200, 900, 0]]
BASE: dict[str, Any] = {
    "jobs": [
        {
            "id": 1,
            "location_index": 1,
            "setup": 30,
            "service": 300,
            "delivery": [1, 2],
            "pickup": [0, 1],
            "skills": [4],
            "priority": 10,
            "time_windows": [[0, 100], [200, 400]],
            "description": "first",
        }
    ],
    "shipments": [
        {
            "amount": [1, 1],
            "skills": [4],
            "pickup": {"id": 1, "location_index": 2, "service": 10},
            "delivery": {"id": 2, "location_index": 1, "time_windows": [[0, 900]]},
        }
    ],
    "vehicles": [
        {
            "id": 7,
            "profile": "car",
            "start_index": 0,
            "capacity": [5, 5],
            "skills": [4, 5],
            "speed_factor": 2,
            "time_window": [0, 1000],
            "max_tasks": 4,
            "max_travel_time": 500,
            "max_distance": 9000,
            "costs": {"fixed": 50, "per_hour": 7200, "per_km": 3},
            "breaks": [{"id": 1, "time_windows": [[100, 200]], "service": 60}],
        },
        {"id": 8, "start_index": 0, "end_index": 0, "capacity": [1, 1]},
    ],
    "matrices": {"car": {"durations": DURATIONS, "distances": DISTANCES}},
}


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """The sample with one value changed, added, or (...) taken away."""
    document = copy.deepcopy(BASE)
    inner: Any = document
    for key in path[:-1]:
        inner = inner[key]
    if to is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = to
    return document


def test_everything_is_read():
    found = round_from_document(BASE, "vroom.json")
    job, pickup, delivery = found.stops
    assert (job.id, pickup.id, delivery.id) == ("1", "pickup 1", "delivery 2")  # a job and a pickup share an id
    assert (job.setup, job.service, job.delivery, job.pickup, job.priority) == (30.0, 300.0, (1.0, 2.0), (0.0, 1.0), 10)
    assert (job.windows, job.skills) == (((0.0, 100.0), (200.0, 400.0)), {"4"})
    assert (pickup.pickup, pickup.delivery, delivery.delivery) == ((1.0, 1.0), (0.0, 0.0), (1.0, 1.0))
    assert found.shipments == ((1, 2),)
    first, second = found.vehicles
    assert (first.start, first.end, first.shift, first.max_stops) == (0, None, (0.0, 1000.0), 4)
    assert (first.fixed_cost, first.driving_cost, first.distance_cost) == (50.0, 2.0, 0.003)
    assert (first.max_driving, first.max_distance) == (500.0, 9000.0)
    assert (first.breaks[0].windows, first.breaks[0].service) == (((100.0, 200.0),), 60.0)
    assert (second.driving_cost, second.distance_cost, second.shift) == (1.0, 0.0, ALWAYS)
    assert (second.max_driving, second.max_stops) == (FOREVER, None)
    assert found.legs_of(first).duration[0, 1] == 30  # twice as fast
    assert found.legs_of(second).duration[0, 1] == 60
    assert found.legs_of(first).distance[0, 1] == 600
    assert (found.length_unit, found.day, found.allow_unassigned) == ("m", None, True)


def test_places_by_coordinates_need_a_speed():
    document = {
        "jobs": [{"id": 1, "location": [2.0, 48.0]}, {"id": 2, "location": [2.0, 48.0]}],
        "vehicles": [{"id": 1, "start": [2.1, 48.0], "costs": {"per_km": 2}, "max_distance": 50_000}],
    }
    with pytest.raises(InputError, match="vehicles cost by time, but no durations; give a speed"):
        round_from_document(document)
    found = parse_round(json.dumps(document).encode(), "a.json", options={"speed": 60})
    assert found is not None
    assert [stop.place for stop in found.stops] == [0, 0]
    legs = found.legs_of(found.vehicles[0])
    assert legs.distance[0, 1] == pytest.approx(7.44, abs=0.01)
    assert legs.duration[0, 1] == pytest.approx(legs.distance[0, 1] * 60)
    assert found.length_unit == "km"
    assert (found.vehicles[0].distance_cost, found.vehicles[0].max_distance) == (2.0, 50.0)


def test_steps_are_kept():
    steps = [{"type": "start"}, {"type": "pickup", "id": 1}, {"type": "job", "id": 1}, {"type": "end"}]
    found = round_from_document(changed("vehicles", 0, "steps", to=steps))
    assert found.vehicles[0].kept == (1, 0)


@pytest.mark.parametrize(
    ("path", "to", "words"),
    [
        (("jobs", 0, "lunch"), 1, "job 1: 'lunch' is not supported"),
        (("jobs", 0, "id"), ..., "job 1: no id"),
        (("jobs", 0, "location_index"), 3, "index 3, but the matrices have 3 rows, from 0"),
        (("jobs", 0, "location_index"), ..., "job 1: no location"),
        (("jobs", 0, "time_windows"), [[100, 0]], r"vroom.json, job 1: the window ends \(0\) before it begins \(100\)"),
        (("jobs", 0, "time_windows"), [[1]], r"\[start, end\] is needed"),
        (("jobs", 0, "time_windows"), [], "job 1: no window"),
        (("jobs", 0, "delivery"), [1, 2, 3], "vroom.json, job 1: an amount in 2 dimensions, but others are in 3"),
        (("jobs", 0, "service"), -1, "job 1: service is -1; it cannot be negative"),
        (("vehicles", 0, "capacity"), [5], "vehicle 1: a capacity in one dimension, but amounts in 2"),
        (("vehicles", 0, "profile"), "bike", "vehicle 1: no matrices of the profile 'bike'; there is 'car'"),
        (("vehicles", 0, "speed_factor"), 0, "speed_factor is 0; it must be positive"),
        (("vehicles", 0, "costs"), {"per_task_hour": 1}, "vehicle 1, costs: 'per_task_hour' is not supported"),
        (("vehicles", 0, "breaks", 0, "max_load"), [1, 1], "break 1: 'max_load' is not supported"),
        (("vehicles", 0, "steps"), [{"type": "job", "id": 9}], "step 1: no job has the id '9'"),
        (("vehicles", 0, "steps"), [{"type": "job", "id": 1, "service_at": 5}], "'service_at' is not supported"),
        (("vehicles", 0, "steps"), [{"type": "delivery", "id": 2}], "keeps the delivery 'delivery 2' of a shipment"),
        (("vehicles", 1, "id"), 7, "vehicle 2: the id '7' is already used in vroom.json, vehicle 1"),
        (("vehicles",), [], "no vehicles"),
        (("shipments", 0, "delivery"), ..., "shipment 1: no delivery; a shipment needs both halves"),
        (("matrices", "car", "durations"), [[0, 1], [1, 0]], "2 rows of durations, but 3 of distances"),
        (("matrices", "car", "costs"), DURATIONS, "vehicle 1, costs: 'per_hour' beside the costs of the profile's"),
        (("matrices", "car", "costs"), [[0, 1], [1, 0]], "3 rows of durations, but 2 of costs"),
        (("jobs", 0, "setup_per_type"), [9], "setup_per_type is .*; an object of types is needed"),
        (("matrices", "car", "distances"), ..., "per_km or max_distance, but no distances; add them"),
        (("clusters",), [], "'clusters' is not supported; the keys are jobs"),
    ],
)
def test_what_is_refused_by_name(path, to, words):
    with pytest.raises(InputError, match=words) as raised:
        round_from_document(changed(*path, to=to), "vroom.json")
    assert "\n" not in str(raised.value)


def test_costs_of_legs_are_what_counts():
    """VROOM's own cost of this document is 17: the way 0, 1, 2, 0 at 1 + 4 + 5 and the fixed cost."""
    document = {
        "vehicles": [{"id": 1, "start_index": 0, "end_index": 0, "costs": {"fixed": 7}, "speed_factor": 2}],
        "jobs": [{"id": 1, "location_index": 1}, {"id": 2, "location_index": 2}],
        "matrices": {
            "car": {
                "durations": [[0, 100, 200], [110, 0, 50], [210, 60, 0]],
                "costs": [[0, 1, 2], [3, 0, 4], [5, 6, 0]],
            }
        },
    }
    found = round_from_document(document, "vroom.json")
    plan = plan_of(found, [Drive(0, (0, 1))])
    assert plan.cost == 17
    assert plan.routes[0].driving == 180
    assert judge(found, plan).violations == ()
    assert judge(found, plan).cost == 17
    again = round_from_document(document_of(found), "again.json")
    assert plan_of(again, [Drive(0, (0, 1))]).cost == 17


def test_times_by_type_are_read_where_all_vehicles_agree():
    document = changed("jobs", 0, "service_per_type", to={"bike": 9, "lorry": 70})
    for vehicle in document["vehicles"]:
        vehicle["type"] = "bike"
    assert round_from_document(document, "vroom.json").stops[0].service == 9
    document["vehicles"][1]["type"] = "lorry"
    with pytest.raises(InputError, match="job 1: 'service_per_type' that differs between the vehicles is not supp"):
        round_from_document(document, "vroom.json")


@pytest.mark.skipif(not FOLDER, reason="ROUTELEARN_ROUNDS does not name the folder of benchmark rounds")
@pytest.mark.parametrize(("number", "stops", "kept"), [(1, 6, ()), (2, 2, ()), (3, 6, (0, 1, 4))])
def test_examples_of_vroom(number: int, stops: int, kept: tuple[int, ...]):
    path = Path(FOLDER or ".") / "vroom" / f"example_{number}.json"
    found = read_round(path, options={} if number == 2 else {"speed": 60})
    assert found is not None
    assert (len(found.stops), found.vehicles[0].kept) == (stops, kept)
