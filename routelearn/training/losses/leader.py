"""The policy gradient with more weight on the best of an instance's solutions (Wang et al. 2024, arXiv 2405.13947)."""

from __future__ import annotations

import torch
from torch import Tensor

from routelearn.training.losses.base import Loss, Scored


class LeaderReward(Loss):
    least_solutions = 2

    def __init__(self, leader_weight: float = 8.0):
        self.leader_weight = leader_weight

    def __call__(self, scored: Scored) -> Tensor:
        """The mean of w (L - b) log p: w is `leader_weight` for each instance's best solution, 1 for all others."""
        advantage = scored.cost - scored.value  # [B, S]
        best = torch.zeros_like(advantage).scatter(1, scored.cost.argmin(1, keepdim=True), 1.0)  # of equals, one
        weight = 1 + (self.leader_weight - 1) * best
        return (weight * advantage * scored.log_prob.sum(-1)).mean()
