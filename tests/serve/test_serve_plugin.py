"""The service with a plugin: its problem's own attributes in requests, answers, description and catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest
from starting import Server

pytestmark = pytest.mark.extra

ROOT = Path(__file__).parents[2]
OPEN = ROOT / "examples" / "plugins" / "open_vrp.py"
IMPATIENT = ROOT / "tests" / "plugins" / "patience.py"
PLACES = [[0, 0], [30, 0], [60, 0], [0, 40]]


@pytest.fixture(scope="module")
def served():
    for name in ("fastapi", "uvicorn", "httpx"):
        pytest.importorskip(name)
    started = Server("--long-workers", 1, "--constructors", 1, "--plugin", OPEN, "--plugin", IMPATIENT)
    yield started.wait()
    started.end()


def post(server, path, body):
    import httpx

    return httpx.post(server.url + path, json=body, timeout=60)


def test_a_request_holds_its_attributes_and_the_answer_is_written_with_them(served):
    body = {"coords": PLACES, "patience": [0, 100, 10, 40.5], "hours": [[0, 0], [8, 9], [8, 9], [0, 0]], "seconds": 0.3}
    answer = post(served, "/solve", {**body, "impatience_cost": 2}).json()
    assert (answer["problem"], answer["limits"]) == ("impatient", {"impatience_cost": 2})
    assert sorted(answer["routes"][0]["stops"]) == [1, 2, 3]
    batch = post(
        served, "/solve/batch", {"instances": [{**body, "impatience_cost": n} | {"seconds": None} for n in (1,)]}
    )
    assert batch.status_code == 422, "an instance of a batch has no seconds"


@pytest.mark.parametrize(
    ("change", "told", "field"),
    [
        ({}, "the request: impatient needs an impatience cost; give impatience_cost", "impatience_cost"),
        ({"impatience_cost": -1}, "the request: the impatience cost is -1; it cannot be negative", "impatience_cost"),
        ({"patience": [0, 1, None, 2], "impatience_cost": 1}, "the request, row 2: no patience", "patience"),
        ({"patience": [0, "x", 1, 2]}, "the request, row 1: patience is 'x', not a number", "patience.1"),
        ({"hours": [[0]] * 4}, "hours", "hours.0"),
        ({"patiens": 3}, "the request: 'patiens' is not known; the keys are coords", "patiens"),
    ],
)
def test_what_is_wrong_is_told_with_its_field(served, change, told, field):
    answer = post(served, "/solve", {"coords": PLACES, "patience": [0, 1, 1, 2], "seconds": 0} | change)
    assert answer.status_code == 422
    assert told in answer.json()["error"]
    assert answer.json()["field"] == field


def test_a_table_in_the_users_language_is_read_over_http(served):
    text = "Name;X;Y;Geduld;Sprechzeit_von;Sprechzeit_bis\nHof;0;0;;;\nA;30;0;100;08:00;09:30\nB;60;0;10;8;9\n"
    fields = post(served, "/stops", {"name": "tour.csv", "text": text}).json()
    assert (fields["problem"], fields["patience"]) == ("impatient", [0, 100, 10])
    assert fields["hours"] == [[0, 0], [480, 570], [8, 9]]
    answer = post(served, "/solve", {**fields, "impatience_cost": 1, "seconds": 0})
    assert answer.json()["limits"] == {"impatience_cost": 1}


def test_description_and_catalogue_have_them(served):
    import httpx

    described = httpx.get(f"{served.url}/openapi.json").json()["components"]["schemas"]["SolveRequest"]["properties"]
    assert described["patience"]["description"] == "[N]; how long the stop waits gladly"
    assert {"hours", "impatience_cost", "capacity", "max_length"} <= set(described)
    problems = {one["id"]: one for one in httpx.get(f"{served.url}/problems").json()["problems"]}
    assert problems["impatient"]["title"] == "A round of impatient customers"
    assert [one["name"] for one in problems["impatient"]["attributes"]] == [
        "patience", "hours", "impatience_cost", "crates",
    ]  # fmt: skip
    random = httpx.get(f"{served.url}/random?problem=impatient&n=5").json()
    assert len(random["patience"]) == 6
    assert post(served, "/solve", {**random, "seconds": 0}).status_code == 200


def test_open_routing_is_solved_and_pays_no_way_back(served):
    body = {"coords": PLACES, "demand": [0, 4, 4, 4], "capacity": 12, "max_length": 100, "seconds": 0.3}
    answer = post(served, "/solve", body).json()
    assert (answer["problem"], answer["cost"]) == ("open-vrp", pytest.approx(100))
    assert answer["length"] == pytest.approx(100)
