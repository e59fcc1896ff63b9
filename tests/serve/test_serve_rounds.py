"""Rounds over HTTP: solved, checked and read from files, refused in the words of the command line."""

from __future__ import annotations

import base64
import copy
import json
import time
from pathlib import Path

import pytest
from requesting import post

httpx = pytest.importorskip("httpx")
EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.extra
ROUND = {
    "depot": {"id": "yard", "lat": 52.09, "lon": 5.12},
    "stops": [
        {"id": "A", "lat": 52.08, "lon": 5.09, "delivery": 2, "windows": [["08:00", "10:00"]], "service": 300},
        {"id": "B", "lat": 52.12, "lon": 5.16, "delivery": 3, "windows": [["09:00", "12:00"]], "service": 300},
        {"id": "C", "lat": 52.10, "lon": 5.11, "delivery": 1, "note": "ring twice"},
    ],
    "vehicles": [
        {"id": "van", "capacity": 10, "shift": ["08:00", "16:00"]},
        {"id": "bike", "capacity": 4, "shift": ["08:00", "16:00"]},
    ],
    "speed": 30,
}
PLAN = [{"vehicle": "van", "stops": ["A", "B", "C"]}]


def solved(server, body):
    """The answer of a search."""
    return httpx.post(server.url + "/solve", json=body, timeout=300)


def test_a_plan_is_checked(server):
    answer = post(server, "/check", {**ROUND, "routes": PLAN})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["format_version"] == 2
    assert body["routes"][0]["stops"] == ["A", "B", "C"]
    assert body["routes"][0]["visits"][2]["start"] >= "09:00:00"
    assert body.get("violations", []) == []
    assert body["routes"][0]["visits"][3]["columns"] == {"note": "ring twice"}
    assert "drawing" not in body


def test_a_stream_sends_plans_that_keep_the_rules_and_then_the_last(server):
    events, kind = [], None
    body = {**ROUND, "seconds": 0.5, "drawing": True}
    with httpx.stream("POST", f"{server.url}/solve/stream", json=body, timeout=300) as response:
        for line in response.iter_lines():
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                events.append((kind, json.loads(line[6:])))
    assert [kind for kind, _ in events][-1] == "done"
    assert {kind for kind, _ in events[:-1]} == {"better"}
    last = events[-1][1]
    for _, answer in events:
        assert set(answer) == set(last)
        routes = [{"vehicle": route["vehicle"], "stops": route["stops"]} for route in answer["routes"]]
        again = post(server, "/check", {**ROUND, "routes": routes}).json()
        assert again.get("violations", []) == []
        assert again["cost"] == pytest.approx(answer["cost"])
    assert last["cost"] <= events[0][1]["cost"]


def test_every_violation_is_told(server):
    routes = [{"vehicle": "bike", "stops": ["A", "B"]}]
    body = post(server, "/check", {**ROUND, "routes": routes, "drawing": True}).json()
    assert {one["rule"] for one in body["violations"]} == {"capacity", "unassigned"}
    assert body["unassigned"][0]["id"] == "C"
    assert len(body["drawing"]["routes"]) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"routes": [{"vehicle": "truck", "stops": ["A"]}]}, "the request: route 1 has the vehicle 'truck'"),
        ({"routes": [["Z"]]}, "the request: route 1 visits 'Z', which is not among the stops"),
        ({"speed": None}, "speed"),
        ({"stops": []}, "the request: 'stops' is empty; a list of stops is needed"),
        ({"stops": None, "vehicles": None}, "the request: no 'stops'; a list of stops is needed"),
        ({"nonsense": 1}, "'nonsense' is not known"),
        (
            {"problem": "tsp"},
            "the request: the problem is 'tsp', but stops as objects are a round, whose problem is vrp",
        ),
    ],
)
def test_what_is_wrong_is_told_as_on_the_command_line(server, change, words):
    answer = post(server, "/check", {**ROUND, "routes": PLAN, **change})
    assert answer.status_code == 422
    assert words in answer.json()["error"]
    _, _, keys = answer.json()["error"].partition("; the keys are ")
    assert len(keys.split(", ")) == len(set(keys.split(", "))), "each is listed once"


def test_a_plan_without_routes_is_refused(server):
    answer = post(server, "/check", ROUND)
    assert answer.status_code == 422
    assert answer.json()["error"] == "the request: routes is missing; it is needed"


def test_bodies_in_columns_are_refused_as_before(server):
    answer = post(server, "/solve", {"coords": [[0, 0], [1, "x"]], "seconds": 0})
    assert answer.status_code == 422
    assert answer.json() == {
        "error": "the request, row 1: coords is 'x', not a number", "field": "coords.1.1", "limit": None, "value": None,
    }  # fmt: skip
    unknown = post(server, "/solve", {"coords": [[0, 0], [1, 1]], "round": 3}).json()
    assert unknown["error"].startswith("the request: 'round' is not known; the keys are")


@pytest.mark.parametrize(
    ("change", "field"),
    [({"seconds": 1e9}, "seconds"), ({"seconds": "x"}, "seconds"), ({"iterations": 10**9}, "iterations")],
)
def test_limits_hold_for_rounds(server, change, field):
    answer = post(server, "/solve", {**ROUND, **change})
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_too_many_stops_are_refused(server):
    stops = [{"id": str(i), "lat": 52, "lon": 5} for i in range(2001)]
    answer = post(server, "/solve", {**ROUND, "stops": stops})
    assert (answer.status_code, answer.json()["limit"]) == (422, "nodes")


def file_of(name, data=None):
    return {"name": name, "base64": base64.b64encode(data or (EXAMPLES / name).read_bytes()).decode()}


def test_a_file_of_a_round_becomes_a_document_that_can_be_checked(server):
    body = {**file_of("bakery/stops.csv"), "vehicles_file": file_of("bakery/vans.csv"), "speed": "25"}
    answer = post(server, "/stops", body)
    assert answer.status_code == 200, answer.text
    document = answer.json()["round"]
    assert len(document["stops"]) == 30
    assert [vehicle["id"] for vehicle in document["vehicles"]] == ["Van 1", "Van 2", "Cargo bike"]
    order = [stop["id"] for stop in document["stops"]]
    checked = post(server, "/check", {**document, "routes": [{"vehicle": "Van 1", "stops": order}]}).json()
    assert {"capacity", "window"} <= {one["rule"] for one in checked["violations"]}


def test_a_file_of_stops_stays_what_it_was(server):
    body = post(server, "/stops", file_of("cities.csv")).json()
    assert body["problem"] == "tsp"
    assert body.get("round") is None


def test_a_round_is_solved(server):
    answer = solved(server, {**ROUND, "seconds": 0.2})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["unvisited"] == []
    assert body["problem"] == "vrp"
    again = post(server, "/check", {**ROUND, "routes": body["routes"]}).json()
    assert again["cost"] == pytest.approx(body["cost"])
    assert not again.get("violations")


def test_equal_iterations_give_equal_plans(server):
    first, second = (solved(server, {**ROUND, "iterations": 200}).json() for _ in range(2))
    assert first["routes"] == second["routes"]


def test_stops_that_nobody_can_serve_are_named(server):
    heavy = copy.deepcopy(ROUND)
    heavy["stops"][0]["delivery"] = 50
    answer = solved(server, {**heavy, "seconds": 0})
    assert answer.status_code == 422
    assert "'A'" in answer.json()["error"]
    allowed = solved(server, {**heavy, "seconds": 0, "allow_unassigned": True})
    assert allowed.status_code == 200, allowed.text
    assert [one["id"] for one in allowed.json()["unassigned"]] == ["A"]


# ------------------------------------------------------------------------------------------------ the page


@pytest.fixture
def opened(server, browser):
    """The page with the example's round."""
    page = browser.new_page(viewport={"width": 1300, "height": 3000})
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(server.url)
    page.locator("#files summary").click()
    page.set_input_files("#fleet-file", EXAMPLES / "bakery" / "vans.csv")
    page.fill("#fleet-speed", "25")
    page.set_input_files("#file", EXAMPLES / "bakery" / "stops.csv")
    page.wait_for_selector("#round:not([hidden])")
    yield page
    assert complaints == []
    page.close()


def test_the_page_shows_the_vehicles_of_a_round(opened):
    assert opened.locator("#round-title").text_content() == "stops.csv: 30 stops"
    assert opened.locator("#fleet-table tr").count() == 1 + 3 + 1
    assert opened.locator('[aria-label="shift of Van 1"]').input_value().startswith("06:00")


def test_a_stop_that_is_moved_is_checked_at_once(opened):
    opened.fill("#seconds", "0.5")
    opened.click("#solve")
    opened.wait_for_selector("#round-plan .itinerary", timeout=180_000)  # a first search compiles
    opened.wait_for_selector("#stop[disabled]")
    assert opened.locator("#round-times .time-line").count() >= 2
    assert opened.locator("#round-broken li").count() == 0
    first = opened.locator("#round-plan .itinerary").first.locator("[draggable]").first
    name, last = first.get_attribute("data-id"), opened.locator("#round-plan .itinerary").last.locator("tr").last
    with opened.expect_response("**/check") as checked:
        first.drag_to(last)
    answer = checked.value.json()
    assert answer["routes"][-1]["stops"][-1] == name
    told = len(answer.get("violations", []))
    opened.wait_for_function(f"document.querySelectorAll('#round-broken li').length == {told}")
    opened.click("#round-undo")
    assert opened.locator("#round-broken li").count() == 0


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({"vehicles": [{"id": str(i), "capacity": 9} for i in range(2001)]}, "nodes"),
        ({"depots": [{"lat": 52, "lon": 5}] * 2001}, "nodes"),
        ({"stops": [{**ROUND["stops"][0], "windows": [[i, i + 1] for i in range(40_001)]}]}, "entries"),
        ({"vehicles": [{"id": "van", "breaks": [{"windows": [[i, i + 1]]} for i in range(40_001)]}]}, "entries"),
        ({"routes": [{"vehicle": "van", "stops": ["A"]}] * 2001}, "nodes"),
        ({"routes": [{"vehicle": "van", "stops": ["A"] * 40_001}]}, "entries"),
    ],
)
def test_rounds_of_malicious_size_are_refused_before_they_are_read(server, changes, limit):
    answer = post(server, "/check", {**ROUND, "routes": PLAN, **changes})
    assert (answer.status_code, answer.json()["limit"]) == (422, limit), answer.text


def test_a_thousand_million_trips_are_as_many_as_there_are_stops(server):
    fleet = [{**ROUND["vehicles"][0], "trips": 10**9}]
    assert post(server, "/check", {**ROUND, "vehicles": fleet, "routes": PLAN}).status_code == 200


def test_a_cancelled_search_ends_at_once():
    from routelearn.serve import answering
    from routelearn.serve.limits import Limits
    from routelearn.solving.board import Board

    board = Board()
    board.stop.set()  # as the worker does when the client has gone
    fields = {**ROUND, "seconds": 0.0, "iterations": None, "seed": 0}
    answering.solve(fields, Limits(), board, None)  # compiles, the first time
    began = time.perf_counter()
    answering.solve({**fields, "seconds": 30.0}, Limits(), board, None)
    assert time.perf_counter() - began < 5
