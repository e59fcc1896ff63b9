"""A learned value function (appendix B.1), and an LSTM critic for the Pointer Network (section 5.2).

The latter estimates from the last hidden state; that of Bello et al. (2016) first looks at all of them a few times.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from routelearn.policies.layers import Encoder, initialise
from routelearn.training.baselines.base import Baseline
from routelearn.training.making import made


class CriticBaseline(Baseline):
    """Embeds the nodes, averages, and estimates the cost with one hidden layer of 128."""

    def __init__(
        self, feature_dims: tuple[int, ...], width: int, heads: int, hidden: int, norm: str, recurrent: bool = False
    ):
        super().__init__()
        self.recurrent = recurrent
        if recurrent:
            self.embed = nn.Linear(feature_dims[0], width, bias=False)
            self.lstm = nn.LSTM(width, width, batch_first=True)
        else:
            self.encoder = Encoder(feature_dims, width, heads, hidden, layers=3, norm=norm)
        self.estimate = nn.Sequential(nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, 1))
        initialise(self)

    @classmethod
    def make(cls, run: Any) -> CriticBaseline:
        """It reads the nodes in their order if the policy does."""
        recurrent = getattr(run.policy, "reads_in_order", False)
        return made(cls, run.config, feature_dims=run.problem.feature_dims, recurrent=recurrent)

    def prepare(self, x: Any, features: tuple[Tensor, ...]) -> Tensor:
        """[B, 1] with gradient. The last axis stays: [B] against costs [B, S] would broadcast to [B, B]."""
        if self.recurrent:
            _, (hidden, _) = self.lstm(self.embed(features[0]))
            summary = hidden[0]
        else:
            summary = self.encoder(features).mean(1)
        with torch.autocast(summary.device.type, enabled=False):  # bfloat16 would round a cost of 8 to 0.03
            return self.estimate(summary.to(self.estimate[0].weight.dtype))

    def value(self, prepared: Tensor | None, cost: Tensor) -> Tensor:
        assert prepared is not None
        return prepared.detach()

    def loss(self, prepared: Tensor | None, cost: Tensor) -> Tensor:
        assert prepared is not None
        return F.mse_loss(prepared.expand_as(cost), cost)
