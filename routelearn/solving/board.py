"""What a running search has found: the best solution, and when and by what each better one was found."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from torch import Tensor

from routelearn.data.convert import Converted
from routelearn.solving.solution import Event, Solution, make_solution

ROUNDING = 1e-9  # of the cost


Watch = Callable[[Event], None]


class Board:
    """The best solution so far, shared by the threads of one search."""

    def __init__(self, watch: Watch | None = None):
        self.began = time.perf_counter()
        self.tour: Tensor | None = None  # [1, 1, T]
        self.cost = float("inf")
        self.events: list[Event] = []
        self.stop = threading.Event()  # set by an interrupt: give back what is there
        self.watch = watch
        self.lock = threading.Lock()

    def submit(self, tour: Tensor | None, cost: float, by: str) -> bool:
        """Keep the tour [1, 1, T] if it is the best by more than rounding; True if it is."""
        with self.lock:
            if tour is None or not cost < self.cost - ROUNDING * abs(cost):
                return False
            self.tour, self.cost = tour, cost
            event = Event(time.perf_counter() - self.began, cost, by)
            self.events.append(event)
            if self.watch is not None:
                self.watch(event)
        return True

    def solution(self, converted: Converted, notes: tuple[str, ...], seconds: float = 0.0) -> Solution:
        """The best solution, checked and measured."""
        assert self.tour is not None
        return make_solution(converted, self.tour[0, 0], seconds=seconds, events=tuple(self.events), notes=notes)
