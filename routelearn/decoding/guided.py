"""Simulation-guided beam search (Choo et al. 2022): partial solutions are judged by where greedy rollouts end."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from routelearn.decoding.beam import reorder
from routelearn.decoding.rollout import Advance, Live, Rolled, advance, begin, finish, follow, look, pad_tour
from routelearn.problems.base import Problem


def guided_search(problem: Problem, policy: Any, cache: Any, x: Any, width: int, *, step: Advance = advance) -> Rolled:
    """The best of all rollouts, one for each instance.

    Each of `width` partial solutions is expanded by its `width` likeliest next nodes, a greedy rollout completes each
    of these, and the `width` cheapest go on. The node that a rollout took anyway needs no rollout: it leads to the same
    solution. So a partial solution is kept as the first steps of its rollout, and no cost found is ever lost.
    """
    of = (problem, policy, cache, x)
    bound, nodes = problem.max_steps(x), x.xy.shape[1]
    branches = min(width, nodes) - 1  # beside the node that the rollout took
    first = finish(*of, step=step)
    tour = first.tour.expand(-1, width, -1)
    cost = _cost(problem, x, tour, first.done).masked_fill(torch.arange(width, device=x.xy.device) > 0, math.inf)
    live = begin(*of, width)
    for taken in range(bound if branches else 0):
        if bool((problem.done(x, live.state) | cost.isinf()).all()):
            break
        logits, carry = policy.step(cache, live.carry, look(problem, x, live))
        live = Live(live.state, carry, live.last)
        usual = tour[..., taken]
        others = logits.scatter(2, usual[..., None], -math.inf)
        likelihood, branch = others.topk(branches, 2)
        dead = (likelihood.isneginf() | cost.isinf()[..., None]).flatten(1)
        parent = torch.arange(width, device=x.xy.device).repeat_interleave(branches).expand(len(tour), -1)
        branch = torch.where(dead, usual.gather(1, parent), branch.flatten(1))  # anything legal, never kept
        begun = _moved(problem, x, live, parent, branch)
        parts, done = [_rows(tour[..., :taken], parent), branch[..., None]], problem.done(x, begun.state)
        if taken + 1 < bound:
            rolled = finish(*of, live=begun, bound=bound - taken - 1, step=step)
            parts.append(rolled.tour)
            done = rolled.done
        branched = torch.cat(parts, 2)
        steps = max(tour.shape[2], branched.shape[2])
        tour, branched = pad_tour(problem, tour, steps), pad_tour(problem, branched, steps)
        found = _cost(problem, x, branched, done & ~dead)
        # Equal costs: what was there stays, so that an answer does not depend on how the sorting goes about it.
        cost, kept = torch.cat((cost, found), 1).sort(dim=1, stable=True)
        cost, kept = cost[:, :width], kept[:, :width]
        tour = _rows(torch.cat((tour, branched), 1), kept)
        parents = torch.cat((torch.arange(width, device=kept.device).expand(len(tour), -1), parent), 1)
        live = _moved(problem, x, live, parents.gather(1, kept), tour[..., taken])
    return follow(problem, x, tour[:, :1])


def _cost(problem: Problem, x: Any, tour: Tensor, done: Tensor) -> Tensor:
    """[B, S], infinite where a solution is not finished."""
    return problem.cost(x, tour).masked_fill(~done, math.inf)


def _rows(tour: Tensor, which: Tensor) -> Tensor:
    """Of tours [B, S, T] those that [B, W] names."""
    return tour.gather(1, which[..., None].expand(*which.shape, tour.shape[2]))


def _moved(problem: Problem, x: Any, live: Live, parent: Tensor, nodes: Tensor) -> Live:
    """The partial solutions that `parent` [B, S] names, one step on."""
    chosen = reorder(live, parent)
    return Live(problem.step(x, chosen.state, nodes), chosen.carry, nodes)
