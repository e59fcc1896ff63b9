"""Walks through a problem: solutions with every state and mask on the way, for the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from routelearn.problems.base import map_instance

RANDOM = 4  # random solutions of each instance; two more go first-feasible and last-feasible


class Walk(NamedTuple):
    """Solutions and all that happened on the way."""

    tour: Tensor  # [B, S, T]
    states: list[Any]  # T + 1
    masks: list[Tensor]  # T + 1 of [B, S, N]
    done: Tensor  # [B, S, T + 1]: finished before step t


def choose(mask: Tensor, generator: torch.Generator) -> Tensor:
    """[B, S]: a random feasible node in most solutions, the first and the last one in the two after them."""
    scores = torch.rand(mask.shape, generator=generator).masked_fill(~mask, -1).argmax(-1)
    if mask.shape[1] <= RANDOM:
        return scores
    lowest = mask.long().argmax(-1)
    highest = mask.shape[-1] - 1 - mask.flip(-1).long().argmax(-1)
    return torch.cat((scores[:, :RANDOM], lowest[:, RANDOM : RANDOM + 1], highest[:, RANDOM + 1 :]), 1)


def walk(
    problem: Any,
    x: Any,
    solutions: int,
    steps: int,
    *,
    given: Tensor | None = None,
    seed: int = 0,
    inspect: Callable[[int, Any, Tensor], None] | None = None,
    stepped: Callable[[int, Any, Any], None] | None = None,
) -> Walk:
    """`steps` steps, the first ones as `given` [B, S, P]; the hooks see every state, and every step taken."""
    generator = torch.Generator().manual_seed(seed)
    state = problem.initial(x, solutions)
    actions, states, masks, done = [], [state], [], []
    for t in range(steps + 1):
        mask = problem.feasible(x, state)
        if inspect is not None:
            inspect(t, state, mask)
        masks.append(mask)
        done.append(problem.done(x, state))
        if t == steps:
            break
        action = given[..., t] if given is not None and t < given.shape[2] else choose(mask, generator)
        following = problem.step(x, state, action)
        if stepped is not None:
            stepped(t, state, following)
        actions.append(action)
        state = following
        states.append(state)
    return Walk(torch.stack(actions, -1), states, masks, torch.stack(done, -1))


def snapshot(x: Any) -> Any:
    return map_instance(torch.clone, x)


def changed(before: Any, after: Any) -> str | None:
    """The first field whose values differ; NaN equals NaN."""
    for field, old, new in zip(before._fields, before, after, strict=True):
        if old is not None and not ((old == new) | ((old != old) & (new != new))).all():
            return str(field)
    return None
