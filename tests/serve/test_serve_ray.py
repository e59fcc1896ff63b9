"""The service on Ray Serve: a real cluster of two nodes on this machine, replicas on both, and one of them killed."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from routelearn.errors import InputError
from routelearn.serve.limits import Limits
from routelearn.serve.on_ray import Scale, load_serve

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["--replicas", "1", "--max-replicas", "2", "--target-requests", "1", "--upscale-delay", "1"]
FLAGS += ["--nodes", "20", "--grace", "8"]
SQUARE = [[0.1, 0.2], [0.9, 0.3], [0.8, 0.9], [0.2, 0.7], [0.5, 0.5]]


def command(*arguments):
    from routelearn.cli import command

    return command("serve").main(args=list(arguments), standalone_mode=False)


def test_without_ray_serve_the_command_says_what_to_install(monkeypatch):
    pytest.importorskip("uvicorn")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'pip install "routelearn\[cluster\]"') as error:
        command("--on", "ray")
    assert "\n" not in str(error.value)


def test_ray_without_its_serve_part_says_the_same(monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.delattr(ray, "serve", raising=False)
    monkeypatch.setitem(sys.modules, "ray.serve", None)
    with pytest.raises(InputError, match=r'Ray Serve is not installed: pip install "routelearn\[cluster\]"'):
        load_serve()


def test_flags_of_the_cluster_are_refused_where_nobody_reads_them():
    pytest.importorskip("uvicorn")
    with pytest.raises(InputError, match="--max-replicas is for --on ray"):
        command("--max-replicas", "3")
    with pytest.raises(InputError, match="give one port for all nodes"):
        command("--on", "ray", "--port", "0")
    with pytest.raises(InputError, match="max-replicas 1 is below replicas 2"):
        Scale(replicas=2, max_replicas=1)


def test_replicas_are_fixed_or_follow_the_load():
    fixed = Scale(replicas=3, replica_cpus=2).options(Limits(in_flight=100), 10)
    assert fixed["num_replicas"] == 3
    assert fixed["ray_actor_options"] == {"num_cpus": 2}
    assert fixed["max_ongoing_requests"] > 100, "the replica itself refuses what is over its limit, and names it"
    assert "autoscaling_config" not in fixed
    follows = Scale(replicas=1, max_replicas=4, target_requests=5).options(Limits(), 10)
    assert "num_replicas" not in follows
    config = follows["autoscaling_config"]
    assert (config["min_replicas"], config["max_replicas"], config["target_ongoing_requests"]) == (1, 4, 5)


@pytest.fixture
def cluster(monkeypatch):
    """Two nodes with one processor each."""
    pytest.importorskip("ray.serve", reason="needs routelearn[cluster]")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # as if the package were installed on every node
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.second = made.add_node(num_cpus=1)
    made.wait_for_nodes()
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    yield made
    made.shutdown()


@pytest.fixture
def on_ray(cluster):
    """The command itself in a process of its own."""
    httpx = pytest.importorskip("httpx")
    import subprocess

    from starting import START

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", START, "--on", "ray", "--port", str(port), *FLAGS],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
    end = time.monotonic() + 180
    while time.monotonic() < end:
        assert process.poll() is None, process.stderr.read()
        try:
            if client.get("/healthz").status_code == 200:
                break
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    else:
        raise AssertionError("the service did not start on the cluster")
    client.process = process
    yield client
    client.close()
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    process.stderr.close()


def replicas_seen(client, count, seconds=90):
    """Names of the replicas whose counters were read, until there are `count` of them."""
    import httpx

    seen, end = set(), time.monotonic() + seconds
    while len(seen) < count and time.monotonic() < end:
        try:  # a connection stays with one proxy, which chooses a replica for every request
            text = httpx.get(f"{client.base_url}/metrics").text
            seen |= set(re.findall(r'routelearn_in_flight\{replica="(\w+)"\}', text))
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    return seen


@pytest.mark.slow
@pytest.mark.extra
def test_a_service_on_a_cluster_grows_loses_a_node_and_ends_in_order(cluster, on_ray):
    """One story, because a cluster takes a minute to start."""
    a_client_that_leaves_stops_its_search(on_ray)
    load_adds_a_replica(on_ray)
    both_nodes_answer(on_ray)
    cluster.remove_node(cluster.second, allow_graceful=False)
    the_other_node_goes_on(on_ray)
    what_is_in_flight_is_finished(on_ray)


def a_client_that_leaves_stops_its_search(on_ray):
    def metric(name):
        return sum(
            float(line.split()[-1]) for line in on_ray.get("/metrics").text.splitlines() if line.startswith(name)
        )

    import httpx

    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{on_ray.base_url}/solve", json={"coords": SQUARE, "seconds": 40}, timeout=2)
    end = time.monotonic() + 15
    while metric("routelearn_cancelled_total") < 1 and time.monotonic() < end:
        time.sleep(0.2)
    assert metric("routelearn_cancelled_total") == 1
    while on_ray.get("/healthz").json()["workers"]["long"]["busy"] and time.monotonic() < end:
        time.sleep(0.2)
    assert time.monotonic() < end, "the search goes on without anyone to hear of it"


def load_adds_a_replica(on_ray):
    stop = threading.Event()
    statuses = []

    def ask():
        while not stop.is_set():
            statuses.append(on_ray.post("/solve", json={"coords": SQUARE, "seconds": 0.5}).status_code)

    assert len(replicas_seen(on_ray, 2, seconds=3)) == 1
    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    try:
        assert len(replicas_seen(on_ray, 2)) == 2
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}


def both_nodes_answer(on_ray):
    for fields, words in (
        ({"coords": SQUARE, "depot": 7}, "depot is 7; the row of a stop, 0 to 4, is needed"),
        ({"coords": SQUARE * 5}, "25 stops; the limit nodes is 20"),
    ):
        told = on_ray.post("/solve", json=fields)
        assert (told.status_code, words in told.json()["error"]) == (422, True), told.text
    for seconds in (0, 0.2):
        answers = [on_ray.post("/solve", json={"coords": SQUARE, "seconds": seconds}) for _ in range(10)]
        assert {answer.status_code for answer in answers} == {200}
        assert {len(answer.json()["routes"][0]["stops"]) for answer in answers} == {5}
    with on_ray.stream("POST", "/solve/stream", json={"coords": SQUARE * 4, "seconds": 1}) as response:
        events = [line for line in response.iter_lines() if line.startswith("event: ")]
    assert events[-1] == "event: done"
    assert set(events[:-1]) == {"event: better"}
    assert on_ray.get("/").status_code == 200, "the page too"


def the_other_node_goes_on(on_ray):
    end, in_a_row = time.monotonic() + 90, 0
    while in_a_row < 20 and time.monotonic() < end:
        try:
            answered = on_ray.post("/solve", json={"coords": SQUARE, "seconds": 0}).status_code == 200
        except Exception:  # the proxy of the dead node is gone with its connections
            answered = False
        in_a_row = in_a_row + 1 if answered else 0
        time.sleep(0.05)
    assert in_a_row == 20


def what_is_in_flight_is_finished(on_ray):
    late = []
    asking = threading.Thread(
        target=lambda: late.append(on_ray.post("/solve", json={"coords": SQUARE, "seconds": 3}).status_code)
    )
    asking.start()
    time.sleep(1)
    os.kill(on_ray.process.pid, signal.SIGTERM)
    asking.join(30)
    assert late == [200]
    assert on_ray.process.wait(60) == 0
