"""Preferences between the solutions of an instance (Bradley-Terry; Pan et al. 2025)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from routelearn.training.losses.base import Loss, Scored


class Preference(Loss):
    least_solutions = 2
    baselines = ("shared", "none")  # it compares solutions with each other; others would be computed for nothing

    def __init__(self, preference_scale: float = 0.05):
        self.preference_scale = preference_scale

    def __call__(self, scored: Scored) -> Tensor:
        """Minus the log-probability that the better of every pair is preferred."""
        cost, log_prob = scored.cost, scored.log_prob.sum(-1)  # [B, S]
        gap = self.preference_scale * (log_prob[:, :, None] - log_prob[:, None])  # [B, S, S]
        better = cost[:, :, None] < cost[:, None]
        return -(F.logsigmoid(gap) * better).sum((1, 2)).mean() / log_prob.shape[1]
