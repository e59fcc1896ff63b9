"""Answers by the header `accept`: GeoJSON, VROOM and CSV, of requests and of jobs, or 406 with what is possible."""

from __future__ import annotations

import csv
import io
import json

import pytest
from requesting import SQUARE, post

pytest.importorskip("fastapi")
from routelearn.serve import formats
from routelearn.serve.limits import Refused
from routelearn.serve.schemas import ROUND

GEO, VROOM, CSV = "application/geo+json", "application/vnd.vroom+json", "text/csv"
LATLON = {"latlon": [[52.1, 5.1], [52.2, 5.2], [52.1, 5.3]], "ids": ["a", "b", "c"], "seconds": 0}


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, "json"), ("", "json"), ("*/*", "json"), ("application/*", "json"), ("application/json", "json"),
        (GEO, "geojson"), (f"text/html, {CSV}", "csv"), ("text/*", "csv"), (f"{VROOM};q=0.5, {GEO};q=0.9", "geojson"),
        (f"{GEO};q=0.1, */*;q=0.5", "json"), ("application/json;q=0, */*", "geojson"), (GEO.upper(), "geojson"),
        (f"{CSV}; header=present", "csv"), (f"{CSV};q=x, {GEO}", "geojson"),
    ],
)  # fmt: skip
def test_the_header_decides(accept, form):
    assert formats.chosen(accept, formats.OF_ROUND) == form


@pytest.mark.parametrize("accept", ["text/html", f"{CSV};q=0", "nonsense", ";;,,", "application/json;q=nan", "," * 500])
def test_what_cannot_be_is_refused_with_what_can(accept):
    with pytest.raises(Refused) as refused:
        formats.chosen(accept, formats.OF_COLUMNS)
    assert refused.value.status == 406
    assert refused.value.error.endswith("the types possible here are application/json, application/geo+json, text/csv")


def lines(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.extra
@pytest.mark.parametrize("seconds", [0, 0.1], ids=["construction", "search"])
def test_stops_in_columns_have_the_formats_of_their_files(server, seconds):
    body = LATLON | {"seconds": seconds}
    found = post(server, "/v1/solve", body, headers={"accept": GEO})
    assert (found.status_code, found.headers["content-type"]) == (200, GEO)
    [line] = [one for one in found.json()["features"] if one["geometry"]["type"] == "LineString"]
    assert sorted(line["properties"]["stops"]) == ["a", "b", "c"]
    assert line["geometry"]["coordinates"][0] == [5.1, 52.1], "longitude first"
    table = post(server, "/v1/solve", body, headers={"accept": CSV})
    assert table.headers["content-type"].startswith(CSV)
    assert [row["id"] for row in lines(table.text)] == line["properties"]["stops"]
    assert "accept" in table.headers["vary"]


@pytest.mark.extra
@pytest.mark.parametrize("path", ["/v1/solve", "/v1/check"])
def test_rounds_are_answered_as_vroom_and_others_do(server, path):
    body = ROUND | ({"seconds": 0.1} if path == "/v1/solve" else {"routes": [{"vehicle": "van", "stops": ["A", "B"]}]})
    vroom = post(server, path, body, headers={"accept": VROOM})
    assert (vroom.status_code, vroom.headers["content-type"]) == (200, VROOM)
    assert vroom.json()["code"] == 0
    assert [step["type"] for step in vroom.json()["routes"][0]["steps"]] == ["start", "job", "job", "end"]
    assert post(server, path, body, headers={"accept": GEO}).json()["type"] == "FeatureCollection"
    assert {row["vehicle"] for row in lines(post(server, path, body, headers={"accept": CSV}).text)} == {"van"}


@pytest.mark.extra
def test_geojson_without_places_on_the_globe_is_refused_before_time_is_spent(server):
    flat = {**ROUND, "depot": {"id": "yard", "x": 0, "y": 0}, "stops": [{"id": "A", "x": 1, "y": 1}]}
    for body in ({"coords": SQUARE, "seconds": 30}, {"coords": SQUARE, "seconds": 0}, {**flat, "seconds": 30}):
        refused = post(server, "/v1/solve", body, headers={"accept": GEO})
        assert refused.status_code == 406, refused.text
        assert refused.headers["content-type"] == "application/json"
        told = refused.json()["error"]
        assert told.startswith("GeoJSON needs places on the globe, and these stops have no lat and lon; the types")
        assert GEO not in told
        assert (VROOM in told) == ("stops" in body)
        assert refused.elapsed.total_seconds() < 25


@pytest.mark.extra
@pytest.mark.parametrize(
    ("path", "body", "accept"),
    [
        ("/v1/solve", {"coords": SQUARE}, VROOM),
        ("/v1/solve", {"coords": SQUARE}, "text/html"),
        ("/v1/solve/batch", {"instances": [{"coords": SQUARE}]}, GEO),
        ("/v1/check", {**ROUND, "routes": []}, "image/png"),
    ],
)
def test_a_type_that_is_never_possible_is_refused(server, path, body, accept):
    refused = post(server, path, body, headers={"accept": accept})
    assert refused.status_code == 406
    assert "the types possible here are application/json" in refused.json()["error"]


@pytest.mark.extra
def test_a_client_cannot_choose_the_format_in_its_body(server):
    """A round may hold keys that are not known."""
    answer = post(server, "/v1/solve", {**ROUND, "seconds": 0, "form": "every"})
    assert answer.json()["format"] == "routelearn-solution"


@pytest.mark.extra
def test_half_a_surrogate_pair_in_a_name_breaks_no_format(server):
    import httpx

    stops = [{**ROUND["stops"][0], "id": "\ud800"}]
    data = json.dumps({**ROUND, "stops": stops, "seconds": 0}).encode()
    for accept in (GEO, CSV, VROOM, "application/json"):
        headers = {"accept": accept, "content-type": "application/json"}
        answer = httpx.post(f"{server.url}/v1/solve", content=data, headers=headers, timeout=60)
        assert answer.status_code == 200
        assert accept == CSV or answer.json()


@pytest.mark.extra
def test_a_finished_job_has_every_format(guarded):
    token = guarded.token("many")
    for body, possible in ((LATLON, (GEO, CSV)), ({**ROUND, "seconds": 0.1}, (GEO, VROOM, CSV))):
        job = f"/v1/jobs/{guarded.job(body)['id']}"
        for accept in possible:
            answer = guarded.ask("GET", job, token, headers={"accept": accept})
            assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (200, accept)
            assert answer.text
        assert guarded.ask("GET", job, token, headers={"accept": "text/html"}).status_code == 406
    flat = f"/v1/jobs/{guarded.job({'coords': SQUARE, 'seconds': 0})['id']}"
    refused = guarded.ask("GET", flat, token, headers={"accept": GEO})
    assert (refused.status_code, GEO in refused.json()["error"].partition("; ")[2]) == (406, False)


@pytest.mark.extra
def test_a_job_that_runs_has_no_other_format_yet(guarded):
    token = guarded.token("many")
    job = f"/v1/jobs/{guarded.job({'coords': SQUARE, 'seconds': 50}, until=('queued', 'running'))['id']}"
    told = guarded.ask("GET", job, token, headers={"accept": CSV})
    assert (told.status_code, "it is done" in told.json()["error"]) == (409, True)
    guarded.ask("DELETE", job, token)


@pytest.mark.extra
def test_a_job_that_failed_has_no_format_and_is_not_waited_for(guarded):
    job = guarded.job({"coords": SQUARE, "demand": [0, 1, 2, 3, 4]})
    told = guarded.ask("GET", f"/v1/jobs/{job['id']}", guarded.token("many"), headers={"accept": CSV})
    assert (job["state"], told.status_code) == ("failed", 409)
    assert told.json()["error"].endswith("it has no answer; application/json says why")
    assert "retry-after" not in told.headers
