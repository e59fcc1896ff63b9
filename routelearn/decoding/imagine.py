"""Looking ahead where values are revealed on the visit: rollouts through imagined worlds, one executed trajectory.

A rollout algorithm (Bertsekas and Castanon 1999) over a learned policy: at every step each of the likeliest next nodes
is tried in the same imagined worlds, the policy goes on greedily in each of them, and the node with the lowest mean
cost is visited. What a visit really brings is read only then. Under several symmetries of the plane the policy is
several policies, and a node is worth what the best of them makes of it on average (parallel rollout, Chang, Givan and
Chong 2004).
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
    problem: Problem, policy: Any, cache: Any, x: Any, worlds: int, *, versions: int, step: Advance = advance
) -> Rolled:
    """The executed solutions of x, each step chosen by what it leads to in `worlds` worlds.

    Adjacent rows of x and the cache are `versions` of one instance, all of which travel the same way.
    """
    assert isinstance(problem, Imagines)
    bound, nodes, batch = problem.max_steps(x), x.xy.shape[1], x.xy.shape[0] // versions
    rng = Spread(worlds, x.xy.device, x.xy.dtype)
    public = repeat(take(x, slice(None, None, versions)).public(), worlds)
    own = own_fields(policy, problem.features(take(x.public(), slice(0, 1))))
    known = type(cache)(*(field.repeat_interleave(worlds, 0) if i in own else field for i, field in enumerate(cache)))
    count = min(CANDIDATES, nodes)

    def for_every_version(field: Tensor) -> Tensor:
        """[B * worlds, ...] -> [B * versions * worlds, ...]"""
        grouped = field.unflatten(0, (batch, 1, worlds))
        return grouped.expand(batch, versions, worlds, *field.shape[1:]).flatten(0, 2)

    def in_every_world(field: Tensor) -> Tensor:
        """[B * versions, 1, ...] of the executed solutions -> [B * versions * worlds, count, ...]"""
        return field.repeat_interleave(worlds, 0).expand(-1, count, *field.shape[2:]).contiguous()

    live = begin(problem, policy, cache, x, 1)
    tour = torch.empty((len(live.last), 1, 0), dtype=torch.long, device=x.xy.device)
    for taken in range(bound):
        if bool(problem.done(x, live.state).all()):
            break
        logits, carry = policy.step(cache, live.carry, look(problem, x, live))
        live = Live(live.state, carry, live.last)
        likelihood = logits.log_softmax(-1).view(batch, versions, nodes).mean(1)
        likelihood, candidates = likelihood.topk(count, 1)  # [B, C], the likeliest first
        candidates = torch.where(likelihood.isneginf(), candidates[:, :1], candidates)
        tried = candidates.repeat_interleave(versions * worlds, 0)
        world = map_instance(for_every_version, problem.imagined(public, rng))
        state = problem.step(world, map_instance(in_every_world, live.state), tried)
        ahead = Live(state, tuple(map(in_every_world, live.carry)), tried)
        parts, done = [in_every_world(tour), tried[..., None]], problem.done(world, state)
        if taken + 1 < bound:
            rolled = finish(problem, policy, known, world, live=ahead, bound=bound - taken - 1, step=step)
            parts.append(rolled.tour)
            done = rolled.done
        cost = problem.cost(world, torch.cat(parts, 2)).masked_fill(~done, math.inf)
        worth = cost.view(batch, versions, worlds, count).mean(2).amin(1)
        node = candidates.gather(1, worth.argmin(1, keepdim=True)).repeat_interleave(versions, 0)
        live = Live(problem.step(x, live.state, node), live.carry, node)
        tour = torch.cat((tour, node[..., None]), 2)
    nothing = torch.zeros(tour.shape[:2], device=x.xy.device)
    return Rolled(tour, problem.done(x, live.state), nothing, None, live)
