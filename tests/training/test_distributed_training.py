"""Two processes train one model: the same steps as one process with twice the batch, and one run directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from train_cases import differences, final_state
from two_ranks import BASELINES, RUNS, STOPPED_AT, take_steps

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="this torch comes without gloo")


def two_ranks(folder, what):
    """Run the script under torchrun; what each rank left."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, str(HERE / "two_ranks.py"), str(folder), what],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    states = [torch.load(folder / f"{what}-{rank}.pt", weights_only=True) for rank in (0, 1)]
    assert [state["world"] for state in states] == [2, 2]
    return states


@pytest.fixture(scope="module")
def updates(tmp_path_factory):
    return two_ranks(tmp_path_factory.mktemp("updates"), "updates")


@pytest.mark.parametrize("name", list(BASELINES))
def test_two_ranks_take_the_steps_of_one_process_with_twice_the_batch(updates, name):
    alone = take_steps(name, "layer", 0, 1)
    assert alone["skipped"] == 0
    for state in updates:
        for part in ("policy", "baseline"):
            for key, value in alone[part].items():
                torch.testing.assert_close(state[name][part][key], value, rtol=0, atol=1e-9)
    assert differences(updates[0][name], updates[1][name]) == []


def test_the_comparison_notices_half_the_batch(updates):
    """One rank's rows alone lead elsewhere: the equality above is not one of any two runs."""
    half = take_steps("shared", "layer", 0, 1)
    other = take_steps("shared", "layer", 1, 2)
    apart = max(float((half["policy"][key] - other["policy"][key]).abs().max()) for key in half["policy"])
    assert apart > 1e-4


def test_ranks_hold_the_same_parameters_and_statistics_under_batch_norm(updates):
    assert any("running_mean" in key for key in updates[0]["batch norm"]["policy"])
    assert differences(updates[0]["batch norm"], updates[1]["batch norm"]) == []


def test_what_one_rank_cannot_finish_no_rank_applies(updates):
    for state in updates:
        assert differences(state["unfinished"]["before"], state["unfinished"]["after"]) == []
        assert state["unfinished"]["read"]["unfinished"] == 1, "every rank must allow longer rollouts now"
        assert state["unfinished"]["read"]["skipped"] == 1


# -------------------------------------------------------------------------------------------- whole runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return folder, two_ranks(folder, "runs")


@pytest.mark.slow
@pytest.mark.parametrize("name", list(RUNS))
def test_ranks_end_a_run_with_the_same_policy_and_baseline(runs, name):
    _, states = runs
    first, second = ({part: state[name][part] for part in ("policy", "baseline")} for state in states)
    assert differences(first, second) == []
    config = RUNS[name]
    assert states[0][name]["instances"] == 2 * config.batch[0] * config.epochs * config.epoch_steps


@pytest.mark.slow
@pytest.mark.parametrize("name", list(RUNS))
def test_one_run_directory_is_written_and_each_rank_has_its_own_random_numbers(runs, name):
    folder, states = runs
    assert sorted(path.name for path in (folder / name).iterdir()) == [
        "best.safetensors", "checkpoint.pt", "config.json", "last.safetensors", "metrics.jsonl",
    ]  # fmt: skip
    saved = final_state(folder / name)
    assert differences(saved["policy"], states[0][name]["policy"]) == []
    first, second = saved["random"]["cpu"]
    assert not torch.equal(first, second)


@pytest.mark.slow
def test_a_signal_to_one_rank_stops_all_and_the_run_goes_on_as_if_never_stopped(runs):
    folder, states = runs
    assert [state["rollout"]["stopped"] for state in states] == [(True, STOPPED_AT)] * 2
    assert differences(final_state(folder / "rollout"), final_state(folder / "rollout-parts")) == []
