"""Tsiligirides' construction by its definition, and the genetic algorithm against the optimum."""

from __future__ import annotations

import brute_force
import numpy as np
import pytest
import torch
from test_own_solvers import asymmetric, sample, solved

from routelearn import problems
from routelearn.problems.base import distance_matrix, leg
from routelearn.solvers.own.common import Chunk
from routelearn.solvers.own.op_genetic import genetic
from routelearn.solvers.own.tsiligirides import TOP, _construct, _scores

OP = problems.get("op-unif")


def arrays(x):
    return Chunk(OP, x, 0, 1.0, 0).distances(), x.prize.double().numpy(), x.max_length.double().numpy()


def evolved(x, children: int) -> torch.Tensor:
    d, prize, limit = arrays(x)
    tours = torch.zeros(len(d), 1, d.shape[1], dtype=torch.long)
    for b in range(len(d)):
        stream = np.array([b], np.uint64)
        route = genetic(d[b], prize[b], limit[b], seconds=60.0, children=children, stream=stream)
        tours[b, 0, : len(route)] = torch.from_numpy(route)
    OP.check(x, tours)
    return tours


def test_greedy_takes_the_best_score_that_allows_the_return_and_stops_when_none_does():
    x = sample("op-unif", 6, 15)
    d, prize, limit = arrays(x)
    for b, tour in enumerate(solved("tsiligirides", "op-unif", x)[:, 0].tolist()):
        last, travelled, left = 0, 0.0, set(range(1, 16))
        for node in tour:
            fits = [i for i in left if travelled + d[b, last, i] + d[b, i, 0] <= limit[b]]
            if not fits:
                assert node == 0
                break
            assert node == max(fits, key=lambda i: prize[b, i] / d[b, last, i])
            travelled += d[b, last, node]
            left.remove(node)
            last = node


def test_sampling_draws_the_four_best_in_proportion_to_their_scores():
    d, prize, limit = arrays(sample("op-unif", 1, 20))
    score, order = _scores(d[0], prize[0])
    stream, tour, draws = np.array([7], np.uint64), np.zeros(21, np.int64), np.zeros(21)
    for _ in range(20_000):
        _construct(d[0], prize[0], limit[0], score, order, TOP, stream, tour)
        draws[tour[0]] += 1
    fits = [i for i in range(1, 21) if 2 * d[0, 0, i] <= limit[0]]
    best = sorted(fits, key=lambda i: -score[0, i])[:TOP]
    expected = np.zeros(21)
    expected[best] = score[0, best] / score[0, best].sum()
    assert draws / 20_000 == pytest.approx(expected, abs=0.015)


def test_samples_beat_greedy():
    x = sample("op-dist", 30, 20)
    referee = problems.get("op-dist")
    greedy, best = (referee.cost(x, solved(n, "op-dist", x)) for n in ("tsiligirides", "tsiligirides-sampling"))
    assert best.mean() < 1.1 * greedy.mean()  # costs are negative


@pytest.mark.parametrize("name", ["tsiligirides", "tsiligirides-sampling", "op-genetic"])
def test_nothing_within_reach_gives_the_empty_tour(name):
    x = sample("op-unif", 3, 6)
    x = x._replace(max_length=torch.full_like(x.max_length, 1e-3))
    assert not solved(name, "op-unif", x).any()


@pytest.mark.parametrize("name", ["tsiligirides", "tsiligirides-sampling", "op-genetic"])
def test_no_length_is_spent_on_nodes_without_prize(name):
    x = sample("op-unif", 5, 10)
    x.prize[:, ::2] = 0
    tour = solved(name, "op-unif", x)
    assert not (x.prize.gather(1, tour[:, 0]) == 0)[tour[:, 0] > 0].any()


@pytest.mark.parametrize("problem", ["op-const", "op-unif", "op-dist"])
def test_the_genetic_algorithm_finds_the_optimum_of_small_instances(problem):
    x = sample(problem, 8, 6)
    x = x._replace(max_length=torch.full_like(x.max_length, 1.5))
    legs = distance_matrix(x).tolist()
    best = [brute_force.op(legs[b], x.prize[b].tolist(), 1.5) for b in range(8)]
    assert OP.cost(x, evolved(x, 200))[:, 0].tolist() == pytest.approx(best)


def test_the_genetic_algorithm_finds_the_optimum_over_asymmetric_distances():
    x = asymmetric(sample("op-unif", 8, 6))
    x = x._replace(max_length=torch.full_like(x.max_length, 1.2))
    best = [brute_force.op(x.distances[b].tolist(), x.prize[b].tolist(), 1.2) for b in range(8)]
    assert OP.cost(x, evolved(x, 300))[:, 0].tolist() == pytest.approx(best)


def test_more_children_are_no_worse_and_beat_sampling():
    x = sample("op-dist", 12, 30)
    few, many = OP.cost(x, evolved(x, 20)), OP.cost(x, evolved(x, 600))
    assert (many <= few).all()
    assert many.mean() < OP.cost(x, solved("tsiligirides-sampling", "op-dist", x)).mean()


def test_a_route_within_the_limit_is_used_to_the_end():
    """The limit of one there-and-back exactly: the node must be reached."""
    x = sample("op-const", 4, 5)
    away = leg(x, torch.zeros(4, 1, dtype=torch.long), torch.full((4, 1), 2))[:, 0]
    x = x._replace(max_length=2 * away * (1 + 2e-7))
    for name in ("tsiligirides", "op-genetic"):
        assert solved(name, "op-const", x).any(-1).all()
