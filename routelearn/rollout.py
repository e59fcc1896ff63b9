"""The one decoding loop: a policy builds solutions of a problem, step by step, without a host synchronisation.

`advance` is one step and pure, so it can be compiled; `rollout` repeats it a fixed number of times, so it
can be captured in a CUDA graph. Solutions that finish early stay where they are at no cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from routelearn.errors import InputError
from routelearn.policies.base import Policy, Seen, Trajectory, map_seen
from routelearn.policies.cpu_kernels import stepping
from routelearn.problems.base import Problem

Select = Callable[[Tensor], Tensor]  # logits [B, S, N] -> nodes [B, S]


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


def greedy(logits: Tensor) -> Tensor:
    return logits.argmax(-1)


def sample(logits: Tensor) -> Tensor:
    """One draw per row by the Gumbel-max trick: no host synchronisation, never an infeasible node."""
    return (logits - torch.empty_like(logits).exponential_().log()).argmax(-1)


def sample_at(temperature: float) -> Select:
    """Draws from the policy sharpened (below 1) or flattened (above 1)."""
    if not temperature > 0:
        raise InputError(f"temperature {temperature}; it must be above 0")
    if temperature == 1.0:
        return sample
    return lambda logits: sample(logits / temperature)


def begin(problem: Problem, policy: Policy, cache: Any, x: Any, solutions: int) -> Live:
    last = torch.full((x.xy.shape[0], solutions), -1, device=x.xy.device)
    return Live(problem.initial(x, solutions), policy.begin(cache, solutions), last)


def look(problem: Problem, x: Any, state: Any) -> Seen:
    """What the policy may see now."""
    context = problem.context(x, state)
    return Seen(context.nodes, context.scalars, problem.feasible(x, state), problem.step_features(x, state))


def advance(
    problem: Problem, policy: Policy, cache: Any, x: Any, live: Live, select: Select, forced: Tensor | None = None
) -> tuple[Live, Tensor, Tensor, Seen]:
    """One step: the new partial solutions, the nodes chosen, their log-probability, and what was seen.

    `forced` [B, S] gives the node instead, where it is not -1.
    """
    seen = look(problem, x, live.state)
    logits, carry = policy.step(cache, live.carry, live.last, seen)
    action = select(logits)
    if forced is not None:
        action = torch.where(forced < 0, action, forced)
    log_prob = logits.gather(-1, action[..., None])[..., 0] - logits.logsumexp(-1)
    return Live(problem.step(x, live.state, action), carry, action), action, log_prob, seen


Advance = Callable[..., tuple[Live, Tensor, Tensor, Seen]]


def rollout(
    problem: Problem,
    policy: Policy,
    cache: Any,
    x: Any,
    *,
    solutions: int = 1,
    steps: int,
    select: Select = greedy,
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
    actions: list[Tensor] = []
    record_seen: list[Seen] = []
    total = x.xy.new_zeros(live.last.shape)
    with stepping(x.xy.device, live.last.shape[1]):
        for t in range(steps):
            forced = prefix[:, :, t] if prefix is not None and t < given else None
            live, action, log_prob, seen = step(problem, policy, cache, x, live, select, forced)
            actions.append(action)
            total = total + (log_prob if forced is None else torch.where(forced < 0, log_prob, 0.0))
            if record:
                record_seen.append(seen)
    tour = torch.stack(actions, 2)
    trajectory = None
    if record:
        stacked = map_seen(lambda *steps: torch.stack(steps, 2), *record_seen)
        trajectory = Trajectory(tour, stacked, None if prefix is None else prefix[:, :, :steps] >= 0)
    return Rolled(tour, problem.done(x, live.state), total, trajectory, live)


def finish(
    problem: Problem,
    policy: Policy,
    cache: Any,
    x: Any,
    *,
    solutions: int = 1,
    select: Select = greedy,
    prefix: Tensor | None = None,
    step: Advance = advance,
    bound: int | None = None,
    segment: int | None = None,
) -> Rolled:
    """Roll out until every solution is finished: segments of steps, one look at `done` between them."""
    bound = problem.max_steps(x) if bound is None else bound
    nodes = x.xy.shape[1]
    first = min(bound, nodes if prefix is None else max(nodes, prefix.shape[2]))
    rolled = rollout(
        problem, policy, cache, x, solutions=solutions, steps=first, select=select, prefix=prefix, step=step
    )
    tours, log_prob, taken = [rolled.tour], rolled.log_prob, first
    segment = max(1, nodes // 8) if segment is None else segment
    while taken < bound and not bool(rolled.done.all()):
        more = min(segment, bound - taken)
        rolled = rollout(problem, policy, cache, x, steps=more, select=select, live=rolled.live, step=step)
        tours.append(rolled.tour)
        log_prob, taken = log_prob + rolled.log_prob, taken + more
    return Rolled(torch.cat(tours, 2), rolled.done, log_prob, None, rolled.live)
