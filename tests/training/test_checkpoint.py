"""A checkpoint is whole and holds what a run needs, or it is refused in one line that says what to do."""

from __future__ import annotations

import copy
import functools
import random

import pytest
import torch
from train_cases import CPU, differences, run, tiny

from routelearn.errors import InputError
from routelearn.training import checkpoint
from routelearn.training.state import RunState

CONFIG = tiny(width=8, heads=1, hidden=8, epochs=1)
NEEDED = (
    "config", "policy", "baseline", "optimiser", "norm_average", "step", "epoch", "elapsed", "instances", "rate_scale",
    "skipped", "rollbacks", "best", "rollout_steps", "longest", "random",
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a run's checkpoint."""
    out = tmp_path_factory.mktemp("run")
    run(CONFIG, out)
    return (out / "checkpoint.pt").read_bytes()


def refusal(path):
    with pytest.raises(InputError) as caught:
        checkpoint.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: not a usable checkpoint (")
    assert "begin another run" in message
    return message


def test_a_file_that_is_something_else_is_refused(tmp_path):
    path, draw = tmp_path / "checkpoint.pt", random.Random(0)
    for content in (b"junk\n", b"", b"PK", b"\x80\x02.", *(draw.randbytes(draw.randrange(1, 200)) for _ in range(300))):
        path.write_bytes(content)
        refusal(path)


def test_a_file_cut_anywhere_is_refused(whole, tmp_path):
    path, draw = tmp_path / "checkpoint.pt", random.Random(1)
    for end in (1, len(whole) - 1, *(draw.randrange(len(whole)) for _ in range(50))):
        path.write_bytes(whole[:end])
        refusal(path)


def test_a_changed_byte_is_refused_or_changes_nothing(whole, tmp_path):
    path, draw, refused = tmp_path / "checkpoint.pt", random.Random(2), 0
    path.write_bytes(whole)
    state = checkpoint.load(path)
    for _ in range(150):
        changed = bytearray(whole)
        changed[draw.randrange(len(whole))] ^= draw.randrange(1, 256)
        path.write_bytes(changed)
        try:
            assert differences(state, checkpoint.load(path)) == []  # between the parts there is padding
        except InputError:
            refused += 1
            refusal(path)
    assert refused > 75


def test_a_part_that_a_flipped_bit_makes_a_folder_is_refused(whole, tmp_path):
    """torch.load would fill its tensor with whatever lies in memory, and say nothing."""
    path, changed = tmp_path / "checkpoint.pt", bytearray(whole)
    entry = whole.rindex(b"archive/data/3", 0, whole.index(b"archive/data/4", whole.index(b"PK\x01\x02"))) - 46
    assert whole[entry : entry + 4] == b"PK\x01\x02"
    changed[entry + 38] ^= 0x10  # the attributes in the archive's list of parts
    path.write_bytes(changed)
    assert "archive/data/3" in refusal(path)


@pytest.mark.parametrize("name", NEEDED)
def test_a_checkpoint_that_lacks_what_a_run_needs_is_refused_by_name(whole, tmp_path, name):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(whole)
    state = dict(checkpoint.load(path))
    del state[name]
    torch.save(state, path)
    with pytest.raises(InputError, match=f"it holds no '{name}'.*begin another run") as caught:
        run(CONFIG, tmp_path, resume=True)
    assert str(path) in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint.pt"], "nothing is written into a run refused"


def test_a_checkpoint_from_before_origins_were_kept_goes_on(whole, tmp_path):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(whole)
    state = {name: value for name, value in checkpoint.load(path).items() if name in (*NEEDED, "format")}
    torch.save(state, path)
    assert run(tiny(width=8, heads=1, hidden=8, epochs=2), tmp_path, resume=True).step == 6


def places(value, path=()):
    """Every part of a nested state, apart from the optimiser's settings, which a run sets itself."""
    if path:
        yield path
    if isinstance(value, dict | list) and path[-1:] != ("param_groups",):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def test_a_part_of_another_kind_is_refused_in_one_line(whole, tmp_path):
    path, wrong = tmp_path / "checkpoint.pt", ("abc", [1], {"a": 1}, -1, 1.5, torch.zeros(2, 3), float("nan"))
    path.write_bytes(whole)
    good = dict(checkpoint.load(path))
    fresh = RunState(CONFIG, device=CPU, precision="float32", compile=False)
    fresh.load_state_dict(checkpoint.State(path, copy.deepcopy(good)))
    for i, (*above, last) in enumerate(p for p in places(good) if p[0] not in ("format", "origin")):
        state = copy.deepcopy(good)
        part = functools.reduce(lambda held, key: held[key], above, state)
        value = next(w for w in wrong[i % len(wrong) :] + wrong if type(w) is not type(part[last]))
        if last == "param_groups" or (above[-1:] == ["best"] and last in ("instances", "elapsed")):
            continue  # nobody reads the first; the others are only told
        part[last] = value
        with pytest.raises(InputError, match=r"not a usable checkpoint \(.*begin another run") as caught:
            fresh.load_state_dict(checkpoint.State(path, state))
        assert "\n" not in str(caught.value), (*above, last)


def test_weights_that_are_no_numbers_are_refused(whole, tmp_path):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(whole)
    state = dict(checkpoint.load(path))
    state["policy"]["out.weight"].fill_(float("nan"))
    torch.save(state, path)
    with pytest.raises(InputError, match=r"out\.weight is not finite"):
        run(CONFIG, tmp_path, resume=True)
