"""A first solution without a policy."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from routelearn.problems.base import Problem


def heuristic(problem: Problem, x: Any, seed: int = 0) -> Tensor:
    """A constructed solution [1, 1, T] of an instance with batch axis 1: nearest neighbour, savings, insertion."""
    from routelearn.improve import Search

    start = Search(problem, x, seed)
    start.run(0.0)
    assert start.best_tour is not None
    return start.best_tour
