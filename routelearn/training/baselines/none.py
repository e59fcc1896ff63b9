"""No baseline: b(s) = 0."""

from __future__ import annotations

from torch import Tensor

from routelearn.training.baselines.base import Baseline


class NoBaseline(Baseline):
    def value(self, prepared: Tensor | None, cost: Tensor) -> Tensor:
        return cost.new_zeros(())
