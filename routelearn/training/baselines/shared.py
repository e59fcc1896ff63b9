"""The mean of an instance's other solutions (leave-one-out; Kool et al. 2019b, and POMO, Kwon et al. 2020)."""

from __future__ import annotations

from torch import Tensor

from routelearn.training.baselines.base import Baseline


class SharedBaseline(Baseline):
    least_solutions = 2

    def value(self, prepared: Tensor | None, cost: Tensor) -> Tensor:
        """[B, S]: independent of the solution it judges, so the gradient stays unbiased."""
        others = cost.shape[1] - 1
        return (cost.sum(1, keepdim=True) - cost) / others
