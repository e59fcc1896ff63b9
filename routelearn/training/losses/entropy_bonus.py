"""The policy gradient with a bonus for undecided policies (Williams and Peng, 1991), which keeps them exploring."""

from __future__ import annotations

from torch import Tensor

from routelearn.training.losses.base import Scored
from routelearn.training.losses.policy_gradient import PolicyGradient


class EntropyBonus(PolicyGradient):
    needs_entropy = True

    def __init__(self, entropy_weight: float = 0.01):
        self.entropy_weight = entropy_weight

    def __call__(self, scored: Scored) -> Tensor:
        """The policy gradient's loss minus the weighted mean entropy of the steps at which there was a choice."""
        assert scored.entropy is not None
        choices = (scored.entropy.detach() > 0).sum().clamp(min=1)
        return super().__call__(scored) - self.entropy_weight * scored.entropy.sum() / choices
