"""The service by real requests: answers, limits, refusals, streams, clients that leave."""

from __future__ import annotations

import base64
import gzip
import http.client
import itertools
import json
import math
import random
import socket
import threading
import time

import pytest
from dispatch_cases import REFUSED, SOLVED
from paper_problems import PAPER
from requesting import SQUARE, many, post
from starting import Server

from routelearn.errors import InputError
from routelearn.problems import PROBLEMS
from routelearn.rounds.files import parse_round

httpx = pytest.importorskip("httpx")
pytestmark = pytest.mark.extra


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("seconds", [0, 0.2])
def test_every_problem_is_answered_in_the_words_of_its_schema(server, name, seconds):
    from routelearn.serve.schemas import Answer

    fields = httpx.get(f"{server.url}/random", params={"problem": name, "n": 15, "seed": 3}).json()
    response = post(server, "/solve", fields | {"seconds": seconds})
    assert response.status_code == 200, response.text
    answer = Answer.model_validate(response.json())
    assert answer.problem == name
    assert (answer.objective == -answer.cost) == PROBLEMS[name].maximise
    assert answer.history[-1].cost == pytest.approx(answer.cost)


def test_a_parameter_that_a_path_does_not_have_is_refused(server):
    random_one = httpx.get(f"{server.url}/random", params={"problme": "cvrp"})
    assert (random_one.status_code, random_one.json()["field"]) == (422, "problme")
    assert random_one.json()["error"] == "the request: 'problme' is not known; the parameters are problem, n, seed"
    solved = post(server, "/v1/solve?seconds=0", {"coords": SQUARE, "seconds": 0})
    assert solved.json()["error"] == "the request: 'seconds' is not known; this path has no parameters"


def test_a_problem_that_stops_cannot_fill_is_told_at_its_field(server):
    assert httpx.get(f"{server.url}/random", params={"problem": "vrp"}).json()["field"] == "problem"
    assert post(server, "/solve", {"latlon": [[0, 0], [100, 0]], "seconds": 0}).json()["field"] == "latlon"


def test_the_length_is_that_of_the_tour_and_ids_are_the_users(server):
    ids = ["a", "b", "c", "d", "e"]
    answer = post(server, "/solve", {"coords": SQUARE, "ids": ids, "seconds": 0.1}).json()
    [route] = answer["routes"]
    assert sorted(route["stops"]) == ids
    at = dict(zip(ids, SQUARE, strict=True))
    tour = [at[name] for name in route["stops"]]
    assert answer["length"] == pytest.approx(
        sum(math.dist(p, q) for p, q in zip(tour, tour[1:] + tour[:1], strict=True))
    )


def test_latlon_is_in_kilometres_and_a_matrix_counts(server):
    berlin_munich = post(server, "/solve", {"latlon": [[52.52, 13.4], [48.14, 11.58]], "seconds": 0}).json()
    assert berlin_munich["unit"] == "km"
    assert berlin_munich["length"] == pytest.approx(2 * 504, rel=0.01)
    matrix = [[0, 1, 9], [9, 0, 1], [1, 9, 0]]
    assert post(server, "/solve", {"matrix": matrix, "seconds": 0.1}).json()["cost"] == 3


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({}, "coords", "no places; give coords, latlon or matrix"),
        ({"coords": [[1, 2]]}, None, "one stop; a route needs at least 2"),
        ({"coords": SQUARE, "demand": [0, 1, 2, 3, 4]}, "capacity", "cvrp needs the vehicle's capacity"),
        ({"coords": SQUARE, "demand": [0, 1, 2, 3, -4], "capacity": 9}, "demand", "row 4: the demand is -4"),
        ({"coords": SQUARE, "ids": [1, 2, 3, 4, 4]}, "ids", "the id '4' is already used in row 3"),
        ({"coords": SQUARE, "depot": 7}, "depot", "depot is 7; the row of a stop, 0 to 4, is needed"),
        ({"coords": SQUARE, "problem": "vrpx"}, "problem", "unknown problem 'vrpx'; the choices are"),
        ({"coords": SQUARE, "seconds": 0, "decode": "best"}, "decode", "unknown decoding strategy 'best'"),
        ({"coords": SQUARE, "solver": "magic"}, "solver", "unknown solver 'magic'; the choices are"),
        ({"coords": SQUARE, "solver": "tsiligirides"}, "solver", "cannot solve tsp"),
        ({"coords": [["1", 2], [3, 4]]}, "coords.0.0", "the request, row 0: coords is '1', not a number"),
        ({"coords": SQUARE, "second": 1}, "second", "'second' is not known; the keys are coords, latlon"),
        ({"latlon": [[91, 0], [0, 0]]}, None, "row 0"),
    ],
)  # fmt: skip
def test_bad_input_names_field_and_reason(server, body, field, words):
    response = post(server, "/solve", body)
    assert response.status_code == 422
    told = response.json()
    assert words in told["error"]
    assert field is None or told["field"] == field
    assert "\n" not in told["error"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"nothing", b'{"coords": [[NaN, 1], [1, Infinity]]}', b'{"coords": ' + b"[" * 5000,
             b'{"seed": ' + b"9" * 6000 + b"}",
             b'{"ids": ["\\ud800", "b"], "coords": [[0, 0], [1, 1]], "problem": "\\udfff"}']
)  # fmt: skip
def test_what_is_no_request_is_refused_politely(server, body):
    response = httpx.post(f"{server.url}/solve", content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    assert response.json()["error"]


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (b'{"coords": [[0, 0], [1, 1]]}', {}, 415, "send JSON with the header content-type: application/json"),
        (b"a=1", {"content-type": "application/x-www-form-urlencoded"}, 415, "declared as application/x-www-form-url"),
        (gzip.compress(b"{}"), {"content-encoding": "gzip"}, 415, "compressed with gzip; send it uncompressed"),
        (b'{"ids": ["caf\xe9"]}', {"content-type": "application/json"}, 400, "not UTF-8 at byte 13"),
        (b"[" * 100_000, {"content-type": "application/json"}, 400, "nested too deeply"),
    ],
    ids=["nothing", "form", "gzip", "latin", "deep"],
)
def test_a_body_that_cannot_be_read_is_told_why(server, body, headers, status, words):
    response = httpx.post(f"{server.url}/solve", content=body, headers=headers)
    assert (response.status_code, words in response.json()["error"]) == (status, True), response.text


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_too_large_is_answered_also_to_those_who_listen_only_at_the_end(server, declared):
    body = b" " * 5_000_000
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    headers = {"content-type": "application/json"}
    connection.request("POST", "/solve", body if declared else iter([body]), headers, encode_chunked=not declared)
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["limit"]) == (413, "body_kilobytes")
    connection.close()


def test_who_asks_before_sending_too_much_is_answered_at_once(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(
            b"POST /solve HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9000000\r\n"
            b"Expect: 100-continue\r\n\r\n"
        )
        assert client.recv(1000).startswith(b"HTTP/1.1 413")


@pytest.fixture(scope="module")
def narrow():
    """A server with small limits."""
    limits = {"body-kilobytes": 2, "nodes": 20, "seconds": 3, "instances": 2, "rollouts": 8, "queue": 1, "in-flight": 4}
    flags = [word for name, value in limits.items() for word in (f"--{name}", value)]
    started = Server("--long-workers", 1, "--constructors", 1, *flags)
    yield started.wait()
    started.end()


def test_limits_are_named_with_their_values(narrow):
    cases = [
        (413, "body_kilobytes", 2, "/solve", {"coords": many(200)}),
        (422, "nodes", 20, "/solve", {"coords": many(21)}),
        (422, "seconds", 3, "/solve", {"coords": SQUARE, "seconds": 3.5}),
        (422, "instances", 2, "/solve/batch", {"instances": [{"coords": SQUARE}] * 3}),
        (422, "rollouts", 8, "/solve", {"coords": SQUARE, "seconds": 0, "decode": "sample:9"}),
        (422, "nodes", 20, "/stops", {"name": "s.csv", "text": "x,y\n" + "1,2\n" * 21}),
    ]
    for status, limit, value, path, body in cases:
        response = post(narrow, path, body)
        told = response.json()
        assert (response.status_code, told["limit"], told["value"]) == (status, limit, value), told
    chunks = (b"x" * 1000 for _ in range(10))  # a body that does not declare its size
    refused = httpx.post(f"{narrow.url}/solve", content=chunks)
    assert (refused.status_code, refused.json()["limit"], refused.json()["value"]) == (413, "body_kilobytes", 2)


def test_too_many_requests_are_told_to_wait(narrow):
    statuses = []

    def ask(seconds):
        response = post(narrow, "/solve", {"coords": many(20), "seconds": seconds})
        statuses.append(response.status_code)

    def begin(*seconds):
        """One of each lane runs, the next one waits."""
        for each in seconds:
            threads.append(threading.Thread(target=ask, args=(each,)))
            threads[-1].start()
            time.sleep(0.15)

    threads = []
    begin(3, 3)
    refused = post(narrow, "/solve", {"coords": many(20), "seconds": 3})
    told = refused.json()
    assert (refused.status_code, told["limit"], told["value"]) == (429, "queue", 1)
    assert "the limit queue is 1" in told["error"]
    assert int(refused.headers["retry-after"]) >= 1
    begin(1, 1)
    refused = post(narrow, "/solve", {"coords": SQUARE, "seconds": 0})
    told = refused.json()
    assert (refused.status_code, told["limit"], told["value"]) == (429, "in_flight", 4)
    for thread in threads:
        thread.join()
    assert statuses == [200] * 4, "those that were taken are answered"


def test_a_token_is_asked_for_if_there_is_one_and_pages_of_an_origin_let_in(guarded):
    assert post(guarded, "/solve", {"coords": SQUARE, "seconds": 0}).status_code == 401
    wrong = {"authorization": "Bearer nothing"}
    refused = post(guarded, "/solve", {"coords": SQUARE, "seconds": 0}, headers=wrong)
    assert (refused.status_code, refused.json()["error"].split(";")[0]) == (401, "the given token is not known")
    right = {"authorization": f"Bearer {guarded.unlimited}"}
    assert post(guarded, "/solve", {"coords": SQUARE, "seconds": 0}, headers=right).status_code == 200
    assert httpx.get(f"{guarded.url}/").status_code == 200
    for origin, let_in in (("https://example.org", True), ("https://example.com", False)):
        asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
        first = httpx.options(f"{guarded.url}/solve", headers={"origin": origin} | asks)
        assert (first.status_code == 200) == let_in
        answer = post(guarded, "/solve", {"coords": SQUARE, "seconds": 0}, headers=right | {"origin": origin})
        assert (answer.headers.get("access-control-allow-origin") == origin) == let_in


def test_a_batch_is_answered_in_order_and_fails_as_a_whole(server):
    instances = [{"coords": many(n, n)} for n in (5, 9, 5)]
    for seconds in (0, 0.5):
        answers = post(server, "/solve/batch", {"instances": instances, "seconds": seconds}).json()["answers"]
        assert [len(answer["layout"]) for answer in answers] == [5, 9, 5]
    by_solver = {"instances": instances, "seconds": 0.3, "solver": "farthest-insertion"}
    answers = post(server, "/solve/batch", by_solver).json()["answers"]
    assert [answer["history"][0]["by"] for answer in answers] == ["farthest-insertion"] * 3
    bad = post(server, "/solve/batch", {"instances": [*instances, {"coords": SQUARE, "depot": 9}], "seconds": 0})
    assert bad.status_code == 422
    assert bad.json()["field"] == "instances.3.depot"


@pytest.mark.parametrize(
    ("wrong", "shared", "words", "field"),
    [
        ({"demand": [0, -1, 1], "capacity": 5}, {}, "instance 1, row 1: the demand is -1", "instances.1.demand"),
        ({"max_length": 5}, {"problem": "tsp"}, "instance 1: tsp has no maximum length", "instances.1.max_length"),
        ({}, {"problem": "vrpx"}, "instance 0: unknown problem 'vrpx'", "problem"),
        ({"demand": [0, 9, 1], "capacity": 1}, {}, "instance 1, row 1: stop '1' demands 9", "instances.1.demand"),
    ],
)
def test_a_batch_names_the_instance_and_its_field_however_it_is_solved(server, wrong, shared, words, field):
    body = {"instances": [{"coords": SQUARE[:3]}, {"coords": SQUARE[:3]} | wrong], **shared}
    for seconds in (0, 0.2):
        refused = post(server, "/solve/batch", body | {"seconds": seconds})
        assert refused.status_code == 422
        assert refused.json()["error"].startswith(words)
        assert refused.json()["field"] == field


def test_a_decoding_strategy_without_the_policy_is_refused(server):
    for path, body in (("/solve", {"coords": SQUARE}), ("/solve/batch", {"instances": [{"coords": SQUARE}]})):
        refused = post(server, path, body | {"seconds": 0, "decode": "augment:8", "policy": False})
        assert (refused.status_code, refused.json()["field"]) == (422, "decode")
        assert "leave one of them out" in refused.json()["error"]


def test_a_decoding_strategy_takes_no_seconds(server):
    answer = post(server, "/solve", {"coords": SQUARE, "decode": "greedy"})
    assert answer.status_code == 200, answer.text
    assert [event["by"] for event in answer.json()["history"]] == ["policy"]
    refused = post(server, "/solve", {"coords": SQUARE, "decode": "greedy", "seconds": 1})
    assert (refused.status_code, refused.json()["field"]) == (422, "decode")


def test_a_solver_that_decides_on_the_way_is_told_what_visits_bring(server):
    [row] = [p for p in httpx.get(f"{server.url}/problems").json()["problems"] if p["id"] == "spctsp"]
    assert len(row["solvers"]) == 3
    fields = httpx.get(f"{server.url}/random", params={"problem": "spctsp", "n": 20}).json()
    for solver in row["solvers"]:
        answer = post(server, "/solve", fields | {"solver": solver, "seconds": 1})
        assert answer.status_code == 200, answer.text
    hidden = {name: value for name, value in fields.items() if name != "real_prize"}
    refused = post(server, "/solve", hidden | {"solver": "reopt-all"})
    assert (refused.status_code, refused.json()["field"]) == (422, "real_prize")


def test_a_large_file_of_a_library_can_be_solved(server):
    draw = random.Random(1)
    rows = "".join(f"{i + 1} {draw.randrange(20000)} {draw.randrange(20000)}\n" for i in range(1000))
    text = f"NAME: a\nTYPE: TSP\nDIMENSION: 1000\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n{rows}EOF\n"
    stops = post(server, "/stops", {"name": "a.tsp", "text": text})
    assert len(stops.content) < 100_000
    answer = post(server, "/solve", stops.json() | {"seconds": 0}).json()
    assert answer["cost"] == int(answer["cost"]), "lengths are rounded as the library does"


def test_head_is_answered_as_get_without_the_body(server):
    for path in ("/", "/healthz", "/livez", "/docs", "/page/main.js", "/problems"):
        whole, head = httpx.get(server.url + path), httpx.head(server.url + path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(whole.content))
    assert httpx.head(f"{server.url}/solve").status_code == 405


@pytest.mark.parametrize(
    ("method", "path", "status", "words", "allowed"),
    [
        ("GET", "/v1/solv", 404, "/v1/solv: there is no such path; /docs shows those that are", None),
        ("POST", "/v1/solve/", 404, "/v1/solve/: there is no such path; /docs shows those that are", None),
        ("GET", "/page/nothing.js", 404, "/page/nothing.js: there is no such path; /docs shows those that are", None),
        ("GET", "/solve", 405, "/solve: GET is not possible here; use POST", "POST"),
        ("PUT", "/v1/jobs", 405, "/v1/jobs: PUT is not possible here; use GET, POST", "GET, POST"),
        ("PUT", "/v1/jobs/a", 405, "/v1/jobs/a: PUT is not possible here; use DELETE, GET", "DELETE, GET"),
        ("POST", "/livez", 405, "/livez: POST is not possible here; use GET", "GET"),
        ("GET", "/v1/jobs/" + 50 * "a", 404, "no such job: its id is wrong", None),
    ],
)
def test_a_request_that_nobody_takes_is_told_what_would_be(server, method, path, status, words, allowed):
    """As every refusal is; never sent elsewhere, to an address that a proxy before the service would not know."""
    told = httpx.request(method, server.url + path)
    assert told.status_code == status
    assert told.json()["error"].startswith(words)
    assert told.headers.get("allow") == allowed


def test_requests_that_arrive_together_share_a_batch(server):
    def observed():
        return server.metric('routelearn_batch_size_count{lane="construct"}')

    before, size = observed(), server.metric('routelearn_batch_size_sum{lane="construct"}')
    post(server, "/solve/batch", {"instances": [{"coords": many(20, i)} for i in range(40)], "seconds": 0})
    assert server.metric('routelearn_batch_size_sum{lane="construct"}') - size == 40
    assert observed() - before < 10, "40 constructions took few passes"


def test_a_stream_tells_each_better_solution_and_then_the_last(server):
    events = []
    body = {"coords": many(60), "seconds": 1.5}
    with httpx.stream("POST", f"{server.url}/solve/stream", json=body, timeout=30) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        kind = None
        for line in response.iter_lines():
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                events.append((kind, json.loads(line[6:])))
    kinds = [kind for kind, _ in events]
    assert kinds[-1] == "done"
    assert set(kinds[:-1]) == {"better"}
    costs = [answer["cost"] for _, answer in events]
    assert all(one > other for one, other in itertools.pairwise(costs[:-1]))
    assert costs[-1] == min(costs)
    refused = post(server, "/solve/stream", {"coords": []})
    assert refused.status_code == 422, "what is wrong is told before a stream begins"


@pytest.mark.parametrize("path", ["/solve", "/solve/stream", "/solve/batch"])
def test_a_client_that_goes_away_stops_its_search(server, path):
    before = server.metric("routelearn_cancelled_total")
    body = {"coords": many(300)} if path != "/solve/batch" else {"instances": [{"coords": many(120)}] * 4}
    try:
        with httpx.stream(
            "POST", server.url + path, json=body | {"seconds": 30}, timeout=httpx.Timeout(1.0)
        ) as response:
            for _ in response.iter_bytes():
                break
    except httpx.ReadTimeout:
        pass
    end = time.monotonic() + 20  # of the 30 that the search would take
    while time.monotonic() < end:
        health = httpx.get(f"{server.url}/healthz")
        assert health.status_code == 200, "others are served all the while"
        if server.metric("routelearn_cancelled_total") > before and health.json()["workers"]["long"]["busy"] == 0:
            return
        time.sleep(0.1)
    raise AssertionError("the search goes on")


def test_files_are_read_with_the_words_of_the_command_line(server):
    from routelearn.data import csv_file
    from routelearn.serve.schemas import bodies

    text = "x,y\n1,2\n3,four\n"
    told = post(server, "/stops", {"name": "stops.csv", "text": text}).json()["error"]
    with pytest.raises(ValueError, match="line 3") as error:
        csv_file.parse(text, "stops.csv")
    assert told == str(error.value)
    vrp = (
        "NAME: t\nTYPE: CVRP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\nCAPACITY: 9\nNODE_COORD_SECTION\n1 0 0\n2 3 4\n"
        "3 6 8\nDEMAND_SECTION\n1 0\n2 4\n3 5\nDEPOT_SECTION\n1\n-1\nEOF\n"
    )
    fields = post(server, "/stops", {"name": "t.vrp", "text": vrp}).json()
    bodies().file.model_validate(fields)
    assert post(server, "/solve", fields | {"seconds": 0.1}).json()["cost"] == 20
    text = "x;y;Fahrer;Menge\n0;0;;\n1;2;Jo;3\n3;4;Al;2\n"
    fields = post(server, "/stops", {"name": "stops.csv", "text": text}).json()
    assert (fields["notes"], fields["demand"]) == (["not used: Fahrer"], [0, 3, 2])
    answer = post(server, "/solve", fields | {"seconds": 0, "capacity": 5}).json()
    assert answer["notes"] == ["not used: Fahrer"]
    told = post(server, "/stops", {"name": "a.csv", "text": "x,y,id\n0,0,M\ufffdller\n1,2,b\n"}).json()["error"]
    assert told == "a.csv, line 2: not utf-8 text; save the file as UTF-8"


def test_large_and_long_requests_do_not_hold_up_small_ones(server):
    threads = [
        threading.Thread(target=post, args=(server, "/solve", {"coords": many(500), "seconds": 3})) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    began = time.monotonic()
    assert post(server, "/solve", {"coords": SQUARE, "seconds": 0}).status_code == 200
    assert post(server, "/solve", {"coords": SQUARE, "seconds": 0.1}).status_code == 200
    spent = time.monotonic() - began
    for thread in threads:
        thread.join()
    assert spent < 3


def test_metrics_say_which_text_format_they_are(server):
    response = httpx.get(f"{server.url}/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'routelearn_workers_ready{lane="construct"} 1.0' in response.text.splitlines()


# --------------------------------------------------------------------------------- files as dispatchers have them


def as_bytes(text, encoding):
    return {"name": "tour.csv", "base64": base64.b64encode(text.encode(encoding)).decode()}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_with_a_rule_is_a_round_or_refused_in_the_words_of_the_command_line(server, case):
    text, encoding, told = REFUSED[case]
    answer = post(server, "/stops", as_bytes(text, encoding))
    found, wrong = None, ""
    try:
        found = parse_round(text.encode(encoding), "tour.csv")
    except InputError as error:
        wrong = str(error)
    if wrong:
        assert (answer.status_code, answer.json()["error"]) == (422, wrong)
        return
    if found is not None:
        assert len(answer.json()["round"]["stops"]) == len(found.stops)
        return
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("tour.csv")
    assert told in answer.json()["error"]


@pytest.mark.parametrize("case", SOLVED)
def test_a_file_is_read_and_solved_with_its_notes(server, case):
    text, encoding, options, visited, notes = SOLVED[case]
    fields = post(server, "/stops", as_bytes(text, encoding)).json()
    answer = post(server, "/solve", {**fields, **options, "seconds": 0}).json()
    assert sum(len(route["stops"]) for route in answer["routes"]) == visited
    assert answer["notes"] == [note.replace("line 7", "row 5") for note in notes]


def test_a_file_comes_as_text_or_as_bytes_and_not_as_both(server):
    for body, told in (
        ({}, "give either text or base64"),
        ({"text": "x,y\n1,2\n", "base64": "eA=="}, "give either text or base64"),
        ({"base64": "?"}, "base64 holds something else than base64"),
        (
            as_bytes("x,y\n1,\u0416\u0416\u0416\u0416\n", "cp1251"),
            "tour.csv, line 2: not utf-8 text; save the file as UTF-8",
        ),
    ):
        answer = post(server, "/stops", {"name": "tour.csv"} | body)
        assert (answer.status_code, told in answer.json()["error"]) == (422, True)
