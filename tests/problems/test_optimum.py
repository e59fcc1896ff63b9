"""The best of ALL solutions that masks and steps allow is the optimum found by brute force."""

from __future__ import annotations

import brute_force
import pytest
import torch

from routelearn.problems import NumpyRng, get
from routelearn.problems.base import distance_matrix


def all_solutions(problem, x):
    """Every feasible sequence of actions of one instance, [1, S, T], by breadth-first expansion."""
    state = problem.initial(x, 1)
    tour = torch.zeros(1, 1, 0, dtype=torch.long)
    for _ in range(problem.max_steps(x)):
        parent, action = problem.feasible(x, state)[0].nonzero().unbind(1)
        state = type(state)(*(field[:, parent] for field in state))
        state = problem.step(x, state, action[None])
        tour = torch.cat((tour[:, parent], action[None, :, None]), -1)
    assert problem.done(x, state).all()
    return tour


def shortest_paths(legs):
    """Legs that obey the triangle inequality: the closure of any matrix (Floyd and Warshall)."""
    for via in range(legs.shape[-1]):
        legs = torch.minimum(legs, legs[:, :, via, None] + legs[:, None, via])
    return legs


def optimum(name, x):
    legs = distance_matrix(x)[0].tolist()
    if name == "tsp":
        return brute_force.tsp(legs)
    if name in ("cvrp", "sdvrp"):
        return getattr(brute_force, name)(legs, x.demand[0].tolist(), int(x.capacity[0]))
    if name.startswith("op"):
        return brute_force.op(legs, x.prize[0].tolist(), float(x.max_length[0]))
    prize = x.real_prize if name == "spctsp" else x.prize
    return brute_force.pctsp(legs, prize[0].tolist(), x.penalty[0].tolist(), float(x.min_prize[0]))


SIZES = {"tsp": (2, 4, 6), "cvrp": (1, 3, 5), "sdvrp": (1, 3, 4), "op-const": (1, 4, 6), "op-unif": (3, 6)}
SIZES |= {"op-dist": (3, 6), "pctsp": (1, 4, 6), "spctsp": (2, 4, 6)}


@pytest.mark.parametrize("matrix", ["euclidean", "asymmetric"])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("name", SIZES)
def test_the_best_of_all_solutions_is_the_optimum(name, seed, matrix):
    problem = get(name)
    for n in SIZES[name]:
        x = problem.sample(NumpyRng(seed), 1, n)
        if matrix == "asymmetric":
            legs = torch.rand(
                1, *x.xy.shape[1:2] * 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
            )
            legs.diagonal(dim1=1, dim2=2).zero_()
            # The orienteering mask (D.2) weighs the direct way home, so it presumes the triangle inequality.
            x = x._replace(distances=shortest_paths(legs) if name.startswith("op") else legs)
        tour = all_solutions(problem, x)
        problem.check(x, tour)
        assert problem.cost(x, tour).min().item() == pytest.approx(optimum(name, x), abs=1e-12)


@pytest.mark.parametrize("prizes", [1.0, 0.0])
@pytest.mark.parametrize("name", ["pctsp", "spctsp"])
def test_without_a_minimum_prize_only_length_and_penalties_count(name, prizes):
    problem = get(name)
    x = problem.sample(NumpyRng(5), 1, 5)
    x = x._replace(min_prize=torch.zeros_like(x.min_prize), prize=x.prize * prizes)
    problem.validate(x)
    tour = all_solutions(problem, x)
    problem.check(x, tour)
    assert problem.cost(x, tour).min().item() == pytest.approx(optimum(name, x), abs=1e-12)
    assert (tour == 0).all(-1).any(), "staying at home is allowed"
    shares = problem.features(x)[1][..., 2]
    torch.testing.assert_close(shares.sum(1), torch.tensor([2.0 * prizes], dtype=shares.dtype))
    assert problem.context(x, problem.initial(x, 2)).scalars.eq(0).all()


@pytest.mark.parametrize("name", ["cvrp", "sdvrp"])
def test_splitting_a_delivery_pays_where_it_should(name):
    """Three customers of 2 on one far spot, capacity 3: two split loads against three whole ones."""
    problem = get(name)
    x = problem.sample(NumpyRng(0), 1, 3)
    xy = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]], dtype=torch.float64)
    x = x._replace(xy=xy, demand=torch.tensor([[0, 2, 2, 2]]), capacity=torch.tensor([3]))
    best = problem.cost(x, all_solutions(problem, x)).min().item()
    assert best == pytest.approx(optimum(name, x)) == {"cvrp": 6.0, "sdvrp": 4.0}[name]


def test_a_demand_above_the_capacity_is_split():
    problem = get("sdvrp")
    x = problem.sample(NumpyRng(5), 1, 2)._replace(demand=torch.tensor([[0, 7, 2]]), capacity=torch.tensor([3]))
    problem.validate(x)
    tour = all_solutions(problem, x)
    problem.check(x, tour)
    assert problem.cost(x, tour).min().item() == pytest.approx(optimum("sdvrp", x))
