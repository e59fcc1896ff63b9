"""A run's state goes through its dictionary without losing a bit."""

from __future__ import annotations

import pytest
import torch
from train_cases import CPU, differences, tiny

from routelearn.errors import InputError
from routelearn.training import checkpoint
from routelearn.training.state import RunState
from routelearn.training.step import Meter, Step


def fresh(**changes):
    return RunState(tiny(**changes), device=CPU, precision="float32", compile=False)


def trained(state, steps=3):
    step = Step(state, 6, Meter(CPU))
    for _ in range(steps):
        step()
    state.step += steps
    return state


def through_a_file(state, path):
    checkpoint.save(path, state.state_dict())
    return checkpoint.load(path)


def plain(state):
    return {key: value for key, value in state.state_dict().items() if key != "elapsed"}


@pytest.mark.parametrize("baseline", ["rollout", "critic", "exponential", "shared"])
def test_a_state_survives_its_dictionary(tmp_path, baseline):
    state = trained(fresh(baseline=baseline, norm="batch"))
    state.keep_best({6: 3.0})
    state.best.pop("elapsed")
    state.epoch, state.instances, state.skipped, state.rollbacks, state.rate_scale = 1, 24, 2, 1, 0.5
    saved = through_a_file(state, tmp_path / "checkpoint.pt")
    before = plain(state)
    torch.rand(5)  # as if the process had gone on
    other = fresh(baseline=baseline, norm="batch")
    assert differences(plain(other), before)
    other.load_state_dict(saved)
    assert differences(plain(other), before) == []
    assert other.elapsed >= saved["elapsed"]


def test_two_states_take_the_same_next_steps(tmp_path):
    changes = {"baseline": "critic", "solutions": 1, "norm": "batch"}
    state = trained(fresh(**changes))
    saved = through_a_file(state, tmp_path / "checkpoint.pt")
    expected = plain(trained(state))
    other = fresh(**changes)
    other.load_state_dict(saved)
    assert differences(plain(trained(other)), expected) == []


def test_going_back_restores_the_best_in_place_at_half_the_rate():
    state = trained(fresh())
    state.keep_best({6: 3.0})
    weight, value = next(iter(state.policy.parameters())), next(iter(state.policy.parameters())).detach().clone()
    trained(state)
    assert not torch.equal(weight, value)
    state.go_back()
    assert torch.equal(weight, value)
    assert (state.rate_scale, state.rollbacks, state.norm_average.item()) == (0.5, 1, 0.0)


def test_a_state_of_another_loss_is_refused(tmp_path):
    state = trained(fresh())
    state.keep_best({})
    saved = through_a_file(state, tmp_path / "checkpoint.pt")
    with pytest.raises(InputError, match="was trained with loss reinforce, not entropy"):
        fresh(loss="entropy").load_state_dict(saved)
