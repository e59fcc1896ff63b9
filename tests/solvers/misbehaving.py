"""Solvers that crash, hang, print and raise, for the tests of the runner."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from routelearn.errors import InputError
from routelearn.solvers.tasks import Answer, Task


def prepare() -> None:
    """Nothing to import."""


def well(task: Task, seconds: float, seed: int) -> Answer:
    return list(range(task.nodes))


def tells_process(task: Task, seconds: float, seed: int) -> Answer:
    return [os.getpid()]


def tells_seed(task: Task, seconds: float, seed: int) -> Answer:
    return [seed]


def dies(task: Task, seconds: float, seed: int) -> Answer:
    os.abort()


def dies_once(task: Task, seconds: float, seed: int) -> Answer:
    """The first attempt at a row has the row as its seed (the base seed is 0): small."""
    if seed < 1000:
        os.abort()
    return list(range(task.nodes))


def hangs(task: Task, seconds: float, seed: int) -> Answer:
    while True:
        time.sleep(1)


def hangs_on_second(task: Task, seconds: float, seed: int) -> Answer:
    return hangs(task, seconds, seed) if seed == 1 else well(task, seconds, seed)


def hangs_after_first_answer(task: Task, seconds: float, seed: int) -> Iterator[Answer]:
    yield list(range(task.nodes))
    hangs(task, seconds, seed)


def prints(task: Task, seconds: float, seed: int) -> Answer:
    os.write(1, b"progress, as C libraries print it\n")
    print("and as Python does", flush=True)
    return well(task, seconds, seed)


def raises(task: Task, seconds: float, seed: int) -> Answer:
    raise KeyError("no such option")


def refuses(task: Task, seconds: float, seed: int) -> Answer:
    raise InputError("gurobi: too many nodes")
