"""The learning rate over a run, and the lengths of its rollouts."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from routelearn.training.config import TrainConfig


def scheduled_rate(config: TrainConfig, step: int, epoch: int, progress: float) -> float:
    """The learning rate now; `progress` runs from 0 to 1 over the whole run."""
    rate = config.rate
    falling = min(1.0, max(0.0, (progress - config.hold) / max(1e-9, 1 - config.hold)))
    if config.schedule == "decay":
        rate *= config.decay**epoch
    elif config.schedule == "linear":
        rate *= 1 - falling
    elif config.schedule == "cosine":
        rate *= 0.5 * (1 + math.cos(math.pi * falling))
    if config.ramp:
        rate *= min(1.0, max(0.01, progress / config.ramp))  # a rate of 0 would waste the first step
    return rate * min(1.0, (step + 1) / config.ramp_steps) if config.ramp_steps else rate


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """In place where the rate is a tensor: a captured graph reads that very tensor."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def longer(steps: int) -> int:
    """The next longer rollout to allow."""
    return steps + max(4, steps // 5)


def shorter(steps: int, longest: int) -> int:
    """A shorter rollout, if what was needed leaves a tenth unused even with a margin."""
    wanted = (int(longest * 1.06) + 2 + 3) // 4 * 4
    return wanted if longest > 0 and wanted <= 0.9 * steps else steps
