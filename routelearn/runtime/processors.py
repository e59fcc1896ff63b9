"""How many processors there are for this process."""

from __future__ import annotations

import os


def usable_processors() -> int:
    """Those that the operating system lets this process run on: in a container fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
