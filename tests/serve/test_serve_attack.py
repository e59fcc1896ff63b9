"""The service against clients that mean harm or are broken: others are answered, and memory stays bounded."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from requesting import SQUARE, many, post

httpx = pytest.importorskip("httpx")
pytestmark = pytest.mark.extra

HEAD = b"GET /livez HTTP/1.1\r\nHost: x\r\n"


def connect(server, buffer=None):
    client = socket.socket()
    if buffer is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    client.settimeout(20)
    client.connect(("127.0.0.1", server.port))
    return client


def request(path, body, kind="application/json"):
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def answer(client):
    """Status, headers and body of a connection that the server closes."""
    received = b""
    while chunk := client.recv(65536):
        received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.lower(), body


def closed(client, seconds):
    """Whether the server ends the connection in time."""
    client.settimeout(seconds)
    try:
        while client.recv(2**20):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def megabytes(pid, what="VmRSS"):
    """Memory of a process now, or the most it had (VmHWM)."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(what)]
    return int(line.split()[1]) / 1024


class Watch:
    """How long /livez takes while something else happens."""

    def __init__(self, server):
        self.server, self.seconds, self.over = server, [], threading.Event()
        self.thread = threading.Thread(target=self.ask)

    def ask(self):
        with httpx.Client() as client:
            while not self.over.is_set():
                began = time.monotonic()
                assert client.get(f"{self.server.url}/livez", timeout=60).status_code == 200
                self.seconds.append(time.monotonic() - began)
                self.over.wait(0.02)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


@pytest.fixture(scope="module")
def hurried():
    """A server that waits less than usual."""
    from starting import Server

    flags = ("--head-seconds", 2, "--unread-seconds", 2, "--seconds", 20)
    started = Server("--long-workers", 1, "--constructors", 1, *flags)
    yield started.wait()
    started.end()


def at_once(work, count):
    """Do it in so many threads; when all are done."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ------------------------------------------------------------------------------------------------ heads


@pytest.mark.parametrize("piece", [b"a" * 65536, b"X-A: b\r\n" * 8192], ids=["one header", "many headers"])
def test_an_endless_head_is_refused_and_nobody_waits(hurried, piece):
    before, told = megabytes(hurried.process.pid), []

    def flood():
        with connect(hurried) as client:
            try:
                client.sendall(HEAD + b"X-A: ")
                for _ in range(1000):
                    client.sendall(piece)
            except OSError:
                pass
            told.append(client.recv(1000))

    with Watch(hurried) as watch:
        at_once(flood, 4)
    assert all(one.startswith(b"HTTP/1.1 431") and b'"limit": "head_kilobytes"' in one for one in told), told
    assert len(told) == 4
    assert max(watch.seconds) < 2
    assert megabytes(hurried.process.pid) < before + 30


@pytest.mark.parametrize("sent", [b"", b"GET /li", HEAD + b"X-", b"\r\n"], ids=["nothing", "line", "header", "blank"])
@pytest.mark.parametrize("first", [False, True], ids=["new", "kept alive"])
def test_a_head_that_does_not_end_is_given_up(hurried, sent, first):
    with connect(hurried) as client:
        if first:
            client.sendall(HEAD + b"\r\n")
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
        client.sendall(sent)
        began, received = time.monotonic(), b""
        while chunk := client.recv(1000):
            received += chunk
        assert time.monotonic() - began < 8
        assert (b"408" in received) == bool(sent)
        assert not sent or json.loads(received.partition(b"\r\n\r\n")[2])["limit"] == "head_seconds"


def test_a_head_that_comes_bit_by_bit_is_given_up_all_the_same(hurried):
    with connect(hurried) as client:
        client.sendall(HEAD)
        began = time.monotonic()
        with pytest.raises(OSError, match=r"reset|Broken pipe"):  # noqa: PT012
            while time.monotonic() - began < 15:
                client.sendall(b"X-A: b\r\n")
                time.sleep(0.2)
        assert time.monotonic() - began < 10


def test_heads_within_the_limit_are_answered_also_one_after_the_other(server):
    long = HEAD + b"X-A: " + b"a" * 30_000 + b"\r\n\r\n"
    with connect(server) as client:
        for sent in (long, long, long + HEAD + b"\r\n"):
            client.sendall(sent)
            received = b""
            while received.count(b'{"status":"ok"}') < sent.count(b"GET"):
                received += client.recv(10_000)
            assert received.count(b"HTTP/1.1 200") == sent.count(b"GET")


@pytest.mark.parametrize(
    "sent",
    [
        b"NONSENSE\r\n\r\n",
        b"GET /livez HTTP/9.9\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /solve HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n",
        b"POST /solve HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["nonsense", "version", "zero", "length", "chunks"],
)
def test_what_is_no_http_is_told_so_as_all_else(server, sent):
    with connect(server) as client:
        client.sendall(sent)
        status, head, body = answer(client)
    assert status == 400
    assert b"content-type: application/json" in head
    assert set(json.loads(body)) == {"error", "field", "limit", "value"}


# ----------------------------------------------------------------------------------------------- bodies


def test_a_table_of_too_many_columns_is_refused_at_once(server):
    names, row = ",".join(f"c{i}" for i in range(20_000)), ",1" * 20_000
    body = {"name": "wide.csv", "text": f"x,y,{names}\n1,2{row}\n3,4{row}\n"}
    began = time.monotonic()
    refused = post(server, "/stops", body)
    assert time.monotonic() - began < 3
    assert refused.status_code == 422
    assert refused.json()["error"].startswith("wide.csv, line 1: 20,002 columns; at most 1,000 are read")


def test_megabytes_of_json_are_read_beside_the_loop(server):
    body = {"instances": [{"coords": many(1500, row)} for row in range(60)], "seconds": 0, "problem": "nothing"}
    data = json.dumps(body).encode()
    assert 3e6 < len(data) < 4e6
    statuses = []

    def ask():
        headers = {"content-type": "application/json"}
        response = httpx.post(f"{server.url}/solve/batch", content=data, headers=headers, timeout=60)
        statuses.append(response.status_code)

    with Watch(server) as watch:
        at_once(ask, 6)
    assert statuses == [422] * 6
    assert max(watch.seconds) < 1


def test_the_loop_turns_while_a_large_body_is_read():
    from pydantic import TypeAdapter

    from routelearn.serve.parsing import Parser
    from routelearn.serve.schemas import bodies

    data = json.dumps({"instances": [{"coords": many(1500, row)} for row in range(60)]}).encode()
    turns = 0

    async def read():
        nonlocal turns
        reading = asyncio.create_task(Parser().read(TypeAdapter(bodies().batch), data))
        while not reading.done():
            await asyncio.sleep(0)
            turns += 1
        return await reading

    assert len(asyncio.run(read())["instances"]) == 60
    assert turns > 3, "one to begin and one to end would be a read on the loop itself"


@pytest.mark.parametrize("given", [{"metric": "EUC_2D"}, {}], ids=["metric", "latlon"])
def test_a_batch_whose_matrices_would_fill_the_memory_is_refused(server, given):
    instance = {"coords" if given else "latlon": many(1999), **given}
    refused = post(server, "/solve/batch", {"instances": [instance] * 6, "seconds": 1})
    told = refused.json()
    assert (refused.status_code, told["limit"], told["value"]) == (422, "legs", 20_000_000)
    assert told["error"].startswith(f"{6 * 1999**2} lengths between the stops of all instances")


@pytest.mark.slow
def test_the_largest_batch_takes_no_more_memory_than_the_limit_lets_it(new_server):
    server = new_server()
    instance = {"coords": [[round(x, 3), round(y, 3)] for x, y in many(1999)], "metric": "EUC_2D"}
    before = {pid: megabytes(pid, "VmHWM") for pid in server.worker_pids()}
    answered = post(server, "/solve/batch", {"instances": [instance] * 5, "seconds": 1})
    assert answered.status_code == 200, answered.text
    assert max(megabytes(pid, "VmHWM") - most for pid, most in before.items()) < 1000


# ---------------------------------------------------------------------------------------------- answers


def test_clients_that_read_nothing_are_disconnected_and_hold_no_memory(hurried):
    """Each solution has a megabyte: the names of its stops are long."""
    ids = [f"{i:0>190}" for i in range(1500)]
    before, clients = megabytes(hurried.process.pid), []
    for row in range(8):
        clients.append(connect(hurried, 4096))
        clients[-1].sendall(request("/solve/stream", {"coords": many(1500, row), "ids": ids, "seconds": 3}))
    most, end = 0.0, time.monotonic() + 60
    while hurried.metric("routelearn_in_flight") > 1 and time.monotonic() < end:  # one is the question itself
        most = max(most, megabytes(hurried.process.pid))
        time.sleep(0.2)
    assert time.monotonic() < end, "requests that nobody reads are still in flight"
    assert most < before + 150
    for client in clients:
        assert closed(client, 5)
        client.close()


def test_a_client_that_reads_slowly_gets_its_whole_answer(hurried):
    body = {"coords": many(1500), "ids": [f"{i:0>190}" for i in range(1500)], "seconds": 0}
    with connect(hurried, 4096) as client:
        client.sendall(request("/solve", body).replace(b"Host: x", b"Host: x\r\nConnection: close"))
        received, began = b"", time.monotonic()
        while chunk := client.recv(40_000 if time.monotonic() - began < 6 else 2**20):
            received += chunk
            time.sleep(0.2 if time.monotonic() - began < 6 else 0)
    head, _, rest = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert len(json.loads(rest)["routes"][0]["stops"]) == 1500


def test_the_word_bearer_may_be_written_in_any_case(guarded):
    for scheme, status in (("Bearer", 200), ("bearer", 200), ("BEARER", 200), ("Basic", 401)):
        headers = {"authorization": f"{scheme} {guarded.unlimited}"}
        assert post(guarded, "/solve", {"coords": SQUARE, "seconds": 0}, headers=headers).status_code == status


def test_wrong_tokens_and_ids_of_jobs_are_told_late_and_take_nobodys_room(guarded):
    from routelearn.serve.limits import GUESS_SECONDS

    right = {"authorization": f"Bearer {guarded.unlimited}"}
    for headers, path, status in (({}, "/v1/jobs", 401), (right, "/v1/jobs/none", 404), (right, "/v1/problems", 200)):
        began = time.perf_counter()
        answered = httpx.get(guarded.url + path, headers=headers)
        assert answered.status_code == status
        assert status == 200 or time.perf_counter() - began >= GUESS_SECONDS
    with httpx.Client() as client, connect(guarded) as trying:
        trying.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        told = [client.get(f"{guarded.url}/metrics").text for _ in range(5)]
        assert answer(trying)[0] == 401
    assert all("\nroutelearn_in_flight 1.0\n" in one for one in told), "only who asks for the counters is counted"


def test_paths_open_without_a_token_are_those_of_the_docs(guarded):
    from routelearn.serve.guard import OPEN

    docs = (Path(__file__).parents[2] / "docs" / "guides" / "serve.md").read_text()
    [line] = [line for line in docs.replace("\n", " ").split(". ") if "open without it" in line]
    for path in (*OPEN, "/page/main.js"):
        assert httpx.get(guarded.url + path).status_code == 200
        assert f"`{path}`" in line or path == "/page/main.js"
    for path in ("/problems", "/models", "/random"):
        assert httpx.get(guarded.url + path).status_code == 401


def test_the_soak_in_its_short_form():
    """All clients of `make attack` for some seconds, with kills. A busy machine decides times: they are not judged."""
    script = Path(__file__).parents[2] / "benchmarks" / "attack.py"
    limits = ("--livez", "30", "--growth", "1")
    command = [sys.executable, str(script), "--minutes", "0.1", "--warm", "2", "--kill", "3", *limits]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    honest, others = ("construct", "search", "stream", "batch", "job", "alive"), ("abort", "half_head", "heavy_batch")
    for client in (*honest, *others, "unread", "unfetched", "poll", "delete_others", "try_tokens", "over_quota"):
        assert f"\n{client} " in done.stdout
