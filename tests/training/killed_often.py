"""A run that is killed without warning again and again, and one that is not: `python killed_often.py FOLDER KILLS`.

Prints one JSON object: the step at every kill, and where the two runs differ in the end. Children are forked,
so that a round costs no import of torch.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from train_cases import differences, final_state, run, tiny

from routelearn.models import model_file
from routelearn.training import checkpoint

CONFIG = tiny(epochs=1_000_000, epoch_steps=5)


def child(out: Path, resume: bool) -> int:
    """Start training in another process, a checkpoint after every step."""
    process = os.fork()
    if process == 0:
        try:
            run(CONFIG, out, resume=resume, save_seconds=0.0)
        finally:
            os._exit(1)  # it never ends by itself
    return process


def main() -> None:
    folder, kills = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    run(tiny(epochs=1), folder / "warm")  # what is imported or compiled at first use is there for every child
    clock, path, reached = random.Random(0), folder / "often" / "checkpoint.pt", []
    for round in range(kills):
        process = child(folder / "often", resume=round > 0)
        before = path.stat().st_mtime_ns if round else 0
        until = time.monotonic() + 60
        while not path.is_file() or path.stat().st_mtime_ns == before:  # it is saving by now
            assert time.monotonic() < until, "no checkpoint within a minute"
            time.sleep(0.002)
        time.sleep(clock.uniform(0, 0.15))
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, "the run ended by itself"
        reached.append(checkpoint.load(path)["step"])
        model_file.load(folder / "often" / "last.safetensors")
    epochs = reached[-1] // CONFIG.epoch_steps + 1
    for name, resume in (("often", True), ("never", False)):
        run(tiny(epochs=epochs, epoch_steps=5), folder / name, resume=resume)
    print(
        json.dumps({"reached": reached, "differ": differences(*map(final_state, (folder / "often", folder / "never")))})
    )


if __name__ == "__main__":
    main()
