"""When a run is validated, by what, and what follows from it."""

from __future__ import annotations

import math
import signal
from dataclasses import replace

import pytest
import torch
from train_cases import CPU, log_of, run, tiny

from routelearn.data.generate import TEST_SEED, generate
from routelearn.errors import InputError
from routelearn.models import model_file
from routelearn.policies.attention import AttentionPolicy
from routelearn.problems import get
from routelearn.training import checkpoint, recipes
from routelearn.training import loop as train_module
from routelearn.training import validation as validation_module
from routelearn.training.validation import astray, better, settling_set, validation_set


@pytest.mark.parametrize("name", ["tsp", "cvrp"])
def test_statistics_are_taken_from_instances_that_nobody_is_judged_by(name):
    problem, config = get(name), recipes.paper(name, 20)
    (settling,) = settling_set(problem, config, CPU)
    for judged in (generate(problem, 20, seed=TEST_SEED), validation_set(problem, config, 20, CPU)):
        known = set(map(tuple, judged.xy[:, :, 0].tolist()))
        assert not any(tuple(places) in known for places in settling.xy[:, :, 0].tolist())


def test_sizes_count_alike_when_validations_are_compared():
    best = {20: 4.0, 100: 8.0}
    assert better({20: 3.9, 100: 8.1}, best), "2.5 % against 1.3 %"
    assert not better({20: 4.1, 100: 7.9}, best)
    assert better({20: 4.0, 100: 8.0}, {})
    assert not better({20: math.nan, 100: 8.0}, {})
    assert better({20: -4.1}, {20: -4.0})


def test_one_size_that_goes_astray_is_enough():
    best = {20: 4.0, 100: 8.0}
    assert astray({20: 4.5, 100: 7.9}, best, 0.1), "the sum is within a tenth"
    assert not astray({20: 4.3, 100: 8.7}, best, 0.1)
    assert astray({20: math.nan, 100: 8.0}, {}, 0.1)
    assert astray({20: -3.5}, {20: -4.0}, 0.1)
    assert not astray({20: 40.0}, {}, 0.1)


def test_a_run_of_minutes_is_validated_long_before_its_first_epoch_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(validation_module, "PATIENCE", 0)
    run(tiny(epochs=1, epoch_steps=10**6, minutes=3 / 60, rollback=10.0), tmp_path)
    judged = [row for row in log_of(tmp_path) if row.get("validation")]
    assert len(judged) > 5
    assert all(row["epoch"] == 0 and row["mismatch"] < 1e-4 for row in judged)
    assert (tmp_path / "best.safetensors").exists()


def test_validating_does_not_take_more_than_a_share_of_the_time(tmp_path, monkeypatch):
    monkeypatch.setattr(validation_module, "PATIENCE", 10**6)
    run(tiny(epochs=1, epoch_steps=10**6, minutes=2 / 60), tmp_path)
    assert len([row for row in log_of(tmp_path) if row.get("validation")]) <= 2  # the first, and at the end


def test_the_end_of_an_epoch_is_judged_and_told_once(tmp_path):
    heard = []
    last = run(tiny(epochs=2, epoch_steps=4), tmp_path, report=heard.append)
    judged = [row["step"] for row in log_of(tmp_path) if row.get("validation")]
    assert judged == [4, 8]
    assert heard[-1]["validation"] == {"6": last.validation[6]}


def test_a_run_that_is_stopped_is_not_judged(tmp_path, monkeypatch):
    def stop(row):
        if row["step"] == 5:
            signal.raise_signal(signal.SIGTERM)

    whole = validation_module.validate
    calls = []
    monkeypatch.setattr(validation_module, "validate", lambda *given: calls.append(1) or whole(*given))
    last = run(tiny(epochs=3, epoch_steps=4), tmp_path, report=stop, look_seconds=0.0)
    assert (last.stopped, last.step, len(calls)) == (True, 5, 1)
    assert last.validation == {6: log_of(tmp_path)[3]["validation"]["6"]}, "the last that is known"


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signal here")
@pytest.mark.parametrize(("handler", "last_step"), [(signal.SIG_DFL, 2), (signal.SIG_IGN, 9)], ids=["", "nohup"])
def test_a_terminal_that_is_closed_stops_the_run_with_a_checkpoint_unless_that_is_ignored(tmp_path, handler, last_step):
    def leave(row):
        if row["step"] == 2:
            signal.raise_signal(signal.SIGHUP)

    before = signal.signal(signal.SIGHUP, handler)
    try:
        last = run(tiny(epochs=3), tmp_path, report=leave, look_seconds=0.0)
        assert signal.getsignal(signal.SIGHUP) == handler, "put back as it was"
    finally:
        signal.signal(signal.SIGHUP, before)
    assert last.stopped == (last_step == 2)
    assert checkpoint.load(tmp_path / "checkpoint.pt")["step"] == last_step


def test_a_run_can_be_resumed_from_its_first_moment_on(tmp_path):
    steps = []
    saved = checkpoint.save

    def watch(path, state):
        steps.append(state["step"])
        saved(path, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "save", watch)
        run(tiny(epochs=1), tmp_path / "whole")
    assert steps[0] == 0


def test_a_run_whose_minutes_are_over_stays_as_it_was(tmp_path):
    config = tiny(epochs=1, epoch_steps=10**6, minutes=0.02)
    first = run(config, tmp_path)
    before = (tmp_path / "config.json").read_text()
    again = run(tiny(epochs=1, epoch_steps=10**6, minutes=0.01, rate=5.0), tmp_path, resume=True)
    assert again.step == first.step
    assert (tmp_path / "config.json").read_text() == before


@pytest.mark.parametrize("norm", ["instance", "batch"])
def test_layers_that_a_warm_start_adds_change_nothing_at_first(tmp_path, norm):
    torch.manual_seed(3)
    short = tiny(norm=norm, layers=1, epochs=1, epoch_steps=4, rate=1e-2)
    start = run(short, tmp_path / "short").folder / "last.safetensors"
    deep = run(replace(short, layers=3, rate=1e-12), tmp_path / "deep", warm_start=start)
    before, after = (model_file.load(path).policy.eval() for path in (start, deep.folder / "last.safetensors"))
    features = (torch.rand(40, 6, 2),)
    torch.testing.assert_close(after.encoder(features), before.encoder(features), atol=0.05, rtol=0.02)
    assert (len(before.encoder.layers), len(after.encoder.layers)) == (1, 3)
    assert any("2 layers are added; they begin as the identity" in row.get("note", "") for row in deep.history)


def test_layers_normalised_by_row_start_afresh(tmp_path):
    start = run(tiny(norm="layer", epochs=1), tmp_path / "short").folder / "last.safetensors"
    deep = run(tiny(norm="layer", layers=2, epochs=1), tmp_path / "deep", warm_start=start)
    assert any("they start afresh: encoder.layers.1" in row.get("note", "") for row in deep.history)


def test_a_warm_start_from_another_policy_is_told(tmp_path):
    class Sharper(AttentionPolicy):
        def logits(self, cache, seen):
            return 2 * super().logits(cache, seen)

    run(tiny(epochs=1), tmp_path / "first")
    start = tmp_path / "first" / "last.safetensors"
    run(tiny(epochs=1, policy=Sharper), tmp_path / "second", warm_start=start)
    run(tiny(epochs=1), tmp_path / "third", warm_start=start)
    second, third = (" ".join(row.get("note", "") for row in log_of(tmp_path / name)) for name in ("second", "third"))
    assert "last.safetensors is of policy 'attention', its weights go on in policy 'Sharper'" in second
    assert "is of policy" not in third


def test_a_warm_start_with_other_heads_is_refused_and_other_differences_are_told(tmp_path):
    run(tiny(epochs=1, layers=2), tmp_path / "first")
    start = tmp_path / "first" / "last.safetensors"
    with pytest.raises(InputError, match="has 2 heads, not 4; heads must be the same"):
        run(tiny(heads=4), tmp_path / "heads", warm_start=start)
    run(tiny(epochs=1, clip=5.0), tmp_path / "second", warm_start=start)
    notes = " ".join(row.get("note", "") for row in log_of(tmp_path / "second"))
    assert "last.safetensors was trained with layers 2 (here 1), clip 10.0 (here 5.0)" in notes
    assert "of last.safetensors not taken: encoder.layers.1." in notes
    assert model_file.load(tmp_path / "second" / "last.safetensors").card["warm_start"] == "first/last"


def test_where_no_step_was_applied_nothing_is_averaged_and_it_is_said(tmp_path):
    config = tiny(baseline="critic", solutions=1, epochs=3, rate=1e30)
    run(config, tmp_path)
    rows = log_of(tmp_path)
    assert rows[-1]["cost"] is None
    assert any("every step of this epoch was skipped" in row.get("note", "") for row in rows)
    assert all(math.isfinite(cost) for row in rows for cost in row.get("validation", {}).values())


def test_costs_of_several_sizes_are_told_apart(tmp_path):
    run(tiny(problem="cvrp", sizes=(5, 12), epochs=1, epoch_steps=6), tmp_path)
    costs = log_of(tmp_path)[-1]["costs"]
    assert set(costs) == {"5", "12"}
    assert costs["12"] > costs["5"]


def test_a_rollout_is_not_allowed_more_and_more_steps_without_end(tmp_path, monkeypatch):
    longest = []
    plain, read = train_module.longer, train_module.Meter.read
    monkeypatch.setattr(train_module, "longer", lambda steps: longest.append(steps) or plain(steps))
    monkeypatch.setattr(train_module.Meter, "read", lambda meter: read(meter) | {"unfinished": 1})
    run(tiny(epochs=1, epoch_steps=30), tmp_path)
    assert max(longest) == 4 * 6
