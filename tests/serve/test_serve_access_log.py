"""The access log: a line for each request, without tokens and bodies, and no failure of it is a request's."""

from __future__ import annotations

import json
import os
import threading
import time

import pytest
from requesting import SQUARE

prometheus = pytest.importorskip("prometheus_client")
from routelearn.errors import InputError  # noqa: E402
from routelearn.serve import access_log  # noqa: E402
from routelearn.serve.metrics import Metrics  # noqa: E402


def dropped(metrics):
    return metrics.get_sample_value("routelearn_access_log_dropped_total")


def test_lines_are_json_and_nothing_can_break_out_of_one(tmp_path):
    metrics, path = Metrics(), tmp_path / "log"
    log = access_log.AccessLog(str(path), metrics.unlogged)
    log.write(path='/a"\n{"b', token=None)
    log.write(path="/\ud800")
    log.close()
    first, second = map(json.loads, path.read_text().splitlines())
    assert first["path"] == '/a"\n{"b'
    assert second["path"] == "/\ud800"
    assert first["time"].endswith("+00:00")
    assert dropped(metrics) == 0


def test_a_log_that_is_moved_away_is_begun_anew(tmp_path):
    log = access_log.AccessLog(str(tmp_path / "log"), Metrics().unlogged)
    log.write(path="/first")
    log.close()
    os.rename(tmp_path / "log", tmp_path / "log.1")
    log.listener.start()
    log.write(path="/second")
    log.close()
    assert "/first" in (tmp_path / "log.1").read_text()
    assert "/second" in (tmp_path / "log").read_text()


def test_a_full_disk_costs_lines_and_nothing_else(capsys):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    metrics = Metrics()
    log = access_log.AccessLog("/dev/full", metrics.unlogged)
    for _ in range(3):
        log.write(path="/")
    log.close()
    assert dropped(metrics) == 3
    assert capsys.readouterr().err == ""


def test_a_disk_that_hangs_delays_nobody(monkeypatch, tmp_path):
    monkeypatch.setattr(access_log, "WAITING", 2)
    metrics, hangs = Metrics(), threading.Event()
    log = access_log.AccessLog(str(tmp_path / "log"), metrics.unlogged)
    [handler] = log.listener.handlers
    monkeypatch.setattr(handler, "emit", lambda record: hangs.wait(30))
    began = time.monotonic()
    for _ in range(20):
        log.write(path="/")
    assert time.monotonic() - began < 5
    assert dropped(metrics) >= 17
    monkeypatch.setattr(access_log, "CLOSING", 0.2)
    log.close()
    assert time.monotonic() - began < 5, "nor the end of the service"
    hangs.set()


def test_a_log_that_cannot_be_opened_is_refused_at_the_start(tmp_path):
    with pytest.raises(InputError, match=r"log: the access log cannot be written \(No such file.*choose another --acc"):
        access_log.AccessLog(str(tmp_path / "none" / "log"), Metrics().unlogged)


@pytest.mark.extra
def test_a_request_is_one_line_without_token_body_and_job(guarded):
    many, place = guarded.token("many"), 0.123454321
    guarded.ask("POST", "/v1/solve", many, json={"coords": [*SQUARE, [place, place]], "seconds": 0})
    guarded.ask("GET", "/v1/problems?token=in-the-query", "a wrong token")
    guarded.ask("GET", "/nowhere" * 100, many)
    job = guarded.job({"coords": SQUARE, "seconds": 0})["id"]
    guarded.ask("HEAD", "/livez")
    end = time.monotonic() + 20
    while '"HEAD"' not in (text := guarded.log.read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    rows = [json.loads(line) for line in text.splitlines()]
    assert set(rows[0]) == {"time", "client", "token", "method", "path", "status", "ms", "bytes", "lane"}
    solved = [row for row in rows if row["path"] == "/v1/solve" and row["token"] == "many"][-1]
    assert (solved["method"], solved["status"], solved["lane"], solved["client"]) == (
        "POST",
        200,
        "construct",
        "127.0.0.1",
    )
    assert solved["bytes"] > 100
    assert solved["ms"] > 0
    assert [row["status"] for row in rows if row["path"] == "/v1/problems" and row["token"] is None][-1] == 401
    assert [row["status"] for row in rows if row["path"] == "/jobs/{id}"]
    assert [row["method"] for row in rows if row["path"] == "/livez"][-1] == "HEAD"
    assert max(len(row["path"]) for row in rows) == access_log.LONGEST
    for secret in (many, "a wrong token", "in-the-query", str(place), job, guarded.unlimited):
        assert secret not in text
