"""What is printed and what is written: no reader, encoding or interrupt takes an answer that was found."""

from __future__ import annotations

import _thread
import io
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import pytest

import routelearn.search
from routelearn.cli import main
from routelearn.data.convert import to_instance
from routelearn.problems import PROBLEMS, NumpyRng
from routelearn.solving import solve, stops_of, travelling
from routelearn.solving.loading import load_search

STOPS = "id,x,y\nKøln,1,2\nŁódź,1,3\n東京,5,5\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "days").mkdir()
    for name in "abc":
        (tmp_path / "days" / f"{name}.csv").write_text(STOPS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def interrupts() -> Iterator[None]:
    """A process in the background ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def status(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return int(end.value.code or 0)


def interrupt_at_first_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C as soon as a search has found something."""
    heard: list[object] = []

    def hear(event: object) -> None:
        heard.append(event)
        if len(heard) == 1:
            _thread.interrupt_main()

    monkeypatch.setattr("routelearn.commands.solve.show_event", hear)


def unread() -> io.TextIOWrapper:
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w", encoding="utf-8")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_who_has_gone_takes_no_answer_with_him(
    files: Path, monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    with unread() as pipe:
        monkeypatch.setattr(sys, stream, pipe)
        assert status("solve", "days", "--seconds", 0.05, "--watch", "--out", "out/", "--plot", "plots/") == 0
    assert len(list((files / "out").iterdir())) == len(list((files / "plots").iterdir())) == 3


def test_where_all_is_printed_the_work_ends_with_the_reader(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in ((), ("--out", "-")):
        with unread() as pipe, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", pipe)
            assert status("solve", "days", "--seconds", 0, *options) == 0
        assert "b.csv" not in capsys.readouterr().err


def test_a_file_that_cannot_be_written_in_the_end_takes_nothing_with_it(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("routelearn.solving.solution.Solution.write", full)
    assert status("solve", "days/a.csv", "--seconds", 0, "--out", "a.json", "--plot", "a.html") == 1
    printed = capsys.readouterr()
    assert "order" in printed.out
    assert "No space left" in printed.err
    assert (files / "a.html").is_file()


@pytest.mark.parametrize("target", ["a.json", "-"])
def test_an_encoding_without_the_letters_takes_no_answer(
    files: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    raw = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="cp1252", write_through=True))
        assert status("solve", "days/a.csv", "--seconds", 0, "--out", target) == 0
        sys.stdout.flush()
        shown = raw.getvalue()
    written = shown if target == "-" else (files / target).read_bytes()
    assert set(json.loads(written)["routes"][0]["stops"]) == {"Køln", "Łódź", "東京"}
    if target != "-":
        assert "Køln > ?? > ?ód?" in shown.decode("cp1252")


def test_other_formats_are_printed_as_utf_8_too(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    solve([(0, 0), (1, 1)], ids=["東京", "b"], seconds=0).write("-", "csv")
    assert "東京" in raw.getvalue().decode()


def test_an_interrupt_in_the_middle_of_many_files_names_those_that_are_left(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], interrupts: None
) -> None:
    (files / "days" / "a.csv").write_text("x,y\n" + "".join(f"{i % 17},{i % 23}\n" for i in range(200)))
    solve(np.random.default_rng(0).random((5, 2)), seconds=0.01)  # compiled before the clock runs
    interrupt_at_first_event(monkeypatch)
    began = time.perf_counter()
    assert status("solve", "days", "--seconds", 60, "--watch", "--out", "out") == 130
    assert time.perf_counter() - began < 30
    assert [path.name for path in (files / "out").iterdir()] == ["a.csv.json"]
    assert "interrupted after" in json.loads((files / "out" / "a.csv.json").read_text())["notes"][-1]
    assert capsys.readouterr().err == "error: interrupted; not solved: days/b.csv, days/c.csv\n".replace("/", os.sep)


def test_an_interrupted_search_of_one_file_is_an_answer(
    files: Path, monkeypatch: pytest.MonkeyPatch, interrupts: None
) -> None:
    solve(np.random.default_rng(0).random((5, 2)), seconds=0.01)
    interrupt_at_first_event(monkeypatch)
    assert status("solve", "days/a.csv", "--seconds", 60, "--watch", "--out", "a.json") == 0
    assert (files / "a.json").is_file()


def test_an_interrupted_journey_is_finished_without_further_search(
    monkeypatch: pytest.MonkeyPatch, interrupts: None
) -> None:
    rng = np.random.default_rng(0)
    prize, penalty = (np.concatenate(([0.0], rng.random(12))) for _ in range(2))
    case = {"coords": rng.random((13, 2)), "prize": prize, "penalty": penalty, "real_prize": prize, "min_prize": 3.0}
    solve(**case, seconds=0.01)
    plan, times = routelearn.search.plan, []

    def interrupted(*arguments: object, **options: object) -> list[int]:
        times.append(time.perf_counter())
        if len(times) == 2:
            _thread.interrupt_main()
        return plan(*arguments, **options)

    monkeypatch.setattr(routelearn.search, "plan", interrupted)
    solution = solve(**case, seconds=60, policy=False)
    assert solution.interrupted
    assert solution.prize >= 3.0 - 1e-4
    assert time.perf_counter() - times[0] < 30  # one planning alone would have taken 5 s, and there were 12


def test_a_journey_that_is_stopped_plans_once_and_at_once() -> None:
    import threading

    problem, stop = PROBLEMS["spctsp"], threading.Event()
    x = problem.sample(NumpyRng(0), 1, 12)
    stop.set()
    began = time.perf_counter()
    tour = travelling.travel(problem, x, deadline=began + 60, stop=stop)
    problem.check(x, tour)
    assert time.perf_counter() - began < 20


def test_compiling_is_told_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[str] = []
    one = to_instance(stops_of(coords=[(0, 0), (1, 2)]))

    def compile_two(problem: object, x: object) -> None:
        assert heard == []
        for step in (1, 2):
            numba.njit(lambda x, step=step: x + step)(1)

    monkeypatch.setattr("routelearn.search.search.load_kernels", compile_two)
    load_search([one], heard.append)
    assert len(heard) == 1
    assert heard[0].startswith("compiling the search, once")
    heard.clear()
    load_search([one])  # by Python, and nobody is looking
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("routelearn.search.search.load_kernels", lambda problem, x: None)
    load_search([one], heard.append)
    assert heard == []


def test_the_commands_print_what_is_told(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("routelearn.solving.load_search", lambda problems, tell: tell("compiling"))
    assert status("solve", "days/a.csv", "--seconds", 0.01, "--out", "a.json") == 0
    assert capsys.readouterr().err == "compiling\n"
    assert status("improve", "a.json", "--seconds", 0.01) == 0
    assert capsys.readouterr().err == "compiling\n"
