"""The iterated local search for the PCTSP against the optimum: as a solver, and as a planner on the way."""

from __future__ import annotations

import time
from itertools import pairwise

import brute_force
import numpy as np
import pytest
import torch
from test_own_solvers import asymmetric, sample, solved

from routelearn import problems, solvers
from routelearn.problems.base import distance_matrix
from routelearn.solvers.own.pctsp_ils import plan

PCTSP = problems.get("pctsp")


def stream(seed: int) -> np.ndarray:
    return np.array([seed], np.uint64)


def small(seed: int, nodes: int = 7, *, symmetric: bool = True):
    """Legs, prizes and penalties in lists."""
    x = sample("pctsp", 1, nodes - 1, seed)
    x = x if symmetric else asymmetric(x, seed)
    return distance_matrix(x)[0].double().numpy(), x.prize[0].double().numpy(), x.penalty[0].double().numpy()


def planned_cost(d, penalty, route, start=0, allowed=None) -> float:
    stops = [start, *route, 0]
    left_out = [i for i in range(1, len(d)) if i not in route and (allowed is None or allowed[i])]
    return float(sum(d[a, b] for a, b in pairwise(stops)) + penalty[left_out].sum())


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("required", [0.0, 1.0, 1.8, 99.0])
def test_small_plans_are_optimal(required, symmetric):
    for seed in range(6):
        d, prize, penalty = small(seed, symmetric=symmetric)
        route = plan(d, prize, penalty, required, stream=stream(seed), seconds=60.0, kicks=200)
        best = brute_force.pctsp(d.tolist(), prize.tolist(), penalty.tolist(), required)
        assert planned_cost(d, penalty, route) == pytest.approx(best)
        assert prize[route].sum() >= required or len(route) == len(d) - 1


@pytest.mark.parametrize("symmetric", [True, False])
def test_plans_from_a_node_to_the_depot_are_optimal(symmetric):
    """Enumerated with the start as one more place: from it to the allowed nodes, from them home."""
    for seed in range(6):
        d, prize, penalty = small(seed, 8, symmetric=symmetric)
        allowed = np.array([False, True, True, False, True, True, True, False])
        start, required = 3, 0.6
        route = plan(
            d, prize, penalty, required, stream=stream(seed), seconds=60.0, kicks=200, start=start, allowed=allowed
        )
        assert set(route) <= set(np.flatnonzero(allowed))
        best = min(
            planned_cost(d, penalty, list(order), start, allowed)
            for order in brute_force.ordered_subsets([int(i) for i in np.flatnonzero(allowed)])
            if prize[list(order)].sum() >= min(required, prize[allowed].sum() - 1e-9)
        )
        assert planned_cost(d, penalty, route, start, allowed) == pytest.approx(best)


def test_a_plan_is_empty_where_nothing_is_worth_a_visit():
    d, prize, penalty = small(1)
    assert len(plan(d, prize, 0 * penalty, 0.0, stream=stream(0), seconds=60.0, kicks=50)) == 0
    nothing = np.zeros(len(d), np.bool_)
    assert len(plan(d, prize, penalty, 1.0, stream=stream(0), seconds=60.0, kicks=50, allowed=nothing)) == 0


def test_all_is_visited_where_the_prizes_do_not_suffice():
    x = sample("pctsp", 5, 9)
    tour = solved("pctsp-ils", "pctsp", x._replace(min_prize=torch.full_like(x.min_prize, 50.0)))
    assert ((tour > 0).sum(-1) == 9).all()


def test_the_exact_sum_of_all_prizes_can_be_required():
    d, prize, penalty = small(3)
    route = plan(d, prize, penalty, float(prize[::-1].sum()), stream=stream(0), seconds=60.0, kicks=20)
    assert len(route) == len(d) - 1


def test_kicks_make_a_plan_repeatable_and_more_are_no_worse():
    d, prize, penalty = small(5, 40)
    costs = []
    for kicks in (20, 20, 400):
        route = plan(d, prize, penalty, 1.0, stream=stream(1), seconds=60.0, kicks=kicks)
        costs.append(planned_cost(d, penalty, route))
    assert costs[0] == costs[1] >= costs[2]


def test_the_time_given_is_kept():
    x = sample("pctsp", 2, 30)
    solved("pctsp-ils", "pctsp", x)  # compiled
    begin = time.perf_counter()
    solvers.get("pctsp-ils").solve(PCTSP, x, seconds=0.3)
    assert 0.28 <= time.perf_counter() - begin < 1.5
