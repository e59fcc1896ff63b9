"""Imagined worlds: against plain Python, without hindsight, and refused where nothing is hidden."""

from __future__ import annotations

import itertools

import pytest
import torch
from decoding_cases import CHOOSING, judged, prepared

from routelearn.decoding.decode import augmented, decode, parse
from routelearn.decoding.imagine import Spread
from routelearn.decoding.rollout import follow
from routelearn.decoding.strategy import CANDIDATES, refuse_hindsight
from routelearn.errors import InputError
from routelearn.problems import NumpyRng
from routelearn.problems.base import repeat, take
from routelearn.problems.pctsp import SPCTSP

WORLDS = 3


def in_plain_python(problem, policy, x, worlds, versions):
    """The tour of one instance that tries the likeliest nodes in given worlds, one after another."""
    bound = problem.max_steps(x)
    caches = [policy.encode(tuple(group[i : i + 1] for group in augmented(problem.features(x), versions, 0)))
              for i in range(versions)]  # fmt: skip

    def ahead(world, tour, which):
        """(whether the tour is finished in this world, nodes by falling probability under these symmetries)"""
        rolled = follow(problem, world, torch.tensor([[[*tour, 0]]]))
        logits = [policy.recorded_logits(caches[i], rolled.trajectory)[0, 0, len(tour)] for i in which]
        mean = sum(one.log_softmax(-1) for one in logits).tolist()
        order = sorted((node for node in range(len(mean)) if mean[node] > -1e9), key=lambda node: -mean[node])
        return bool(tour) and tour[-1] == 0, order

    tour = []
    while not ahead(x, tour, range(versions))[0]:
        means = []
        for node in ahead(x, tour, range(versions))[1][:CANDIDATES]:
            totals = [0.0] * versions
            for i, world in itertools.product(range(versions), worlds):
                trial = [*tour, node]
                # What was earned on the way is known: in every world the visited nodes bring what they really do.
                real = world.real_prize.clone()
                real[:, tour] = x.real_prize[:, tour]
                seen = world._replace(real_prize=real)
                while len(trial) < bound and not ahead(seen, trial, [i])[0]:
                    trial.append(ahead(seen, trial, [i])[1][0])
                totals[i] += float(problem.cost(seen, torch.tensor([[trial]])))
            means.append((min(totals), node))
        tour.append(min(means, key=lambda pair: pair[0])[1])
    return tour


@pytest.mark.parametrize("versions", [1, 2])
def test_every_step_is_that_of_a_plain_loop(versions, monkeypatch):
    problem, policy, x = prepared("spctsp", batch=3, n=5, double=True)
    given = problem.imagined(repeat(x.public(), WORLDS), NumpyRng(5))
    monkeypatch.setattr(problem, "imagined", lambda public, rng: given, raising=False)
    with torch.no_grad():
        found = judged(problem, x, decode(problem, policy, x, f"augment:{versions}+imagine:{WORLDS}"))
        for row in range(3):
            worlds = [take(given, slice(i, i + 1)) for i in range(row * WORLDS, (row + 1) * WORLDS)]
            expected = in_plain_python(problem, policy, take(x, slice(row, row + 1)), worlds, versions)
            assert found.tour[row, 0, : len(expected)].tolist() == expected
            assert not found.tour[row, 0, len(expected) :].any()


def test_what_was_not_visited_yet_is_not_known():
    problem, policy, x = prepared("spctsp", n=9)
    first = decode(problem, policy, x, "imagine:4").tour[:, 0]
    changed = 0
    for steps in range(1, first.shape[1]):
        seen = torch.zeros_like(x.real_prize).scatter(1, first[:, :steps], 1.0)
        other = x._replace(real_prize=torch.where(seen > 0, x.real_prize, x.prize * 1.9))
        again = decode(problem, policy, other, "imagine:4").tour[:, 0]
        assert torch.equal(first[:, : steps + 1], torch.nn.functional.pad(again, (0, 9))[:, : steps + 1])
        changed += not torch.equal(torch.nn.functional.pad(again, (0, 9))[:, : first.shape[1]], first)
    assert changed


def test_one_answer_a_seed_and_the_batch_is_cut():
    problem, policy, x = prepared("spctsp", n=9)
    answers = [judged(problem, x, decode(problem, policy, x, "imagine:3", seed=7)) for _ in range(2)]
    assert torch.equal(answers[0].tour, answers[1].tour)
    heard = []
    judged(problem, x, decode(problem, policy, x, "imagine:3", budget=1, progress=heard.append))
    assert heard == [1, 1, 1, 1]


def test_looking_ahead_pays():
    problem, policy, x = prepared("spctsp", batch=24, n=10)
    assert decode(problem, policy, x, "imagine:8").cost.mean() < 0.95 * decode(problem, policy, x).cost.mean()


def test_worlds_are_spread_evenly():
    draws = Spread(5, torch.device("cpu"), torch.float32).uniform(10, 3)
    fifths = (draws * 5).floor().unflatten(0, (2, 5)).sort(1).values
    assert torch.equal(fifths, torch.arange(5.0)[None, :, None].expand(2, 5, 3))


@pytest.mark.parametrize("name", CHOOSING[:3])
def test_it_is_refused_where_nothing_is_hidden(name):
    problem, policy, x = prepared(name)
    with pytest.raises(InputError, match="hides nothing; use guided or active"):
        decode(problem, policy, x, "imagine:4")


def test_it_is_refused_where_nobody_says_how_values_are_distributed():
    class Secret(SPCTSP):
        imagined = None

    with pytest.raises(InputError, match=r"does not say how that is distributed .`imagined`.; use greedy or sample:1"):
        refuse_hindsight(Secret(), parse("imagine:4"))


@pytest.mark.parametrize("text", ["imagine:4+guided:8", "sample:2+imagine:4"])
def test_it_joins_with_symmetries_alone(text):
    with pytest.raises(InputError, match="augment only"):
        parse(text)
