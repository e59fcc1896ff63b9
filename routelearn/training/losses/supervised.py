"""Imitation of given tours by their likelihood, as the Pointer Network was first trained (Vinyals et al. 2015)."""

from __future__ import annotations

from torch import Tensor

from routelearn.training.losses.base import Loss, Scored


class Supervised(Loss):
    needs_tours = True
    baselines = ("none",)  # costs count for nothing

    def __call__(self, scored: Scored) -> Tensor:
        """The mean of -log p over the steps of the given tours: the cross-entropy."""
        return -scored.log_prob.mean()
