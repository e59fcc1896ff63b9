"""Every solution that leaves the package is feasible and costs what it says, by a referee of its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from paper_problems import PAPER
from solving_referee import SINGLE, Case, judge, random_case

from routelearn import policies
from routelearn.decoding.rollout import finish
from routelearn.policies.base import shape_of
from routelearn.problems import PROBLEMS, NumpyRng, Problem
from routelearn.solving import solve

PLACES = ("coords", "latlon", "matrix", "both")


def assert_agrees(case: Case, solution) -> None:
    cost = judge(case, solution.routes)
    assert solution.cost == pytest.approx(cost, rel=1e-9, abs=1e-9)
    assert solution.problem == case.problem


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("name", PAPER)
def test_solve_gives_feasible_solutions_of_the_stated_cost(name: str, places: str) -> None:
    rng = np.random.default_rng(len(name) * 7 + len(places))
    for seconds in (0, 0.02):
        case = random_case(name, int(rng.integers(2, 25)), rng, places)
        assert_agrees(case, solve(**case.arguments(), seconds=seconds, threads=2))


@pytest.mark.parametrize("name", PAPER)
def test_the_smallest_instances(name: str) -> None:
    rng = np.random.default_rng(5)
    for customers in (1, 2, 3) if name != "tsp" else (2, 3, 4):
        for seconds in (0, 0.01):
            case = random_case(name, customers, rng)
            assert_agrees(case, solve(**case.arguments(), seconds=seconds))


@pytest.mark.parametrize("policy", [True, False])
def test_with_and_without_a_policy(policy: bool) -> None:
    case = random_case("tsp", 40, np.random.default_rng(0))
    for seconds in (0, 0.3):
        assert_agrees(case, solve(**case.arguments(), seconds=seconds, policy=policy))


def cases_of(problem: Problem, x) -> list[Case]:
    """The instances of a batch, for the referee."""
    fields = {"xy": "coords", "distances": "matrix"}
    return [
        Case(
            problem.name,
            **{
                fields.get(field, field): value[row].double().numpy() if value[row].dim() else float(value[row])
                for field, value in zip(x._fields, x, strict=True)
                if value is not None
            },
        )
        for row in range(x.xy.shape[0])
    ]


def routes_of(problem: Problem, tour: list[int], nodes: int) -> list[list[int]]:
    if not problem.has_depot:
        return [tour[:nodes]]
    routes: list[list[int]] = [[]]
    for node in tour:
        if node:
            routes[-1].append(node)
        else:
            routes.append([])
    return [route for route in routes if route]


def decoded(problem: Problem, x, solutions: int, temperature: float) -> torch.Tensor:
    policy = policies.build("attention", shape_of(problem), {"width": 16, "heads": 2, "layers": 1, "hidden": 16}).eval()
    with torch.no_grad():
        rolled = finish(
            problem, policy, policy.encode(problem.features(x)), x, solutions=solutions, temperature=temperature
        )
    assert bool(rolled.done.all())
    return rolled.tour


def referee_many(problem: Problem, size: int, batch: int, solutions: int, temperature: float, improved: bool) -> int:
    x = problem.sample(NumpyRng(size), batch, size)
    tours = decoded(problem, problem_single(x), solutions, temperature)
    if improved and not problem.reveals_on_visit:
        from routelearn.search import improve

        tours = improve(problem, x, tours, seconds=None)
    costs = problem.cost(x, tours)
    for row, case in enumerate(cases_of(problem, x)):
        for column in range(tours.shape[1]):
            cost = judge(case, routes_of(problem, tours[row, column].tolist(), x.xy.shape[1]), SINGLE)
            assert cost == pytest.approx(float(costs[row, column]), rel=1e-5, abs=1e-5)
    return tours.shape[0] * tours.shape[1]


def problem_single(x):
    """Single precision, as policies decode."""
    from routelearn.problems.base import to_single

    return to_single(x)


@pytest.mark.parametrize("problem", PAPER, indirect=True)
@pytest.mark.parametrize("improved", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 1.0, 3.0])
def test_decoded_solutions_pass_the_referee(problem: Problem, temperature: float, improved: bool) -> None:
    assert referee_many(problem, 12, 3, 4, temperature, improved) == 12


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPER)
def test_a_hundred_thousand_solutions_over_the_problems(name: str) -> None:
    """12,500 a problem, about one in 20 batches improved; sizes from 2 to 80."""
    problem, judged = PROBLEMS[name], 0
    rng = np.random.default_rng(17)
    while judged < 12_500:
        size = int(rng.integers(2, 80)) if judged % 3 else int(rng.integers(2, 12))
        temperature = (0.0, 1.0, 2.0)[judged % 3]
        judged += referee_many(problem, size, 5, 50 if temperature else 1, temperature, rng.random() < 0.05)
