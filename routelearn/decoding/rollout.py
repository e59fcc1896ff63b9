"""The one decoding loop: a policy builds solutions of a problem, step by step, without a host synchronisation.

`advance` is one step and pure, so it can be compiled; `rollout` repeats it a fixed number of times, so it
can be captured in a CUDA graph. Solutions that finish early stay where they are at no cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from routelearn.policies.base import Choice, Policy, Seen, Trajectory, map_seen
from routelearn.policies.kernels import select
from routelearn.policies.kernels.cpu.decoder import FEW, stepping
from routelearn.problems.base import Problem


class Live(NamedTuple):
    """A batch of partial solutions."""

    state: Any  # the problem's State
    carry: tuple[Tensor, ...]  # the policy's
    last: Tensor  # [B, S]: node chosen before, -1 at the first step


class Rolled(NamedTuple):
    """Finished (or, where `done` says no, unfinished) solutions."""

    tour: Tensor  # [B, S, T]
    done: Tensor  # [B, S]
    log_prob: Tensor  # [B, S]: sum over the chosen steps, as seen while rolling out
    trajectory: Trajectory | None
    live: Live


def begin(problem: Problem, policy: Policy, cache: Any, x: Any, solutions: int) -> Live:
    last = torch.full((x.xy.shape[0], solutions), -1, device=x.xy.device)
    return Live(problem.initial(x, solutions), policy.begin(cache, solutions), last)


def look(problem: Problem, x: Any, live: Live) -> Seen:
    """What the policy may see now."""
    state = live.state
    context, features = problem.context(x, state), problem.step_features(x, state)
    return Seen(context.nodes, context.scalars, problem.feasible(x, state), features, live.last, x.public())


def advance(
    problem: Problem,
    policy: Policy,
    cache: Any,
    x: Any,
    live: Live,
    seen: Seen,
    temperature: float = 0.0,
    forced: Tensor | None = None,
    keep: bool = False,
) -> tuple[Live, Choice, Seen]:
    """One step on what is `seen` now: the new partial solutions, what the policy chose, and what it will see next.

    It takes the likeliest nodes at temperature 0, else draws; `forced` [B, S] gives the node where it is not -1.
    The look follows the choice so that a compiler can make one pass of moving on and looking.
    """
    choice = policy.choose(cache, live.carry, seen, temperature, forced, keep)
    live = Live(problem.step(x, live.state, choice.nodes), choice.carry, choice.nodes)
    return live, choice, look(problem, x, live)


Advance = Callable[..., tuple[Live, Choice, Seen]]


def rollout(
    problem: Problem,
    policy: Policy,
    cache: Any,
    x: Any,
    *,
    solutions: int = 1,
    steps: int,
    temperature: float = 0.0,
    prefix: Tensor | None = None,
    record: bool = False,
    live: Live | None = None,
    step: Advance = advance,
) -> Rolled:
    """Exactly `steps` steps from the start, from `prefix` [B, S, P] (-1 = choose), or on from `live`.

    With `record` the trajectory comes back too, for `policy.score`.
    """
    live = begin(problem, policy, cache, x, solutions) if live is None else live
    given = 0 if prefix is None else prefix.shape[2]
    choices: list[Choice] = []
    record_seen: list[Seen] = []
    chooser = select.settled(policy, cache, live.last.numel())
    few = chooser is not policy or live.last.shape[1] < FEW  # a step leaves the library too little to share
    policy = chooser if step is advance else policy
    with stepping(x.xy.device, few):
        seen = look(problem, x, live)
        for t in range(steps):
            if record:
                record_seen.append(seen)
            forced = prefix[:, :, t] if prefix is not None and t < given else None
            live, choice, seen = step(problem, policy, cache, x, live, seen, temperature, forced, record)
            choices.append(choice)
    tour = torch.stack([choice.nodes for choice in choices], 2)
    log_prob = torch.stack([choice.log_prob for choice in choices], 2)
    trajectory = None
    if record:
        stacked = map_seen(lambda *steps: torch.stack(steps, 2), *record_seen)
        kept = tuple(torch.stack(parts, 2) for parts in zip(*(choice.kept for choice in choices), strict=True))
        trajectory = Trajectory(
            tour, stacked, None if prefix is None else prefix[:, :, :steps] >= 0, (log_prob, *kept) if kept else ()
        )
    return Rolled(tour, problem.done(x, live.state), log_prob.sum(2), trajectory, live)


@torch.no_grad()
def follow(problem: Problem, x: Any, tour: Tensor) -> Rolled:
    """The record of given tours [B, S, T] for `policy.score`, as if a policy had chosen every node of them."""
    live = Live(problem.initial(x, tour.shape[1]), (), torch.full_like(tour[..., 0], -1))
    record_seen: list[Seen] = []
    for nodes in tour.unbind(2):
        record_seen.append(look(problem, x, live))
        live = Live(problem.step(x, live.state, nodes), (), nodes)
    seen = map_seen(lambda *steps: torch.stack(steps, 2), *record_seen)
    nothing = torch.zeros(tour.shape[:2], device=tour.device)
    return Rolled(tour, problem.done(x, live.state), nothing, Trajectory(tour, seen), live)


def pad_tour(problem: Problem, tour: Tensor, steps: int) -> Tensor:
    """Tours [B, S, T] of that many steps: they stay at the depot, or without one at their last node."""
    missing = steps - tour.shape[2]
    if missing <= 0:
        return tour
    stay = torch.zeros_like(tour[..., -1:]) if problem.has_depot else tour[..., -1:]
    return torch.cat((tour, stay.expand(*tour.shape[:2], missing)), 2)


def finish(
    problem: Problem,
    policy: Policy,
    cache: Any,
    x: Any,
    *,
    solutions: int = 1,
    temperature: float = 0.0,
    prefix: Tensor | None = None,
    step: Advance = advance,
    bound: int | None = None,
    segment: int | None = None,
    live: Live | None = None,
) -> Rolled:
    """Roll out until every solution is finished: segments of steps, one look at `done` between them.

    On from `live` where it is given; then `bound` is of the steps that are left.
    """
    bound = problem.max_steps(x) if bound is None else bound
    nodes = x.xy.shape[1]
    segment = max(1, nodes // 8) if segment is None else segment
    least = nodes if live is None else segment
    first = min(bound, least if prefix is None else max(least, prefix.shape[2]))
    rolled = rollout(
        problem, policy, cache, x, solutions=solutions, steps=first, temperature=temperature, prefix=prefix, live=live,
        step=step,
    )  # fmt: skip
    tours, log_prob, taken = [rolled.tour], rolled.log_prob, first
    while taken < bound and not bool(rolled.done.all()):
        more = min(segment, bound - taken)
        rolled = rollout(problem, policy, cache, x, steps=more, temperature=temperature, live=rolled.live, step=step)
        tours.append(rolled.tour)
        log_prob, taken = log_prob + rolled.log_prob, taken + more
    return Rolled(torch.cat(tours, 2), rolled.done, log_prob, None, rolled.live)
