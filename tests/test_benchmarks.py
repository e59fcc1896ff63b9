"""What the benchmarks conclude from what they measure."""

from __future__ import annotations

import importlib.util
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
