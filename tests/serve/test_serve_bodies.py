"""Any body at all is answered or refused, never a failure of the service."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import os
import threading
import time
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from requesting import SQUARE

from routelearn.problems import PROBLEMS
from routelearn.runtime.garbage import collected_later

parsing = pytest.importorskip("routelearn.serve.parsing")
schemas = pytest.importorskip("routelearn.serve.schemas")
TypeAdapter = pytest.importorskip("pydantic").TypeAdapter
RequestValidationError = pytest.importorskip("fastapi.exceptions").RequestValidationError
httpx = pytest.importorskip("httpx")
pytestmark = pytest.mark.extra

numbers = st.one_of(
    st.floats(-10, 10), st.integers(-5, 5), st.sampled_from([1e300, -1e-300, 10**30, 0]), st.none(), st.text(max_size=3)
)
scalars = st.one_of(numbers, st.booleans())
columns = st.one_of(st.lists(numbers, max_size=6), scalars)
places = st.one_of(
    st.lists(st.lists(st.floats(-5, 5), min_size=2, max_size=2), max_size=6),
    st.lists(st.lists(numbers, max_size=3), max_size=6),
    scalars,
)
VALID = [
    {"coords": SQUARE},
    {"latlon": SQUARE, "ids": list("abcde")},
    {"matrix": [[abs(i - j) for j in range(4)] for i in range(4)]},
    {"coords": SQUARE, "demand": [0, 1, 2, 3, 4], "capacity": 5},
    {"coords": SQUARE, "prize": [0, 1, 2, 3, 4], "max_length": 2},
    {"coords": SQUARE, "prize": [0, 1, 2, 3, 4], "penalty": [0, 1, 1, 1, 1], "min_prize": 3},
]
wild = st.fixed_dictionaries(
    {"seconds": st.sampled_from([0, 0, 0, 0.01, -1, "x", None, 1e9])},
    optional={
        "coords": places, "latlon": places, "matrix": places, "demand": columns, "prize": columns, "penalty": columns,
        "real_prize": columns, "capacity": scalars, "max_length": scalars, "min_prize": scalars,
        "ids": st.one_of(st.lists(st.one_of(st.text(max_size=3), st.integers()), max_size=6), scalars),
        "depot": scalars, "problem": st.one_of(st.sampled_from(sorted(PROBLEMS)), st.text(max_size=5)), "seed": scalars,
        "policy": scalars,
        "decode": st.sampled_from(["greedy", "sample:2", "beam:2", "augment:8", "", "sample:0", None]),
        "solver": st.sampled_from([None, None, "savings", "nearest-neighbour", "x"]), "unknown": scalars,
    },
)  # fmt: skip

tame = st.builds(
    lambda valid, body, kept: valid | {"seconds": 0} | {name: body[name] for name in list(body)[1 : kept + 1]},
    st.sampled_from(VALID), wild, st.integers(0, 2),
)  # fmt: skip
bodies = st.one_of(wild, tame)


WRONG_EVERYWHERE = {
    "places": {"coords": [["a", "b"]] * 50_000},
    "names": {"coords": SQUARE, "ids": [[]] * 50_000},
    "amounts": {"coords": SQUARE, "demand": ["x"] * 50_000},
    "lengths": {"matrix": [["x"] * 200] * 200},
    "keys": {f"key{i}": 1 for i in range(50_000)},
}


@pytest.mark.parametrize("what", WRONG_EVERYWHERE)
def test_a_body_that_is_wrong_everywhere_has_one_error(what):
    """A million of them took 4 GB, and the event loop waited seconds for a list of them."""
    given = WRONG_EVERYWHERE[what]
    kinds = schemas.bodies()
    for kind, body in ((kinds.taken("/solve"), given), (kinds.batch, {"instances": [given] * 3})):
        with pytest.raises(RequestValidationError) as caught:
            parsing._fields(TypeAdapter(kind), json.dumps(body).encode())
        assert 1 <= len(caught.value.errors()) <= 2  # an id is text or a number: one for each


LONG = " " * parsing.SMALL  # so that it is read in pieces
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(values, st.sampled_from([1, 5, 32 * 1024]), st.data())
def test_json_in_pieces_is_the_same_json(value, piece, data):
    """And what is none is refused with the same words at the same place."""
    text = LONG + json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    at = data.draw(st.integers(parsing.SMALL, len(text)))
    damaged = text[:at] + data.draw(st.sampled_from(["", ",", "]", "[", '"', "}", "1", " "])) + text[at + 1 :]
    for one in (text, damaged, damaged + "\n"):
        body = one.encode("utf-8", "surrogatepass")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(parsing, "PIECE", piece)
            found, expected = told(parsing.loads, body), told(json.loads, body)
        # Where a piece ends at a comma, Python's words for it differ.
        assert found == expected or (piece <= 5 and found[0] is expected[0] is json.JSONDecodeError)


def told(loads, body):
    try:
        return "read", loads(body)
    except json.JSONDecodeError as error:
        return json.JSONDecodeError, error.msg, error.pos


def longest_pause(loads, text):
    """The longest stretch in which another thread could not run while a text is read."""
    seen, done = [], threading.Event()

    def watch():
        while not done.is_set():
            seen.append(time.perf_counter())

    thread = threading.Thread(target=watch)
    with collected_later():  # as the service does
        thread.start()
        loads(text)
        done.set()
        thread.join()
    return max(after - before for before, after in pairwise(seen))


def test_a_large_body_leaves_the_interpreter_to_others():
    """Four megabytes of places, numbers or instances hold up other threads for half as long as one call, or less."""
    pairs, flat = [[0.1234, 0.5678]] * 200_000, [1] * 1_900_000
    for body in ({"coords": pairs}, {"demand": flat}, {"instances": [{"coords": pairs[:2000]}] * 100}):
        text = json.dumps(body).encode()
        ours, whole = math.inf, math.inf
        for _ in range(12):  # on a busy machine the other thread may wait for a processor, too
            ours, whole = min(ours, longest_pause(parsing.loads, text)), min(whole, longest_pause(json.loads, text))
            if ours < whole / 2:
                break
        assert ours < whole / 2


def test_a_large_body_leaves_no_lists_for_the_collector():
    """Its next pass over them, and giving them back, would each hold the event loop."""
    body = json.dumps({"instances": [{"coords": [[0.5, 1]] * 2000, "matrix": [[0.5] * 50] * 50}] * 10}).encode()
    adapter = TypeAdapter(schemas.bodies().batch)

    def tracked():
        gc.collect()
        return len(gc.get_objects())

    before = tracked()
    fields = asyncio.run(parsing.Parser().read(adapter, body))
    assert tracked() - before < 1000
    assert fields["instances"][9]["coords"].tolist() == [[0.5, 1.0]] * 2000
    assert [row.tolist() for row in fields["instances"][9]["matrix"]] == [[0.5] * 50] * 50


def only_2xx_and_4xx(server, examples):
    client = httpx.Client(base_url=server.url, timeout=60)
    seen = {}

    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(
        bodies, st.sampled_from(["/v1/solve", "/solve", "/solve/stream", "/v1/solve/batch", "/v1/jobs"]), st.booleans()
    )
    def ask(body, path, several):
        if path == "/v1/solve/batch" or (path == "/v1/jobs" and several):
            options = ("seconds", "problem", "seed", "policy", "decode", "solver")
            instance = {name: value for name, value in body.items() if name not in options}
            body = {name: value for name, value in body.items() if name in options} | {"instances": [instance] * 2}
        response = client.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
        assert 200 <= response.status_code < 300 or 400 <= response.status_code < 500, (response.text, body)
        seen[response.status_code // 100] = seen.get(response.status_code // 100, 0) + 1
        if response.status_code == 202 and several:
            assert client.delete(f"{path}/{response.json()['id']}").status_code == 204
        if response.status_code >= 400:
            assert response.json()["error"]

    ask()
    assert set(seen) == {2, 4}, "both kinds were met"
    print(f"{sum(seen.values())} bodies: {seen[2]} answered, {seen[4]} refused")


def test_any_body_is_answered_or_refused(server):
    only_2xx_and_4xx(server, 250)


@pytest.mark.slow
def test_many_bodies_are_answered_or_refused(server):
    """Two thousand, or as many as the variable BODIES says; `make fuzz` damages others."""
    only_2xx_and_4xx(server, int(os.environ.get("BODIES", "2000")))
