"""A run that was stopped and resumed is, bit for bit, the one that was never stopped (on a GPU: where asked for)."""

from __future__ import annotations

import json
import signal
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from train_cases import CPU, differences, final_state, log_of, run, tiny

from routelearn.errors import InputError
from routelearn.training import checkpoint, loop
from routelearn.training import validation as validation_module


def stop_at(step):
    """A listener that stops the run once, as a terminal or a cluster would."""
    fired = []

    def report(row):
        if row["step"] == step and not fired:
            fired.append(step)
            signal.raise_signal(signal.SIGTERM)

    return report


def check_resume(config, tmp_path, *stops):
    """Stop after each of these steps, resume every time, and compare with the run that went through."""
    whole = run(config, tmp_path / "whole")
    options = {"look_seconds": 0.0}
    for i, step in enumerate(stops):
        report = run(config, tmp_path / "parts", resume=i > 0, report=stop_at(step), **options)
        assert (report.stopped, report.step) == (True, step)
        assert checkpoint.load(tmp_path / "parts" / "checkpoint.pt")["step"] == step
    report = run(config, tmp_path / "parts", resume=True, **options)
    assert not report.stopped
    assert report.validation == whole.validation
    a, b = final_state(tmp_path / "whole"), final_state(tmp_path / "parts")
    assert a["step"] == config.epochs * config.epoch_steps
    assert differences(a, b) == []
    return a


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("changes", [
    {"baseline": "rollout", "solutions": 1}, {"baseline": "shared", "solutions": 16, "optimiser": "muon"}
])  # fmt: skip
@pytest.mark.parametrize("name", ["tsp", "sdvrp"])
def test_on_a_gpu_the_same_bits_come_again_where_that_is_asked_for(tmp_path, name, changes):
    config = tiny(
        problem=name, sizes=(20,), width=128, heads=8, hidden=512, layers=3, norm="batch", batch=(64,), epochs=2,
        epoch_steps=60, precision="bfloat16", **changes,
    )  # fmt: skip
    options = {"device": torch.device("cuda"), "deterministic": True, "look_seconds": 0.0}
    loop.run(config, tmp_path / "whole", **options)
    report = loop.run(config, tmp_path / "parts", report=stop_at(40), **options)
    assert (report.stopped, report.step) == (True, 40)
    loop.run(config, tmp_path / "parts", resume=True, **options)
    assert differences(final_state(tmp_path / "whole"), final_state(tmp_path / "parts")) == []


def test_resume_spans_the_end_of_the_warm_up_and_a_replacement_of_the_rollout_baseline(tmp_path):
    config = tiny(
        baseline="rollout", solutions=1, norm="batch", epochs=4, epoch_steps=6, batch=(32,), rate=3e-3,
        evaluation_instances=200,
    )  # fmt: skip
    state = check_resume(config, tmp_path, 3, 6, 8, 20)
    replaced = state["baseline"]["_extra_state"]["replaced"]
    assert replaced >= 2, "the frozen policy was to be replaced on both sides of a stop"
    assert sum("replaced" in row.get("note", "") for row in log_of(tmp_path / "whole")) == replaced


@pytest.mark.parametrize(
    "changes",
    [
        {"baseline": "critic", "solutions": 1, "norm": "batch"},
        {"baseline": "exponential", "solutions": 1},
        {"baseline": "shared", "multistart": True, "sizes": (6, 7)},
        {"baseline": "shared", "loss": "preference", "schedule": "cosine", "ramp_steps": 4},
        {"baseline": "none", "problem": "pctsp"},
        {"baseline": "shared", "optimiser": "muon"},
        {"baseline": "critic", "policy": "ean", "solutions": 1, "norm": "batch"},
        {"baseline": "rollout", "policy": "nazari", "problem": "cvrp", "solutions": 1},
        {"baseline": "none", "policy": "dai", "loss": "q-learning", "solutions": 1},
    ],
    ids=lambda changes: "-".join(changes[part] for part in ("baseline", "policy", "optimiser") if part in changes),
)
def test_resume_in_the_middle_of_an_epoch(tmp_path, changes):
    check_resume(tiny(epochs=3, epoch_steps=4, **changes), tmp_path, 5)


def test_resume_where_rollouts_became_shorter(tmp_path):
    """The bound on a rollout decides how many random numbers a step draws, so what it rests on is saved, too."""
    config = tiny(problem="cvrp", sizes=(20,), baseline="rollout", solutions=1, epochs=2, epoch_steps=4)
    state = check_resume(config, tmp_path, 3, 7)
    assert state["rollout_steps"][20] < 40


def test_saving_as_it_goes_does_not_disturb_the_run(tmp_path):
    config = tiny(epochs=2, epoch_steps=4)
    run(config, tmp_path / "seldom")
    run(config, tmp_path / "often", save_seconds=0.0)
    assert differences(final_state(tmp_path / "seldom"), final_state(tmp_path / "often")) == []


def test_the_first_minute_is_saved_too(tmp_path, monkeypatch):
    monkeypatch.setattr("routelearn.training.loop.FIRST_SAVE", 1e-9)
    steps = []

    def note(row):
        steps.append(checkpoint.load(tmp_path / "checkpoint.pt")["step"])

    run(tiny(epochs=4), tmp_path, save_seconds=60.0, report=note)
    assert 0 < steps[-1] < 12, "saved before the end, and not only at the beginning"


def test_the_same_seed_gives_the_same_run_and_another_does_not(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(tiny(seed=seed, epochs=1), tmp_path / name)
    assert differences(final_state(tmp_path / "a"), final_state(tmp_path / "b")) == []
    assert differences(final_state(tmp_path / "a")["policy"], final_state(tmp_path / "c")["policy"])


def test_going_back_to_the_best_survives_a_resume(tmp_path):
    config = tiny(epochs=6, epoch_steps=4, rate=0.3, rollback=1e-3)
    state = check_resume(config, tmp_path, 10, 17)
    assert state["rollbacks"] >= 1
    assert state["rate_scale"] == 0.5 ** state["rollbacks"]


def test_more_epochs_can_follow_a_finished_run(tmp_path):
    run(tiny(epochs=1), tmp_path)
    report = run(tiny(epochs=2), tmp_path, resume=True)
    assert report.step == 6
    assert [row["step"] for row in log_of(tmp_path)][-1] == 6


def test_resuming_a_finished_run_reports_it_as_it_is(tmp_path):
    first = run(tiny(epochs=1), tmp_path)
    heard = []
    again = run(tiny(epochs=1), tmp_path, resume=True, report=heard.append)
    assert again.validation == first.validation
    assert again.step == first.step == 3
    assert heard == [], "no step was made of which anything could be told"


def test_the_best_model_never_gets_worse(tmp_path, monkeypatch):
    """If the end of a run was the best of it, it stays so when the run goes on."""
    costs = iter([5.4, 5.0, 5.2])
    monkeypatch.setattr(validation_module, "validate", lambda *_: torch.full((2,), next(costs)))
    run(tiny(epochs=2), tmp_path)
    best, last = (load_file(tmp_path / f"{name}.safetensors") for name in ("best", "last"))
    assert differences(best, last) == []
    run(tiny(epochs=3), tmp_path, resume=True)
    assert differences(best, load_file(tmp_path / "best.safetensors")) == []
    assert differences(best, load_file(tmp_path / "last.safetensors"))
    assert checkpoint.load(tmp_path / "checkpoint.pt")["best"]["costs"] == {6: 5.0}


def test_the_best_is_judged_anew_where_a_run_goes_on_with_other_validation_instances(tmp_path, monkeypatch):
    config, seen = tiny(epochs=1), []

    def validate(problem, policy, x, precision):
        seen.append(len(x.xy))
        return torch.full((2,), {32: 5.0, 4: 3.0}[len(x.xy)] + 0.1 * len(seen))

    monkeypatch.setattr(validation_module, "validate", validate)
    run(config, tmp_path)
    assert checkpoint.load(tmp_path / "checkpoint.pt")["best"]["costs"] == {6: pytest.approx(5.1)}
    run(replace(config, epochs=2, validation_instances=4), tmp_path, resume=True)
    assert seen == [32, 4, 4]
    best = checkpoint.load(tmp_path / "checkpoint.pt")["best"]
    assert best["costs"] == {6: pytest.approx(3.2)}, "3.3 after the second epoch is worse than 3.2 of the first"


@pytest.mark.parametrize("validated", [True, False])
def test_a_checkpoint_from_before_costs_were_kept_by_size_goes_on(tmp_path, validated):
    config = tiny(epochs=2, epoch_steps=4)
    run(config, tmp_path, report=stop_at(5 if validated else 2), look_seconds=0.0)
    state = checkpoint.load(tmp_path / "checkpoint.pt")
    known = state["best"].pop("costs")
    if not validated:
        state["best"] = {}
    checkpoint.save(tmp_path / "checkpoint.pt", dict(state))
    assert run(config, tmp_path, resume=True).step == 8
    best = checkpoint.load(tmp_path / "checkpoint.pt")["best"]["costs"]
    assert best[6] <= known.get(6, 99.0)


def test_a_first_validation_that_is_not_a_number_does_not_end_the_run(tmp_path, monkeypatch):
    costs = iter([float("nan"), 4.0, 4.0])
    monkeypatch.setattr(validation_module, "validate", lambda *_: torch.full((2,), next(costs)))
    assert run(tiny(epochs=2), tmp_path).step == 6


def test_a_log_that_went_on_beyond_the_checkpoint_is_cut(tmp_path):
    config = tiny(epochs=3, epoch_steps=4)
    run(config, tmp_path, report=stop_at(5), look_seconds=0.0)
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"step": 7, "cost": 1.0}\n{"step": 8, "co')  # what a kill leaves
    run(config, tmp_path, resume=True, look_seconds=0.0)
    steps = [row["step"] for row in log_of(tmp_path)]
    assert steps == sorted(steps)
    assert all("epoch" in row for row in log_of(tmp_path))


def test_settings_of_the_resumed_run_are_written_down(tmp_path):
    run(tiny(epochs=1), tmp_path)
    run(tiny(epochs=2, rate=2e-3), tmp_path, resume=True)
    written = json.loads((tmp_path / "config.json").read_text())
    assert (written["epochs"], written["rate"]) == (2, 2e-3)


# ------------------------------------------------------------------------------------ what cannot go on


def test_resume_without_a_checkpoint_is_refused(tmp_path):
    with pytest.raises(InputError, match="no checkpoint there"):
        loop.run(tiny(), tmp_path, device=CPU, resume=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sizes", (7,)),
        ("baseline", "critic"),
        ("width", 16),
        ("problem", "cvrp"),
        ("epoch_steps", 5),
        ("optimiser", "muon"),
        ("clip", 3.0),
        ("neighbours", 2),
        ("seed", 99),
    ],
)
def test_resume_as_another_run_is_refused_by_name(tmp_path, name, value):
    run(tiny(epochs=1), tmp_path)
    with pytest.raises(InputError, match=f"was trained with {name} .*, not") as caught:
        run(tiny(**{name: value}), tmp_path, resume=True)
    assert "\n" not in str(caught.value)


def test_a_damaged_checkpoint_is_refused_in_one_line(tmp_path):
    run(tiny(epochs=1), tmp_path)
    path = tmp_path / "checkpoint.pt"
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"not a checkpoint at all"):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="not a usable checkpoint") as caught:
            checkpoint.load(path)
        assert "\n" not in str(caught.value)


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path):
    class Surprise:
        def __reduce__(self):
            return (print, ("this ran",))

    torch.save({"format": 1, "step": Surprise()}, tmp_path / "checkpoint.pt")
    with pytest.raises(InputError, match="not a usable checkpoint"):
        checkpoint.load(tmp_path / "checkpoint.pt")


def test_a_checkpoint_of_another_version_is_refused(tmp_path):
    torch.save({"format": 99}, tmp_path / "checkpoint.pt")
    with pytest.raises(InputError, match="this version"):
        checkpoint.load(tmp_path / "checkpoint.pt")


def test_a_save_that_fails_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, {"step": 1})

    def full_disk(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(InputError, match=r"checkpoint.pt: cannot be written \(No space left on device\)"):
        checkpoint.save(path, {"step": 2})
    assert checkpoint.load(path)["step"] == 1
    assert list(tmp_path.iterdir()) == [path]
