"""Judging answers: their cost in double precision, by the problem's own rules."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
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
        good = holding(problem.check, take(exact, rows), tours[rows]).nonzero()[:, 0] + low
        if len(good):
            costs[good] = problem.cost(take(exact, good), tours[good])[:, 0]
    return costs


def holding(check: Callable[[Any, Tensor], None], x: Any, tours: Tensor) -> Tensor:
    """[B] bool: which of the tours [B, S, T] break no rule; they are checked one by one only if one of them does."""
    with contextlib.suppress(Infeasible):
        check(x, tours)
        return torch.ones(len(tours), dtype=torch.bool)
    if len(tours) == 1:
        return torch.zeros(1, dtype=torch.bool)
    return torch.cat([holding(check, take(x, slice(row, row + 1)), tour) for row, tour in enumerate(tours.split(1))])
