"""A policy that knows distances: the attention model's logits, minus a learned weight times the distance to each node.

routelearn train tsp 20 --plugin examples/plugins/distance_policy.py --policy distance --out runs/distance
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import routelearn
from routelearn.policies.attention import AttentionPolicy
from routelearn.policies.base import Seen, Shape
from routelearn.problems.base import legs_from


@routelearn.register(name="distance")
class DistancePolicy(AttentionPolicy):
    def __init__(self, shape: Shape, start: float = 1.0, **options: Any):
        super().__init__(shape, **options)
        self.weight = nn.Parameter(torch.tensor(float(start)))

    def logits(self, cache: Any, seen: Seen) -> Tensor:
        """[B, Q, N] for Q queries of each instance; before the first step there is no last node, and no distance."""
        distance = legs_from(seen.instance, seen.last.clamp(min=0))
        distance = torch.where(seen.last[..., None] < 0, 0.0, distance)
        return super().logits(cache, seen) - self.weight * distance
