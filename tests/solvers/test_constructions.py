"""TSP constructions against the definitions of appendix B.3, written again in plain Python, and known bounds."""

from __future__ import annotations

import brute_force
import numpy as np
import pytest

from routelearn.solvers.own.christofides import christofides, spanning_tree
from routelearn.solvers.own.constructions import FARTHEST, NEAREST, RANDOM, insertion, nearest_neighbour
from routelearn.solvers.own.savings import tsp_savings


def legs(nodes: int, seed: int, *, symmetric: bool = True) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if not symmetric:
        return rng.random((nodes, nodes)) * (1 - np.eye(nodes))
    xy = rng.random((nodes, 2))
    return np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))


def length(d: np.ndarray, tour: np.ndarray) -> float:
    return float(d[tour, np.roll(tour, -1)].sum())


def plain_insertion(d: np.ndarray, rule: int) -> list[int]:
    nodes = len(d)
    tour = [int(d.max(1).argmax()) if rule == FARTHEST else 0]
    while len(tour) < nodes:
        outside = [i for i in range(nodes) if i not in tour]
        away = [min(d[i, j] for j in tour) for i in outside]
        pick = {NEAREST: np.argmin, FARTHEST: np.argmax, RANDOM: lambda _: 0}[rule](away)
        node = outside[int(pick)]
        detours = [d[j, node] + d[node, k] - d[j, k] for j, k in zip(tour, tour[1:] + tour[:1], strict=True)]
        tour.insert(int(np.argmin(detours)) + 1, node)
    return tour


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("rule", [NEAREST, FARTHEST, RANDOM])
def test_insertion_is_the_definition(rule, symmetric):
    d = np.stack([legs(13, seed, symmetric=symmetric) for seed in range(20)])
    for b, tour in enumerate(insertion(d, rule)):
        expected = plain_insertion(d[b], rule)
        start = list(tour).index(expected[0])
        assert [*tour[start:], *tour[:start]] == expected


@pytest.mark.parametrize("symmetric", [True, False])
def test_nearest_neighbour_starts_at_node_0_and_takes_the_nearest(symmetric):
    d = np.stack([legs(12, seed, symmetric=symmetric) for seed in range(20)])
    for b, tour in enumerate(nearest_neighbour(d)):
        assert tour[0] == 0
        for t in range(11):
            assert d[b, tour[t], tour[t + 1]] == d[b, tour[t], tour[t + 1 :]].min()


def test_spanning_tree_is_no_longer_than_any_other():
    scipy_tree = pytest.importorskip("scipy.sparse.csgraph", reason="scipy gives the length to compare with")
    for seed in range(10):
        d = legs(25, seed)
        parent = spanning_tree(d)
        mine = sum(d[i, parent[i]] for i in range(1, 25))
        assert mine == pytest.approx(scipy_tree.minimum_spanning_tree(d).sum())


def test_christofides_is_within_half_again_of_the_optimum():
    d = np.stack([legs(8, seed) for seed in range(30)])
    ratios = [length(d[b], tour) / brute_force.tsp(d[b].tolist()) for b, tour in enumerate(christofides(d))]
    assert max(ratios) <= 1.5
    assert 1.0 - 1e-9 <= np.mean(ratios) < 1.1


def test_savings_begin_with_the_best_pair():
    """Node 0 is the hub; the pair that saves most is joined first and stays together."""
    d = np.stack([legs(20, seed) for seed in range(20)])
    for b, tour in enumerate(tsp_savings(d)):
        saving = d[b, 1:, :1] + d[b, :1, 1:] - d[b, 1:, 1:]
        np.fill_diagonal(saving, -1)
        i, j = (int(k) + 1 for k in np.unravel_index(saving.argmax(), saving.shape))
        places = {int(node): t for t, node in enumerate(tour)}
        assert abs(places[i] - places[j]) == 1


def test_savings_over_asymmetric_distances_turn_no_route_round():
    """One direction costs next to nothing, the other a fortune: the tour must run the cheap way."""
    nodes = 12
    d = np.full((1, nodes, nodes), 10.0)
    for i in range(nodes):
        d[0, i, (i + 1) % nodes] = 0.1
    assert length(d[0], tsp_savings(d)[0]) == pytest.approx(nodes * 0.1)


def test_quality_falls_in_the_known_order():
    d = np.stack([legs(40, seed) for seed in range(60)])
    mean = [
        np.mean([length(d[b], tour) for b, tour in enumerate(tours)])
        for tours in (insertion(d, FARTHEST), insertion(d, RANDOM), christofides(d), insertion(d, NEAREST))
    ]
    assert mean == sorted(mean)
