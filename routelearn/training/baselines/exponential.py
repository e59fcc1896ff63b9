"""An exponential moving average of the cost (section 4): M = L first, then M <- beta M + (1 - beta) L."""

from __future__ import annotations

import torch
from torch import Tensor

from routelearn.training.baselines.base import Baseline
from routelearn.training.distributed import average


class ExponentialBaseline(Baseline):
    average: Tensor
    seen: Tensor

    def __init__(self, beta: float = 0.8):
        super().__init__()
        self.beta = beta
        self.register_buffer("average", torch.zeros(()))
        self.register_buffer("seen", torch.zeros(()))  # 1 from the first cost on

    def value(self, prepared: Tensor | None, cost: Tensor) -> Tensor:
        now = average(cost.mean())
        self.average.copy_(torch.where(self.seen > 0, self.beta * self.average + (1 - self.beta) * now, now))
        self.seen.fill_(1)
        return self.average.clone()
