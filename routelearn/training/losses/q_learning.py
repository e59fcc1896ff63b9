"""Q-learning with n-step returns (Watkins 1989; Dai et al. 2017): logits learn what the rest of a solution costs."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from routelearn.policies.dai import SHARPNESS
from routelearn.training.losses.base import Loss, Scored

BEND = 0.1  # errors beyond it, in units of cost, pull no harder


class QLearning(Loss):
    """Logits are taken for -Q, times `sharpness`; every step of a fresh rollout is one lesson."""

    needs_values = True
    baselines = ("none",)  # steps are compared with the policy's own estimates

    def __init__(self, returns: int = 5, discount: float = 1.0, sharpness: float = SHARPNESS):
        self.returns, self.discount, self.sharpness = returns, discount, sharpness

    def __call__(self, scored: Scored) -> Tensor:
        """The mean error of Q: against what the next `returns` steps cost, and the best estimate after them."""
        assert scored.values is not None
        chosen, best, added = scored.values
        ahead = F.pad(added, (0, self.returns))
        rest = (-best / self.sharpness).clamp(min=0.0)  # no step adds less than nothing, so estimates cannot run away
        target = self.discount**self.returns * F.pad(rest, (0, self.returns))[..., self.returns :]
        for k in range(self.returns):
            target = target + self.discount**k * ahead[..., k : k + added.shape[-1]]
        return F.smooth_l1_loss(-chosen / self.sharpness, target, beta=BEND)
