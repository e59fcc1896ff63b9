"""Solvers that crash, hang, print and raise, for the tests of the runner."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from routelearn.errors import InputError
from routelearn.solvers.tasks import Answer, Job


def prepare() -> None:
    """Nothing to import."""


def well(job: Job, seconds: float, seed: int) -> Answer:
    return Answer(list(range(job.nodes)))


def tells_process(job: Job, seconds: float, seed: int) -> Answer:
    return Answer([os.getpid()])


def tells_seed(job: Job, seconds: float, seed: int) -> Answer:
    return Answer([seed])


def dies(job: Job, seconds: float, seed: int) -> Answer:
    os.abort()


def dies_once(job: Job, seconds: float, seed: int) -> Answer:
    """The first attempt at a row has the row as its seed (the base seed is 0): small."""
    if seed < 1000:
        os.abort()
    return Answer(list(range(job.nodes)))


def hangs(job: Job, seconds: float, seed: int) -> Answer:
    while True:
        time.sleep(1)


def hangs_on_second(job: Job, seconds: float, seed: int) -> Answer:
    return hangs(job, seconds, seed) if seed == 1 else well(job, seconds, seed)


def hangs_after_first_answer(job: Job, seconds: float, seed: int) -> Iterator[Answer]:
    yield Answer(list(range(job.nodes)))
    hangs(job, seconds, seed)


def prints(job: Job, seconds: float, seed: int) -> Answer:
    os.write(1, b"progress, as C libraries print it\n")
    print("and as Python does", flush=True)
    return well(job, seconds, seed)


def raises(job: Job, seconds: float, seed: int) -> Answer:
    raise KeyError("no such option")


def refuses(job: Job, seconds: float, seed: int) -> Answer:
    raise InputError("gurobi: too many nodes")
