"""Whether a run fits the machine, told before it takes any memory."""

from __future__ import annotations

import torch

from routelearn import policies
from routelearn.errors import InputError
from routelearn.policies.base import shape_of
from routelearn.runtime.memory import GIGABYTE, memory_of
from routelearn.training.config import TrainConfig

SMALLER = "a smaller batch, size, width or number of solutions needs less"
FLOAT, WEIGHT = 4, 16  # bytes of a number, and of a weight with its gradient and what Adam remembers of it


def refuse_too_large(config: TrainConfig, device: torch.device) -> None:
    """Refuse what cannot fit by any count; what is let through may still be too large."""
    here = memory_of(device)
    for n in dict.fromkeys(config.sizes):
        batch, width = config.batch_of(n), config.policy_options().get("width", 1)
        needs = {
            f"batch {batch:,} of size {n:,}": batch * n * width * FLOAT,
            f"{config.solutions:,} solutions of each of {batch:,} instances": batch * n * config.solutions,
            f"{config.validation_instances:,} validation instances of size {n:,}": config.validation_instances * n * 16,
            f"{config.evaluation_instances:,} evaluation instances of size {n:,}": config.evaluation_instances * n * 16,
        }
        for what, needed in needs.items():
            if needed > here:
                raise too_large(what, needed, here)
    if "policy" in config.objects:
        return
    try:
        with torch.device("meta"):
            built = policies.build(config.policy, shape_of(config.chosen("problem")), config.policy_options())
        weights = sum(parameter.numel() for parameter in built.parameters())
    except RuntimeError as error:  # more bytes than can be counted
        raise InputError(f"a policy of width {config.width:,} and hidden {config.hidden:,} is too large") from error
    if weights * WEIGHT > here:
        raise too_large(f"a policy of {weights:,} weights (width {config.width:,})", weights * WEIGHT, here)


def too_large(what: str, needed: int, here: int) -> InputError:
    gigabytes = f"{needed / GIGABYTE:,.0f} GB or more, and there are {here / GIGABYTE:,.0f}"
    return InputError(f"{what} would take {gigabytes}; {SMALLER}")
