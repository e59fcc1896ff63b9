"""Savings and sweep: the capacity used to the full, full loads split off, and the order of quality."""

from __future__ import annotations

import brute_force
import pytest
import torch
from test_own_solvers import asymmetric, sample, solved

from routelearn import problems
from routelearn.problems.base import distance_matrix

CVRP, SDVRP = problems.get("cvrp"), problems.get("sdvrp")
METHODS = ["savings", "random-savings", "sweep", "random-sweep", "savings+2opt", "sweep+2opt"]


def one(xy, demand, capacity):
    """An instance of one row."""
    x = sample("cvrp", 1, len(demand) - 1)
    return x._replace(xy=torch.tensor([xy]), demand=torch.tensor([demand]), capacity=torch.tensor([capacity]))


def mean_cost(name: str, x) -> float:
    return float(CVRP.cost(x, solved(name, "cvrp", x)).mean())


@pytest.mark.parametrize("name", METHODS)
def test_a_route_is_filled_to_the_last_unit(name):
    x = one([[0.5, 0.0], [0.4, 1.0], [0.5, 1.0], [0.6, 1.0]], [0, 3, 4, 3], 10)
    assert (solved(name, "cvrp", x)[0, 0] != 0).sum() == 3
    assert float(CVRP.cost(x, solved(name, "cvrp", x))) < 2.3  # one route: two are at least 4


@pytest.mark.parametrize("name", METHODS)
def test_demand_over_the_capacity_is_brought_in_full_loads(name):
    x = sample("sdvrp", 6, 7)
    x = x._replace(demand=x.demand * torch.tensor([0, 1, 1, 40, 1, 7, 20, 1]), capacity=torch.full_like(x.capacity, 10))
    tour = solved(name, "sdvrp", x)
    needed = (x.demand[:, 3] + 9) // 10
    assert torch.equal((tour[:, 0] == 3).sum(1), needed)  # as few visits as loads


@pytest.mark.parametrize("name", METHODS)
def test_sdvrp_leaves_out_who_demands_nothing_and_cvrp_does_not(name):
    x = sample("cvrp", 4, 6)
    x.demand[:, 2] = 0
    assert not (solved(name, "sdvrp", x) == 2).any()
    assert (solved(name, "cvrp", x) == 2).any()
    x = x._replace(demand=torch.zeros_like(x.demand))
    assert not solved(name, "sdvrp", x).any()


def test_savings_come_near_the_optimum_of_small_instances():
    x = sample("cvrp", 15, 6)
    x = x._replace(capacity=torch.full_like(x.capacity, 15))
    legs = distance_matrix(x).tolist()
    best = [brute_force.cvrp(legs[b], x.demand[b].tolist(), 15) for b in range(15)]
    optimum = sum(best) / 15
    assert optimum - 1e-4 <= mean_cost("random-savings", x) <= mean_cost("savings", x) <= 1.08 * optimum
    assert mean_cost("random-savings", x) <= 1.02 * optimum


def test_quality_falls_in_the_known_order():
    x = sample("cvrp", 40, 30)
    costs = [
        mean_cost(n, x) for n in ("random-savings", "savings+2opt", "savings", "sweep+2opt", "random-sweep", "sweep")
    ]
    assert costs == sorted(costs)


def test_random_savings_are_never_worse_than_plain_ones():
    for x in (sample("cvrp", 20, 15), asymmetric(sample("cvrp", 20, 15))):
        plain, randomised = (CVRP.cost(x, solved(n, "cvrp", x)) for n in ("savings", "random-savings"))
        assert (randomised <= plain + 1e-5).all()


def test_a_sweep_visits_by_angle():
    x = sample("cvrp", 10, 14)
    for row, tour in enumerate(solved("sweep", "cvrp", x)[:, 0]):
        nodes = tour[tour != 0]
        away = x.xy[row, nodes] - x.xy[row, 0]
        angle = torch.atan2(away[:, 1], away[:, 0])
        assert (angle.diff() >= 0).all()


def test_another_seed_gives_other_random_savings():
    x = sample("cvrp", 20, 40)
    first, second = (CVRP.cost(x, solved("random-savings", "cvrp", x, seed)) for seed in (0, 1))
    assert not torch.equal(first, second)
