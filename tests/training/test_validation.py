"""What judges a run: statistics taken anew, paired gaps, and whether rollout and scoring agree."""

from __future__ import annotations

import copy

import pytest
import torch
from train_cases import CPU, log_of, run, tiny

from routelearn import policies, problems
from routelearn.models import model_file
from routelearn.policies.base import shape_of
from routelearn.problems import DeviceRng
from routelearn.training.validation import gaps, mismatch, settle, settling_set, validate, validation_set

TSP = problems.get("tsp")
SMALL = {"width": 16, "heads": 2, "hidden": 16, "layers": 1}


def statistics(policy) -> dict[str, torch.Tensor]:
    return {name: buffer for name, buffer in policy.named_buffers() if "running" in name}


def test_settled_statistics_are_those_of_the_instances_each_batch_counted_alike():
    problem = problems.get("cvrp")
    policy = policies.build("attention", shape_of(problem), SMALL | {"norm": "batch"})
    batches = [problem.sample(DeviceRng(), 16, n) for n in (5, 9)]
    norm, seen = policy.encoder.layers[0].norm_attention, []
    watch = norm.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].flatten(0, 1)))
    policy.eval()
    settle(problem, policy, batches, "float32")
    watch.remove()
    torch.testing.assert_close(norm.running_mean, (seen[0].mean(0) + seen[1].mean(0)) / 2)
    torch.testing.assert_close(norm.running_var, (seen[0].var(0) + seen[1].var(0)) / 2)
    assert norm.momentum == 0.1
    assert not policy.training


def test_a_policy_without_running_statistics_is_left_alone():
    policy = policies.build("attention", shape_of(TSP), SMALL | {"norm": "instance"})
    policy.encode = None
    settle(TSP, policy, [TSP.sample(DeviceRng(), 4, 5)], "float32")


def test_at_a_high_rate_every_saved_model_has_the_statistics_of_its_own_weights(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(model_file, "save", lambda path, model: saved.append((path.stem, model.policy)))
    config = tiny(norm="batch", rate=0.02, schedule="constant", rollback=1e6)
    run(config, tmp_path, save_seconds=0)  # in the middle of an epoch, too
    assert {name for name, _ in saved} == {"best", "last"}
    assert len(saved) > 2 * config.epochs
    for name, policy in saved:
        found, anew = statistics(policy), copy.deepcopy(policy)
        settle(TSP, anew, settling_set(TSP, config, CPU), "float32")
        assert found
        for key, value in statistics(anew).items():
            torch.testing.assert_close(found[key], value, msg=f"{name}: {key}")


@pytest.mark.parametrize(
    "changes", [{"baseline": "shared"}, {"baseline": "rollout"}, {"epoch_steps": 10**6, "minutes": 0.02}]
)
def test_at_a_high_rate_a_run_is_judged_by_the_statistics_of_its_weights(tmp_path, monkeypatch, changes):
    """At the end of an epoch, and of a run that ends within one."""
    config = tiny(norm="batch", rate=0.02, schedule="constant", rollback=1e6, **changes)
    x, judged, saved = validation_set(TSP, config, 6, CPU), [], []

    def save(path, model):
        saved.append((path.stem, float(validate(TSP, model.policy, x, "float32").mean())))

    def report(row):
        if "validation" in row:
            judged.append((row["validation"]["6"], len(saved)))

    monkeypatch.setattr(model_file, "save", save)
    run(config, tmp_path, save_seconds=0, report=report)
    assert judged
    for cost, after in judged:
        lasts = [found for name, found in saved[max(0, after - 2) : after + 2] if name == "last"]
        assert cost in [pytest.approx(found) for found in lasts]


def test_gaps_are_of_the_instances_with_a_reference():
    costs = {20: torch.tensor([3.0, 5.0, 99.0]), 50: torch.tensor([1.0])}
    assert gaps(costs, {20: torch.tensor([2.0, 3.0]), 100: torch.ones(1)}) == {"20": pytest.approx(0.6)}


@pytest.mark.parametrize("name", ["tsp", "cvrp"])
def test_rollout_and_scoring_agree_and_the_log_says_how_closely(tmp_path, name):
    run(tiny(problem=name, sizes=(6,), epochs=2), tmp_path / "run")
    found = [row["mismatch"] for row in log_of(tmp_path / "run") if "mismatch" in row]
    assert len(found) >= 2
    assert max(found) < 1e-4


def test_a_look_at_the_mismatch_draws_nothing_and_notices_one():
    policy = policies.build("attention", shape_of(TSP), SMALL)
    x = TSP.sample(DeviceRng(), 8, 6)
    before = torch.get_rng_state()
    assert mismatch(TSP, policy, x, tiny(), "float32") < 1e-4
    assert torch.equal(before, torch.get_rng_state())
    assert policy.training
    scored = policy.score
    policy.score = lambda *arguments: scored(*arguments) + 0.5
    assert mismatch(TSP, policy, x, tiny(), "float32") == pytest.approx(3, abs=1e-3)
