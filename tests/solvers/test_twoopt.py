"""2-opt and Or-opt: gains that are real, tours that no move improves, and both for asymmetric distances."""

from __future__ import annotations

import brute_force
import numpy as np
import pytest
from test_constructions import legs, length

from routelearn.solvers.own.twoopt import shorten, shorten_routes


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_length_saved_is_the_difference(symmetric):
    for seed in range(20):
        d, tour = legs(15, seed, symmetric=symmetric), np.random.default_rng(seed).permutation(15)
        before, first = length(d, tour), tour[0]
        saved = shorten(d, tour, 15)
        assert sorted(tour) == list(range(15))
        assert tour[0] == first
        assert saved > 0
        assert before - length(d, tour) == pytest.approx(saved)


@pytest.mark.parametrize("symmetric", [True, False])
def test_no_reversal_and_no_move_of_up_to_three_nodes_improves_the_result(symmetric):
    for seed in range(5):
        d, tour = legs(9, seed, symmetric=symmetric), np.arange(9)
        shorten(d, tour, 9)
        best, nodes = length(d, tour) - 1e-9, tour.tolist()
        for i in range(1, 9):
            for j in range(i + 1, 10):
                assert length(d, np.array(nodes[:i] + nodes[i:j][::-1] + nodes[j:])) >= best
                if j - i <= 3:
                    rest = nodes[:i] + nodes[j:]
                    for place in range(1, len(rest) + 1):
                        for stretch in (nodes[i:j], nodes[i:j][::-1]):
                            assert length(d, np.array(rest[:place] + stretch + rest[place:])) >= best


def test_small_tours_end_up_near_the_optimum():
    d = np.stack([legs(8, seed) for seed in range(40)])
    tours = np.tile(np.arange(8), (40, 1))
    for b in range(40):
        shorten(d[b], tours[b], 8)
    lengths = [length(d[b], tours[b]) for b in range(40)]
    assert np.mean(lengths) <= 1.01 * np.mean([brute_force.tsp(w.tolist()) for w in d])


def test_only_the_part_that_counts_is_moved():
    d, tour = legs(12, 1), np.arange(12)
    shorten(d, tour, 7)
    assert sorted(tour[:7]) == list(range(7))
    assert tour[7:].tolist() == list(range(7, 12))


def test_routes_keep_their_customers_and_get_shorter():
    d = legs(13, 4)
    tour = np.array([5, 1, 9, 3, 0, 2, 0, 0, 12, 4, 8, 11, 6, 10, 7])
    better = tour.copy()
    shorten_routes(d, better)
    assert [sorted(r) for r in np.split(better, [4, 6, 7])] == [sorted(r) for r in np.split(tour, [4, 6, 7])]
    assert length(d, np.append(0, better)) < length(d, np.append(0, tour)) - 0.1
