"""Training from the command line: a run, its files, going on with it, and not running over another."""

from __future__ import annotations

import json

import pytest

from routelearn import model_file
from routelearn.data import generate, npz

TINY = ("--device", "cpu", "--width", "32", "--heads", "2", "--layers", "1", "--hidden", "32", "--epochs", "1",
        "--epoch-steps", "3", "--batch", "8", "--solutions", "2", "--validation-instances", "20")  # fmt: skip


def log_of(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def trained(routelearn, tmp_path):
    out = tmp_path / "run"
    outcome = routelearn("train", "tsp", "6", *TINY, "--out", out)
    assert (outcome.status, outcome.err) == (0, "")
    return out, outcome.out


def test_a_run_leaves_its_files_and_a_model_that_works(routelearn, trained, tmp_path):
    out, words = trained
    names = {"config.json", "metrics.jsonl", "checkpoint.pt", "best.safetensors", "last.safetensors"}
    assert names <= {path.name for path in out.iterdir()}
    config = json.loads((out / "config.json").read_text())
    assert (config["problem"], config["sizes"], config["batch"], config["width"]) == ("tsp", [6], [8], 32)
    assert log_of(out)[-1]["step"] == 3
    assert "validation n=6" in words
    model = model_file.load(out / "best.safetensors")
    assert (model.problem, model.options["width"], model.options["layers"]) == ("tsp", 32, 1)
    npz.save(tmp_path / "x.npz", "tsp", generate("tsp", 6, count=4))
    assert routelearn("evaluate", tmp_path / "x.npz", "--model", out / "best.safetensors").status == 0


def test_a_run_goes_on_where_it_stopped(routelearn, trained):
    out, _ = trained
    outcome = routelearn("train", "--resume", "--epochs", "2", "--batch", "4", "--out", out, "--device", "cpu")
    assert (outcome.status, outcome.err) == (0, "")
    assert log_of(out)[-1]["step"] == 6
    assert log_of(out)[-1]["instances"] == 3 * 8 + 3 * 4
    named = routelearn(
        "train", "tsp", "6", "--resume", "--epochs", "3", "--batch", "4", "--out", out, "--device", "cpu"
    )
    assert (named.status, log_of(out)[-1]["step"]) == (0, 9)


@pytest.mark.parametrize("other", [("cvrp", "6"), ("tsp", "7"), ("tsp", "6,7")])
def test_a_run_does_not_go_on_as_another(routelearn, trained, other):
    out, _ = trained
    status, _, err = routelearn("train", *other, "--resume", "--out", out, "--device", "cpu")
    assert status == 2
    assert err.startswith(f"error: {out}: a run on tsp 6, not on {other[0]} {other[1]};")
    assert err.count("\n") == 1


def test_a_run_is_not_run_over(routelearn, trained):
    out, _ = trained
    before = (out / "checkpoint.pt").read_bytes()
    status, _, err = routelearn("train", "tsp", "6", *TINY, "--out", out)
    assert status == 2
    assert err == f"error: {out}: holds a run already; go on with --resume, or name another folder\n"
    assert (out / "checkpoint.pt").read_bytes() == before


def test_a_run_may_start_from_a_model(routelearn, trained, tmp_path):
    out, _ = trained
    model = out / "best.safetensors"
    assert routelearn("train", "tsp", "7", *TINY, "--out", tmp_path / "next", "--warm-start", model).status == 0


def test_quiet_says_only_the_end(routelearn, tmp_path):
    status, out, _ = routelearn("train", "tsp", "6", *TINY, "--out", tmp_path / "run", "--quiet")
    assert status == 0
    assert len(out.splitlines()) == 1


def test_without_arguments_it_is_the_tsp_of_20(routelearn, tmp_path):
    assert routelearn("train", *TINY, "--epoch-steps", "1", "--out", tmp_path / "run").status == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["problem"], config["sizes"]) == ("tsp", [20])
