"""What a policy is: it encodes an instance's features once and scores the next node, knowing no problem.

Axes: B instances, S solutions of each, T steps, N nodes, K context nodes, C context scalars, G step features.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from torch import Tensor


class Seen(NamedTuple):
    """All that a policy may see of a partial solution at one step; in a record, T follows S."""

    nodes: Tensor  # [B, S, K] long, -1 = placeholder
    scalars: Tensor  # [B, S, C]
    feasible: Tensor  # [B, S, N] bool
    step_features: Tensor | None  # [B, S, N, G]


class Trajectory(NamedTuple):
    """What a rollout chose and what it saw when it chose."""

    actions: Tensor  # [B, S, T]
    seen: Seen  # every field with T after S
    forced: int  # the first steps that were given, not chosen: they have no log-probability


class Shape(NamedTuple):
    """The sizes of a problem that a policy is built for."""

    feature_dims: tuple[int, ...]
    context_nodes: int
    context_scalars: int
    step_dim: int


class Policy(Protocol):
    """`encode` runs once per instance however many solutions follow; `step` decides, `score` judges."""

    def encode(self, features: tuple[Tensor, ...]) -> Any:
        """Features per node group [B, n_g, f_g] -> a cache (NamedTuple of tensors)."""
        ...

    def begin(self, cache: Any, solutions: int) -> tuple[Tensor, ...]:
        """What the policy itself carries from step to step; each tensor [B, S, ...]."""
        ...

    def step(self, cache: Any, carry: tuple[Tensor, ...], last: Tensor, seen: Seen) -> tuple[Tensor, Any]:
        """Logits [B, S, N] (float32, -inf where not feasible) of the next node, and the new carry.

        `last` [B, S] is the node chosen before, -1 at the first step.
        """
        ...

    def score(self, cache: Any, trajectory: Trajectory) -> Tensor:
        """Log-probability [B, S, T - forced] of the chosen steps, all at once, with gradients."""
        ...


def shape_of(problem: Any) -> Shape:
    """The part of a problem that a policy's parameters depend on."""
    return Shape(
        tuple(problem.feature_dims), problem.context_nodes, problem.context_scalars, problem.step_dim
    )
