"""What a loss is: one number to minimise, from costs and log-probabilities of sampled solutions."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Values(NamedTuple):
    """What steps were worth, [B, S, T] each."""

    chosen: Tensor  # the logit of the node that was taken, with gradients
    best: Tensor  # the highest logit there was
    added: Tensor  # what the step added to the cost


class Scored(NamedTuple):
    """A batch of sampled solutions: B instances, S solutions of each, T steps."""

    cost: Tensor  # [B, S]
    value: Tensor  # b(s) of the baseline: [B, S], [B, 1] or a scalar
    log_prob: Tensor  # [B, S, T] with gradients; 0 for steps that were given
    entropy: Tensor | None  # [B, S, T] with gradients, if the loss needs it; 0 for steps without a choice
    values: Values | None = None  # if the loss needs them


class Loss:
    """Like a baseline, it reads no tensor on the host: on a GPU a step is captured as one graph."""

    needs_entropy = False  # whether `Scored.entropy` is wanted; scoring then takes the slower way over logits
    needs_values = False  # whether `Scored.values` are wanted, which only policies that insert have
    needs_tours = False  # whether it judges given tours, which are then followed instead of drawn
    least_solutions = 1  # of each instance
    baselines: tuple[str, ...] = ()  # those that it works with; empty: any

    def __call__(self, scored: Scored) -> Tensor:
        """A scalar."""
        raise NotImplementedError(f"{type(self).__name__} gives no loss")
