"""What judges a run: statistics taken anew, paired gaps, and whether rollout and scoring agree."""

from __future__ import annotations

import copy

import pytest
import torch
from train_cases import CPU, log_of, run, tiny

from routelearn import model_file, policies, problems
from routelearn.policies.base import shape_of
from routelearn.problems import DeviceRng
from routelearn.validation import gaps, mismatch, settle, settling_set

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
    problem = problems.get("tsp")
    policy = policies.build("attention", shape_of(problem), SMALL | {"norm": "instance"})
    policy.encode = None
    settle(problem, policy, [problem.sample(DeviceRng(), 4, 5)], "float32")


@pytest.mark.parametrize("baseline", ["shared", "rollout"])
def test_at_a_high_rate_a_model_is_judged_and_kept_with_statistics_of_its_own_weights(tmp_path, baseline):
    config = tiny(norm="batch", rate=0.02, schedule="constant", baseline=baseline, solutions=2, rollback=1e6)
    run(config, tmp_path)
    problem = problems.get("tsp")
    for name in ("best", "last"):
        policy = model_file.load(tmp_path / f"{name}.safetensors").policy
        anew = copy.deepcopy(policy)
        settle(problem, anew, settling_set(problem, config, CPU), "float32")
        assert statistics(policy)
        for key, value in statistics(policy).items():
            torch.testing.assert_close(value, statistics(anew)[key], rtol=1e-3, atol=1e-3, msg=f"{name}: {key}")


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
    problem = problems.get("tsp")
    policy = policies.build("attention", shape_of(problem), {"width": 16, "heads": 2, "hidden": 16, "layers": 1})
    x = problem.sample(DeviceRng(), 8, 6)
    before = torch.get_rng_state()
    assert mismatch(problem, policy, x, tiny(), "float32") < 1e-4
    assert torch.equal(before, torch.get_rng_state())
    assert policy.training
    scored = policy.score
    policy.score = lambda *arguments: scored(*arguments) + 0.5
    assert mismatch(problem, policy, x, tiny(), "float32") == pytest.approx(3, abs=1e-3)
