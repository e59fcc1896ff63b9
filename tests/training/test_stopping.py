"""A run in a process of its own: stopped politely, and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from train_cases import differences, final_state, log_of, run, tiny

from routelearn.training import checkpoint

HERE = Path(__file__).parent
ENDLESS = """
import sys
from pathlib import Path
from train_cases import run, tiny
report = run(tiny(epochs=1_000_000), Path(sys.argv[1]), look_seconds=0.0)
print("stopped" if report.stopped else "ended", report.step)
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    return subprocess.Popen([sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_ends_the_run_with_a_checkpoint_that_goes_on_as_if_never_stopped(tmp_path, number):
    process = start("-c", ENDLESS, str(tmp_path / "run"))
    log, until = tmp_path / "run" / "metrics.jsonl", time.monotonic() + 60
    while not log.is_file() or len(log_of(tmp_path / "run")) < 8:
        assert process.poll() is None
        assert time.monotonic() < until, "no step within a minute"
        time.sleep(0.02)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    step = checkpoint.load(tmp_path / "run" / "checkpoint.pt")["step"]
    assert output.split() == ["stopped", str(step)]
    assert step >= 6

    config = tiny(epochs=step // 3 + 2)
    run(config, tmp_path / "run", resume=True)
    run(config, tmp_path / "whole")
    assert differences(final_state(tmp_path / "whole"), final_state(tmp_path / "run")) == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the killed runs are forked")
def test_twenty_kills_leave_a_usable_checkpoint_each_time_and_the_same_run_in_the_end(tmp_path):
    process = start(str(HERE / "killed_often.py"), str(tmp_path), "20")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    result = json.loads(output.splitlines()[-1])
    assert len(result["reached"]) == 20
    assert result["reached"] == sorted(result["reached"])
    assert result["reached"][-1] > 20
    assert result["differ"] == []
