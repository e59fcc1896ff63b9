"""Efficient active search (Hottung et al. 2022) and active search (Bello et al. 2016): learning on one instance.

Efficient: added parameters move the embeddings of each instance (EAS-Emb), that is every field of which the policy's
cache holds one per instance. The policy's weights stay as they are, so all instances of a batch learn at once and none
hears of another. Bello's: a copy of the policy learns with all its weights, one instance after the other.
"""

from __future__ import annotations

import copy
import math
from typing import Any, Protocol

import torch
from torch import Tensor

from routelearn.decoding.guided import guided_search
from routelearn.decoding.rollout import Advance, Rolled, advance, finish, follow, pad_tour, rollout
from routelearn.policies.base import Policy, Trajectory, map_seen
from routelearn.problems.base import Problem, take

DISTANCE = 0.05  # that Adam may go in all its steps, in units of a field's root mean square: then draws are all alike
IMITATION = 0.1  # weight of the best solution so far beside advantages of unit spread


class Learner(Protocol):
    """What learns: a policy, and the parameters that its cache follows from."""

    policy: Any
    added: list[Tensor]
    rate: float  # of Adam
    imitation: float  # weight of the best solution so far

    def moved(self) -> Any:
        """The cache as it is now, with gradients to the parameters."""
        ...


class Weights:
    """All weights of a copy of the policy; its encoder runs at every step."""

    rate, imitation = 1e-4, 0.0

    def __init__(self, policy: Any, features: tuple[Tensor, ...]):
        self.policy, self.features = copy.deepcopy(policy), features
        self.added = [parameter.requires_grad_() for parameter in self.policy.parameters()]

    def moved(self) -> Any:
        with torch.backends.cudnn.flags(enabled=False):  # whose LSTM has no gradient in evaluation mode
            return self.policy.encode(self.features)


class Embeddings:
    """A cache with parameters added to the fields that instances have of their own; all 0 at first."""

    imitation = IMITATION

    def __init__(self, policy: Policy, features: tuple[Tensor, ...], cache: Any, steps: int = 1):
        self.policy, self.rate = policy, DISTANCE / steps
        self.cache, self.own = cache, own_fields(policy, features)
        fields = [cache[i] for i in self.own]
        # Fields are of different sizes: a step is a share of the field's.
        wide = [field.to(torch.promote_types(field.dtype, torch.float32)) for field in fields]
        self.units = [field.square().flatten(1).mean(1).sqrt() for field in wide]
        self.added = [torch.zeros_like(field).requires_grad_() for field in wide]

    def moved(self) -> Any:
        fields = list(self.cache)
        for i, unit, added in zip(self.own, self.units, self.added, strict=True):
            scaled = unit.view(-1, *[1] * (added.dim() - 1)) * added
            fields[i] = fields[i] + scaled.to(fields[i].dtype)
        return type(self.cache)(*fields)


def own_fields(policy: Policy, features: tuple[Tensor, ...]) -> list[int]:
    """Which fields of the policy's cache an instance has for itself: those that are longer for two than for one."""
    one, two = (policy.encode(tuple(group[:1].repeat(rows, 1, 1) for group in features)) for rows in (1, 2))
    return [
        i
        for i, (single, double) in enumerate(zip(one, two, strict=True))
        if single.is_floating_point() and double.shape[:1] != single.shape[:1]
    ]


def learning(cost: Tensor, log_prob: Tensor, imitated: Tensor, imitation: float = IMITATION) -> Tensor:
    """The loss of a step: costs [B, S] and log-probabilities of draws, and those of the best so far [B, 1].

    REINFORCE with the mean of an instance's draws as its baseline (eq. 2 and 5 there) in units of their spread, so
    that one rate serves all problems. Unfinished draws cost infinity and count for nothing.
    """
    finished = cost.isfinite()
    count = finished.sum(1, keepdim=True).clamp(min=1)
    known = torch.where(finished, cost, 0.0)
    excess = torch.where(finished, known - known.sum(1, keepdim=True) / count, 0.0)
    spread = (excess.square().sum(1, keepdim=True) / count).sqrt()
    advantage = excess / (spread + 1e-6 * (1 + known.abs().amax(1, keepdim=True)))
    return (advantage * log_prob).sum(1).div(count[:, 0]).sum() - imitation * imitated.sum()


def active_search(
    problem: Problem,
    learner: Learner,
    x: Any,
    steps: int,
    *,
    versions: int,
    solutions: int,
    prefix: Tensor | None,
    guided: int = 0,
    step: Advance = advance,
) -> Rolled:
    """The best of all that `steps` steps of `solutions` draws found, for each row of x [B * versions].

    Adjacent rows are `versions` of one instance, which learn apart but imitate the same best solution. The first is
    the greedy one, the last is greedy again (or `guided`) with what was learned.
    """
    policy = learner.policy
    adam = torch.optim.Adam(learner.added, lr=learner.rate)
    of, cache = (problem, policy), learner.moved()
    start = finish(*of, cache, x, step=step)
    drawn = finish(*of, cache, x, solutions=solutions, temperature=1.0, prefix=prefix, step=step)
    bound = _steps_needed(problem, x, drawn.tour)
    best = Best(problem, start.tour[::versions])
    best.hear(x, start)
    best.hear(x, drawn)
    for _ in range(steps):
        with torch.enable_grad():
            moved = learner.moved()
        plain = type(moved)(*(field.detach() for field in moved))
        rolled = rollout(
            *of, plain, x, solutions=solutions, steps=bound, temperature=1.0, prefix=prefix, record=True, step=step
        )
        cost = best.hear(x, rolled)
        trajectories = rolled.trajectory, record(problem, x, best.tour, versions)
        with torch.enable_grad():
            log_prob, imitated = (policy.score(moved, trajectory).sum(2) for trajectory in trajectories)
            loss = learning(cost, log_prob, imitated, learner.imitation)
        # Not `backward`, which would leave gradients in the policy's own weights, too.
        gradients = torch.autograd.grad(loss, learner.added, allow_unused=True)
        for added, gradient in zip(learner.added, gradients, strict=True):
            added.grad = gradient
        adam.step()
    learned = learner.moved()
    if guided:
        best.hear(x, guided_search(*of, learned, x, guided, step=step))
    else:
        best.hear(x, finish(*of, learned, x, step=step))
    return follow(problem, x, best.tour.repeat_interleave(versions, 0))


def record(problem: Problem, x: Any, tour: Tensor, versions: int) -> Trajectory:
    """The steps of tours [B, 1, T], for `policy.score` on each of the `versions` that x has of an instance."""
    trajectory = follow(problem, take(x, slice(None, None, versions)), tour).trajectory
    assert trajectory is not None
    seen = map_seen(lambda field: field.repeat_interleave(versions, 0), trajectory.seen)
    return Trajectory(tour.repeat_interleave(versions, 0), seen._replace(instance=x.public()))


class Best:
    """The cheapest solution of each instance so far; the tours [B, 1, T] stand in for it until one is finished."""

    def __init__(self, problem: Problem, tour: Tensor):
        self.problem, self.tour = problem, tour
        self.cost = torch.full(tour.shape[:1], math.inf, device=tour.device)

    def hear(self, x: Any, rolled: Rolled) -> Tensor:
        """The costs of solutions of x, infinite where they are not finished; the best are kept.

        Adjacent rows of x are one instance: its versions or symmetries.
        """
        costs = self.problem.cost(x, rolled.tour).masked_fill(~rolled.done, math.inf)
        cost, index = costs.view(len(self.tour), -1).min(1)
        steps = max(self.tour.shape[2], rolled.tour.shape[2])
        tours = pad_tour(self.problem, rolled.tour, steps).unflatten(0, (len(self.tour), -1)).flatten(1, 2)
        found = tours.gather(1, index[:, None, None].expand(-1, 1, steps))
        better = cost < self.cost
        self.tour = torch.where(better[:, None, None], found, pad_tour(self.problem, self.tour, steps))
        self.cost = torch.where(better, cost, self.cost)
        return costs


def _steps_needed(problem: Problem, x: Any, tour: Tensor) -> int:
    """Steps that a rollout gets: what the longest of `tour` needed and some more. One look at the host."""
    places = torch.arange(1, tour.shape[2], device=tour.device)
    longest = int(((tour[..., 1:] != tour[..., :-1]) * places).amax()) + 1
    return min(problem.max_steps(x), longest + max(1, x.xy.shape[1] // 8))
