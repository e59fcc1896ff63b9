"""What the benchmarks conclude from what they measure."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "model_quality.py"


@pytest.fixture
def quality():
    spec = importlib.util.spec_from_file_location("model_quality", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_subset_is_judged_by_what_it_gains_over_greedy(quality, monkeypatch):
    """The first 1,000 instances are easier by 1; sampling gains 0.1 on each."""
    costs = torch.full((10_000,), 5.0)
    costs[:1_000] = 4.0

    def evaluate(problem, policy, x, strategy, **options):
        found = costs[: x.xy.shape[0]] - (0.1 if strategy != "greedy" else 0.0)
        return SimpleNamespace(mean=float(found.mean()), costs=found, infeasible=0)

    monkeypatch.setattr(quality, "evaluate", evaluate)
    model = SimpleNamespace(problem="tsp", policy=None)
    row = quality.measure(model, 20, "augment:8", 1_000, torch.device("cpu"), "float32")
    assert row["greedy"] == pytest.approx(4.9)
    assert row["best"] == pytest.approx(4.8)


def test_an_estimate_that_cannot_tell_does_not_fail(quality, capsys):
    row = {"greedy": 6.3, "best": 6.247, "strategy": "augment:8", "infeasible": 0, "instances": 10_000, "error": 0.002}
    assert quality.show("cvrp", "cvrp", 20, row, 1_000) == 0
    assert "too few to tell" in capsys.readouterr().out
    assert quality.show("cvrp", "cvrp", 20, row | {"best": 6.26}, 1_000) == 1
    assert quality.show("cvrp", "cvrp", 20, row | {"infeasible": 1}, 1_000) == 2
    del row["error"]
    assert quality.show("cvrp", "cvrp", 20, row, None) == 1


def test_ahead_means_by_half_a_hundredth_and_of_prizes_more(quality):
    assert [cell[3] for cell in quality.verdicts("cvrp", 20, {"greedy": 6.396, "best": 6.244})] == [False, True]
    assert [cell[3] for cell in quality.verdicts("op-dist", 20, {"greedy": -5.20, "best": -5.29})] == [True, False]
    assert [cell[3] for cell in quality.verdicts("tsp", 20, {"greedy": 3.8486, "best": 3.8389})] == [True, False]
    assert len(quality.verdicts("spctsp", 20, {"greedy": 3.2})) == 1


@pytest.fixture
def answers():
    spec = importlib.util.spec_from_file_location("answers", SCRIPT.with_name("answers.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_second_referee_agrees_with_honest_answers(answers, tmp_path):
    rng = random.Random(0)
    for problem in answers.PROBLEMS:
        for stops in (1, 7):
            batch = [answers.instance(problem, stops, rng) for _ in range(3)]
            for found in (answers.by_python(problem, batch, 0.0, None), answers.by_file(problem, batch, 0.0, tmp_path)):
                assert [answers.wrong(problem, *pair) for pair in zip(batch, found, strict=True)] == [None] * 3


SQUARE = {"coords": [(0, 0), (0, 1), (1, 1), (1, 0)]}
TAMPERED = {
    "a stop left out": ("tsp", {}, [[0, 1, 2]], 3.0),
    "a stop twice": ("tsp", {}, [[0, 1, 1, 2, 3]], 4.0),
    "a stop that is none": ("cvrp", {"demand": [0, 1, 1, 1], "capacity": 3}, [[0, 1, 2, 3]], 4.0),
    "too much in a vehicle": ("cvrp", {"demand": [0, 1, 1, 1], "capacity": 2}, [[1, 2, 3]], 4.0),
    "not what was demanded": ("sdvrp", {"demand": [0, 1, 1, 2], "capacity": 4}, [[1, 2, 3]], 4.0),
    "too long": ("op-unif", {"prize": [0, 1, 1, 1], "max_length": 3}, [[1, 2, 3]], -3.0),
    "several routes": ("op-unif", {"prize": [0, 1, 1, 1], "max_length": 9}, [[1], [3]], -2.0),
    "too little prize": ("pctsp", {"prize": [0, 1, 1, 1], "penalty": [0, 0, 0, 0], "min_prize": 2}, [[1]], 2.0),
    "the cost is 4.0, not 3.0": ("tsp", {}, [[0, 1, 2, 3]], 3.0),
}


@pytest.mark.parametrize("words", TAMPERED)
def test_the_second_referee_sees_every_rule(answers, words):
    problem, more, routes, cost = TAMPERED[words]
    told = {"cost": cost, "routes": [{"stops": route, "amounts": [1] * len(route)} for route in routes]}
    assert answers.wrong(problem, SQUARE | more, told) == words
