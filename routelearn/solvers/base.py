"""What a solver is: any method that turns instances into tours, behind one interface, judged by the problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from routelearn.errors import InputError

if TYPE_CHECKING:  # solver workers read this file too, and start ten times faster without tensors
    from torch import Tensor

    from routelearn.problems.base import Problem


@runtime_checkable
class Solver(Protocol):
    """Classical methods, exact ones and foreign programs alike.

    `solve` sees the public view of instances (`x.public()`) on the CPU and answers in the problem's own
    tour encoding. Its own idea of the cost counts for nothing: `problem.cost` and `problem.check` judge.
    """

    name: str  # what the command line calls it: "farthest-insertion", "pyvrp"
    problems: frozenset[str]  # ids of the problems it can solve
    licence: str
    anytime: bool = False  # uses all the seconds it is given; otherwise it stops when it is done
    exact: bool = False  # proves optimality if it stops before its time is up

    def unavailable(self) -> str | None:
        """Why it cannot be used here, in words for the user; None if it can."""
        return None

    def solve(self, problem: Problem, x: Any, *, seconds: float, seed: int = 0) -> Tensor:
        """Tours [B, 1, T] (long, CPU) for B instances, `seconds` at most for each of them."""
        ...


def refuse_problem(solver: Any, problem: Problem) -> None:
    """Raise InputError if the solver does not solve the problem."""
    if problem.name not in solver.problems:
        raise InputError(f"{solver.name} does not solve {problem.name}; it solves {', '.join(sorted(solver.problems))}")
