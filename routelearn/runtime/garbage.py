"""When Python's collector of garbage may run: a pass over all that torch and numba keep takes 0.12 s and more."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

TURN = 0.001  # seconds


@contextmanager
def collected_later() -> Iterator[None]:
    """Put the collector off, where a pass would take longer than the work."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def stay_awake() -> None:
    """For a process that answers, once it has loaded all it needs: no pass over that, and turns of a millisecond.

    Passes leave out what exists now. A thread that reads a large body hands the interpreter's lock to the event loop
    after a millisecond, not after five.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    sys.setswitchinterval(TURN)
