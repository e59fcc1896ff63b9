"""REINFORCE with a baseline (eq. 9)."""

from __future__ import annotations

from torch import Tensor

from routelearn.training.losses.base import Loss, Scored


class PolicyGradient(Loss):
    def __call__(self, scored: Scored) -> Tensor:
        """The mean of (L - b) log p, whose gradient is that of the expected cost."""
        return ((scored.cost - scored.value) * scored.log_prob.sum(-1)).mean()
