"""The parts of the anytime search: the policy within a deadline, rebuilding, the board, and an interrupt."""

from __future__ import annotations

import _thread
import signal
import threading
import time

import numpy as np
import pytest
import torch

from routelearn import policies
from routelearn.models.model_file import Model
from routelearn.policies.base import shape_of
from routelearn.problems import PROBLEMS, NumpyRng, Problem
from routelearn.problems.base import to_single
from routelearn.solving import solve, solve_many
from routelearn.solving.anytime import Searcher, anytime
from routelearn.solving.board import Board
from routelearn.solving.guide import Guide, usable

SMALL = {"width": 16, "heads": 2, "layers": 1, "hidden": 16}


def guided(problem: Problem, n: int = 12, kind: str = "attention", seed: int = 0) -> Guide:
    """An untrained policy on one instance: all rules hold, whatever it prefers."""
    options = SMALL if kind == "attention" else {"width": 16}
    policy = policies.build(kind, shape_of(problem), options).eval()
    x = problem.sample(NumpyRng(seed), 1, n)
    return Guide(problem, Model(policy, problem.name, kind, options), to_single(x), x)


def test_every_way_of_constructing_is_feasible_and_costs_what_it_says(problem: Problem) -> None:
    guide = guided(problem)
    for tour, cost in (guide.greedy(), guide.augmented(float("inf")), guide.sampled(3, float("inf"))):
        problem.check(guide.x, tour)
        assert cost == pytest.approx(float(problem.cost(guide.x, tour)))


def test_more_constructions_are_never_worse(problem: Problem) -> None:
    guide = guided(problem)
    assert guide.augmented(float("inf"))[1] <= guide.greedy()[1] + 1e-9


@pytest.mark.parametrize("kind", ["attention", "pointer", "ean", "nazari"])
def test_a_rebuilt_solution_keeps_what_was_given(problem: Problem, kind: str) -> None:
    if kind in ("pointer", "ean") and problem.name != "tsp":
        pytest.skip("for the TSP alone")
    guide = guided(problem, kind=kind)
    tour, _ = guide.greedy()
    kept = tour[:, :, :3].repeat(1, 4, 1)
    prefix = torch.cat((kept, torch.full((1, 4, 2), -1)), 2)
    prefix[:, 0, 2] = -1  # one of them shorter than the others
    built, _ = guide.rebuilt(prefix, float("inf"))
    problem.check(guide.x, built)
    assert built[0, 0, :2].tolist() == tour[0, 0, :2].tolist()


def test_no_time_no_construction(problem: Problem) -> None:
    assert guided(problem).greedy(deadline=0.0) is None


def test_loads_count_as_stops_for_a_policy() -> None:
    """20 stops of 500 loads each are 10,000 visits: the policy would take a step for every one."""
    x = solve([(i % 5, i // 5) for i in range(21)], demand=[0] + [5000] * 20, capacity=10, problem="sdvrp", seconds=0)
    assert len(x.routes) == 10_000
    assert [event.by for event in x.events] == ["heuristic"]
    few, many = solve_many(
        [[(0, 0), (1, 2), (3, 1)]] * 2, demand=[[0, 9, 8], [0, 9999, 9]], capacity=10, problem="sdvrp", seconds=0
    )
    assert few.events[0].by == "policy"
    assert many.events[0].by == "heuristic"


def test_policies_serve_a_few_times_their_training_size() -> None:
    model = Model(None, "tsp", "attention", {}, {"sizes": [20, 100]})
    assert usable(model, 500)
    assert not usable(model, 501)
    assert usable(Model(None, "tsp", "attention", {}), 2000)


@pytest.mark.parametrize("threads", [1, 3])
def test_policy_and_search_together_stay_feasible(problem: Problem, threads: int) -> None:
    if problem.reveals_on_visit:
        pytest.skip("travels online instead")
    guide, board = guided(problem, 25), Board()
    anytime(problem, guide.x, board, deadline=time.perf_counter() + 0.25, guide=guide, threads=threads)
    problem.check(guide.x, board.tour)
    assert board.cost == pytest.approx(float(problem.cost(guide.x, board.tour)))
    assert board.cost <= guide.greedy()[1] + 1e-9


def test_rebuilding_is_tried_ever_more_rarely_where_it_brings_nothing() -> None:
    from routelearn.search import Search

    problem = PROBLEMS["tsp"]
    guide, board = guided(problem, 9), Board()
    search = Search(problem, guide.x, 0)
    searcher = Searcher(search, board, time.perf_counter() + 1000, guide, None, False)
    search.run(iterations=500)  # the optimum of so few nodes
    board.submit(search.best_tour, search.best_cost, "search")
    for _ in range(20):
        searcher._rebuild(0.002)
    assert searcher.tries == 4  # after 1, 3, 7 and 15 slices
    assert search.best_cost == pytest.approx(board.cost)
    now = torch.from_numpy(search.engine.best())[None, None]
    assert float(problem.cost(guide.x, now)) == pytest.approx(board.cost)  # it goes on from the best again


def test_a_given_solution_never_gets_worse(problem: Problem) -> None:
    if problem.reveals_on_visit:
        pytest.skip("cannot be improved in hindsight")
    guide, board = guided(problem, 10), Board()
    tour, cost = guide.greedy()
    board.submit(tour, cost, "given")
    anytime(problem, guide.x, board, deadline=time.perf_counter() + 0.05, given=tour, threads=1)
    assert board.cost <= cost


def test_the_board_keeps_the_best_and_ignores_rounding() -> None:
    board, tour = Board(), torch.zeros(1, 1, 1, dtype=torch.long)
    assert board.submit(tour, 10.0, "policy")
    assert not board.submit(tour, 10.0 - 1e-12, "search")
    assert not board.submit(None, 1.0, "search")
    assert board.submit(tour, 9.0, "search")
    assert [(e.cost, e.by) for e in board.events] == [(10.0, "policy"), (9.0, "search")]


def test_an_interrupt_gives_the_best_so_far() -> None:
    coords = np.random.default_rng(0).random((200, 2))
    solve(coords[:5], seconds=0.01)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores interrupts
    timer = threading.Timer(0.4, _thread.interrupt_main)
    began = time.perf_counter()
    timer.start()
    try:
        solution = solve(coords, seconds=60)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - began < 20
    assert sorted(solution.routes[0]) == list(range(200))


def test_an_error_in_a_thread_is_not_swallowed() -> None:
    def broken(event: object) -> None:
        raise RuntimeError("from the watcher")

    with pytest.raises(RuntimeError, match="from the watcher"):
        solve(np.random.default_rng(0).random((20, 2)), seconds=0.1, watch=broken)


def test_the_better_traveller_is_chosen_before_the_journey() -> None:
    from routelearn.solving import travelling

    problem = PROBLEMS["spctsp"]
    guide = guided(problem, 12)
    assert not travelling.policy_travels_better(problem, guide.x, guide, seconds=0.001)  # no time to imagine anything
    other = guide.x._replace(real_prize=guide.x.real_prize.flip(1) * 0.5)
    first = [travelling.policy_travels_better(problem, x, guide, seconds=2.0) for x in (guide.x, other)]
    assert first == [False, False]  # an untrained policy loses, whatever the real prizes are
