"""A run's folder belongs to one process at a time, and a full disk ends a run in one line."""

from __future__ import annotations

import errno
import os
import signal
import time

import pytest
from train_cases import final_state, run, tiny

from routelearn.cli import main
from routelearn.errors import InputError, OutOfSpace
from routelearn.runtime.atomic import replace_file
from routelearn.runtime.locking import held

CONFIG = tiny(width=8, heads=1, hidden=8, epochs=1)
FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_run_in_a_folder_is_told_who_holds_it(tmp_path, resume):
    refused = []

    def second(row):
        with pytest.raises(InputError, match=rf"a run is at work there \(process {os.getpid()} on .+\); wait") as error:
            run(CONFIG, tmp_path, resume=resume)
        refused.append(str(error.value))

    first = run(CONFIG, tmp_path, report=second)
    assert refused
    assert first.step == 3
    assert run(tiny(width=8, heads=1, hidden=8, epochs=2), tmp_path, resume=True).step == 6, "free again"
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_a_lock_ends_with_its_process_and_what_it_left_unfinished_goes(tmp_path):
    child = os.fork()
    if child == 0:
        try:
            with held(tmp_path):
                (tmp_path / ".checkpoint.pt.1-00.part").write_text("half")
                (tmp_path / "ready").write_text("")
                time.sleep(60)
        finally:
            os._exit(1)
    while not (tmp_path / "ready").exists():
        time.sleep(0.01)
    with pytest.raises(InputError, match=f"process {child} on"), held(tmp_path):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with held(tmp_path):
        assert {file.name for file in tmp_path.iterdir()} == {"ready", ".lock"}
    assert os.listdir(tmp_path) == ["ready"]


def test_a_run_that_is_refused_leaves_no_folder(tmp_path):
    with pytest.raises(InputError, match="no checkpoint there"):
        run(CONFIG, tmp_path / "a" / "b", resume=True)
    assert os.listdir(tmp_path) == []


def test_two_who_write_one_file_do_not_share_a_temporary_file(tmp_path):
    def write(file):
        replace_file(tmp_path / "a", lambda other: other.write(b"inner"))
        file.write(b"outer")

    replace_file(tmp_path / "a", write)
    assert (tmp_path / "a").read_bytes() == b"outer"
    assert os.listdir(tmp_path) == ["a"]


def test_a_full_disk_ends_a_run_with_its_last_checkpoint(tmp_path, monkeypatch):
    run(CONFIG, tmp_path)
    before = final_state(tmp_path)["step"]

    def full(descriptor):
        raise FULL

    def fill(row):
        monkeypatch.setattr("os.fsync", full)

    with pytest.raises(OutOfSpace, match=r"checkpoint.pt: cannot be written \(No space left on device\)"):
        run(tiny(width=8, heads=1, hidden=8, epochs=2), tmp_path, resume=True, report=fill)
    monkeypatch.undo()
    assert final_state(tmp_path)["step"] == before
    assert not list(tmp_path.glob(".*"))


def test_the_command_says_so_in_one_line_with_status_1(tmp_path, monkeypatch, capsys):
    def full(descriptor):
        raise FULL

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(SystemExit) as ended:
        main(f"train tsp 6 --epochs 1 --epoch-steps 1 --out {tmp_path}/r --device cpu --quiet".split())
    assert ended.value.code == 1
    words = capsys.readouterr().err.strip()
    assert words.startswith("error: ")
    assert words.endswith("cannot be written (No space left on device)")
    assert "\n" not in words
