"""Limits as the user means them: what fills a limit exactly fits, what exceeds it by more than rounding does not."""

from __future__ import annotations

from itertools import pairwise

import brute_force
import numpy as np
import pytest
import torch

from routelearn.data.convert import to_instance
from routelearn.errors import Infeasible
from routelearn.problems import get
from routelearn.search import Search
from routelearn.solving import solve, solve_many
from routelearn.solving.arguments import stops_of
from routelearn.solving.guide import Guide
from routelearn.solving.heuristic import construct
from routelearn.solving.models import find_model
from routelearn.solving.strict import check_strictly

LINE = {"coords": [(0, 0), (1, 0), (0.1, 0)], "prize": [0, 5, 1]}  # both stops on the way there and back: 2 long
SHORT = 2 * (1 - 1e-7)


@pytest.mark.parametrize("policy", [True, False])
@pytest.mark.parametrize("seconds", [0, 0.05])
def test_a_tour_that_fills_the_length_exactly_is_allowed(policy: bool, seconds: float) -> None:
    found = solve(**LINE, max_length=2, policy=policy, seconds=seconds, threads=1)
    assert (found.prize, found.length) == (6, 2)


@pytest.mark.parametrize("policy", [True, False])
@pytest.mark.parametrize("seconds", [0, 0.5])
def test_no_answer_is_longer_than_the_user_allows(policy: bool, seconds: float) -> None:
    """Single precision cannot tell this limit from 2."""
    found = solve(**LINE, max_length=SHORT, policy=policy, seconds=seconds, threads=1)
    assert found.prize == 1
    many = {"coords": [LINE["coords"]] * 2, "prize": [LINE["prize"]] * 2}
    both = solve_many(**many, max_length=SHORT, policy=policy, seconds=seconds, threads=1)
    assert all(one.length <= SHORT for one in both)
    if seconds or not policy:  # at 0 seconds many are left to the policy alone
        assert [one.prize for one in both] == [1, 1]


def test_the_policy_builds_what_the_referee_refuses() -> None:
    """Without the strict check the policy's tour would be the answer above."""
    converted = to_instance(stops_of(**LINE), max_length=SHORT)
    model, _ = find_model(converted.problem, 3)
    assert model is not None
    guide, tour = Guide(converted.problem, model, converted.policy, converted.referee), torch.tensor([[[2, 1, 0]]])
    converted.problem.check(converted.referee, tour)
    with pytest.raises(Infeasible, match=r"is 2 long; 1\.9999998 is allowed"):
        check_strictly(converted.problem, converted.referee, tour)
    assert guide.best_of(tour) is None


def test_whole_lengths_and_limits_reach_the_optimum() -> None:
    rng = np.random.default_rng(1)
    exactly_filled = 0
    for _ in range(25):
        places = rng.integers(0, 10, (6, 2))
        legs = np.abs(places[:, None] - places[None]).sum(-1).astype(float)  # whole blocks of a city
        prize = np.append(0, rng.integers(1, 20, 5)).astype(float)
        limit = float(2 * rng.integers(5, 15))
        converted = to_instance(stops_of(matrix=legs, prize=prize), max_length=limit)
        search = Search(converted.problem, converted.referee)
        search.run(iterations=200)
        assert search.best_tour is not None
        assert search.best_cost == brute_force.op(legs.tolist(), prize.tolist(), limit)
        check_strictly(converted.problem, converted.referee, search.best_tour)
        exactly_filled += _length(legs, search.best_tour) == limit
    assert exactly_filled >= 5


def _length(legs: np.ndarray, tour: torch.Tensor) -> float:
    nodes = [0, *tour[0, 0].tolist(), 0]
    return float(sum(legs[a, b] for a, b in pairwise(nodes)))


def test_a_minimum_prize_that_the_sum_meets_exactly_is_met() -> None:
    """0.7 + 0.1 is a bit less than 0.8 in double precision."""
    stops = stops_of(coords=[(0, 0), (1, 0), (1, 0.1), (9, 9)], prize=[0, 0.7, 0.1, 1], penalty=[0, 0, 0, 0])
    converted = to_instance(stops, min_prize=0.8)
    near = torch.tensor([[[1, 2, 0]]])
    for tour in (construct(converted.problem, converted.referee), _searched(converted)):
        assert sorted(tour[0, 0].tolist()) == [0, 1, 2]
    check_strictly(converted.problem, converted.referee, near)
    with pytest.raises(Infeasible, match=r"0\.80000001 is required"):
        check_strictly(get("pctsp"), to_instance(stops, min_prize=0.80000001).referee, near)


def _searched(converted) -> torch.Tensor:
    search = Search(converted.problem, converted.referee)
    search.run(iterations=50)
    assert search.best_tour is not None
    return search.best_tour
