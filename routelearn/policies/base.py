"""What a policy is: it encodes an instance's features once and scores the next node, knowing no problem.

Axes: B instances, S solutions of each, T steps, N nodes, K context nodes, C context scalars, G step features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor


class Seen(NamedTuple):
    """All that a policy may see of a partial solution at one step; in a record, T follows S.

    The instance is there for policies that look beyond their cache, for example at the legs from the last node.
    """

    nodes: Tensor  # [B, S, K] long, -1 = placeholder
    scalars: Tensor  # [B, S, C]
    feasible: Tensor  # [B, S, N] bool
    step_features: Tensor | None  # [B, S, N, G]
    last: Tensor  # [B, S] long: the node chosen before, -1 at the first step
    instance: Any  # the problem's instances as anyone may see them (`public()`), B of them; never per step


def map_seen(fn: Callable[..., Tensor], *records: Seen) -> Seen:
    """Apply `fn` to each tensor of one or several records of the same instances; what is None stays None."""
    *tensors, (instance, *_) = zip(*records, strict=True)
    fields = (None if parts[0] is None else fn(*parts) for parts in tensors)
    return Seen(*fields, instance=instance)  # type: ignore[arg-type, misc]


class Trajectory(NamedTuple):
    """What a rollout chose and what it saw when it chose."""

    actions: Tensor  # [B, S, T]
    seen: Seen  # every field with T after S
    given: Tensor | None = None  # [B, S, P] bool: which of the first P steps were given, not chosen
    kept: tuple[Tensor, ...] = ()  # what the policy left for `score`, [B, S, T, ...] each


class Choice(NamedTuple):
    """One step of a policy."""

    nodes: Tensor  # [B, S]
    log_prob: Tensor  # [B, S]; 0 where the node was given
    carry: tuple[Tensor, ...]
    kept: tuple[Tensor, ...] = ()  # what spares `score` work, where it was asked for: [B, S, ...] each


class Shape(NamedTuple):
    """The sizes of a problem that a policy is built for."""

    feature_dims: tuple[int, ...]
    context_nodes: int
    context_scalars: int
    step_dim: int


def has_no_state(shape: Shape) -> bool:
    """Whether nodes are all of one kind, and a solution is known by its nodes alone."""
    return len(shape.feature_dims) == 1 and not shape.context_scalars and not shape.step_dim


class Policy(Protocol):
    """`encode` runs once per instance however many solutions follow; `choose` decides, `score` judges.

    Optional, on the class: `summary`, a line for help texts; `takes(shape)`, whether it can be built for such a
    problem; `step_width`, how many numbers a step holds for each pair of a solution and a node, if that is more than a
    few for each head; `reads_in_order`, whether the order of an instance's nodes means something to it; `inserts`,
    whether it chooses the order in which nodes are inserted into a tour, not that of visits (decoding/insertion.py).
    """

    compiles: bool  # whether torch.compile can take `encode` and `step`

    def encode(self, features: tuple[Tensor, ...]) -> Any:
        """Features per node group [B, n_g, f_g] -> a cache (NamedTuple of tensors)."""
        ...

    def begin(self, cache: Any, solutions: int) -> tuple[Tensor, ...]:
        """What the policy itself carries from step to step; each tensor [B, S, ...]."""
        ...

    def step(self, cache: Any, carry: tuple[Tensor, ...], seen: Seen) -> tuple[Tensor, Any]:
        """Logits [B, S, N] (float32, -inf where not feasible) of the next node, and the new carry."""
        ...

    def choose(
        self, cache: Any, carry: tuple[Tensor, ...], seen: Seen, temperature: float, forced: Tensor | None, keep: bool
    ) -> Choice:
        """The next nodes: the likeliest at temperature 0, else drawn; where `forced` [B, S] is not -1, that node.

        With `keep` it may leave what `score` would otherwise compute again.
        """
        ...

    def score(self, cache: Any, trajectory: Trajectory) -> Tensor:
        """Log-probability [B, S, T] of every step, all at once, with gradients; 0 for steps that were given."""
        ...

    def recorded_logits(self, cache: Any, trajectory: Trajectory) -> Tensor:
        """The logits [B, S, T, N] of every step, all at once, with gradients: for losses that ask for entropies."""
        ...


def rows(table: Tensor, nodes: Tensor) -> Tensor:
    """[B, ..., D]: of a table [B, N, D] the rows of nodes [B, ...]; any row for -1."""
    index = nodes.clamp(min=0).flatten(1)[..., None].expand(-1, -1, table.shape[2])
    return table.gather(1, index).unflatten(1, nodes.shape[1:])


def at_least_float32(values: Tensor) -> Tensor:
    return values if values.dtype == torch.float64 else values.float()


def clipped(scores: Tensor, clip: float, feasible: Tensor) -> Tensor:
    """Logits within [-clip, clip] (eq. 7), -inf where not feasible."""
    return (clip * torch.tanh(at_least_float32(scores))).masked_fill(~feasible, -math.inf)


def likeliest(logits: Tensor) -> Tensor:
    return logits.argmax(-1)


def drawn(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """One draw per row by the Gumbel-max trick: no host synchronisation, never an infeasible node."""
    scaled = logits if temperature == 1.0 else logits / temperature
    return (scaled - torch.empty_like(logits).exponential_().log()).argmax(-1)


def picked(logits: Tensor, nodes: Tensor) -> Tensor:
    """Log-probabilities [...] of the nodes [...] under logits [..., N]."""
    return logits.gather(-1, nodes[..., None])[..., 0] - logits.logsumexp(-1)


def entropies(logits: Tensor) -> Tensor:
    """The entropy [...] of each choice among the feasible nodes of logits [..., N]; exactly 0 where there is one."""
    log_prob = logits.log_softmax(-1)
    known = torch.where(logits.isneginf(), 0.0, log_prob)  # 0 log 0 = 0, and no gradient of infinity
    return -(known.exp() * known).sum(-1)


def choose_by_logits(
    policy: Policy, cache: Any, carry: tuple[Tensor, ...], seen: Seen, temperature: float, forced: Tensor | None
) -> Choice:
    """`choose` for any policy, from the logits of its `step`; log-probabilities are those at temperature 1."""
    logits, carry = policy.step(cache, carry, seen)
    nodes = drawn(logits, temperature) if temperature > 0 else likeliest(logits)
    if forced is not None:
        nodes = torch.where(forced < 0, nodes, forced)
    log_prob = picked(logits, nodes)
    return Choice(nodes, log_prob if forced is None else torch.where(forced < 0, log_prob, 0.0), carry)


class ByLogits:
    """`choose` and `score` of a policy that has `step` and `recorded_logits`, to derive from."""

    def choose(
        self: Any,
        cache: Any,
        carry: tuple[Tensor, ...],
        seen: Seen,
        temperature: float,
        forced: Tensor | None = None,
        keep: bool = False,
    ) -> Choice:
        return choose_by_logits(self, cache, carry, seen, temperature, forced)

    def score(self: Any, cache: Any, trajectory: Trajectory) -> Tensor:
        return leave_out_given(picked(self.recorded_logits(cache, trajectory), trajectory.actions), trajectory.given)


def leave_out_given(log_prob: Tensor, given: Tensor | None) -> Tensor:
    """A step [B, S, T] that was given is no decision of the policy's."""
    if given is None:
        return log_prob
    steps = given.shape[2]
    return torch.cat((log_prob[..., :steps].masked_fill(given, 0.0), log_prob[..., steps:]), -1)


def shape_of(problem: Any) -> Shape:
    """The part of a problem that a policy's parameters depend on."""
    return Shape(tuple(problem.feature_dims), problem.context_nodes, problem.context_scalars, problem.step_dim)
