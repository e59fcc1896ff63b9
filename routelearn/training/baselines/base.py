"""What a baseline is: an estimate b(s) of an instance's cost that the gradient is measured against (eq. 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from routelearn.training.making import made

if TYPE_CHECKING:
    from routelearn.training.state import RunState


class Baseline(nn.Module):
    """The estimate comes in two parts, so that the costly one can run beside the policy's own rollouts.

    Neither part reads a tensor on the host. State that a resumed run needs lives in buffers, parameters
    and `extra_state`, so a baseline is saved and loaded like any module.
    """

    least_solutions = 1  # of each instance

    @classmethod
    def make(cls, run: RunState) -> Baseline:
        """A baseline for this run: constructor parameters that are fields or settings of its configuration."""
        return made(cls, run.config)

    def prepare(self, x: Any, features: tuple[Tensor, ...]) -> Tensor | None:
        """What needs only the instances: [B, 1], or None."""
        return None

    def value(self, prepared: Tensor | None, cost: Tensor) -> Tensor:
        """b(s), without gradient, [B, 1] or [B, S] or a scalar, from costs [B, S]."""
        raise NotImplementedError(f"{type(self).__name__} gives no value")

    def loss(self, prepared: Tensor | None, cost: Tensor) -> Tensor | None:
        """What the baseline itself learns from these costs, if it learns."""
        return None

    def end_epoch(self, policy: Any, epoch: int) -> str | None:
        """After an epoch (counted from 0): adapt to the policy; words for the log if something changed."""
        return None

    def phase(self, epoch: int) -> str:
        """Names what `prepare` and `value` compute in this epoch; a captured graph is kept for each phase."""
        return "steady"
