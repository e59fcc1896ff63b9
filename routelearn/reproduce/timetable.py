"""How long a table will take: what every cell is expected to need, corrected by what the cells so far took."""

from __future__ import annotations

import time
from collections.abc import Sequence

from routelearn.reproduce.tables import duration

TRUST = 30.0  # seconds of cells run before their speed counts as much as the expectation


class Timetable:
    """Progress of a command: call `where()` when a cell starts, `passed()` when it is done."""

    def __init__(self, expected: Sequence[float]):
        self.expected = list(expected)  # seconds of each cell; 0: nothing to run, or all of it stored
        self.at = 0
        self.started = time.perf_counter()
        self.planned = self.taken = 0.0  # seconds of the cells that are done

    def left(self) -> float:
        """Seconds still to go, at the pace so far."""
        pace = (self.taken + TRUST) / (self.planned + TRUST)
        return pace * sum(self.expected[self.at :])

    def where(self) -> str:
        self.started = time.perf_counter()
        if self.expected[self.at] == 0:
            return "stored before"
        number = sum(seconds > 0 for seconds in self.expected[: self.at + 1])
        return f"{number} of {sum(seconds > 0 for seconds in self.expected)}, about {duration(self.left())} left"

    def passed(self) -> None:
        if self.expected[self.at] > 0:
            self.planned += self.expected[self.at]
            self.taken += time.perf_counter() - self.started
        self.at += 1
        self.started = time.perf_counter()
