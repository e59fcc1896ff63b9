"""A loss of one's own: policy gradient with advantages in units of their standard deviation, cut off at three.

routelearn train tsp 20 --plugin examples/plugins/capped_loss.py --loss capped --out runs/capped
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

import routelearn
from routelearn.training.losses import Loss

CAP = 3.0  # standard deviations: one lucky or hopeless solution does not decide a step


@routelearn.register(name="capped")
class CappedLoss(Loss):
    def __call__(self, scored: Any) -> Tensor:
        """A scalar from costs [B, S], the baseline's values, and log-probabilities [B, S, T]."""
        advantage = scored.cost - scored.value
        advantage = advantage / (advantage.std(unbiased=False) + 1e-8)
        return (advantage.clamp(-CAP, CAP).detach() * scored.log_prob.sum(-1)).mean()
