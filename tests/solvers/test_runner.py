"""The runner keeps time limits and survives crashes, whatever a solver does."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
import torch

from routelearn.errors import InputError
from routelearn.problems import NumpyRng, get
from routelearn.solvers.adapters import runner

sys.path.insert(0, str(Path(__file__).parent))
import misbehaving

TSP = get("tsp")


def solve(function, rows=1, seconds=0.5, seed=0, n=6):
    x = TSP.sample(NumpyRng(1), rows, n)
    return runner.solve_rows(
        TSP, x, lambda task, row: runner.run_task(function, task, seconds, seed, row, misbehaving.prepare)
    )


@pytest.fixture(autouse=True)
def one_worker(monkeypatch):
    monkeypatch.setenv("ROUTELEARN_WORKERS", "1")


def test_answers_come_back_in_the_order_of_the_instances(monkeypatch):
    monkeypatch.setenv("ROUTELEARN_WORKERS", "3")
    assert solve(misbehaving.tells_seed, rows=7, seed=0).flatten().tolist() == list(range(7))


def test_a_worker_serves_many_instances():
    assert len(solve(misbehaving.tells_process, rows=20).unique()) == 1


def test_a_crash_is_tried_again_with_a_new_seed():
    assert solve(misbehaving.dies_once, rows=2, seconds=5.0).tolist() == [[list(range(6))]] * 2


def test_a_solver_that_always_crashes_gives_minus_one():
    assert (solve(misbehaving.dies) == -1).all()


def test_a_hang_ends_in_time_and_harms_no_other_instance():
    solve(misbehaving.well)
    begin = time.perf_counter()
    tours = solve(misbehaving.hangs_on_second, rows=3, seconds=1.0)
    assert time.perf_counter() - begin < 1.05 + 0.2 + 4  # the hang, the start of a new worker, and a busy machine
    assert (tours[1] == -1).all()
    assert tours[0].tolist() == tours[2].tolist() == [list(range(6))]


def test_what_was_found_before_the_time_was_up_is_kept():
    solve(misbehaving.well)
    begin = time.perf_counter()
    assert solve(misbehaving.hangs_after_first_answer).tolist() == [[list(range(6))]]
    assert time.perf_counter() - begin < 0.5 * 1.05 + 0.2 + 1  # a second more: other tests share the processors


def test_what_a_solver_prints_does_not_mix_with_its_answers(capfd):
    assert solve(misbehaving.prints, rows=2).tolist() == [[list(range(6))]] * 2
    assert capfd.readouterr().out == ""


def test_an_error_of_the_solver_is_not_taken_for_a_hard_instance():
    with pytest.raises(runner.SolverError, match="no such option"):
        solve(misbehaving.raises)
    with pytest.raises(InputError, match="too many nodes"):
        solve(misbehaving.refuses)
    assert solve(misbehaving.well).shape == (1, 1, 6)  # and the next call works


def test_small_instances_never_reach_the_solver():
    assert torch.equal(solve(misbehaving.hangs, n=2), torch.tensor([[[0, 1]]]))


def test_seeds_differ_between_instances_attempts_and_runs():
    seeds = {runner.new_seed(s, row, attempt) for s in range(5) for row in range(50) for attempt in range(3)}
    assert len(seeds) == 750
    assert max(seeds) < 2**30


@pytest.mark.parametrize("text", ["0", "-1", "many", ""])
def test_a_wrong_number_of_workers_is_refused(monkeypatch, text):
    monkeypatch.setenv("ROUTELEARN_WORKERS", text)
    with pytest.raises(InputError, match="ROUTELEARN_WORKERS"):
        runner.worker_count()
