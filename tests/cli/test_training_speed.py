"""The benchmark of training: what it times is what training does, and its stages are shown unless not wanted."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from routelearn.training.baselines import RolloutBaseline

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "training_speed.py"


@pytest.fixture
def speed(monkeypatch):
    """The script as a module, with small batches and a narrow model."""
    spec = importlib.util.spec_from_file_location("training_speed", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    paper = module.config_for
    small = {"batch": (4,), "width": 16, "heads": 2, "layers": 1, "hidden": 16}
    monkeypatch.setattr(module, "config_for", lambda *case: replace(paper(*case), **small))
    monkeypatch.setattr(module, "matrix_rate", lambda *given: 1e9)
    return module


def test_the_baseline_is_timed_in_the_precision_of_training(speed, monkeypatch):
    low = []
    prepare = RolloutBaseline.prepare

    def watched(self, x, features):
        low.append(torch.is_autocast_enabled("cpu"))
        return prepare(self, x, features)

    monkeypatch.setattr(RolloutBaseline, "prepare", watched)
    row = speed.measure("tsp:5:rollout", torch.device("cpu"), "bfloat16", 0.0, stages=True)
    assert row["stages"]["baseline"] > 0
    assert low
    assert all(low)


@pytest.mark.parametrize(("options", "shown"), [((), True), (("--no-stages",), False)])
def test_the_stages_are_shown_unless_they_are_not_wanted(speed, monkeypatch, capsys, options, shown):
    line = ("training_speed.py", "tsp:5:rollout", "--device", "cpu", "--seconds", "0", *options)
    monkeypatch.setattr(sys, "argv", list(line))
    speed.main()
    words = capsys.readouterr().out
    assert "tsp:5:rollout" in words
    for stage in ("generate", "encode", "roll out", "score", "optimiser", "baseline"):
        assert (f"{stage} " in words.splitlines()[-1]) == shown
