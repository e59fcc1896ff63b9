"""REINFORCE with a baseline (eq. 9), and two losses that weigh it otherwise."""

from __future__ import annotations

import torch
from torch import Tensor

from routelearn.training.losses.base import Loss, Scored


class PolicyGradient(Loss):
    def __call__(self, scored: Scored) -> Tensor:
        """The mean of (L - b) log p, whose gradient is that of the expected cost."""
        return ((scored.cost - scored.value) * scored.log_prob.sum(-1)).mean()


class EntropyBonus(PolicyGradient):
    """With a bonus for undecided policies (Williams and Peng, 1991), which keeps them exploring."""

    needs_entropy = True

    def __init__(self, entropy_weight: float = 0.01):
        self.entropy_weight = entropy_weight

    def __call__(self, scored: Scored) -> Tensor:
        """The policy gradient's loss minus the weighted mean entropy of the steps at which there was a choice."""
        assert scored.entropy is not None
        choices = (scored.entropy.detach() > 0).sum().clamp(min=1)
        return super().__call__(scored) - self.entropy_weight * scored.entropy.sum() / choices


class LeaderReward(Loss):
    """With more weight on the best of an instance's solutions (Wang et al. 2024, arXiv 2405.13947)."""

    least_solutions = 2

    def __init__(self, leader_weight: float = 8.0):
        self.leader_weight = leader_weight

    def __call__(self, scored: Scored) -> Tensor:
        """The mean of w (L - b) log p: w is `leader_weight` for each instance's best solution, 1 for all others."""
        advantage = scored.cost - scored.value  # [B, S]
        best = torch.zeros_like(advantage).scatter(1, scored.cost.argmin(1, keepdim=True), 1.0)  # of equals, one
        weight = 1 + (self.leader_weight - 1) * best
        return (weight * advantage * scored.log_prob.sum(-1)).mean()
