"""How weights move: Adam, or Muon (Jordan et al. 2024) for the matrices between layers and Adam for all else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

LEAST_SIDE = 32  # of a matrix that Muon moves: below are projections of features, not matrices between layers
MOMENTUM = 0.95
ROUNDS, QUINTIC = 5, (3.4445, -4.7750, 2.0315)  # of the iteration, as its authors chose them
PACE = 0.6  # how far a matrix' numbers move at rate 1, as root mean square; docs/notes/losses.md has what was tried


class Muon(torch.optim.Adam):
    """Moves a matrix along its gradient's nearest orthogonal matrix, so that no direction of it is neglected.

    A matrix of several squares side by side (queries, keys and values; the two of a feed-forward sublayer) is cut into
    them, which are all done together.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        torch.optim.Optimizer.__setstate__(self, state)  # Adam's own asks every parameter for its number of steps

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        every = [group["params"] for group in self.param_groups]
        for group, params in zip(self.param_groups, every, strict=True):
            group["params"] = [p for p in params if not between_layers(p)]
        try:
            result = super().step(closure)
        finally:
            for group, params in zip(self.param_groups, every, strict=True):
                group["params"] = params
        for group in self.param_groups:
            by_side: dict[int, list[Tensor]] = {}
            for p in group["params"]:
                if p.grad is not None and between_layers(p):
                    by_side.setdefault(min(p.shape), []).append(p)
            for side, params in by_side.items():
                self.turn(params, PACE * side**0.5 * group["lr"])
        return result

    def turn(self, params: list[Tensor], pace: Tensor | float) -> None:
        """Move these matrices, whose shorter sides are alike; none, where `found_inf` says that the step is skipped."""
        momenta = [self.state[p].setdefault("momentum", torch.zeros_like(p)) for p in params]
        skipped = getattr(self, "found_inf", None)
        kept = torch.ones((), device=params[0].device) if skipped is None else 1 - skipped
        gradient = torch.cat([squares(p.grad) for p in params])  # type: ignore[arg-type]  # those without were left out
        gradient = torch.where(kept > 0, gradient, 0.0)
        momentum = torch.cat([squares(m) for m in momenta]).lerp(gradient, (1 - MOMENTUM) * kept)
        move = orthogonal(gradient.lerp(momentum, MOMENTUM)) * (pace * kept)
        counts = [max(p.shape) // min(p.shape) for p in params]
        torch._foreach_copy_(momenta, whole(momentum.split(counts), params))
        torch._foreach_sub_(params, whole(move.split(counts), params))


OPTIMISERS: dict[str, type[torch.optim.Adam]] = {"adam": torch.optim.Adam, "muon": Muon}


def make_optimiser(
    name: str, policy: nn.Module, baseline: nn.Module, rate: float, device: torch.device
) -> torch.optim.Adam:
    """For the policy, and apart from it for a baseline that learns. On a GPU the rate is a tensor: a graph reads it."""
    learned = [p for p in baseline.parameters() if p.requires_grad]
    groups: list[dict[str, Any]] = [{"params": list(policy.parameters())}] + ([{"params": learned}] if learned else [])
    on_gpu = device.type == "cuda"
    return OPTIMISERS[name](
        groups, lr=torch.tensor(rate, device=device) if on_gpu else rate, fused=True, capturable=on_gpu
    )


def between_layers(p: Tensor) -> bool:
    """Whether it is a matrix that can be cut into squares of some size."""
    return p.ndim == 2 and min(p.shape) >= LEAST_SIDE and max(p.shape) % min(p.shape) == 0


def squares(matrix: Tensor) -> Tensor:
    """[rows, columns] -> [count, side, side], the squares that stand side by side or one above the other."""
    side = min(matrix.shape)
    return torch.stack(matrix.split(side, int(matrix.shape[0] == side)))


def whole(parts: Sequence[Tensor], like: list[Tensor]) -> list[Tensor]:
    """The inverse of `squares`: matrices of the shapes of `like`."""
    return [torch.cat(part.unbind(), int(p.shape[0] == min(p.shape))) for part, p in zip(parts, like, strict=True)]


def orthogonal(matrices: Tensor) -> Tensor:
    """[count, side, side], each near U V^T of its U S V^T, by Newton and Schulz's iteration with products alone.

    Most singular values come out between 0.7 and 1.2, near enough, and bfloat16 is precise enough (Jordan et al.).
    """
    a, b, c = QUINTIC
    kind = torch.bfloat16 if matrices.is_cuda else matrices.dtype
    x = matrices / (matrices.norm(dim=(-2, -1), keepdim=True) + 1e-12)
    x = x.to(kind)
    for _ in range(ROUNDS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.to(matrices.dtype)
