"""The separation finds a violated subtour constraint exactly when there is one."""

from __future__ import annotations

import itertools

import numpy as np

from routelearn.problems import NumpyRng, get
from routelearn.solvers.adapters.cuts import violated_sets
from routelearn.solvers.adapters.mip import build, within_reach
from routelearn.solvers.tasks import tasks_of


def worst_by_enumeration(weight, visit):
    """The largest 2 y_v - x(d(S)) over all S without node 0 and all v in S."""
    nodes, worst = len(visit), -np.inf
    for size in range(1, nodes):
        for members in itertools.combinations(range(1, nodes), size):
            outside = [node for node in range(nodes) if node not in members]
            border = weight[np.ix_(members, outside)].sum()
            worst = max(worst, 2 * visit[list(members)].max() - border)
    return worst


def test_separation_agrees_with_enumeration():
    rng = np.random.default_rng(7)
    violated = 0
    for _ in range(150):
        nodes = int(rng.integers(3, 8))
        weight = np.triu(rng.random((nodes, nodes)) * (rng.random((nodes, nodes)) < 0.5), 1) * 1.5
        weight += weight.T
        visit = rng.random(nodes)
        visit[0] = 1.0
        sets, members = violated_sets(weight, visit, 1e-6)
        worst = worst_by_enumeration(weight, visit)
        assert (len(sets) > 0) == (worst > 1e-6)
        violated += len(sets) > 0
        for chosen, node in zip(sets, members, strict=True):
            assert chosen[node]
            assert not chosen[0]
            assert weight[chosen][:, ~chosen].sum() < 2 * visit[node] - 1e-6
    assert 20 < violated < 150


def test_both_forms_of_a_cut_exclude_the_subtour_and_admit_every_tour():
    problem = get("tsp")
    model = build(tasks_of(problem, problem.sample(NumpyRng(1), 1, 8))[0])
    edge = {tuple(ends): e for e, ends in enumerate(model.ends.tolist())}

    def used(*cycles):
        x = np.zeros(len(edge))
        for cycle in cycles:
            for pair in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
                x[edge[tuple(sorted(pair))]] = 1
        return x

    for inner in ([1, 2, 3], [1, 2, 3, 4, 5]):
        rest = [node for node in range(8) if node not in inner]
        (cut,) = model.cuts(used(inner, rest), np.ones(8), 1e-4)
        for x, allowed in ((used(inner, rest), False), (used([0, *rng_order(8)]), True)):
            left = x[cut.edges].sum()
            assert (left <= len(cut.plus) if cut.inside else left >= 2) == allowed


def rng_order(nodes):
    return (1 + np.random.default_rng(0).permutation(nodes - 1)).tolist()


def test_legs_out_of_reach_are_dropped_only_if_no_walk_can_use_them():
    legs = np.array([[0, 1, 9, 9], [1, 0, 1, 9], [9, 1, 0, 1], [9, 9, 1, 0]], dtype=float)
    assert within_reach(legs, 4.0)[1, 2]  # 0 1 2 1 0 is a walk of 4, though 0-2 alone is 9
    assert not within_reach(legs, 4.0)[2, 3]
