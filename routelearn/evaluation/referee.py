"""Judging answers: their cost in double precision, by the problem's own rules."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor

from routelearn.errors import Infeasible
from routelearn.problems.base import Problem, map_instance, take

JUDGED_AT_ONCE = 256  # rows


def double(x: Any) -> Any:
    """Floats in double precision: a referee's sums should not depend on the order of the legs."""
    return map_instance(lambda field: field.double() if field.is_floating_point() else field, x)


def judge(problem: Problem, x: Any, tours: Tensor) -> Tensor:
    """Costs [B] in double precision of tours [B, 1, T]; nan for every tour that breaks a rule."""
    costs = torch.full((len(tours),), torch.nan, dtype=torch.float64)
    exact = double(x)
    for low in range(0, len(tours), JUDGED_AT_ONCE):
        rows = slice(low, low + JUDGED_AT_ONCE)
        good = _feasible(problem, take(exact, rows), tours[rows]).nonzero()[:, 0] + low
        if len(good):
            costs[good] = problem.cost(take(exact, good), tours[good])[:, 0]
    return costs


def _feasible(problem: Problem, x: Any, tours: Tensor) -> Tensor:
    """[B] bool: all rows at once, and one by one only if a rule is broken."""
    with contextlib.suppress(Infeasible):
        problem.check(x, tours)
        return torch.ones(len(tours), dtype=torch.bool)
    good = []
    for row in range(len(tours)):
        try:
            problem.check(take(x, slice(row, row + 1)), tours[row : row + 1])
            good.append(True)
        except Infeasible:
            good.append(False)
    return torch.tensor(good)
