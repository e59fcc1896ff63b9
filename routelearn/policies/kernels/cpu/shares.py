"""A batch on a CPU: a share of it for each thread, cut into pieces that fit the processor's cache.

A library call on the whole batch shares its own work among threads, waits for all of them, and leaves its result in
main memory for the next. Here a thread does all there is to do with its share, piece by piece, and waits for nobody.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

HEAD = 16  # columns of a head, a vector of the compiled loops

_pools: dict[int, Any] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # a child has none of its parent's threads


MALLOPT = {-4: (0, 65_536), -1: (2**31 - 1, 128 * 1024)}  # glibc's M_MMAP_MAX and M_TRIM_THRESHOLD: here, and usual


@contextlib.contextmanager
def keeping_memory() -> Iterator[None]:
    """Around steps that free and ask for the same large arrays: the process keeps them.

    glibc would give each back to the system, and every new one costs a page fault for each 4 KB (of a training step at
    TSP100 they took 5 to 8 %). Other C libraries are left alone.
    """
    tune = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if tune is None:
        yield
        return
    for option, (kept, _) in MALLOPT.items():
        tune(option, kept)
    try:
        yield
    finally:
        for option, (_, usual) in MALLOPT.items():
            tune(option, usual)


def pool(threads: int) -> Any:
    """Threads that stay, in which the library uses no others."""
    from concurrent.futures import ThreadPoolExecutor

    if threads not in _pools:
        own, all_there = torch.get_num_threads(), threading.Barrier(threads)
        made = ThreadPoolExecutor(threads, initializer=_alone)
        list(made.map(lambda _: all_there.wait(), range(threads)))
        torch.set_num_threads(own)  # a thread that sets its own number changes what new threads begin with
        _pools[threads] = made
    return _pools[threads]


def _alone() -> None:
    """From now on the library uses no other thread for what this one asks of it."""
    torch.set_num_threads(1)
    torch.get_num_threads()  # settles it: else the thread's first large operation would take the process's number


def in_threads(work: Callable[[int, int], Any], batch: int, most: int | None = None) -> list[Any]:
    """[work(low, high), ...] over all instances, one share for each of `most` threads (as many as the library has);
    without gradients unless `work` asks."""

    def ungraded(share: tuple[int, int]) -> Any:
        with torch.no_grad():
            return work(*share)

    threads = min(torch.get_num_threads() if most is None else most, batch)
    if threads == 1:
        return [ungraded((0, batch))]
    return list(pool(threads).map(ungraded, pairwise(batch * i // threads for i in range(threads + 1))))


def flat(tensor: Tensor) -> np.ndarray:
    """A contiguous tensor as compiled code takes it."""
    return tensor.view(-1).numpy()


def pieces(low: int, high: int, longest: int) -> Iterator[slice]:
    """low..high in as few nearly equal pieces as there can be."""
    count = -(-(high - low) // longest)
    return (slice(*ends) for ends in pairwise(low + (high - low) * i // count for i in range(count + 1)))
