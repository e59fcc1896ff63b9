"""Programs run by path: formats written and read, hangs ended, seeds changed. A stand-in plays the programs."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from routelearn.errors import InputError
from routelearn.problems import NumpyRng, get
from routelearn.problems.base import distance_matrix, to_single
from routelearn.solvers.adapters import compass, concorde, lkh3
from routelearn.solvers.adapters.tsplib import cvrp_text, op_text, tsp_text
from routelearn.solvers.farm.running import solve_instances
from routelearn.solvers.tasks import tasks_of

STANDIN = Path(__file__).parent / "standin.py"
PROGRAMS = {"lkh3": (lkh3, "lkh"), "concorde": (concorde, "concorde"), "compass": (compass, "compass")}
CASES = [("lkh3", "tsp"), ("lkh3", "cvrp"), ("concorde", "tsp"), ("compass", "op-dist"), ("compass", "op-const")]

REAL = {name: os.environ.get(module.SOLVERS[0].variable) for name, (module, _) in PROGRAMS.items()}


@pytest.fixture(autouse=True)
def programs(tmp_path, monkeypatch):
    """All three programs installed: scripts that call the stand-in."""
    monkeypatch.setenv("ROUTELEARN_WORKERS", "2")
    for module, kind in PROGRAMS.values():
        script = tmp_path / kind
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STANDIN}" {kind} "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv(module.SOLVERS[0].variable, str(script))


def sample(name, rows=4, n=15, seed=5):
    problem = get(name)
    return problem, to_single(problem.sample(NumpyRng(seed), rows, n))


@pytest.mark.parametrize(("solver", "name"), CASES)
@pytest.mark.parametrize("own_matrix", [False, True])
def test_an_answer_is_feasible(solver, name, own_matrix):
    problem, x = sample(name)
    if own_matrix:
        x = x._replace(distances=distance_matrix(x))
    problem.check(x, PROGRAMS[solver][0].SOLVERS[0].solve(problem, x, seconds=10.0))


@pytest.mark.parametrize(("solver", "name"), CASES)
def test_the_real_program_answers_where_there_is_one(monkeypatch, solver, name):
    program = PROGRAMS[solver][0].SOLVERS[0]
    if not REAL[solver]:
        pytest.skip(f"{program.variable} is not set")
    monkeypatch.setenv(program.variable, REAL[solver])
    assert program.unavailable() is program.impostor() is None
    problem, x = sample(name, n=20)
    problem.check(x, program.solve(problem, x, seconds=10.0))


@pytest.mark.parametrize(("solver", "name"), [("lkh3", "tsp"), ("lkh3", "cvrp")])
def test_lkh3_takes_asymmetric_matrices(solver, name):
    problem, x = sample(name)
    x = x._replace(distances=distance_matrix(x) * (1 + torch.rand(4, *distance_matrix(x).shape[1:])))
    problem.check(x, lkh3.SOLVERS[0].solve(problem, x, seconds=10.0))


@pytest.mark.parametrize(("solver", "name"), [("concorde", "tsp"), ("compass", "op-unif")])
def test_an_asymmetric_matrix_is_refused_in_words(solver, name):
    problem, x = sample(name)
    x = x._replace(distances=torch.rand(4, x.xy.shape[1], x.xy.shape[1]))
    with pytest.raises(InputError, match=f"{solver}: the distance matrix is not symmetric"):
        PROGRAMS[solver][0].SOLVERS[0].solve(problem, x, seconds=5.0)


def test_concorde_that_hangs_is_run_again_with_a_new_seed(monkeypatch, caplog):
    # first seeds of rows 0 to 3 are 1 to 4; the second attempt's end in 4 to 7
    monkeypatch.setenv("STANDIN_HANG", "2")
    problem, x = sample("tsp", rows=2)
    with caplog.at_level(logging.WARNING):
        tours = concorde.SOLVERS[0].solve(problem, x, seconds=10.0)
    problem.check(x, tours)
    assert "attempt 0: no answer: it ran out of time" in caplog.text


def test_a_program_that_always_hangs_gives_minus_one_in_time(monkeypatch):
    monkeypatch.setenv("STANDIN_HANG", "10")
    for solver, name in CASES[:4]:
        problem, x = sample(name, rows=2)
        begin = time.perf_counter()
        assert (PROGRAMS[solver][0].SOLVERS[0].solve(problem, x, seconds=0.4) == -1).all()
        assert time.perf_counter() - begin < 0.4 * 1.05 + 0.2 + 1  # a second more: other tests share the processors


@pytest.mark.parametrize("name", ["tsp", "cvrp"])
def test_lkh3_that_is_stopped_while_it_writes_leaves_the_tour_before(monkeypatch, name):
    monkeypatch.setenv("STANDIN_CUT", "1")
    problem, x = sample(name, rows=2)
    problem.check(x, lkh3.SOLVERS[0].solve(problem, x, seconds=2.0))


def test_lkh3_has_vehicles_enough_for_demands_that_pack_badly():
    """Of demands of 6 no two fit a capacity of 10: twice as many routes as the sum alone would need."""
    problem, x = sample("cvrp", rows=2, n=20)
    x = x._replace(demand=torch.where(x.demand > 0, 6, 0), capacity=torch.full_like(x.capacity, 10))
    problem.check(x, lkh3.SOLVERS[0].solve(problem, x, seconds=10.0))


def test_compass_is_not_asked_where_no_customer_is_within_reach():
    problem, x = sample("op-dist", rows=2)
    x = x._replace(max_length=torch.full_like(x.max_length, 1e-3))
    tours = compass.SOLVERS[0].solve(problem, x, seconds=5.0)
    problem.check(x, tours)
    assert (tours == 0).all()


def test_compass_that_aborts_at_a_small_matrix_is_run_again_with_a_new_seed(monkeypatch, caplog):
    """First seeds of two rows are 0 and 1; a second attempt's end in higher figures."""
    problem, x = sample("op-dist", rows=2)
    x = x._replace(distances=distance_matrix(x))
    monkeypatch.setenv("STANDIN_ABORT", "2")
    with caplog.at_level(logging.WARNING):
        problem.check(x, compass.SOLVERS[0].solve(problem, x, seconds=10.0))
    assert caplog.text.count("attempt 0: no answer: it crashed (SIGABRT): assertion failed") == 2
    monkeypatch.setenv("STANDIN_ABORT", "10")
    assert (compass.SOLVERS[0].solve(problem, x, seconds=10.0) == -1).all()


def test_concorde_has_half_the_time_for_each_of_two_attempts(monkeypatch, caplog):
    monkeypatch.setenv("STANDIN_HANG", "10")
    problem, x = sample("tsp", rows=1)
    with caplog.at_level(logging.WARNING):
        concorde.SOLVERS[0].solve(problem, x, seconds=3)
    assert [record.args[2] for record in caplog.records] == [0, 1]


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo the licence has expired >&2; exit 3", "it ended with exit status 3: the licence has expired"),
        ("echo hello", "it wrote no answer: hello"),
        ("exit 0", "it wrote no answer and said nothing"),
        ("kill -SEGV $$", "it crashed .SIGSEGV. and said nothing"),
    ],
)
def test_another_program_is_recognised_and_its_words_are_told(tmp_path, monkeypatch, text, words):
    for module, _ in PROGRAMS.values():
        solver = module.SOLVERS[0]
        assert solver.impostor() is None
        monkeypatch.setenv(solver.variable, script(tmp_path / "other", text))
        assert solver.unavailable() is None
        problem, x = sample(min(solver.problems))
        with pytest.raises(InputError, match=f"did not solve a small example .{words}") as caught:
            solve_instances(problem, x, solver, seconds=1.0)
        assert solver.variable in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_run_is_told_in_one_line(tmp_path, monkeypatch):
    path = tmp_path / "broken"
    path.write_bytes(b"\x7fELF but no program")
    path.chmod(0o755)
    monkeypatch.setenv("ROUTELEARN_CONCORDE", str(path))
    problem, x = sample("tsp")
    with pytest.raises(InputError, match=r"concorde: .*broken cannot be run"):
        concorde.SOLVERS[0].solve(problem, x, seconds=1.0)


def test_messages_count_instances_over_all_blocks(monkeypatch, caplog):
    solver, (problem, x) = concorde.SOLVERS[0], sample("tsp", rows=3)
    assert solver.impostor() is None
    monkeypatch.setattr(type(solver), "impostor", lambda self: None)
    monkeypatch.setenv("STANDIN_HANG", "10")
    with caplog.at_level(logging.WARNING):
        solve_instances(problem, x, solver, seconds=0.3)
    assert {record.args[1] for record in caplog.records} == {0, 1, 2}


def test_a_program_may_be_named_on_path_or_from_home(tmp_path, monkeypatch):
    solver = concorde.SOLVERS[0]
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    problem, x = sample("tsp", rows=1)
    for name in ("concorde", "~/concorde"):
        monkeypatch.setenv(solver.variable, name)
        assert solver.unavailable() is None
        problem.check(x, solver.solve(problem, x, seconds=10.0))


def test_an_output_that_is_no_tour_gives_minus_one(tmp_path, monkeypatch):
    script = tmp_path / "liar"
    script.write_text(
        "#!/bin/sh\nprintf '15\\n0 0 1\\n' > tour.sol\nprintf 'TOUR_SECTION\\n1\\n2\\n-1\\n' > tour.9.txt\n"
    )
    script.chmod(0o755)
    for solver, name in CASES[:4]:
        problem, x = sample(name, rows=1)
        monkeypatch.setenv(PROGRAMS[solver][0].SOLVERS[0].variable, str(script))
        assert (PROGRAMS[solver][0].SOLVERS[0].solve(problem, x, seconds=1.0) == -1).all()


def test_a_missing_program_is_reported_in_words(monkeypatch, tmp_path):
    for module, _ in PROGRAMS.values():
        solver = module.SOLVERS[0]
        assert solver.unavailable() is None
        monkeypatch.setenv(solver.variable, str(tmp_path / "nowhere"))
        assert "is not a program" in solver.unavailable()
        monkeypatch.delenv(solver.variable)
        assert f"set {solver.variable}" in solver.unavailable()
        problem, x = sample(min(solver.problems))
        with pytest.raises(InputError, match=solver.variable):
            solver.solve(problem, x, seconds=1.0)


def test_small_instances_need_no_program(monkeypatch):
    monkeypatch.setenv("STANDIN_HANG", "10")
    problem, x = sample("tsp", n=9)
    problem.check(x, concorde.SOLVERS[0].solve(problem, x, seconds=1.0))


@pytest.mark.parametrize(
    "spoil", [("EOF", ""), ("DIMENSION : 15", "DIMENSION : 14"), ("1 ", "1.5 "), ("EUC_2D", "EUC")]
)
def test_the_stand_in_refuses_what_the_format_does_not_allow(tmp_path, spoil):
    problem, x = sample("tsp")
    good = tsp_text(tasks_of(problem, x)[0])
    for text, status in ((good, 0), (good.replace(*spoil), 2)):
        (tmp_path / "a.tsp").write_text(text)
        command = [sys.executable, str(STANDIN), "concorde", "-s", "9", "-x", "-o", "a.sol", "a.tsp"]
        assert subprocess.run(command, cwd=tmp_path, stderr=subprocess.DEVNULL).returncode == status


def test_formats_have_the_fields_their_readers_want():
    (task,) = tasks_of(*sample("cvrp", rows=1))
    text = cvrp_text(task)
    assert "TYPE : CVRP\nDIMENSION : 16\nCAPACITY : 25\n" in text
    assert text.endswith("DEPOT_SECTION\n1\n-1\nEOF\n")
    (task,) = tasks_of(*sample("op-dist", rows=1))
    assert "EDGE_WEIGHT_TYPE : CEIL_2D" in op_text(task)
    assert "NODE_SCORE_SECTION\n1 0\n" in op_text(task)


def test_lkh3_gets_the_papers_settings_and_a_time_limit_per_run():
    (task,) = tasks_of(*sample("cvrp", rows=1))
    settings = lkh3.parameters(task, "a", "b", 10.0, 3)
    assert settings["RUNS"] == 1
    assert settings["MAX_TRIALS"] == 10_000
    assert "SPECIAL" in settings
    assert 9 < float(settings["TIME_LIMIT"]) < 10
