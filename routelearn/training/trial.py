"""A policy of the user's own is tried before it is trained: what is wrong with it would show late, or never."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from routelearn.decoding.decode import evaluating
from routelearn.decoding.rollout import advance, begin, look
from routelearn.errors import InputError, fault, is_own
from routelearn.policies.base import Trajectory, map_seen, picked
from routelearn.problems.base import DeviceRng

INSTANCES, SOLUTIONS, NODES = 3, 2, 8  # at most so many nodes
NEVER = 1e-30  # a chance that no draw meets
CLOSE = 1e-3  # how far log-probabilities of single precision, computed in two ways, may be apart
Demand = Callable[[bool, str], None]  # refuses what does not hold, in these words


def try_policy(name: str, policy: Any, problem: Any, size: int, device: torch.device) -> None:
    """Refuse a policy that breaks its protocol (policies/base.py) in one line; the policy itself stays as it is.

    A rollout is followed step by step and then scored: logits have their shape and mask, and `score` judges what
    `choose` did, with gradients.
    """
    kind, named = type(policy), set(dict(policy.named_parameters()))
    if is_own(kind):
        return

    @contextmanager
    def during(what: str) -> Iterator[Demand]:
        def demand(condition: bool, wrong: str) -> None:
            if not condition:
                raise InputError(f"policy {name!r}: {what}: {wrong}")

        try:
            yield demand
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"policy {name!r}: {what}: {fault(error, kind)}") from error

    tried = copy.deepcopy(policy)
    with torch.random.fork_rng([device] if device.type == "cuda" else []), torch.enable_grad(), evaluating(tried):
        torch.manual_seed(0)
        x = problem.sample(DeviceRng(device), INSTANCES, min(size, NODES))
        with during("encode") as demand:
            cache = tried.encode(problem.features(x))
            right = hasattr(cache, "_fields") and all(isinstance(field, Tensor) for field in cache)
            demand(right, f"it gives a {type(cache).__name__}; a NamedTuple of tensors is needed")
        trajectory, drawn = _drawn(tried, problem, type(cache)(*(field.detach() for field in cache)), x, during)
        with during("score") as demand:
            scored = tried.score(cache, trajectory)
            _agree(scored.detach(), drawn, demand)
            weights = [weight for weight in tried.parameters() if weight.requires_grad]
            reached = scored.requires_grad and any(
                gradient is not None
                for gradient in torch.autograd.grad(scored.sum(), weights, allow_unused=True, retain_graph=True)
            )
            demand(reached, "no weight gets a gradient from it; is something detached, or made without gradients?")
        if hasattr(tried, "recorded_logits"):
            with during("recorded_logits") as demand:
                logits = tried.recorded_logits(cache, trajectory).detach()
                _agree(picked(logits, trajectory.actions), drawn, demand)
    with during("parameters") as demand:
        late = ", ".join(dict(tried.named_parameters()).keys() - named)
        demand(not late, f"{late} comes only with the first step; make it in the constructor, or nothing trains it")


@torch.no_grad()
def _drawn(policy: Any, problem: Any, cache: Any, x: Any, during: Any) -> tuple[Trajectory, Tensor]:
    """The record of a rollout, and the log-probabilities [B, S, T] that its steps had."""
    with during("begin"):
        live = begin(problem, policy, cache, x, SOLUTIONS)
    seen, record, choices = look(problem, x, live), [], []
    for t in range(problem.max_steps(x)):
        with during(f"step {t}") as demand:
            logits, _ = policy.step(cache, live.carry, seen)
            right = logits.shape == seen.feasible.shape and logits.is_floating_point()
            needed = f"floats {list(seen.feasible.shape)} are needed"
            demand(right, f"logits are {logits.dtype} {list(logits.shape)}; {needed}")
            chances = logits.softmax(-1)
            demand(not chances.isnan().any(), "a logit is NaN or infinity, or no node has one above -infinity")
            lawless = float(chances.masked_fill(seen.feasible, 0.0).amax())
            wrong = f"a node that is not feasible has a chance of {lawless:.2g}"
            demand(lawless <= NEVER, f"{wrong}; logits must be -inf where seen.feasible is not")
            record.append(seen)
            live, choice, seen = advance(problem, policy, cache, x, live, seen, temperature=1.0)
            choices.append(choice)
    every = map_seen(lambda *steps: torch.stack(steps, 2), *record)
    nodes, log_prob = (torch.stack(parts, -1) for parts in zip(*(choice[:2] for choice in choices), strict=True))
    return Trajectory(nodes, every), log_prob


def _agree(scored: Tensor, drawn: Tensor, demand: Demand) -> None:
    """The log-probabilities [B, S, T] of a record are those of its steps."""
    demand(scored.shape == drawn.shape, f"it gives {list(scored.shape)}; {list(drawn.shape)} is needed")
    off = ~torch.isclose(scored, drawn, rtol=CLOSE, atol=CLOSE)
    b, s, t = off.nonzero()[0].tolist() if off.any() else (0, 0, 0)
    wrong = f"step {t} has log-probability {float(scored[b, s, t]):.4g}, and had {float(drawn[b, s, t]):.4g} when drawn"
    more = "a policy that carries something from step to step has a score and recorded_logits of its own"
    demand(not off.any(), f"{wrong}; {more}")
