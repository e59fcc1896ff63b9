"""How much memory there is, and work that does not fit into it told in one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from routelearn.errors import InputError

GIGABYTE = 2**30
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


def memory_of(device: torch.device) -> int:
    """Bytes of memory that the device has; for a CPU those of the machine, or of the container around this process."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")] if hasattr(os, "sysconf") else [2**63]
    for file in LIMITS:
        with suppress(OSError, ValueError):  # not there, or "max"
            found.append(int(Path(file).read_text()))
    return min(found)


@contextmanager
def told_if_too_large(remedy: str) -> Iterator[None]:
    """Turn what torch and numpy raise where memory does not suffice into one line that ends with the remedy."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        first = (str(error).splitlines() or ["none is left"])[0]
        if not isinstance(error, MemoryError | torch.OutOfMemoryError) and "allocate memory" not in first:
            raise
        raise InputError(f"not enough memory ({first[:160]}); {remedy}") from error
