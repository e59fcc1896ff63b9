"""The commands that people type: help, sets of instances, evaluation from end to end, the import of checkpoints."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from routelearn import __version__, models, policies, solvers
from routelearn.cli import COMMANDS, main
from routelearn.data import generate, npz
from routelearn.evaluation import evaluate as evaluation
from routelearn.evaluation.evaluate import evaluate
from routelearn.models import model_file
from routelearn.models.model_file import Model
from routelearn.policies.base import shape_of
from routelearn.problems import get

OPTIONS = {"width": 16, "heads": 2, "layers": 1, "hidden": 16}
PINNED = {
    "tsp": "5b4ad982be8010093ab56c956eaa25fd05a08a1b2765e6b0d96621b244e39711",
    "cvrp": "1fc1e4e95a427e204f9bfcd5a4f22600057966e97c5f6f62996a295d9d287a2d",
}  # sha256 of the paper's test sets at n = 20, made in plain numpy, field after field


def written_commands():
    return [name for name in COMMANDS if importlib.util.find_spec(f"routelearn.commands.{name.replace('-', '_')}")]


def fingerprint(x):
    digest = hashlib.sha256()
    for field in x:
        if field is not None:
            digest.update(field.numpy().tobytes())
    return digest.hexdigest()


@pytest.fixture
def tiny(tmp_path):
    """A folder with a model for the TSP, and the model itself."""
    policy = policies.build("attention", shape_of(get("tsp")), OPTIONS).eval()
    model_file.save(tmp_path / "tiny.safetensors", Model(policy, "tsp", "attention", OPTIONS))
    return tmp_path, policy


# ------------------------------------------------------------------------------------------------- help


def test_the_overview_names_every_command(routelearn):
    for arguments in ([], ["--help"], ["-h"]):
        status, out, err = routelearn(*arguments)
        assert (status, err) == (0, "")
        assert all(f"  {name} " in out and summary in out for name, summary in COMMANDS.items())


def test_the_version_is_shown(routelearn):
    assert routelearn("--version") == (0, f"routelearn {__version__}\n", "")


@pytest.mark.parametrize("name", written_commands())
def test_every_command_explains_itself(routelearn, name):
    status, out, err = routelearn(name, "--help")
    assert (status, err) == (0, "")
    assert out.startswith(f"Usage: routelearn {name}")
    assert "--help" in out


def test_every_setting_of_training_is_a_flag(routelearn):
    from routelearn.training.config import TrainConfig

    out = routelearn("train", "--help").out
    for name in set(TrainConfig.names()) - {"problem", "sizes", "settings"} | {"setting", "backend"}:
        assert f"--{name.replace('_', '-')}" in out


def test_the_package_runs_as_a_module():
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "routelearn", *arguments], capture_output=True, text=True, timeout=120, check=False
        )

    shown = run("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Usage: routelearn COMMAND" in shown.stdout
    bad = run("generate", "salesman", "20", "--out", "x.npz")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("error: unknown problem 'salesman'")
    assert bad.stderr.count("\n") == 1


# --------------------------------------------------------------------------------------------- generate


@pytest.mark.parametrize("name", PINNED)
def test_generate_writes_the_papers_test_set_by_default(routelearn, tmp_path, name):
    path = tmp_path / "set.npz"
    status, out, err = routelearn("generate", name, 20, "--out", path)
    assert (status, err) == (0, "")
    assert f"10000 instances of {name}" in out
    problem, x = npz.load(path)
    assert problem == name
    assert fingerprint(x) == PINNED[name]


def test_generate_takes_size_count_seed_and_limit(routelearn, tmp_path):
    path = tmp_path / "set.npz"
    assert routelearn("generate", "op-unif", 7, "--count", 9, "--seed", 3, "--limit", 4, "--out", path).status == 0
    _, x = npz.load(path)
    expected = generate("op-unif", 7, count=9, seed=3)
    assert x.xy.shape == (4, 8, 2)
    assert torch.equal(x.prize, expected.prize[:4])


# --------------------------------------------------------------------------------------------- evaluate


def test_from_generate_to_a_gap(routelearn, tiny):
    folder, policy = tiny
    data, model, report, costs = (folder / name for name in ("x.npz", "tiny.safetensors", "r.json", "c.npz"))
    assert routelearn("generate", "tsp", 8, "--count", 12, "--out", data).status == 0
    status, out, err = routelearn(
        "evaluate", data, "--model", model, "--device", "cpu", "--json", report, "--costs", costs
    )
    assert (status, err) == (0, "")
    result = json.loads(report.read_text())
    expected = evaluate(get("tsp"), policy, generate("tsp", 8, count=12), device=torch.device("cpu"))
    assert result["costs"] == pytest.approx(expected.costs.tolist())
    assert result["mean_cost"] == pytest.approx(expected.mean)
    assert f"mean cost {expected.mean:.5f} +- {expected.standard_error:.5f}" in out
    assert out.startswith("x.npz: 12 instances of tsp, 8 nodes, greedy\n")
    assert {
        "infeasible": 0,
        "decode": "greedy",
        "device": "cpu",
        "problem": "tsp",
        "nodes": 8,
    }.items() <= result.items()
    assert result["seconds"] > 0
    assert np.load(costs)["costs"].tolist() == result["costs"]

    status, out, _ = routelearn("evaluate", data, "--model", model, "--device", "cpu", "--reference", costs)
    assert status == 0
    assert "gap to c.npz +0.000% +- 0.000%" in out

    better = folder / "sampled.json"
    status, out, _ = routelearn(
        "evaluate", data, "--model", model, "--device", "cpu", "--reference", costs, "--decode", "augment:8+sample:32",
        "--seed", 5, "--limit", 6, "--json", better,
    )  # fmt: skip
    result = json.loads(better.read_text())
    assert status == 0
    assert len(result["costs"]) == 6
    assert result["gap"] < 0
    first, known = np.array(result["costs"]), np.load(costs)["costs"][:6]
    assert result["gap"] == pytest.approx((first - known).mean() / known.mean())
    error = ((first - known) / known.mean()).std(ddof=1) / math.sqrt(6)
    assert result["gap_standard_error"] == pytest.approx(error)


def test_seeds_repeat_an_evaluation(routelearn, tiny):
    folder, _ = tiny
    routelearn("generate", "tsp", 12, "--count", 5, "--out", folder / "x.npz")
    lines = []
    for seed in (1, 1, 2):
        arguments = ("--model", folder / "tiny.safetensors", "--decode", "sample:2", "--seed", seed, "--device", "cpu")
        lines.append(routelearn("evaluate", folder / "x.npz", *arguments).out.splitlines()[1])
    assert lines[0] == lines[1] != lines[2]


def test_a_solution_that_breaks_a_rule_is_reported_and_fails(routelearn, tiny, monkeypatch):
    folder, _ = tiny
    honest = evaluation.decoding.decode

    def cheating(*arguments, **options):
        decoded = honest(*arguments, **options)
        decoded.tour[1] = 0
        return decoded

    monkeypatch.setattr(evaluation.decoding, "decode", cheating)
    routelearn("generate", "tsp", 8, "--count", 3, "--out", folder / "x.npz")
    status, out, _ = routelearn(
        "evaluate", folder / "x.npz", "--model", folder / "tiny.safetensors", "--json", folder / "r.json"
    )
    assert status == 1
    assert "infeasible 1" in out
    assert json.loads((folder / "r.json").read_text())["infeasible"] == 1


def test_a_solver_is_evaluated_as_a_model_is(routelearn, tmp_path):
    routelearn("generate", "tsp", 6, "--count", 3, "--out", tmp_path / "x.npz")
    status, out, err = routelearn(
        "evaluate", tmp_path / "x.npz", "--solver", "nearest-neighbour", "--json", tmp_path / "r.json"
    )
    assert (status, err) == (0, "")
    result = json.loads((tmp_path / "r.json").read_text())
    assert len(result["costs"]) == 3
    assert (result["infeasible"], result["decode"]) == (0, "nearest-neighbour")
    assert "nearest-neighbour" in out


def test_costs_of_a_solver_that_lost_an_instance_are_a_reference_for_the_others(routelearn, tiny, monkeypatch):
    folder, _ = tiny
    honest = solvers.get("nearest-neighbour").solve

    def losing(problem, x, **options):
        tours = honest(problem, x, **options)
        tours[1:2] = -1
        return tours

    data, costs = folder / "x.npz", folder / "c.npz"
    routelearn("generate", "tsp", 8, "--count", 4, "--out", data)
    monkeypatch.setattr(type(solvers.get("nearest-neighbour")), "solve", lambda self, *a, **o: losing(*a, **o))
    status, _, err = routelearn("evaluate", data, "--solver", "nearest-neighbour", "--costs", costs)
    assert (status, err) == (1, "no solution of 1 of 4: instance 1\n")
    arguments = ("--model", folder / "tiny.safetensors", "--device", "cpu", "--json", folder / "r.json")
    status, out, err = routelearn("evaluate", data, *arguments, "--reference", costs)
    assert (status, err) == (0, "")
    assert "it lacks 1 of 4: instance 1" in out
    ours, known = np.array(json.loads((folder / "r.json").read_text())["costs"]), np.load(costs)["costs"]
    assert np.isnan(known).tolist() == [False, True, False, False]
    kept = [0, 2, 3]
    gap = (ours - known)[kept].mean() / known[kept].mean()
    assert json.loads((folder / "r.json").read_text())["gap"] == pytest.approx(gap)


def test_the_json_of_a_solver_that_lost_every_instance_is_json(routelearn, tmp_path, monkeypatch):
    data, report = tmp_path / "x.npz", tmp_path / "r.json"
    routelearn("generate", "tsp", 8, "--count", 2, "--out", data)
    lost = torch.full((1, 1, 8), -1)
    heuristic = type(solvers.get("nearest-neighbour"))
    monkeypatch.setattr(heuristic, "solve", lambda self, problem, x, **_: lost.repeat(len(x.xy), 1, 1))
    assert routelearn("evaluate", data, "--solver", "nearest-neighbour", "--json", report)[0] == 1
    assert "NaN" not in report.read_text()
    result = json.loads(report.read_text())
    assert (result["mean_cost"], result["costs"], result["infeasible"]) == (None, [None, None], 2)


# ----------------------------------------------------------------------------------- models and imports


def test_the_models_are_listed(routelearn, tiny, monkeypatch):
    folder, policy = tiny
    measured = {"20": {"greedy": 3.9, "best": 3.85, "strategy": "augment:8"}, "50": {"greedy": 5.8}}
    card = {"sizes": [20, 50], "minutes": 2.5, "measured": measured}
    model_file.save(folder / "tested.safetensors", Model(policy, "tsp", "attention", OPTIONS, card))
    monkeypatch.setattr(models, "FOLDER", folder)
    status, out, _ = routelearn("models")
    assert status == 0
    for word in ("tested", "20,50", "3.9000", "3.8500", "augment:8", "5.8000", "tiny"):
        assert word in out


def test_a_strategy_is_not_cut_where_the_models_are_piped(routelearn, tiny, monkeypatch):
    folder, policy = tiny
    strategy = "multistart:100+augment:8+sample:1280@0.8"
    card = {"sizes": [20, 50, 100], "minutes": 2.5, "measured": {"100": {"greedy": -28.3, "best": -29.5}}}
    card["measured"]["100"]["strategy"] = strategy
    model_file.save(folder / "tested.safetensors", Model(policy, "tsp", "attention", OPTIONS, card))
    monkeypatch.setattr(models, "FOLDER", folder)
    monkeypatch.setenv("COLUMNS", "80")
    lines = routelearn("models").out.splitlines()
    assert any(strategy in line and "-28.3000" in line for line in lines)


def test_the_shipped_models_fit_into_80_columns(routelearn, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = routelearn("models").out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "augment:8+sample:64 " in out


def test_a_package_without_models_says_so(routelearn, tmp_path, monkeypatch):
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    status, out, _ = routelearn("models")
    assert (status, out) == (0, "no trained model ships with this version\n")


def test_a_checkpoint_of_the_authors_becomes_a_model(routelearn, tmp_path, authors_answers):
    out_file = tmp_path / "tsp20.safetensors"
    checkpoint = authors_answers / "authors-n20" / "tsp.pt"
    status, out, err = routelearn("import-authors", checkpoint, "--problem", "tsp", "--out", out_file)
    assert (status, err) == (0, "")
    assert "tsp, 3 layers, 7" in out
    assert model_file.load(out_file).problem == "tsp"
    routelearn("generate", "tsp", 20, "--limit", 100, "--out", tmp_path / "x.npz")
    routelearn("evaluate", tmp_path / "x.npz", "--model", out_file, "--json", tmp_path / "r.json", "--limit", 20)
    known = json.loads((authors_answers / "golden-n20.json").read_text())["tsp_20"]["cost_first_20"]
    assert json.loads((tmp_path / "r.json").read_text())["costs"] == pytest.approx(known, abs=1e-4)


def test_main_is_what_the_package_installs():
    text = (Path(model_file.__file__).parents[2] / "pyproject.toml").read_text()
    assert 'routelearn = "routelearn.cli:main"' in text
    assert callable(main)
