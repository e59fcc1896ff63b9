"""Additive attention (Bahdanau et al. 2015): how well nodes fit queries, by tanh instead of a product."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

PIECE_CPU, PIECE_GPU = 2**20, 2**27  # numbers at a time


class AdditiveAttention(nn.Module):
    """v . tanh(W_r r + W_q q)."""

    def __init__(self, nodes: int, queries: int, width: int):
        super().__init__()
        self.reference = nn.Linear(nodes, width)
        self.query = nn.Linear(queries, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(
        self, reference: Tensor, query: Tensor, extra: Tensor | None = None, step: Tensor | None = None
    ) -> Tensor:
        """[B, Q, N] from references [B, N, D] and queries [B, Q, D], both projected already.

        What a reference gains at a query is `extra` [B, Q, N, G] through `step` [G, D].
        """
        score = self.score.weight[0].to(reference.dtype)
        if torch.is_grad_enabled():
            return Compared.apply(reference, query, score, extra, step)
        return compared(reference, query, extra, step) @ score


def compared(reference: Tensor, query: Tensor, extra: Tensor | None, step: Tensor | None) -> Tensor:
    """tanh(r + q), [B, Q, N, D]."""
    inside = reference[:, None] + query[:, :, None]
    return inside.tanh_() if extra is None or step is None else (inside + extra @ step).tanh_()


class Compared(torch.autograd.Function):
    """Many queries, a few at a time: their tanh, D numbers for each pair, is computed again for the gradient."""

    @staticmethod
    def forward(
        ctx: Any, reference: Tensor, query: Tensor, score: Tensor, extra: Tensor | None, step: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(reference, query, score, extra, step)
        parts = [(query[:, part], some(extra, part)) for part in pieces(reference, query)]
        return torch.cat([compared(reference, few, more, step) @ score for few, more in parts], 1)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        """Sums are at least in float32."""
        reference, query, score, extra, step = ctx.saved_tensors
        exact = torch.float64 if reference.dtype == torch.float64 else torch.float32
        of_reference, of_score = torch.zeros_like(reference, dtype=exact), torch.zeros_like(score, dtype=exact)
        of_query, of_step = torch.empty_like(query, dtype=exact), None
        if step is not None:
            of_step = torch.zeros_like(step, dtype=exact)
        for part in pieces(reference, query):
            more = some(extra, part)
            inside = compared(reference, query[:, part], more, step)
            above = slope[:, part].to(inside.dtype)
            of_score += above.flatten() @ inside.flatten(0, 2)
            inside = inside.square_().neg_().add_(1).mul_(score).mul_(above[..., None])
            of_query[:, part] = inside.sum(2, dtype=exact)
            of_reference += inside.sum(1, dtype=exact)
            if of_step is not None and more is not None:
                of_step += more.flatten(0, 2).T @ inside.flatten(0, 2)
        of_step = None if of_step is None else of_step.to(step.dtype)
        return of_reference.to(reference.dtype), of_query.to(query.dtype), of_score.to(score.dtype), None, of_step


def pieces(reference: Tensor, query: Tensor) -> list[slice]:
    """Queries to compare at a time, so that what is between takes little memory."""
    few = max(1, (PIECE_GPU if reference.is_cuda else PIECE_CPU) // reference.numel())
    return [slice(low, low + few) for low in range(0, query.shape[1], few)]


def some(extra: Tensor | None, part: slice) -> Tensor | None:
    return None if extra is None else extra[:, part]
