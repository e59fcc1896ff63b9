"""Travelling while the instance reveals itself (SPCTSP): plan on expected prizes, visit, learn, plan again."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import Tensor

from routelearn.problems.base import Problem, legs_from

LEAST = 0.001  # seconds of one planning
SET_UP = 6e-8  # seconds that a planning needs for each pair of nodes, before it can be stopped


def travel(problem: Problem, x: Any, *, deadline: float, seed: int = 0) -> Tensor:
    """The tour [1, 1, T] of an instance with batch axis 1: the first visits of each plan, then a new plan.

    Appendix F's re-optimisation, as often as the time allows: after every visit if it can, and as a plan made once
    if it must. The real prize of a node is read when it is visited and never before. When the time is up and the
    plan has not brought enough, the rest is chosen by expected prize over way.
    """
    from routelearn.improve import plan

    public, nodes = x.public(), x.xy.shape[1]
    visited = torch.zeros(nodes, dtype=torch.bool)
    visited[0] = True
    owed, tour = float(x.min_prize[0]), [0]
    tolerance = 1e-9 * owed
    ahead: list[int] = []
    cost_of_planning, until_next, planned = LEAST, 0, False
    while not bool(visited.all()):
        now = time.perf_counter()
        left = deadline - now
        worth = left > SET_UP * int((~visited).sum()) ** 2 or not planned
        if worth and (until_next <= 0 or not ahead):
            affordable = max(1.0, left / cost_of_planning)
            visits = len(ahead) or int((~visited).sum())
            until_next = math.ceil(visits / affordable)
            seconds = max(LEAST, left / max(1.0, min(visits, affordable)) - cost_of_planning)
            ahead = plan(problem, public, tour[-1], visited, max(owed, 0.0), seconds=seconds, seed=seed)
            planned = True
            cost_of_planning = max(LEAST, time.perf_counter() - now - seconds)
        if not ahead:
            if owed <= tolerance:
                break
            ahead = [by_prize_over_way(public, tour[-1], visited)]
        node = ahead.pop(0)
        until_next -= 1
        owed -= float(x.earned()[0, node])
        visited[node] = True
        tour.append(node)
    return torch.tensor([*tour[1:], 0])[None, None]


def by_prize_over_way(x: Any, at: int, visited: Tensor) -> int:
    """The open node with the largest expected prize for its length of way; the nearest if none promises any."""
    way = legs_from(x, torch.tensor([[at]]))[0, 0]
    prize = x.prize[0]
    best = (prize / way.clamp(min=1e-12)).masked_fill(visited, -1.0)
    if float(best.max()) > 0:
        return int(best.argmax())
    return int(way.masked_fill(visited, math.inf).argmin())
