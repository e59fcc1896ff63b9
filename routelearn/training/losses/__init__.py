"""Losses by name: what a training step minimises."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from routelearn.registry import Registry


class Loss:
    """Called with what a step scored: costs, baseline values and log-probabilities."""

    def __call__(self, scored: Any) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} computes no loss")


LOSSES: Registry[type[Loss]] = Registry("loss", {})
