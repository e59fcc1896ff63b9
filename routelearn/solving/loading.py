"""Load or compile the search kernels before timing starts; tell the user when compiling."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from routelearn.data.convert import Converted

Tell = Callable[[str], None]


def load_search(instances: Iterable[Converted], tell: Tell | None = None) -> None:
    """Load the search kernels for these instances. If they must be compiled, `tell` is called first."""
    from routelearn.search.search import load_kernels

    with compiling_told(tell):
        for one in instances:
            load_kernels(one.problem, one.referee)


@contextmanager
def compiling_told(tell: Tell | None) -> Iterator[None]:
    """Tell it, once, if something is compiled meanwhile."""
    from numba.core import event

    class Once(event.Listener):
        told = False

        def on_start(self, event: Any) -> None:  # not for what comes from the disk
            if not self.told:
                self.told = True
                (tell or to_a_terminal)("compiling the search, once; this takes about half a minute")

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Once()):
        yield


def to_a_terminal(line: str) -> None:
    """Write to standard error only if it is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)
