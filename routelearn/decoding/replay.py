"""Build solutions without a policy, through the problem's own masks: along preferred orders, or to the nearest node.

What comes out is feasible whatever the order was, because every node is taken only when the mask allows it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from routelearn.problems.attributes import first_customer
from routelearn.problems.base import Problem, distance_matrix

LOOK = 4  # steps between two looks at whether all solutions are finished
FAR = 1e30


@torch.no_grad()
def replay(
    problem: Problem,
    x: Any,
    order: Tensor,
    legs: Tensor,
    *,
    home_first: Tensor | None = None,
    home_last: Tensor | None = None,
    noise: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Tours [S, T] of an instance with batch axis 1, along the orders [S, L] of nodes (-1 fills them up).

    At each step the first node of the order that is feasible is taken; nodes that were skipped come as soon as they
    are feasible, visits to the depot that were skipped are dropped. With `home_first` [S] the depot is visited before
    a node is skipped, once for each node. Where the order gives no feasible node: the depot, else the nearest node by
    `legs` [N, N]. `home_last` [S] takes the depot only if nothing else is feasible, `noise` [S] blurs the lengths
    by draws from `generator`.
    """
    solutions, length = order.shape
    state = problem.initial(x, solutions)
    waiting, nodes = order >= 0, order.clamp(min=0)
    depots = waiting & (order < first_customer(problem, x))
    may_call_home = waiting & ~depots if home_first is None else waiting & ~depots & home_first[:, None]
    calls_home = problem.has_depot and home_first is not None and bool(home_first.any())
    places = torch.arange(length)
    last = torch.zeros(solutions, dtype=torch.long)
    tour: list[Tensor] = []
    for t in range(problem.max_steps(x)):
        if t % LOOK == 0 and bool(problem.done(x, state).all()):
            break
        mask = problem.feasible(x, state)[0]
        can = mask.gather(1, nodes) & waiting
        first = can.to(torch.uint8).argmax(1, keepdim=True)
        found = can.gather(1, first)
        action = nodes.gather(1, first)
        if not bool(found.all()):
            away = legs[last]
            if noise is not None:
                away = away * (1 + noise[:, None] * torch.rand(away.shape, generator=generator, dtype=away.dtype))
            action = torch.where(found, action, _fallback(mask, away, problem.has_depot, home_last))
        if calls_home:
            calling = waiting & may_call_home
            front = calling.to(torch.uint8).argmax(1, keepdim=True)
            blocked = calling.gather(1, front) & mask[:, :1] & (action != 0) & ((front < first) | ~found)
            if bool(blocked.any()):
                action = action.masked_fill(blocked, 0)
                found = found & ~blocked
                may_call_home.scatter_(1, front, may_call_home.gather(1, front) & ~blocked)
        passed = depots & (places < first) & found
        waiting = waiting & ~passed & ~((places == first) & found)
        last = action[:, 0]
        tour.append(last)
        state = problem.step(x, state, last[None])
    return torch.stack(tour, 1) if tour else torch.zeros((solutions, 0), dtype=torch.long)


def _fallback(mask: Tensor, away: Tensor, has_depot: bool, home_last: Tensor | None) -> Tensor:
    """[S, 1]: the depot if it is feasible (or, with `home_last`, only if nothing else is), else the nearest node."""
    away = away.clamp(max=FAR / 10)
    if has_depot:
        ahead = -1.0 if home_last is None else torch.where(home_last, FAR / 2, away[:, 0])
        away = torch.cat((torch.as_tensor(ahead, dtype=away.dtype).expand(len(away))[:, None], away[:, 1:]), 1)
    return away.masked_fill(~mask, FAR).argmin(1, keepdim=True)


def nearest_feasible(problem: Problem, x: Any) -> Tensor:
    """The tour [1, 1, T] that always goes to the nearest feasible node, and to the depot if nothing else is left."""
    nothing = torch.full((1, 1), -1)
    legs = distance_matrix(x.public())[0]
    return replay(problem, x, nothing, legs, home_last=torch.ones(1, dtype=torch.bool))[None]
