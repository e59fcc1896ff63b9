"""A policy that knows distances: the attention model's logits, minus a learned weight times the distance to each node.

routelearn train tsp 20 --plugin examples/plugins/distance_policy.py --policy distance --out runs/distance
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

import routelearn
from routelearn.policies.attention import AttentionPolicy, Cache
from routelearn.policies.base import Seen, Shape
from routelearn.problems.base import legs_from


@routelearn.register(name="distance")
class DistancePolicy(AttentionPolicy):
    def __init__(
        self, shape: Shape, width: int = 128, heads: int = 8, layers: int = 3, hidden: int = 512, norm: str = "batch",
        clip: float = 10.0, neighbours: int = 0,
    ):  # fmt: skip
        super().__init__(shape, width, heads, layers, hidden, norm, clip, neighbours)
        self.weight = nn.Parameter(torch.ones(()))

    def logits(self, cache: Cache, seen: Seen) -> Tensor:
        """[B, Q, N] for Q queries of each instance; before the first step there is no last node, and no distance."""
        distance = legs_from(seen.instance, seen.last.clamp(min=0))
        distance = torch.where(seen.last[..., None] < 0, 0.0, distance)
        return super().logits(cache, seen) - self.weight * distance
