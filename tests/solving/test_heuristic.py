"""Constructions without compiled code: feasible for every problem and size, good, and only from what is public."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from paper_problems import PAPER
from solving_referee import random_case

from routelearn.problems import PROBLEMS, NumpyRng, Problem
from routelearn.problems.base import distance_matrix
from routelearn.problems.op import Instance
from routelearn.solving import solve
from routelearn.solving.heuristic import by_cutting, construct, has_shortcuts

COMPARED = {"tsp": 1.15, "cvrp": 1.12, "sdvrp": 1.12, "op-const": 1.3, "op-unif": 1.3, "op-dist": 1.35, "pctsp": 1.5}


@pytest.mark.parametrize("problem", PAPER, indirect=True)
@pytest.mark.parametrize("directed", [False, True])
def test_constructions_are_feasible(problem: Problem, directed: bool) -> None:
    for n in (2, 3, 7, 60):
        x = problem.sample(NumpyRng(n), 1, n)
        if directed:
            legs = distance_matrix(x).double() * (1 + torch.rand(x.xy.shape[1], x.xy.shape[1]))
            x = x._replace(distances=legs.to(x.xy.dtype))
        public = x.public()
        problem.check(public, construct(problem, x))


@pytest.mark.parametrize("name", COMPARED)
def test_constructions_are_within_reach_of_the_search(name: str) -> None:
    from routelearn.search import Search

    problem, built, found = PROBLEMS[name], 0.0, 0.0
    for seed in range(5):
        x = problem.sample(NumpyRng(seed), 1, 50)
        search = Search(problem, x)
        search.run(iterations=1000)
        built, found = built + float(problem.cost(x, construct(problem, x))), found + search.best_cost
    worse = found / built if problem.maximise else built / found
    assert 1 <= worse < COMPARED[name]


def test_demands_beyond_the_capacity_are_carried_in_full_loads() -> None:
    problem = PROBLEMS["sdvrp"]
    x = problem.sample(NumpyRng(0), 1, 12)._replace(capacity=torch.tensor([4]))
    problem.check(x, construct(problem, x))


def test_real_prizes_are_not_read() -> None:
    problem = PROBLEMS["spctsp"]
    x = problem.sample(NumpyRng(0), 1, 30)
    other = x._replace(real_prize=x.real_prize.flip(1) * 3)
    assert construct(problem, x).tolist() == construct(problem, other).tolist()


@pytest.mark.parametrize("name", PAPER)
def test_no_seconds_are_never_worse_than_the_construction(name: str) -> None:
    for seed in range(3):
        case = random_case(name, 30, np.random.default_rng(seed))
        with_policy, without = (solve(**case.arguments(), seconds=0, policy=policy) for policy in (True, False))
        assert {event.by for event in without.events} == {"heuristic"}
        if name != "spctsp":  # of two journeys the better one is only known in hindsight
            assert with_policy.cost <= without.cost


# ------------------------------------------------------------------------------ legs without a triangle inequality


def test_where_no_single_node_fits_a_whole_tour_is_cut() -> None:
    """Out to 1, on to 2, home: 3 long; there and back to either of them 10."""
    legs = torch.tensor([[[0.0, 1, 9], [9, 0, 1], [1, 9, 0]]])
    x = Instance(torch.zeros(1, 3, 2), torch.tensor([[0.0, 3, 5]]), torch.tensor([3.5]), legs)
    problem = PROBLEMS["op-unif"]
    assert construct(problem, x).tolist() == [[[1, 2, 0]]]
    assert construct(problem, x._replace(max_length=torch.tensor([2.5]))).tolist() == [[[0]]]


def test_cutting_keeps_the_limit_and_drops_what_is_long_for_its_prize() -> None:
    legs = np.abs(np.subtract.outer(np.array([0.0, 1, 2, 9]), np.array([0.0, 1, 2, 9])))
    assert by_cutting(legs, np.array([0.0, 1, 1, 1]), 4.0) in ([1, 2], [2, 1])
    assert not has_shortcuts(legs)
    legs[0, 3] = 30.0
    assert has_shortcuts(legs)


def test_the_search_goes_on_from_a_tour_that_was_cut() -> None:
    legs = [[0, 1, 9], [9, 0, 1], [1, 9, 0]]
    found = solve(matrix=legs, prize=[0, 3, 5], max_length=3.5, seconds=0.1)
    assert found.routes == [[1, 2]]
    assert found.cost == -8
