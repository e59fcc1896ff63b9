"""Compiled code before the clock runs: loaded from the disk in moments, or compiled once, which is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from routelearn.problems.base import Problem

Tell = Callable[[str], None]


def load_search(problems: Iterable[Problem], tell: Tell | None = None) -> None:
    """The search's kernels for these problems. `tell` hears of it if they must be compiled, before they are."""
    from numba.core import event

    from routelearn.search.search import load_kernels

    class Once(event.Listener):
        told = False

        def on_start(self, event: Any) -> None:  # not for what comes from the disk
            if not self.told:
                self.told = True
                (tell or to_a_terminal)("compiling the search, once; this takes about half a minute")

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Once()):
        for problem in problems:
            load_kernels(problem)


def to_a_terminal(line: str) -> None:
    """Whoever calls from Python hears of it only where someone is sure to be looking."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)
