"""When Python's collector of garbage may run: a pass over all that torch and numba keep takes 0.15 s."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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


def keep_what_is_loaded() -> None:
    """Leave all that exists now, modules above all, out of every later pass: for processes that stay."""
    gc.collect()
    gc.freeze()
