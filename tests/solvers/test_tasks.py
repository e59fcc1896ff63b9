"""Instances as tasks, answers as tours, and the small instances solved by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from paper_problems import PAPER

from routelearn.problems import NumpyRng, get
from routelearn.problems.base import to_single
from routelearn.solvers.tasks import by_hand, join, limited_legs, split, tasks_of, tours_of


@pytest.mark.parametrize("name", sorted(set(PAPER) - {"sdvrp", "spctsp"}))
@pytest.mark.parametrize("n", [1, 2, 3])
def test_enumeration_is_feasible_and_no_random_tour_beats_it(name, n):
    problem = get(name)
    if name == "tsp":
        n += 1
    x = to_single(problem.sample(NumpyRng(n), 6, n))
    tours = tours_of([by_hand(task) for task in tasks_of(problem, x)])
    problem.check(x, tours)
    customers = range(0 if name == "tsp" else 1, x.xy.shape[1])
    least = n if name in ("tsp", "cvrp") else 0
    for count in range(least, n + 1):
        for chosen in itertools.permutations(customers, count):
            rival = torch.tensor(
                [*chosen] if name == "tsp" else join([[c] for c in chosen]) if name == "cvrp" else [*chosen, 0]
            )
            rival = rival.expand(6, 1, -1)
            for row in range(6):
                one = type(x)(*(None if f is None else f[row : row + 1] for f in x))
                try:
                    problem.check(one, rival[:1])
                except ValueError:
                    continue
                assert problem.cost(one, rival[:1]) >= problem.cost(one, tours[row : row + 1]) - 1e-5


def test_a_row_without_an_answer_is_minus_one_and_others_are_padded_with_the_depot():
    tours = tours_of([[3, 1, 0], None, np.array([0])])
    assert tours.tolist() == [[[3, 1, 0]], [[-1, -1, -1]], [[0, 0, 0]]]
    assert tours_of([None]).tolist() == [[[-1]]]


def test_routes_join_and_split():
    assert join([[3, 1], [], [2]]) == [3, 1, 0, 2]
    assert split([0, 3, 1, 0, 0, 2, 0]) == [[3, 1], [2]]
    assert join([]) == []


def test_whole_legs_never_understate_the_length():
    problem = get("op-unif")
    for task in tasks_of(problem, problem.sample(NumpyRng(3), 20, 15)):
        legs = limited_legs(task, 1000)
        tour = np.random.default_rng(0).permutation(16)
        if legs[tour, np.roll(tour, -1)].sum() <= 1000:
            assert task.legs()[tour, np.roll(tour, -1)].sum() <= task.max_length
        inside = legs <= 1000
        assert (legs[inside] * task.max_length / 1000 >= task.legs()[inside] - 1e-9).all()


def test_a_leg_that_fits_exactly_stays_within_the_limit():
    problem = get("op-const")
    x = problem.sample(NumpyRng(3), 1, 4)
    x = x._replace(distances=torch.full((1, 5, 5), 0.1, dtype=torch.float64), max_length=torch.tensor([0.5]))
    assert limited_legs(tasks_of(problem, x)[0], 10**7).sum() == 20 * 2 * 10**6


def test_vehicles_always_suffice_for_a_first_fit_packing():
    problem = get("cvrp")
    for task in tasks_of(problem, problem.sample(NumpyRng(3), 50, 30)):
        routes, load = 1, 0
        for demand in task.demand[1:]:
            routes, load = (routes + 1, demand) if load + demand > task.capacity else (routes, load + demand)
        assert routes <= task.vehicles()
