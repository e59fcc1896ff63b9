"""Travelling while the instance reveals itself (SPCTSP): plan on expected prizes, visit, learn, plan again."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from routelearn.problems.base import Problem

LEAST = 0.001  # seconds of one planning


def travel(problem: Problem, x: Any, *, deadline: float, seed: int = 0) -> Tensor:
    """The tour [1, 1, T] of an instance with batch axis 1: the first visit of each plan, then a new plan.

    The real prize of a node is read when it is visited and never before. When the time is up, the last plan is
    carried out as it is, and a new one made only if it ends before the prize is met.
    """
    from routelearn.improve import plan

    public, nodes = x.public(), x.xy.shape[1]
    visited = torch.zeros(nodes, dtype=torch.bool)
    visited[0] = True
    owed, tour = float(x.min_prize[0]), [0]
    tolerance = 1e-9 * owed
    ahead: list[int] = []
    while not bool(visited.all()):
        left = deadline - time.perf_counter()
        if not ahead or left > 0:
            seconds = max(LEAST, left / max(1, len(ahead) or int((~visited).sum())))
            ahead = plan(problem, public, tour[-1], visited, max(owed, 0.0), seconds=seconds, seed=seed)
            if not ahead and owed > tolerance:  # what remains promises nothing: the rules ask for all of it
                ahead = plan(problem, public, tour[-1], visited, float("inf"), seconds=seconds, seed=seed)
        if not ahead:
            break
        node = ahead.pop(0)
        owed -= float(x.earned()[0, node])
        visited[node] = True
        tour.append(node)
    return torch.tensor([*tour[1:], 0])[None, None]
