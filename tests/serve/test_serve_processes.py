"""The service as a set of processes: workers that die, the end of it, its start, models of one's own."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time

import pytest
from requesting import many, post

httpx = pytest.importorskip("httpx")
pytestmark = pytest.mark.extra


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_every_request_answered(new_server):
    server = new_server()
    stop, statuses = threading.Event(), []

    def ask(seconds):
        while not stop.is_set():
            statuses.append(post(server, "/solve", {"coords": many(20), "seconds": seconds}).status_code)

    threads = [threading.Thread(target=ask, args=(s,)) for s in (0, 0, 0, 0.2, 2)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    workers = server.worker_pids()
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    time.sleep(1)
    stop.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a request was lost"
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) > 5
    server.wait()
    assert server.metric("routelearn_worker_deaths_total") == len(workers)


@pytest.mark.slow
def test_sigterm_finishes_what_is_in_flight(new_server):
    server = new_server("--grace", 10)
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(post(server, "/solve", {"coords": many(100), "seconds": 2}).status_code)
    )
    thread.start()
    time.sleep(0.7)
    workers = server.worker_pids()
    os.kill(server.process.pid, signal.SIGTERM)
    thread.join(20)
    assert answers == [200]
    server.process.wait(10)
    time.sleep(0.2)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers), "no worker is left behind"


@pytest.mark.slow
def test_what_outlasts_the_grace_time_ends_as_it_should(new_server):
    """A stream that runs, one that waits for its worker, and a request that waits behind them."""
    server = new_server("--grace", 1)
    texts, answers, began = {}, [], threading.Event()

    def listen(name):
        body = {"coords": many(100), "seconds": 50}
        with httpx.stream("POST", f"{server.url}/solve/stream", json=body, timeout=60) as answer:
            texts[name] = (answer.status_code, "")
            for part in answer.iter_text():
                texts[name] = (answer.status_code, texts[name][1] + part)
                began.set()

    def ask():
        answers.append(post(server, "/solve", {"coords": many(100), "seconds": 30}))

    threads = [threading.Thread(target=listen, args=(name,)) for name in ("running", "waiting")]
    threads.append(threading.Thread(target=ask))
    for thread in threads:
        thread.start()
        assert began.wait(30), "the first one runs"
    time.sleep(0.7)
    ended = time.monotonic()
    os.kill(server.process.pid, signal.SIGTERM)
    for thread in threads:
        thread.join(20)
    status, text = texts["running"]
    last = text.strip().split("\n\n")[-1]
    assert status == 200
    assert last.startswith("event: failed\ndata: ")
    assert "shutting down" in json.loads(last.partition("data: ")[2])["error"]
    status, text = texts["waiting"]
    assert (status, "shutting down" in json.loads(text)["error"]) == (503, True)
    assert [answer.status_code for answer in answers] == [503]
    assert "shutting down" in answers[0].json()["error"]
    server.process.wait(15)
    assert time.monotonic() - ended < 15, "it does not wait for the search"
    assert "Traceback" not in server.process.stderr.read()


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_what_is_told_at_the_start_is_so(server):
    import subprocess
    import sys

    from starting import START

    def started(*flags):
        return subprocess.Popen(
            [sys.executable, "-c", START, *flags], stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    taken = started("--port", str(server.port))
    _, told = taken.communicate(timeout=60)
    assert taken.returncode != 0
    assert "routelearn on" not in told
    assert f"cannot listen on http://127.0.0.1:{server.port}/" in told
    for host, begins in (("127.0.0.1", "http://127.0.0.1:"), ("::1", "http://[::1]:")):
        if ":" in host and not has_ipv6():
            continue
        process = started("--host", host, "--port", "0", "--long-workers", "1", "--constructors", "1")
        try:
            url = process.stderr.readline().split()[2]
            assert url.startswith(begins)
            assert httpx.get(f"{url}livez", timeout=60).status_code == 200
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)
            process.stderr.close()


@pytest.mark.slow
def test_a_model_of_ones_own_serves_its_problem(new_server, tmp_path):
    from routelearn import load_model
    from routelearn.models.model_file import save

    path = str(tmp_path / "mine.safetensors")
    save(path, load_model(path="tsp-20"))
    server = new_server("--model", path)
    problems = {row["id"]: row for row in httpx.get(f"{server.url}/problems").json()["problems"]}
    assert problems["tsp"]["model"] == path
    assert problems["cvrp"]["model"].startswith("cvrp"), "others keep what ships"
    assert path in [row["name"] for row in httpx.get(f"{server.url}/models").json()["models"]]
    assert post(server, "/solve", {"coords": many(10), "decode": "greedy"}).status_code == 200
    shown = post(server, "/think", {"coords": many(10)}).json()
    assert shown["model"]["sizes"] == [20]


PARENT_ONLY = """
import multiprocessing
import routelearn
from routelearn.problems.tsp import TSP

if multiprocessing.parent_process() is not None:
    raise RuntimeError("no licence for workers")
routelearn.register(type("Mine", (TSP,), {"name": "mine"})())
"""


@pytest.mark.slow
def test_workers_that_all_die_at_the_start_end_the_service_with_their_words(new_server, tmp_path):
    plugin = tmp_path / "parent_only.py"
    plugin.write_text(PARENT_ONLY)
    server = new_server("--plugin", plugin, wait=False)
    assert server.process.wait(120) == 2
    said = server.process.stderr.read()
    assert "starts, after 4 tries: InputError: ROUTELEARN_PLUGINS: " in said
    assert said.rstrip().endswith("RuntimeError: no licence for workers")
    assert "Traceback" not in said
