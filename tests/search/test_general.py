"""The general engine: optimal where that can be known, always feasible, on time, and the same for the same seed."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch
from general_cases import Arrivals, PlainCVRP, PlainOP, PlainTSP, StaysThere

import routelearn
from routelearn.decoding.replay import nearest_feasible, replay
from routelearn.problems import NumpyRng, get
from routelearn.problems.base import declared_search, distance_matrix, take
from routelearn.search import Search, improve, stack
from routelearn.search.engines import ENGINES
from routelearn.search.general import GeneralEngine, trimmed
from routelearn.search.search import engine_for
from routelearn.solving.anytime import anytime
from routelearn.solving.board import Board

UNKNOWN = (PlainTSP(), PlainCVRP(), PlainOP(), Arrivals(), StaysThere())
ids = [problem.name for problem in UNKNOWN]


def sampled(problem, n, seed=0, batch=1):
    return problem.sample(NumpyRng(seed), batch, n)


def every_solution(problem, x):
    """Costs of all solutions that the masks allow, breadth first."""
    tours = torch.zeros((1, 0), dtype=torch.long)
    for _ in range(problem.max_steps(x)):
        state = problem.initial(x, len(tours))
        for action in tours.unbind(1):
            state = problem.step(x, state, action[None])
        if bool(problem.done(x, state).all()):
            break
        rows, nodes = problem.feasible(x, state)[0].nonzero().unbind(1)
        tours = torch.cat((tours[rows], nodes[:, None]), 1)
    return problem.cost(x, tours[None])[0]


@pytest.mark.parametrize("problem", [Arrivals(), StaysThere()], ids=lambda problem: problem.name)
def test_the_test_problems_keep_the_contract(problem):
    routelearn.check_problem(problem)


@pytest.mark.parametrize("problem", UNKNOWN, ids=ids)
def test_what_a_class_inherits_does_not_count_as_its_search(problem):
    assert declared_search(problem) is None
    assert isinstance(engine_for(problem, sampled(problem, 6), 0), GeneralEngine)


def test_the_package_s_own_problems_name_their_search():
    assert {declared_search(get(name)) for name in ("tsp", "cvrp", "sdvrp", "op-dist", "pctsp", "spctsp")} <= set(
        ENGINES
    )


@pytest.mark.parametrize("problem", UNKNOWN, ids=ids)
@pytest.mark.parametrize("seed", range(3))
def test_it_finds_the_optimum_of_small_instances(problem, seed):
    x = sampled(problem, 6, seed)
    search = Search(problem, x, seed)
    search.run(iterations=60)
    problem.check(x, search.best_tour)
    assert search.best_cost == pytest.approx(float(every_solution(problem, x).min()), abs=1e-9)


@pytest.mark.parametrize("problem", UNKNOWN, ids=ids)
@pytest.mark.parametrize("n", [1, 2, 3, 17, 40])
def test_every_solution_is_feasible_and_costs_what_it_says(problem, n):
    if not problem.has_depot and n < 2:
        return
    x = sampled(problem, n, seed=n)
    search = Search(problem, x, 1)
    search.run(iterations=6)
    problem.check(x, search.best_tour, 1e-9)
    assert float(problem.cost(x, search.best_tour)) == search.best_cost
    assert search.best_cost <= float(problem.cost(x, nearest_feasible(problem, x)))


@pytest.mark.parametrize("problem", UNKNOWN, ids=ids)
def test_any_order_is_replayed_into_a_feasible_solution(problem):
    random = np.random.default_rng(5)
    for seed in range(5):
        x = sampled(problem, 12, seed)
        nodes = x.xy.shape[1]
        orders = torch.from_numpy(random.integers(-1, nodes, (32, 20)))
        home = torch.from_numpy(random.random(32) < 0.5)
        tours = replay(problem, x, orders, distance_matrix(x)[0], home_first=home)
        problem.check(x, tours[None], 1e-9)


@pytest.mark.parametrize("problem", UNKNOWN, ids=ids)
def test_a_solution_replayed_stays_as_it_is(problem):
    x = sampled(problem, 15, 3)
    first = nearest_feasible(problem, x)[0]
    again = replay(problem, x, torch.from_numpy(trimmed(first[0].numpy()))[None], distance_matrix(x)[0])
    assert trimmed(again[0].numpy()).tolist() == trimmed(first[0].numpy()).tolist()


@pytest.mark.parametrize("problem", UNKNOWN, ids=ids)
def test_equal_seeds_and_iterations_give_equal_solutions(problem):
    x = sampled(problem, 20, 2)
    tours = []
    for seed in (4, 4, 5):
        search = Search(problem, x, seed)
        search.run(iterations=8)
        tours.append(search.best_tour.tolist())
    assert tours[0] == tours[1]


def test_it_finds_much_better_solutions_than_the_nearest_node_gives():
    problem = Arrivals()
    x = sampled(problem, 30, 7)
    search = Search(problem, x, 0)
    search.run(iterations=10)
    assert search.best_cost < 0.8 * float(problem.cost(x, nearest_feasible(problem, x)))


@pytest.mark.parametrize("seconds", [0.1, 0.4])
@pytest.mark.parametrize("n", [20, 100])
def test_time_limits_are_kept(seconds, n):
    problem = PlainCVRP()
    search = Search(problem, sampled(problem, n), 0, horizon=seconds)
    search.run(0.0)
    begun = time.perf_counter()
    search.run(seconds)
    assert time.perf_counter() - begun < seconds + 0.1  # a tenth for a processor that others use, too


def test_it_comes_near_the_search_made_for_the_problem():
    x, ours, theirs = sampled(get("cvrp"), 20, 11, batch=3), 0.0, 0.0
    for row in range(3):
        one = take(x, slice(row, row + 1))
        general, fast = Search(PlainCVRP(), one, 0), Search(get("cvrp"), one, 0)
        general.run(iterations=60)
        fast.run(iterations=20_000)
        ours, theirs = ours + general.best_cost, theirs + fast.best_cost
    assert ours < 1.05 * theirs


@pytest.mark.parametrize("problem", UNKNOWN, ids=ids)
@pytest.mark.parametrize("iterations", [None, 2])
def test_improve_makes_no_solution_of_a_batch_worse(problem, iterations):
    x = sampled(problem, 10, 3, batch=3)
    legs, nothing = distance_matrix(x)[0], torch.full((1, 1), -1)
    parts = [replay(problem, take(x, slice(b, b + 1)), nothing, legs)[0] for b in range(3)]
    tours = stack(problem, x, [[part.numpy()] for part in parts], 0)
    better = improve(problem, x, tours, seconds=None, iterations=iterations)
    problem.check(x, better)
    assert (problem.cost(x, better) <= problem.cost(x, tours)).all()


def test_parts_left_off_are_prefixes_that_a_policy_can_go_on_from():
    problem = Arrivals()
    x = sampled(problem, 12)
    search = Search(problem, x, 0)
    search.run(iterations=2)
    prefixes = search.destroyed(8, 0.3)[0]
    tour = search.best_tour[0, 0].tolist()
    for prefix in prefixes.tolist():
        kept = [node for node in prefix if node >= 0]
        assert len(kept) < len(tour)
        assert kept == tour[: len(kept)]


def test_a_search_that_fits_no_iteration_ends_at_once():
    problem = PlainCVRP()
    search = Search(problem, sampled(problem, 30), 0)
    search.run(0.0)
    first = search.best_cost
    search.engine.slow = 10.0
    begun = time.perf_counter()
    search.run(1.0)
    assert time.perf_counter() - begun < 0.5
    assert search.best_cost == first


@pytest.mark.parametrize("threads", [1, 2])
def test_the_anytime_search_ends_on_time_with_a_feasible_solution(threads):
    problem = Arrivals()
    x, board = sampled(problem, 25), Board()
    begun = time.perf_counter()
    anytime(problem, x, board, deadline=begun + 0.5, threads=threads)
    assert time.perf_counter() - begun < 0.7
    problem.check(x, board.tour)
    assert board.cost < float(problem.cost(x, nearest_feasible(problem, x)))


def test_the_anytime_search_hears_the_stop():
    problem = Arrivals()
    x, board = sampled(problem, 25), Board()
    threading.Timer(0.3, board.stop.set).start()
    begun = time.perf_counter()
    anytime(problem, x, board, deadline=begun + 20, threads=1)
    assert time.perf_counter() - begun < 3
    assert board.tour is not None
