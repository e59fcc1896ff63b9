"""The training loop: longer rollouts when one did not finish, back to the best when it diverges, what it writes."""

from __future__ import annotations

import itertools
import json
import math
import os
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
from train_cases import CPU, log_of, run, tiny

from routelearn import problems
from routelearn.errors import InputError
from routelearn.models import model_file
from routelearn.runtime import compiling
from routelearn.training import checkpoint, loop
from routelearn.training import state as state_module
from routelearn.training import validation as validation_module
from routelearn.training.baselines import rollout as rollout_baseline
from routelearn.training.schedule import longer, scheduled_rate, shorter
from routelearn.training.step import Step
from routelearn.training.validation import validate, validation_set


def notes_of(out):
    return [row["note"] for row in log_of(out) if "note" in row]


def test_an_unfinished_rollout_is_skipped_and_longer_ones_are_allowed_from_then_on(tmp_path, monkeypatch):
    """The bound starts far too short, as if drawn from an easier distribution."""
    problem = problems.get("cvrp")
    monkeypatch.setattr(type(problem), "max_steps", lambda self, x: 8 if x.xy.shape[0] == 64 else 16)
    config = tiny(problem="cvrp", sizes=(8,), epochs=1, epoch_steps=12)
    report = run(config, tmp_path)
    state = checkpoint.load(tmp_path / "checkpoint.pt")
    assert state["rollout_steps"][8] >= 12
    assert 1 <= report.skipped == state["skipped"] < 12
    assert "took over 8 steps: allowing more" in notes_of(tmp_path)[0]
    # Adam counts the steps that were applied.
    assert state["optimiser"]["state"][0]["step"] == 12 - state["skipped"]


def test_a_size_that_is_named_twice_comes_twice_as_often(tmp_path):
    report = run(tiny(sizes=(6, 7, 6), batch=(4, 2, 4), epochs=1, epoch_steps=6), tmp_path)
    assert report.instances == 4 * 4 + 2 * 2
    assert set(report.validation) == {6, 7}
    assert model_file.load(tmp_path / "last.safetensors").card["sizes"] == [6, 7]


def test_one_size_has_one_batch():
    with pytest.raises(InputError, match="size 6 stands twice, give it the same number each time"):
        tiny(sizes=(6, 7, 6), batch=(4, 2, 8))


def test_a_thread_can_train_and_the_librarys_settings_are_put_back(tmp_path):
    torch.set_float32_matmul_precision("medium")
    try:
        with ThreadPoolExecutor(1) as threads:
            report = threads.submit(run, tiny(epochs=1), tmp_path, deterministic=True).result()
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert report.step == 3
    assert not torch.are_deterministic_algorithms_enabled()


def test_rollouts_become_shorter_where_most_steps_go_unused_and_the_baseline_follows(tmp_path, monkeypatch):
    bounds = []
    truncated = rollout_baseline.truncated_greedy_costs

    def spy(problem, policy, x, steps, **options):
        bounds.append(steps)
        return truncated(problem, policy, x, steps, **options)

    monkeypatch.setattr(rollout_baseline, "truncated_greedy_costs", spy)
    config = tiny(problem="cvrp", sizes=(20,), baseline="rollout", solutions=1, epochs=3, epoch_steps=3)
    run(config, tmp_path)
    final = checkpoint.load(tmp_path / "checkpoint.pt")["rollout_steps"][20]
    assert final < 40
    assert bounds[0] <= final


@pytest.mark.parametrize(("steps", "needed", "expected"), [(200, 117, 128), (200, 0, 200), (20, 20, 20), (40, 36, 40)])
def test_a_shorter_rollout_keeps_a_margin(steps, needed, expected):
    assert shorter(steps, needed) == expected
    assert shorter(steps, needed) >= needed


def test_a_longer_rollout_grows_until_any_tour_fits():
    assert longer(8) == 12
    assert longer(100) == 120


# ---------------------------------------------------------------------------------------------- rollback


def test_a_run_that_diverges_goes_back_to_its_best_with_half_the_rate(tmp_path, monkeypatch):
    """The third validation is 11 % off: everything returns to the state after the second epoch."""
    totals = iter([2.0, 1.0, 1.11, 1.0, 1.0])
    saved = []

    def forced(problem, policy, x, precision):
        saved.append({name: value.clone() for name, value in policy.state_dict().items()})
        return torch.full((4,), next(totals))

    monkeypatch.setattr(validation_module, "validate", forced)
    run(tiny(epochs=3), tmp_path, look_seconds=0.0)
    state = checkpoint.load(tmp_path / "checkpoint.pt")
    assert (state["rollbacks"], state["rate_scale"]) == (1, 0.5)
    assert any("back to it, half the rate" in note for note in notes_of(tmp_path))
    for name, value in state["policy"].items():
        assert torch.equal(value, saved[1][name])
    assert any(not torch.equal(saved[2][name], saved[1][name]) for name in saved[1]), "the third epoch changed nothing"
    assert state["optimiser"]["state"][0]["step"] == 6, "Adam went back, too"
    assert state["norm_average"] == 0


def test_half_the_rate_is_used_after_going_back(tmp_path, monkeypatch):
    totals = iter([1.0, 1.2, 1.0, 1.0])
    monkeypatch.setattr(validation_module, "validate", lambda *given: torch.full((4,), next(totals)))
    run(tiny(epochs=3, rate=1e-3), tmp_path)
    rates = {row["epoch"]: row["rate"] for row in log_of(tmp_path)}
    assert (rates[1], rates[2], rates[3]) == (1e-3, 1e-3, 5e-4)


@pytest.mark.parametrize("third", [1.09, 1.0, 0.9])
def test_within_a_tenth_of_the_best_the_run_goes_on(tmp_path, monkeypatch, third):
    totals = iter([2.0, 1.0, third, 1.0])
    monkeypatch.setattr(validation_module, "validate", lambda *given: torch.full((4,), next(totals)))
    run(tiny(epochs=3), tmp_path)
    assert checkpoint.load(tmp_path / "checkpoint.pt")["rollbacks"] == 0


def test_negative_costs_have_a_best_too(tmp_path, monkeypatch):
    totals = iter([-2.0, -1.7])
    monkeypatch.setattr(validation_module, "validate", lambda *given: torch.full((4,), next(totals)))
    run(tiny(problem="op-const", epochs=2), tmp_path)
    state = checkpoint.load(tmp_path / "checkpoint.pt")
    assert (state["rollbacks"], state["best"]["costs"]) == (1, {6: -2.0})


def test_a_rate_far_too_high_is_survived(tmp_path):
    run(tiny(epochs=4, epoch_steps=4, rate=3.0), tmp_path)
    best = model_file.load(tmp_path / "best.safetensors").policy
    assert all(value.isfinite().all() for value in best.state_dict().values())


# --------------------------------------------------------------------------------------- what is written


def test_the_run_directory_holds_models_log_and_configuration(tmp_path):
    config = tiny(epochs=2)
    report = run(config, tmp_path, reference={6: torch.full((32,), 2.0)})
    assert json.loads((tmp_path / "config.json").read_text()) == json.loads(config.to_json())
    rows = log_of(tmp_path)
    assert [row["epoch"] for row in rows if "validation" in row][:2] == [1, 2]
    assert rows[-1]["instances"] == 6 * 8 == report.instances
    assert rows[-1]["gap"]["6"] == pytest.approx(rows[-1]["validation"]["6"] / 2 - 1)
    problem = problems.get("tsp")
    x = validation_set(problem, config, 6, CPU)
    best, last = (model_file.load(tmp_path / f"{name}.safetensors") for name in ("best", "last"))
    assert best.card["validation_cost"] == pytest.approx(float(validate(problem, best.policy, x, "float32").mean()))
    assert best.card["validation_cost"] <= float(validate(problem, last.policy, x, "float32").mean()) + 1e-6
    assert not list(tmp_path.glob(".*")), "a temporary file was left behind"


def test_training_leaves_batch_statistics_in_training_mode_after_every_epoch(tmp_path, monkeypatch):
    modes = []
    call = Step.__call__
    monkeypatch.setattr(Step, "__call__", lambda self: (modes.append(self.policy.training), call(self)))
    run(tiny(norm="batch", baseline="rollout", solutions=1, epochs=3), tmp_path)
    assert modes == [True] * 9


def test_several_sizes_take_turns_with_their_own_batch(tmp_path, monkeypatch):
    drawn = []
    call = Step.__call__
    monkeypatch.setattr(Step, "__call__", lambda self: (drawn.append((self.size, self.batch)), call(self)))
    report = run(tiny(sizes=(6, 8), batch=(8, 4), epochs=1, epoch_steps=4), tmp_path)
    assert drawn == [(6, 8), (8, 4), (6, 8), (8, 4)]
    assert report.instances == 24
    assert set(report.validation) == {6, 8}


def test_time_ends_the_run_and_its_schedule(tmp_path, monkeypatch):
    """A clock that ticks once a look: no two machines take equally long."""
    ticks = itertools.count(0.0, 0.5)
    monkeypatch.setattr(state_module, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    report = run(tiny(epochs=1_000_000, minutes=1.0, schedule="linear"), tmp_path, look_seconds=0.0)
    assert not report.stopped
    assert 1 <= report.minutes < 1.2
    rates = [row["rate"] for row in log_of(tmp_path)]
    assert 10 < len(rates) < 100
    assert rates == sorted(rates, reverse=True)
    assert 0 < rates[-1] < 0.1e-3 < 0.9e-3 < rates[0] <= 1e-3


def test_schedules():
    config = tiny(rate=1.0, schedule="decay", decay=0.5)
    assert [scheduled_rate(config, 0, epoch, 0.0) for epoch in (0, 1, 2)] == [1.0, 0.5, 0.25]
    config = tiny(rate=1.0, schedule="linear", hold=0.5)
    assert [scheduled_rate(config, 0, 0, p) for p in (0.0, 0.5, 0.75, 1.0)] == [1.0, 1.0, 0.5, 0.0]
    config = tiny(rate=1.0, schedule="cosine")
    assert scheduled_rate(config, 0, 0, 0.5) == pytest.approx(0.5)
    assert scheduled_rate(config, 0, 0, 0.25) == pytest.approx(0.5 * (1 + math.cos(math.pi / 4)))
    config = tiny(rate=1.0, ramp=0.2)
    assert [scheduled_rate(config, 0, 0, p) for p in (0.0, 0.1, 0.2, 0.9)] == [0.01, 0.5, 1.0, 1.0]
    config = tiny(rate=1.0, ramp_steps=4)
    assert [scheduled_rate(config, step, 0, 0.0) for step in (0, 1, 3, 9)] == [0.25, 0.5, 1.0, 1.0]


def test_a_warm_start_takes_what_fits_and_refuses_a_stranger(tmp_path):
    run(tiny(epochs=1), tmp_path / "first")
    start = tmp_path / "first" / "last.safetensors"
    run(tiny(epochs=1, rate=1e-12), tmp_path / "second", warm_start=start)
    first, second = model_file.load(start), model_file.load(tmp_path / "second" / "last.safetensors")
    for mine, theirs in zip(first.policy.state_dict().values(), second.policy.state_dict().values(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-9)
    assert (first.card["warm_start"], first.card["instances_before"]) == (None, 0)
    assert (second.card["warm_start"], second.card["instances_before"]) == ("first/last", first.card["instances"])
    run(tiny(epochs=2, rate=1e-12), tmp_path / "second", resume=True)
    assert model_file.load(tmp_path / "second" / "last.safetensors").card["warm_start"] == "first/last"
    with pytest.raises(InputError, match="parameters fit this policy"):
        loop.run(tiny(width=16, epochs=1), tmp_path / "third", device=CPU, compile=False, warm_start=start)


def test_the_best_models_card_tells_of_its_own_moment(tmp_path):
    run(tiny(epochs=3, rate=0.5, rollback=1e6, schedule="constant"), tmp_path / "run")
    best, last = (model_file.load(tmp_path / "run" / f"{name}.safetensors").card for name in ("best", "last"))
    rows = [row for row in log_of(tmp_path / "run") if row.get("validation")]
    at_best = min(rows, key=lambda row: sum(row["validation"].values()))
    assert best["instances"] == at_best["instances"]
    assert last["instances"] == rows[-1]["instances"]


def test_a_finished_run_that_is_resumed_invents_no_figures(tmp_path):
    run(tiny(epochs=1), tmp_path / "run")
    before = log_of(tmp_path / "run")
    run(tiny(epochs=1), tmp_path / "run", resume=True)
    assert log_of(tmp_path / "run") == before


def test_a_warm_start_says_what_starts_afresh(tmp_path):
    run(tiny(epochs=1), tmp_path / "salesman")
    start = tmp_path / "salesman" / "best.safetensors"
    run(tiny(problem="cvrp", epochs=1), tmp_path / "vehicles", warm_start=start)
    run(tiny(epochs=1), tmp_path / "again", warm_start=start)
    notes = [" ".join(row.get("note", "") for row in log_of(tmp_path / name)) for name in ("vehicles", "again")]
    assert "so they start afresh: " in notes[0]
    assert "encoder.embed.1.weight" in notes[0]
    assert "afresh" not in notes[1]


def test_a_finished_run_keeps_its_configuration_when_it_is_resumed(tmp_path):
    run(tiny(epochs=1), tmp_path)
    before = (tmp_path / "config.json").read_text()
    run(tiny(epochs=1, rate=1e-2), tmp_path, resume=True)
    assert (tmp_path / "config.json").read_text() == before


def test_the_same_bits_are_asked_of_compiler_and_library(tmp_path, monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")  # so that it is put back as it was
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    seen = []

    def report(row):
        seen.append((os.environ.get("CUBLAS_WORKSPACE_CONFIG"), compiling._options()))

    run(tiny(epochs=1), tmp_path / "free", report=report)
    run(tiny(epochs=1), tmp_path / "same", report=report, deterministic=True)
    assert seen[0] == (None, {"combo_kernels": True})
    assert seen[-1] == (":4096:8", {"deterministic": True})
