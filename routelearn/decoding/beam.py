"""Beam search: the likeliest partial solutions are kept at every step."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from routelearn.decoding.rollout import Live, Rolled, begin, look
from routelearn.problems.base import Problem, map_instance


def reorder(live: Live, parent: Tensor) -> Live:
    """The partial solutions that `parent` [B, S] names."""

    def pick(field: Tensor) -> Tensor:
        index = parent.view(*parent.shape, *([1] * (field.dim() - 2)))
        return field.gather(1, index.expand(*parent.shape, *field.shape[2:]))

    return Live(map_instance(pick, live.state), tuple(pick(part) for part in live.carry), pick(live.last))


def beam_search(problem: Problem, policy: Any, cache: Any, x: Any, width: int) -> Rolled:
    """Keep the `width` likeliest partial solutions at every step."""
    live = begin(problem, policy, cache, x, width)
    total = torch.full(live.last.shape, -math.inf, device=x.xy.device)
    total[:, 0] = 0
    tour = torch.empty((*live.last.shape, 0), dtype=torch.long, device=x.xy.device)
    nodes = x.xy.shape[1]
    for taken in range(problem.max_steps(x)):
        if taken >= nodes and bool(problem.done(x, live.state).all()):
            break
        logits, carry = policy.step(cache, live.carry, look(problem, x, live))
        log_prob = logits.log_softmax(-1)
        score, flat = (total[..., None] + log_prob).flatten(1).topk(width, 1)
        parent, action = flat // nodes, flat % nodes
        dead = score == -math.inf  # fewer candidates than the beam is wide: anything legal, never preferred
        parent = torch.where(dead, 0, parent)
        live = reorder(Live(live.state, carry, live.last), parent)
        best = log_prob.argmax(-1).gather(1, parent)
        action = torch.where(dead, best, action)
        live = Live(problem.step(x, live.state, action), live.carry, action)
        tour = torch.cat((tour.gather(1, parent[..., None].expand_as(tour)), action[..., None]), 2)
        total = score
    return Rolled(tour, problem.done(x, live.state), total, None, live)
