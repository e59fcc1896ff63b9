"""Training from the command line: a run, its files, going on with it, and not running over another."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from routelearn.data import generate, npz
from routelearn.models import model_file

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


@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl"])
def test_what_is_left_of_a_run_is_not_run_over_either(routelearn, trained, tmp_path, name):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / name).write_bytes((trained[0] / name).read_bytes())
    status, _, err = routelearn("train", "tsp", "6", *TINY, "--out", kept)
    assert (status, "holds a run already" in err) == (2, True)
    assert [path.name for path in kept.iterdir()] == [name]


def test_a_run_begins_with_the_configuration_of_another(routelearn, trained, tmp_path):
    other = tmp_path / "other"
    outcome = routelearn(
        "train", "--config", trained[0] / "config.json", "--rate", "2e-4", "--device", "cpu", "--out", other
    )
    assert (outcome.status, outcome.err) == (0, "")
    first, second = (json.loads((out / "config.json").read_text()) for out in (trained[0], other))
    assert second == first | {"rate": 2e-4}
    status, _, err = routelearn("train", "--config", tmp_path / "none.json", "--out", tmp_path / "x")
    assert (status, err) == (2, f"error: {tmp_path / 'none.json'}: no such file\n")


def test_what_a_run_was_begun_with_holds_when_it_goes_on(routelearn, tmp_path):
    out, reference = tmp_path / "run", tmp_path / "costs.npz"
    np.savez(reference, costs=np.full(20, 2.0))
    begun = routelearn("train", "tsp", "6", *TINY, "--reference", reference, "--deterministic", "--out", out)
    assert (begun.status, begun.err) == (0, "")
    assert json.loads((out / "begun-with.json").read_text()) == {
        "recipe": "cpu", "config": None, "warm_start": None, "reference": str(reference), "deterministic": True,
    }  # fmt: skip
    heard = []
    with pytest.MonkeyPatch.context() as patch:
        import routelearn.training.loop as module

        plain = module.surroundings
        patch.setattr(module, "surroundings", lambda *given: heard.append(given[2]) or plain(*given))
        assert routelearn("train", "--resume", "--epochs", "2", "--device", "cpu", "--out", out).status == 0
    assert heard == [True]
    rows = [row for row in log_of(out) if row.get("validation")]
    assert [set(row["gap"]) for row in rows] == [{"6"}, {"6"}]


def test_the_last_line_says_what_ended_the_run(routelearn, trained, tmp_path):
    out, words = trained
    assert words.endswith("(ended by --epochs 1)\n")
    again = routelearn("train", "--resume", "--device", "cpu", "--out", out)
    assert again.out.endswith("(nothing was left to do: ended by --epochs 1, from its start)\n")
    timed = routelearn(
        "train", "tsp", "6", *TINY, "--epochs", "1000000", "--minutes", "0.01", "--out", tmp_path / "timed"
    )
    assert timed.out.endswith("(ended by --minutes 0.01)\n")


def test_epochs_lift_the_minutes_of_the_recipe(routelearn, trained):
    assert json.loads((trained[0] / "config.json").read_text())["minutes"] == 0


def test_a_run_goes_on_though_nobody_reads_what_it_prints(tmp_path):
    arguments = ("train", "tsp", "6", *TINY, "--epochs", "20", "--out", str(tmp_path / "run"))
    process = subprocess.Popen(
        [sys.executable, "-m", "routelearn", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline().startswith(b"epoch 1")
    process.stdout.close()
    assert (process.wait(60), process.stderr.read()) == (0, b"")
    assert log_of(tmp_path / "run")[-1]["epoch"] == 20


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


def test_the_model_says_by_which_recipe_it_was_made(routelearn, trained, tmp_path):
    out, _ = trained
    assert model_file.load(out / "last.safetensors").card["recipe"] == "cpu"
    assert routelearn("train", "--resume", "--epochs", "2", "--out", out, "--device", "cpu").status == 0
    assert model_file.load(out / "last.safetensors").card["recipe"] == "cpu"
    single = (*TINY, "--solutions", "1", "--evaluation-instances", "20", "--recipe", "paper")
    assert routelearn("train", "tsp", "6", *single, "--out", tmp_path / "paper").status == 0
    assert model_file.load(tmp_path / "paper" / "last.safetensors").card["recipe"] == "paper"


def test_help_names_the_recipe_that_is_taken(routelearn):
    status, out, _ = routelearn("train", "--help")
    assert status == 0
    assert "settings. [default: fast on a GPU, cpu otherwise]" in " ".join(out.split())


@pytest.mark.parametrize("option", [("--recipe", "fast"), ("--warm-start", "tsp-20-paper")])
def test_what_only_begins_a_run_is_refused_when_one_goes_on(routelearn, trained, option):
    out, _ = trained
    before = (out / "checkpoint.pt").read_bytes()
    status, _, err = routelearn("train", "--resume", *option, "--epochs", "2", "--out", out, "--device", "cpu")
    assert status == 2
    assert err == f"error: {option[0]} has no meaning with --resume, which goes on as the run was; leave one out\n"
    assert (out / "checkpoint.pt").read_bytes() == before


@pytest.mark.parametrize("damage", ["junk", "empty", "format only", "a weight"])
def test_a_damaged_checkpoint_is_refused_in_one_line(routelearn, trained, damage):
    out, _ = trained
    path = out / "checkpoint.pt"
    whole = bytearray(path.read_bytes())
    weight = next(iter(torch.load(path)["policy"].values()))
    whole[whole.index(weight.numpy().tobytes())] ^= 1
    if damage == "format only":
        torch.save({"format": 1}, path)
    else:
        path.write_bytes({"junk": b"junk\n", "empty": b"", "a weight": whole}[damage])
    status, _, err = routelearn("train", "--resume", "--epochs", "2", "--out", out, "--device", "cpu")
    assert status == 2
    assert err.startswith(f"error: {path}: not a usable checkpoint (")
    assert "--warm-start" in err
    assert err.count("\n") == 1


def test_only_the_first_of_several_processes_says_the_end(routelearn, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")  # as torchrun would; the others of its group are not needed for this
    status, out, err = routelearn("train", "tsp", "6", *TINY, "--out", tmp_path / "run")
    assert (status, out, err) == (0, "", "")


def points_of(out):
    """{name: {step: value}} as TensorBoard shows them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(out / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    return {name: {e.step: e.value for e in board.Scalars(name)} for name in board.Tags()["scalars"]}


@pytest.mark.extra
def test_tensorboard_shows_what_the_log_holds(routelearn, tmp_path):
    pytest.importorskip("tensorboard")
    out = tmp_path / "run"
    np.savez(tmp_path / "costs.npz", costs=np.full(20, 2.0))
    assert routelearn("train", "tsp", "6", *TINY, "--out", out, "--reference", tmp_path / "costs.npz").status == 0
    points, row = points_of(out), log_of(out)[-1]
    for name in ("cost", "value", "gradient_norm", "rate", "instances_per_second", "skipped", "epoch"):
        assert points[name][3] == pytest.approx(row[name])
    for name in ("validation", "gap"):
        assert points[f"{name}/6"][3] == pytest.approx(row[name]["6"])
    assert set(points["mismatch"]) == {row["step"] for row in log_of(out) if "mismatch" in row}


@pytest.mark.extra
def test_tensorboard_forgets_what_came_after_the_checkpoint(routelearn, trained):
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    out, _ = trained
    with SummaryWriter(out / "tensorboard") as killed:  # what a run that was killed had shown beyond its checkpoint
        killed.add_scalar("cost", 99.0, 4)
    written = sorted((out / "tensorboard").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    for order, path in enumerate(written):  # as if of an earlier second; names alone put a tenth file before a ninth
        path.rename(path.with_name(f"events.out.tfevents.{order:010d}.before"))
    assert points_of(out)["cost"][4] == 99.0
    assert routelearn("train", "--resume", "--epochs", "2", "--out", out, "--device", "cpu").status == 0
    cost = points_of(out)["cost"]
    assert {3, 6} <= set(cost)
    assert 99.0 not in cost.values()


@pytest.mark.extra
def test_a_run_that_is_refused_leaves_no_folder(routelearn, tmp_path):
    pytest.importorskip("tensorboard")
    assert routelearn("train", "tsp", "6", *TINY, "--warm-start", "nobody", "--out", tmp_path / "run").status == 2
    assert not (tmp_path / "run").exists()
