"""Guided beams against plain Python, what they promise, and what they refuse."""

from __future__ import annotations

import functools
import math

import brute_force
import pytest
import torch
from decoding_cases import CHOOSING, OTHERS, judged, prepared, same

from routelearn.decoding.beam import beam_search
from routelearn.decoding.decode import decode
from routelearn.decoding.guided import guided_search
from routelearn.decoding.rollout import follow
from routelearn.problems.base import distance_matrix, take


def in_plain_python(problem, policy, x, width):
    """The best cost that Choo et al.'s algorithm finds, one solution at a time."""
    cache, bound = policy.encode(problem.features(x)), problem.max_steps(x)

    @functools.cache
    def ahead(tour):
        """(whether the tour is finished, nodes by falling probability)"""
        tours = torch.tensor([[[*tour, 0]]])
        rolled = follow(problem, x, tours)
        logits = policy.recorded_logits(cache, rolled.trajectory)[0, 0, len(tour)]
        order = sorted(range(len(logits)), key=lambda node: -float(logits[node]))
        likely = [node for node in order if math.isfinite(logits[node])]
        return (bool(follow(problem, x, tours[..., :-1]).done) if tour else False), likely

    def simulated(tour):
        while len(tour) < bound and not ahead(tour)[0]:
            tour = (*tour, ahead(tour)[1][0])
        return float(problem.cost(x, torch.tensor([[tour]])))

    beam, best = [()], math.inf
    while any(not ahead(tour)[0] for tour in beam):
        children = []
        for tour in beam:
            over, likely = ahead(tour)
            children += [tour] if over else [(*tour, node) for node in likely[:width]]
        outcomes = [(simulated(child), place) for place, child in enumerate(children)]
        best = min(best, *(cost for cost, _ in outcomes))
        beam = [children[place] for _, place in sorted(outcomes)[:width]]
    return best


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("name", ["tsp", "cvrp", "op-unif", "pctsp"])
def test_a_guided_beam_finds_what_plain_python_finds(name, width, monkeypatch):
    problem, policy, x = prepared(name, batch=3, n=6, double=True)
    plain = problem.cost

    def without_ties(x, tour):
        """Routes in another order cost the same; then rounding would decide which of them is kept."""
        return plain(x, tour) + (tour / torch.arange(2.0, tour.shape[2] + 2, dtype=torch.float64) ** 1.5).sum(-1) / 100

    monkeypatch.setattr(problem, "cost", without_ties, raising=False)
    with torch.no_grad():
        found = decode(problem, policy, x, f"guided:{width}").cost
        for row in range(3):
            expected = in_plain_python(problem, policy, take(x, slice(row, row + 1)), width)
            assert float(found[row]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("name", "kind"), [*((name, "attention") for name in CHOOSING), *OTHERS])
def test_wider_beams_are_never_worse_than_greedy_and_one_is_greedy(name, kind):
    problem, policy, x = prepared(name, kind=kind)
    greedy = decode(problem, policy, x)
    assert same(problem, decode(problem, policy, x, "guided:1"), greedy)
    wide = judged(problem, x, decode(problem, policy, x, "guided:3"))
    assert (wide.cost <= greedy.cost + 1e-6).all()
    assert (judged(problem, x, decode(problem, policy, x, "augment:2+guided:2")).cost <= greedy.cost + 1e-6).all()


def test_a_beam_as_wide_as_there_are_tours_finds_the_best():
    problem, policy, x = prepared("tsp", n=5, double=True)
    best = [brute_force.tsp(legs) for legs in distance_matrix(x).tolist()]
    assert decode(problem, policy, x, "guided:120").cost.tolist() == pytest.approx(best)


def test_rollouts_guide_better_than_probabilities():
    problem, policy, x = prepared("cvrp", batch=16, n=12)
    cache = policy.encode(problem.features(x))
    with torch.no_grad():
        guided = problem.cost(x, guided_search(problem, policy, cache, x, 4).tour)[:, 0]
        likely = problem.cost(x, beam_search(problem, policy, cache, x, 4).tour).min(1).values
    assert guided.mean() < likely.mean()
