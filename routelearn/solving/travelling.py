"""Travelling while the instance reveals itself (SPCTSP): plan on expected prizes, visit, learn, plan again."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from threading import Event
from typing import Any

import torch
from torch import Tensor

from routelearn.decoding.decode import decode
from routelearn.problems.base import LARGE, Problem, concat, legs_from
from routelearn.solving.guide import Guide

FEWEST_WORLDS, MOST_WORLDS = 6, 24  # journeys imagined to choose between policy and planning
IMAGINED = 0.3  # share of the time that they may take
SLOWER = 2  # a step for all imagined worlds takes about so many times a step for one
LEAST = 0.001  # seconds of one planning
SET_UP = 2e-8  # seconds for each pair of nodes (LARGE, at most) that the first plan needs; the next are measured
SEARCH = 2  # a planning searches at least as long as it takes to set up


def travel(
    problem: Problem,
    x: Any,
    *,
    deadline: float,
    seed: int = 0,
    planned: Sequence[int] | None = None,
    stop: Event | None = None,
) -> Tensor:
    """The tour [1, 1, T] of an instance with batch axis 1: the first visits of each plan, then a new plan.

    Appendix F's re-optimisation, as often as the time allows: after every visit if it can, and as a plan made once
    if it must. The real prize of a node is read when it is visited and never before. When the time is up and the
    plan has not brought enough, the rest is chosen by expected prize over way. `planned` is a first plan, which then
    need not be made. Once `stop` is set the time is up.
    """
    public, nodes, stop = x.public(), x.xy.shape[1], stop or Event()
    earned = x.earned()[0].tolist()
    visited = torch.zeros(nodes, dtype=torch.bool)
    visited[0] = True
    owed, tour = float(x.min_prize[0]), [0]
    tolerance = 1e-9 * owed
    ahead, must_plan = list(planned or ()), planned is None
    set_up, until_next = max(LEAST, SET_UP * min(nodes, LARGE) ** 2), 0
    while len(tour) < nodes:
        now = time.perf_counter()
        left = 0.0 if stop.is_set() else deadline - now
        if must_plan or (left > set_up + LEAST and (until_next <= 0 or not ahead)):
            from routelearn.search import plan  # compiled code: only where there is time to use it

            visits = len(ahead) or nodes - len(tour)
            plannings = max(1.0, min(visits, left / (SEARCH * set_up)))
            until_next = math.ceil(visits / plannings)
            seconds = max(LEAST if left > 0 else 0.0, left / plannings - set_up)
            ahead = plan(
                problem, public, tour[-1], visited, max(owed, 0.0), seconds=seconds, seed=seed, ahead=ahead, stop=stop,
                deadline=deadline,
            )  # fmt: skip
            must_plan = False
            set_up = max(LEAST, time.perf_counter() - now - seconds)
        if not ahead:
            if owed <= tolerance:
                break
            ahead = [by_prize_over_way(public, tour[-1], visited)]
        node = ahead.pop(0)
        until_next -= 1
        owed -= earned[node]
        visited[node] = True
        tour.append(node)
    return torch.tensor([*tour[1:], 0])[None, None]


def policy_travels_better(
    problem: Problem, x: Any, guide: Guide, *, seconds: float, seed: int = 0, stop: Event | None = None
) -> bool:
    """Whether the policy's greedy journeys cost less than planned ones, on average over imagined real prizes.

    What a visit will really bring is unknown, so both travel through worlds drawn from the public expectation: uniform
    between nothing and twice of it, as the paper's instances are (E.1).
    """
    share = IMAGINED * seconds / 2
    count = min(MOST_WORLDS, int(share / (2 * LEAST)))
    if guide.expected() * SLOWER > share or count < FEWEST_WORLDS:
        return False
    end = time.perf_counter() + 2 * share
    random = torch.Generator().manual_seed(seed)
    factors = 2 * torch.rand((count, x.xy.shape[1]), generator=random, dtype=torch.float64)
    seen = concat([guide.seen._replace(real_prize=guide.seen.prize * factor.float()) for factor in factors])
    tours = decode(problem, guide.policy, seen, "greedy", seed=seed).tour
    ahead = 0.0
    for row, factor in enumerate(factors):
        world, now = x._replace(real_prize=x.prize * factor), time.perf_counter()
        if now > end or (stop is not None and stop.is_set()):
            break
        tour = travel(problem, world, deadline=now + (end - now) / (count - row), seed=seed, stop=stop)
        ahead += float(problem.cost(world, tour)) - float(problem.cost(world, tours[row : row + 1]))
    return ahead > 0


def by_prize_over_way(x: Any, at: int, visited: Tensor) -> int:
    """The unvisited node with the largest expected prize per distance; the nearest if no prize is expected."""
    way = legs_from(x, torch.tensor([[at]]))[0, 0]
    prize = x.prize[0]
    best = (prize / way.clamp(min=1e-12)).masked_fill(visited, -1.0)
    if float(best.max()) > 0:
        return int(best.argmax())
    return int(way.masked_fill(visited, math.inf).argmin())
