"""Looking ahead where values are revealed on the visit: rollouts through imagined worlds, one executed trajectory.

A rollout algorithm (Bertsekas and Castanon 1999) over a learned policy: at every step each of the likeliest next nodes
is tried in the same imagined worlds, the policy goes on greedily in each of them, and the node with the lowest mean
cost is visited. What a visit really brings is read only then.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from routelearn.decoding.active import own_fields
from routelearn.decoding.rollout import Advance, Live, Rolled, advance, begin, finish, look
from routelearn.decoding.strategy import CANDIDATES
from routelearn.problems.base import DeviceRng, Imagines, Problem, map_instance, repeat, take


class Spread(DeviceRng):
    """Draws whose every `count` adjacent rows are spread evenly: one of them in each count-th of the range."""

    def __init__(self, count: int, device: torch.device, dtype: torch.dtype):
        super().__init__(device, dtype)
        self.count = count

    def uniform(self, *shape: int) -> Tensor:
        groups = super().uniform(*shape).unflatten(0, (-1, self.count))
        order = torch.rand(groups.shape, device=self.device).argsort(1)
        return ((order + groups) / self.count).flatten(0, 1)


def imagined_search(
    problem: Problem, policy: Any, cache: Any, x: Any, worlds: int, *, step: Advance = advance
) -> Rolled:
    """One executed solution of each instance, every step of it chosen by what it leads to in `worlds` worlds."""
    assert isinstance(problem, Imagines)
    bound, nodes, batch = problem.max_steps(x), x.xy.shape[1], x.xy.shape[0]
    rng = Spread(worlds, x.xy.device, x.xy.dtype)
    public = repeat(x.public(), worlds)
    own = own_fields(policy, problem.features(take(x.public(), slice(0, 1))))
    known = type(cache)(*(field.repeat_interleave(worlds, 0) if i in own else field for i, field in enumerate(cache)))
    count = min(CANDIDATES, nodes)

    def in_every_world(field: Tensor) -> Tensor:
        """[B, 1, ...] of the executed solutions -> [B * worlds, count, ...]"""
        return field.repeat_interleave(worlds, 0).expand(-1, count, *field.shape[2:])

    live = begin(problem, policy, cache, x, 1)
    tour = torch.empty((batch, 1, 0), dtype=torch.long, device=x.xy.device)
    for taken in range(bound):
        if bool(problem.done(x, live.state).all()):
            break
        logits, carry = policy.step(cache, live.carry, look(problem, x, live))
        live = Live(live.state, carry, live.last)
        likelihood, candidates = logits[:, 0].topk(count, 1)  # [B, C], the likeliest first
        candidates = torch.where(likelihood.isneginf(), candidates[:, :1], candidates)
        tried = candidates.repeat_interleave(worlds, 0)

        world = problem.imagined(public, rng)
        state = problem.step(world, map_instance(in_every_world, live.state), tried)
        ahead = Live(state, tuple(map(in_every_world, live.carry)), tried)
        parts = [in_every_world(tour), tried[..., None]]
        done = problem.done(world, state)
        if taken + 1 < bound:
            rolled = finish(problem, policy, known, world, live=ahead, bound=bound - taken - 1, step=step)
            parts.append(rolled.tour)
            done = rolled.done
        cost = problem.cost(world, torch.cat(parts, 2)).masked_fill(~done, math.inf).view(batch, worlds, -1)
        best = cost.mean(1).argmin(1, keepdim=True)  # of equal ones the likeliest
        node = candidates.gather(1, best)
        live = Live(problem.step(x, live.state, node), live.carry, node)
        tour = torch.cat((tour, node[..., None]), 2)
    nothing = torch.zeros((batch, 1), device=x.xy.device)
    return Rolled(tour, problem.done(x, live.state), nothing, None, live)
