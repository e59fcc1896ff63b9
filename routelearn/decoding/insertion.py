"""Policies that choose an order of insertion, not of visits: their choices become tours here."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from routelearn.policies.insertion import empty, inserted, offers
from routelearn.problems.base import Problem, distance_matrix


class ByInsertion:
    """A problem of closed tours whose solutions are told as orders [B, S, T] of insertion; all else is its own."""

    def __init__(self, problem: Problem):
        self.problem = problem

    def __getattr__(self, name: str) -> Any:
        if name == "problem":  # of an object that is being copied, and has nothing yet
            raise AttributeError(name)
        return getattr(self.problem, name)

    def cost(self, x: Any, order: Tensor) -> Tensor:
        return self.problem.cost(x, self.tours(x, order))

    def tours(self, x: Any, order: Tensor) -> Tensor:
        """[B, S, T] in the problem's own encoding: nodes as they are visited; in the end the last one stays."""
        tour, _ = self.build(x, order)
        size = (tour >= 0).sum(-1, keepdim=True)
        steps = torch.arange(order.shape[2], device=order.device).expand_as(order)
        return tour.gather(-1, torch.minimum(steps, size - 1))

    def added(self, x: Any, order: Tensor) -> Tensor:
        """[B, S, T]: what each insertion adds to the length; together they are the cost of a finished tour."""
        return self.build(x, order)[1]

    def build(self, x: Any, order: Tensor) -> tuple[Tensor, Tensor]:
        """Partial tours [B, S, N] after all insertions, and what each added, [B, S, T]."""
        legs = distance_matrix(x.public())
        tour, added = empty(legs, order.shape[1]), []
        for node in order.unbind(2):
            offered, chosen = offers(legs, tour), node[..., None]
            known = (tour == chosen).any(-1)
            added.append(offered.added.gather(-1, chosen)[..., 0].masked_fill(known, 0.0))
            tour = inserted(tour, node, offered.place.gather(-1, chosen)[..., 0])
        return tour, torch.stack(added, 2)


def viewed(policy: Any, problem: Any) -> Any:
    """The problem as this policy tells its solutions."""
    inserts = getattr(policy, "inserts", False) and not isinstance(problem, ByInsertion)
    return ByInsertion(problem) if inserts else problem


def tours_of(problem: Any, x: Any, chosen: Tensor) -> Tensor:
    """The tours [B, S, T] that chosen nodes mean to the problem itself."""
    return problem.tours(x, chosen) if isinstance(problem, ByInsertion) else chosen
