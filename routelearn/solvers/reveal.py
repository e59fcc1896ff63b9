"""Solving while the instance reveals itself: what is hidden of an instance, told only for nodes visited.

`Solver.solve` sees `x.public()`. Where real prizes stay hidden until a node is visited (SPCTSP), a fixed tour
may miss the prize required, so a solver must decide on the way: it has `solve_online` beside `solve`, and gets
a `Reveal` with the public view. `run` calls whichever a solver has; whoever evaluates solvers needs only that.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from routelearn.errors import InputError
from routelearn.problems.base import Problem
from routelearn.solvers.base import Solver


class Reveal:
    """Answers the real prize of a node, once, as it is visited, and remembers the visits in order."""

    def __init__(self, x: Any):
        self._earned = x.earned().double()
        self.visits: list[list[int]] = [[] for _ in range(len(self._earned))]

    def visit(self, row: int, node: int) -> float:
        """What the visit of instance `row` to a customer brings. A node cannot be visited twice."""
        if not 0 < node < self._earned.shape[1]:
            raise InputError(
                f"instance {row}: node {node} is not a customer; customers are 1 to {self._earned.shape[1] - 1}"
            )
        if node in self.visits[row]:
            raise InputError(f"instance {row}: node {node} is visited twice")
        self.visits[row].append(node)
        return float(self._earned[row, node])


@runtime_checkable
class OnlineSolver(Solver, Protocol):
    """A solver that decides on the way."""

    def solve_online(self, problem: Problem, x: Any, reveal: Reveal, *, seconds: float, seed: int = 0) -> Tensor:
        """Tours [B, 1, T] for the public view x of B instances, of the nodes it visited in `reveal`."""
        ...


def run(solver: Solver, problem: Problem, x: Any, *, seconds: float, seed: int = 0) -> Tensor:
    """Tours [B, 1, T] by any solver for full instances x, of which it sees only what it may."""
    if problem.reveals_on_visit and isinstance(solver, OnlineSolver):
        return solver.solve_online(problem, x.public(), Reveal(x), seconds=seconds, seed=seed)
    return solver.solve(problem, x.public(), seconds=seconds, seed=seed)
