"""solve_many: mixed sizes and limits, every answer through the referee, total time kept."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from paper_problems import PAPER
from solving_referee import judge, random_case

from routelearn.errors import InputError
from routelearn.problems.base import take
from routelearn.solving import many, solve, solve_many


@pytest.mark.parametrize("seconds", [0, 0.3, None])
@pytest.mark.parametrize("name", PAPER)
def test_every_answer_passes_the_referee(name: str, seconds: float | None) -> None:
    rng = np.random.default_rng(1)
    cases = [random_case(name, int(n), rng) for n in (6, 9, 6, 5)]
    columns: dict[str, list] = {}
    for case in cases:
        for key, value in case.arguments().items():
            columns.setdefault(key, []).append(value)
    columns.pop("problem")
    solutions = solve_many(**columns, problem=name, seconds=seconds)
    assert len(solutions) == 4
    for case, solution in zip(cases, solutions, strict=True):
        assert solution.cost == pytest.approx(judge(case, solution.routes), rel=1e-9, abs=1e-9)


def test_the_policy_and_then_the_local_optimum() -> None:
    coords = np.random.default_rng(0).random((20, 30, 2))
    alone, improved = (solve_many(coords, seconds=s) for s in (0, None))
    assert all(set(s.found_by()) == {"policy"} for s in alone)
    assert all(b.cost <= a.cost + 1e-9 for a, b in zip(alone, improved, strict=True))
    assert sum(b.cost for b in improved) < sum(a.cost for a in alone)
    single = solve(coords[3], seconds=0)
    assert alone[3].cost == pytest.approx(single.cost, rel=1e-5)


def test_one_limit_for_all_or_one_each() -> None:
    coords = np.random.default_rng(0).random((2, 4, 2))
    demand = [[0, 1, 1, 1]] * 2
    wide, mixed = (solve_many(coords, demand=demand, capacity=c, seconds=0, policy=False) for c in (3, [3, 1]))
    assert [len(s.routes) for s in wide] == [1, 1]
    assert [len(s.routes) for s in mixed] == [1, 3]


def test_ids_and_depots_of_each_instance() -> None:
    coords = [[(0, 0), (3, 0), (1, 0)], [(0, 0), (4, 0), (6, 0), (1, 0)]]
    ids = [["a", "b", "c"], [10, 20, 30, 40]]
    for depot, depots in ((1, ["b", 20]), ([2, 3], ["c", 40]), (np.array([0, 2]), ["a", 30])):
        solutions = solve_many(coords, ids=ids, depot=depot, max_length=100, seconds=0, policy=False)
        assert [solution.depot for solution in solutions] == depots
        for solution, names in zip(solutions, ids, strict=True):
            assert {solution.depot, *solution.routes[0]} == set(names)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "no places"),
        ({"coords": [[[0, 0], [1, 1]]], "ids": ["ab"]}, "instance 0: ids is 'ab'; a list with one entry per stop"),
        ({"coords": [[[0, 0], [1, 1]]], "ids": [["a"]]}, "instance 0: 1 ids for 2 stops"),
        ({"coords": [[[0, 0], [1, 1]]], "ids": [1, 2]}, "ids has 2 entries"),
        ({"coords": [[[0, 0], [1, 1]]], "depot": 2}, "instance 0: depot is 2"),
        ({"coords": [[[0, 0], [1, 1]]], "depot": [0, 1]}, "depot has 2 entries"),
        ({"coords": 3}, "one entry per instance"),
        ({"coords": [[[0, 0], [1, 1]]], "demand": [[0, 1], [0, 1]], "capacity": 1}, "demand has 2 entries"),
        ({"coords": [[[0, 0], [1, 1]], [[0, 0]]]}, "instance 1: one stop"),
        ({"coords": [[[0, 0], [1, 1]]], "demand": [[0, 1]], "capacity": [1, 2]}, "capacity has 2 entries"),
        ({"coords": [[[0, 0], [1, 1]]], "seconds": -1}, "seconds is -1"),
        ({"coords": [[[0, 0], [1, 1]]], "seconds": "a"}, "seconds is 'a'"),
        ({"coords": [[[0, 0], [1, 1]]], "seed": -1}, "seed is -1"),
        ({"coords": [[[0, 0], [1, 1]]], "threads": -1}, "threads is -1"),
    ],
)
def test_messages_name_the_instance(arguments: dict, words: str) -> None:
    with pytest.raises(InputError) as caught:
        solve_many(**arguments)
    assert words in str(caught.value)


def test_no_instances_no_solutions() -> None:
    assert solve_many([]) == []


@pytest.mark.slow
def test_the_time_for_all_together_is_kept() -> None:
    coords = np.random.default_rng(0).random((100, 50, 2))
    solve_many(coords[:2], seconds=0.1)
    began = time.perf_counter()
    solve_many(coords, seconds=2)
    assert time.perf_counter() - began < 2 * 1.15 + 1  # a second more: other tests share the processors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_solves_after_its_parent_did():
    """Its parent's threads are not there: whoever waits for them waits for ever."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["64", "64", "ended"], done.stderr


FORKED = """
import os, signal, time
import numpy as np, routelearn
xy = np.random.default_rng(0).random((64, 50, 2))
print(len(routelearn.solve_many(xy, seconds=0.2)), flush=True)
child = os.fork()
if child == 0:
    print(len(routelearn.solve_many(xy, seconds=0.2)), flush=True)
    os._exit(0)
end = time.monotonic() + 30
while time.monotonic() < end and not os.waitpid(child, os.WNOHANG)[0]:
    time.sleep(0.05)
if time.monotonic() < end:
    print("ended")
else:
    os.kill(child, signal.SIGKILL)
"""


@pytest.mark.parametrize("seconds", [0, 0.3, None])
def test_every_solution_is_told_as_it_comes(seconds: float | None) -> None:
    rng = np.random.default_rng(2)
    coords = [rng.random((n, 2)) for n in (6, 9, 6, 9, 9)]
    heard: dict = {}
    solutions = solve_many(coords, seconds=seconds, told=heard.__setitem__)
    assert {row: heard[row].cost for row in heard} == {row: one.cost for row, one in enumerate(solutions)}


def test_the_policy_decodes_by_any_strategy() -> None:
    coords = np.random.default_rng(0).random((12, 40, 2))
    greedy, better = (solve_many(coords, seconds=0, decode=text) for text in ("greedy", "augment:8"))
    assert sum(one.cost for one in better) < sum(one.cost for one in greedy)
    with pytest.raises(InputError, match="unknown decoding strategy"):
        solve_many(coords, decode="gredy")
    prizes = [[0.0] + [0.2] * 39] * 12
    hidden = {"prize": prizes, "real_prize": prizes, "penalty": prizes, "min_prize": 1, "problem": "spctsp"}
    with pytest.raises(InputError, match="hindsight"):
        solve_many(coords, **hidden, decode="active:3")


def test_the_search_begins_before_the_policy_has_ended(monkeypatch) -> None:
    """As on a GPU: a policy that waits for the first answer to be there before it goes on to its second batch."""
    solved, order = threading.Event(), []

    class Gpu:
        type = "cuda"

    honest = many.decode_instances

    def in_two_batches(problem, policy, x, strategy, *, seed, found):
        for low in (0, 3):
            found(low, honest(problem, policy, take(x, slice(low, low + 3)), strategy, seed=seed))
            order.append("batch")
            assert solved.wait(30)

    def told(row: int, solution) -> None:
        order.append("solved")
        solved.set()

    monkeypatch.setattr(many, "best_device", lambda device: Gpu())
    monkeypatch.setattr(many, "to_device", lambda x, device: x)
    found = many.find_model
    monkeypatch.setattr(many, "find_model", lambda *arguments: found(*arguments[:-1], "cpu"))
    monkeypatch.setattr(many, "decode_instances", in_two_batches)
    solutions = solve_many(np.random.default_rng(0).random((6, 20, 2)), seconds=0.5, told=told, threads=2)
    assert len(solutions) == order.count("solved") == 6
    assert order.index("solved") < len(order) - 1 - order[::-1].index("batch")
