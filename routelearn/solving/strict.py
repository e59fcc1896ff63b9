"""Check a solution in the user's own numbers, with no more tolerance than double precision needs."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from routelearn.problems.base import EXACT, Problem

ALLOWED = 10 * EXACT  # share of a limit; the searches build to a tenth of it, because sums in another order differ


def check_strictly(problem: Problem, x: Any, tour: Tensor) -> None:
    """Raise Infeasible if a tour [B, S, T] breaks a rule of x, an instance in double precision.

    `problem.check` alone would let single precision's rounding (1e-5) through: more than a user's limit should give.
    Where prizes are only known after the visit nobody could have aimed at the minimum that closely.
    """
    if problem.reveals_on_visit:
        problem.check(x, tour)
    else:
        problem.check(x, tour, ALLOWED)
