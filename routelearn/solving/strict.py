"""The referee of people's own numbers: the problem's rules, with no more tolerance than double precision needs."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from routelearn.problems.base import Problem, closed_length, collected, from_depot, refuse, visits
from routelearn.problems.op import EXACT

ALLOWED = 10 * EXACT  # share of a limit; the searches build to a tenth of it, because sums in another order differ


def check_strictly(problem: Problem, x: Any, tour: Tensor) -> None:
    """Raise Infeasible if a tour [B, S, T] breaks a rule of x, an instance in double precision.

    `problem.check` alone would let single precision's rounding (1e-5) through: more than a user's limit should give.
    Where prizes are only known after the visit nobody could have aimed at the minimum that closely.
    """
    problem.check(x, tour)
    if hasattr(x, "max_length"):
        length = closed_length(x, from_depot(tour))
        refuse(
            length > x.max_length[:, None] * (1 + ALLOWED),
            lambda b, s: f"the tour is {float(length[b, s]):.12g} long; {float(x.max_length[b]):.12g} is allowed",
        )
    if hasattr(x, "min_prize") and not problem.reveals_on_visit:
        got, everything = collected(x.earned(), tour), (visits(tour, x.prize.shape[1])[..., 1:] > 0).all(-1)
        refuse(
            (got < x.min_prize[:, None] * (1 - ALLOWED)) & ~everything,
            lambda b, s: f"the prize is {float(got[b, s]):.12g}; {float(x.min_prize[b]):.12g} is needed",
        )
