"""Jobs by real requests: made, watched, fetched, cancelled; nobody else's; and none lost with its worker."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from urllib.parse import urljoin

import pytest
from requesting import SQUARE, many

pytest.importorskip("httpx")
pytest.importorskip("fastapi")
from routelearn.serve.schemas import ROUND, Answer, Answers, RoundAnswer

pytestmark = pytest.mark.extra

QUICK = {"coords": SQUARE, "seconds": 0}
LONG = {"coords": many(100), "seconds": 50}


@pytest.mark.parametrize(
    ("body", "kind", "answer"),
    [
        (QUICK, "solve", Answer),
        ({"coords": SQUARE, "seconds": 0.1}, "solve", Answer),
        ({**ROUND, "seconds": 0.1}, "round", RoundAnswer),
        ({"instances": [{"coords": SQUARE}, {"coords": SQUARE[:4]}], "seconds": 0}, "batch", Answers),
        ({"instances": [{"coords": SQUARE}], "seconds": 0}, "batch", Answers),
        ({"instances": [{"coords": SQUARE}, {"coords": SQUARE[:4]}], "seconds": 0.1}, "batch", Answers),
    ],
    ids=["construction", "search", "round", "batch of constructions", "batch of one", "batch that is searched"],
)
def test_every_kind_of_request_can_be_a_job(guarded, body, kind, answer):
    told = guarded.job(body)
    assert (told["kind"], told["state"], told["failure"]) == (kind, "done", None)
    found = answer.model_validate(told["answer"])
    assert kind == "batch" or told["cost"] == found.cost
    assert kind != "batch" or len(found.answers) == len(body["instances"])


def test_the_answer_to_a_new_job_says_where_it_is(guarded):
    made = guarded.ask("POST", "/v1/jobs", guarded.token("many"), json=QUICK)
    assert made.status_code == 202
    place = urljoin(str(made.request.url), made.headers["location"])
    assert place == f"{guarded.url}/v1/jobs/{made.json()['id']}"
    assert guarded.ask("GET", place.removeprefix(guarded.url), guarded.token("many")).status_code == 200


def test_a_running_job_tells_its_best_cost_and_delete_cancels_it_at_once(guarded):
    told = guarded.job(LONG, until=("running",))
    path, end = f"/v1/jobs/{told['id']}", time.monotonic() + 60
    while told["cost"] is None and time.monotonic() < end:
        told = guarded.ask("GET", path, guarded.token("many")).json()
    assert told["cost"] > 0
    assert told["answer"] is None
    assert guarded.ask("DELETE", path, guarded.token("many")).status_code == 204
    assert guarded.ask("GET", path, guarded.token("many")).json()["state"] == "cancelled"
    assert guarded.job({"coords": many(100), "seconds": 1.5})["state"] == "done", "the worker is free again"
    assert guarded.ask("DELETE", path, guarded.token("many")).status_code == 204
    assert guarded.ask("GET", path, guarded.token("many")).status_code == 404


def test_a_job_is_there_for_its_own_token_alone(guarded):
    job = guarded.job(QUICK)["id"]
    for token in (guarded.token("other"), guarded.unlimited):
        for method in ("GET", "DELETE"):
            assert guarded.ask(method, f"/v1/jobs/{job}", token).status_code == 404
        assert job not in [one["id"] for one in guarded.ask("GET", "/v1/jobs", token).json()["jobs"]]
    listed = guarded.ask("GET", "/v1/jobs", guarded.token("many")).json()["jobs"]
    assert [one["id"] for one in listed if one["id"] == job] == [job]
    assert "answer" not in listed[0]


def test_where_no_token_is_asked_for_an_id_is_all_it_takes_and_nothing_is_listed(server):
    import httpx

    made = httpx.post(f"{server.url}/jobs", json=QUICK, timeout=60)
    assert httpx.get(f"{server.url}/v1/jobs/{made.json()['id']}", timeout=60).status_code == 200
    assert httpx.get(f"{server.url}/v1/jobs", timeout=60).status_code == 403


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"coords": SQUARE, "second": 1}, "second", "'second' is not known; the keys are coords"),
        ({"instances": [{"coords": SQUARE, "x": 1}]}, "instances.0.x", "instance 0: 'x' is not known; the keys are"),
        ({"instances": [], "seconds": 0}, "instances", "instances is empty; at least 1 is needed"),
        (
            {"instances": [{"coords": SQUARE}], "coords": SQUARE},
            "coords",
            "'coords' is not known; the keys are problem",
        ),
        ({**ROUND, "seconds": "x"}, "seconds", "seconds is 'x', not a number"),
        ({"coords": SQUARE, "seconds": 1e6}, "seconds", "the limit seconds is 60"),
    ],
)
def test_a_body_that_is_wrong_is_refused_at_once_as_elsewhere(guarded, body, field, words):
    told = guarded.ask("POST", "/v1/jobs", guarded.token("many"), json=body)
    assert (told.status_code, told.json()["field"]) == (422, field), told.text
    assert words in told.json()["error"]


def test_what_the_worker_finds_wrong_is_the_failure_of_the_job(guarded):
    told = guarded.job({"coords": SQUARE, "demand": [0, 1, 2, 3, -4], "capacity": 9})
    assert (told["state"], told["answer"]) == ("failed", None)
    assert told["failure"]["field"] == "demand"


def test_a_token_with_one_job_at_once_is_told_so(guarded):
    token = guarded.token("one_job")
    first = guarded.ask("POST", "/v1/jobs", token, json=LONG).json()["id"]
    second = guarded.ask("POST", "/v1/jobs", token, json=QUICK)
    assert (second.status_code, second.json()["limit"], second.json()["value"]) == (429, "jobs", 1)
    assert second.headers["retry-after"] == "1"
    guarded.ask("DELETE", f"/v1/jobs/{first}", token)
    assert guarded.job(QUICK, token)["state"] == "done"


@pytest.mark.slow
def test_a_job_whose_worker_is_killed_is_done_by_another(guarded):
    """The client has long gone: nobody waits for the answer, and it comes all the same."""
    running = guarded.job({"coords": many(100), "seconds": 5}, until=("running",))["id"]
    waiting = guarded.ask("POST", "/v1/jobs", guarded.token("many"), json={**ROUND, "seconds": 1.5}).json()["id"]
    before = guarded.metric("routelearn_worker_deaths_total")
    # That of the lane long has the least priority, however nice the tests themselves are.
    pid = max(guarded.worker_pids(), key=lambda pid: os.getpriority(os.PRIO_PROCESS, pid))
    os.kill(pid, signal.SIGKILL)
    for job in (running, waiting):
        told = guarded.wait_for(job)
        assert (told["state"], told["failure"]) == ("done", None)
        assert told["answer"]["cost"] == told["cost"]
    assert guarded.metric("routelearn_worker_deaths_total") == before + 1


def test_paths_with_and_without_the_version_are_the_same_routes(server):
    import httpx

    described = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    assert {path for path in described if not path.startswith("/v1/")} == {"/healthz", "/livez", "/metrics"}
    body = {"coords": SQUARE, "ids": list("abcde"), "seconds": 0}
    one, other = (httpx.post(server.url + path, json=body, timeout=60).json() for path in ("/v1/solve", "/solve"))
    assert one["routes"] == other["routes"]
    for path in described:
        if path.startswith("/v1/"):
            versions = {httpx.put(server.url + at.replace("{id}", "x")).status_code for at in (path, path[3:])}
            assert versions == {405}, f"{path} is there, and so is {path[3:]}"
    for path in ("/v1/livez", "/v1/metrics", "/v1", "/v2/solve", "/v1/v1/solve"):
        assert httpx.get(server.url + path).status_code == 404


def test_counters_have_neither_versions_nor_ids(server):
    import httpx

    httpx.post(f"{server.url}/v1/solve", json={"coords": SQUARE, "seconds": 0}, timeout=60)
    httpx.get(f"{server.url}/v1/jobs/some-id")
    text = httpx.get(f"{server.url}/metrics").text
    assert 'path="/solve"' in text
    assert 'path="/jobs/{id}"' in text
    assert "/v1/" not in text
    assert "some-id" not in text


def test_several_replicas_keep_no_jobs_and_say_so():
    import httpx

    from routelearn.serve.app import create_app
    from routelearn.serve.on_ray import Scale

    assert Scale().is_one
    assert not Scale(replicas=2).is_one
    assert not Scale(max_replicas=2).is_one

    async def ask():
        inside = httpx.ASGITransport(create_app(keeps_jobs=False))  # its workers are not started: nothing is solved
        async with httpx.AsyncClient(transport=inside, base_url="http://inside") as client:
            body = {"json": QUICK}
            return [
                await client.post("/v1/jobs", **body), await client.get("/jobs"),
                await client.get("/v1/jobs/x"), await client.delete("/v1/jobs/x"),
            ]  # fmt: skip

    for told in asyncio.run(ask()):
        assert told.status_code == 501
        assert "start it with one replica" in told.json()["error"]
