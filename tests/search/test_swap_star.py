"""SWAP* between two routes against every exchange tried out, its restriction to routes in each other's way, and what
it adds to the local search."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from improve_cases import asymmetric

from routelearn.problems import NumpyRng, get
from routelearn.problems.base import distance_matrix
from routelearn.problems.resources import Load
from routelearn.search.engines import RoutesEngine
from routelearn.search.rules import hold
from routelearn.search.swap_star import angles, best_swap, extent, make_swap, overlap


def length(seq, legs) -> float:
    return float(sum(legs[a, b] for a, b in pairwise(seq)))


def inserted(route: list[int], node: int, legs) -> float:
    """Least length of the route (depot left out) with the node in it."""
    return min(length([0, *route[:k], node, *route[k:], 0], legs) for k in range(len(route) + 1))


def best_by_trying(first: list[int], second: list[int], demand, capacity: int, legs) -> float:
    """The least length of both routes after one SWAP* move, or as they are."""
    best = length([0, *first, 0], legs) + length([0, *second, 0], legs)

    def fits(route: list[int]) -> bool:
        return sum(demand[c] for c in route) <= capacity

    def less(route: list[int], node: int) -> list[int]:
        return [c for c in route if c != node]

    for u in [0, *first]:
        for v in [0, *second]:
            a, b = less(first, u), less(second, v)
            if (u == 0 and v == 0) or not fits([*a, v]) or not fits([*b, u]):
                continue
            one = inserted(a, v, legs) if v else length([0, *a, 0], legs)
            two = inserted(b, u, legs) if u else length([0, *b, 0], legs)
            best = min(best, one + two)
    return best


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_of_all_exchanges_is_found_and_made(seed: int, directed: bool) -> None:
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    x = get("cvrp").sample(NumpyRng(seed), 1, 13)
    legs = distance_matrix(asymmetric(x) if directed else x)[0].double().numpy().copy()
    demand = np.append(0, rng.integers(0, 9, 13))
    order = rng.permutation(np.arange(1, 14)).tolist()
    first, second = order[: rng.integers(1, 7)], order[7:]
    capacity = int(max(demand[first].sum(), demand[second].sum()) + rng.integers(0, 4))
    seq = np.array([0, *first, 0, *second, 0])
    before, start = length(seq, legs), len(first) + 1
    rules = hold((Load(demand.astype(float), float(capacity)),), 14)
    gain, i, to_b, j, to_a = best_swap(seq, 0, start, rules, legs, 1e-9, np.zeros((14, 3)), np.zeros((14, 3), np.int64))
    expected = best_by_trying(first, second, demand, capacity, legs)
    assert before - gain == pytest.approx(expected)
    if gain > 0:
        make_swap(seq, i, to_b, j, to_a)
        assert sorted(seq) == sorted([0, 0, 0, *first, *second])
        assert length(seq, legs) == pytest.approx(expected)
        middle = int(np.flatnonzero(seq == 0)[1])
        assert max(demand[seq[:middle]].sum(), demand[seq[middle:]].sum()) <= capacity


def test_sectors_overlap_across_the_turn_and_boxes_where_they_meet() -> None:
    xy = np.array([[0, 0], [1, 0.1], [1, -0.1], [1, 0.05], [-1, 0.1], [-1, -0.1]], dtype=float)
    seq = np.array([0, 1, 2, 0, 3, 0, 4, 5, 0])
    for polar in (True, False):
        places, boxes = angles(xy) if polar else xy, np.zeros((3, 4))
        lowest = [extent(seq, start, places, polar, boxes[k]) for k, start in enumerate((0, 3, 5))]
        assert lowest == [1, 3, 4]
        assert overlap(boxes[0], boxes[1], polar)
        assert overlap(boxes[1], boxes[0], polar)
        assert not overlap(boxes[0], boxes[2], polar)
        assert not overlap(boxes[2], boxes[1], polar)


@pytest.mark.parametrize("directed", [False, True])
def test_local_search_with_it_ends_lower_and_in_any_number_of_looks(directed: bool) -> None:
    torch.manual_seed(0)
    problem, plain, swapped = get("cvrp"), 0.0, 0.0
    for seed in range(8):
        x = problem.sample(NumpyRng(seed), 1, 60)
        x = asymmetric(x) if directed else x
        costs = []
        for swaps in (False, True):
            engine = RoutesEngine(get("cvrp"), x, 0)
            engine.construct()
            if not swaps:
                engine.marks.tested[:] = 1 << 60
            calls = 0
            while not engine.descend(40 * 4):
                calls += 1
                problem.check(x, torch.from_numpy(engine.best()).view(1, 1, -1))
            assert 0 < calls < 400
            costs.append(float(problem.cost(x, torch.from_numpy(engine.best()).view(1, 1, -1))))
            assert costs[-1] == pytest.approx(engine.real[0])
        plain, swapped = plain + costs[0], swapped + costs[1]
    assert swapped < plain


def test_a_descent_of_more_customers_than_one_slice_looks_at_comes_to_an_end() -> None:
    x = get("cvrp").sample(NumpyRng(0), 1, 2500)
    engine = RoutesEngine(get("cvrp"), x, 0)
    engine.construct()
    assert any(engine.descend(2000) for _ in range(1000))
    assert engine.descend(2000)  # and stays there
