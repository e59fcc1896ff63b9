"""Scoring a record of steps with its gradient on a CPU, for training, by the compiled loops of score_loops.py.

Same mathematics as `AttentionPolicy.score`, in float32. The library would compute all pairs of queries and nodes,
feasible or not, and write several arrays [B, H, Q, N] to memory for its gradient. Here a thread takes its instances
through all of it in the processor's cache and keeps one number for every pair that is feasible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from routelearn.policies.base import Seen
from routelearn.policies.kernels.cache import Cache
from routelearn.policies.kernels.cpu.encoder import suits
from routelearn.policies.kernels.cpu.shares import in_threads

WORTH = 2**16  # pairs of queries and nodes from which compiled code and threads pay
BLOCK = 16  # queries that are scored at once, and columns of a head: a vector of the compiled loops


def usable(cache: Cache, pairs: int) -> bool:
    """Training in single precision on a CPU, with heads of sixteen columns, and enough pairs of queries and nodes."""
    return suits(cache.keys, gradients=True) and cache.keys.shape[3] == BLOCK and pairs >= WORTH


def _flat(*parts: Tensor) -> list[Any]:
    return [part.detach().contiguous().view(-1).numpy() for part in parts]


class _Score(torch.autograd.Function):
    """Log-probability [B, Q] of the chosen nodes, differentiable in the seven fields of the cache."""

    @staticmethod
    def forward(ctx: Any, clip: float, seen: list[Tensor], chosen: Tensor, *cache: Tensor) -> Tensor:
        from routelearn.policies.kernels.cpu.score_loops import score

        keys, (context, scalars, feasible, extra) = cache[0], seen
        batch, queries, nodes = feasible.shape
        sizes = (keys.shape[2], nodes, queries, context.shape[2], scalars.shape[2], extra.shape[3])
        log_prob = keys.new_empty(batch, queries)
        slopes = keys.new_empty(batch, -(-queries // BLOCK), nodes, BLOCK)  # of each block, its own nodes' come first
        arguments: tuple[Any, ...] = (*_flat(*cache, *seen, chosen), np.float32(clip), *_flat(log_prob, slopes))
        in_threads(lambda low, high: score(low, high, sizes, *arguments), batch)
        ctx.save_for_backward(*cache, *seen, slopes)
        ctx.sizes = sizes
        return log_prob

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> Any:
        from routelearn.policies.kernels.cpu.score_loops import score_gradient

        cache, batch = ctx.saved_tensors[:7], upstream.shape[0]
        own = [part.new_empty(part.shape) for part in cache[:5]]
        common = [part.new_empty(batch, *part.shape) for part in cache[5:]]  # by instance, whichever thread has it
        arguments: list[Any] = _flat(*ctx.saved_tensors, upstream, *own, *common)
        in_threads(lambda low, high: score_gradient(low, high, ctx.sizes, *arguments), batch)
        return None, None, None, *own, *(part.sum(0) for part in common)


def score(cache: Cache, clip: float, seen: Seen, chosen: Tensor, kept: tuple[Tensor, ...] = ()) -> Tensor:
    """Log-probability [B, Q] of the chosen nodes [B, Q]; `usable` says where. Rollouts on a CPU keep nothing."""
    nodes, scalars, feasible, extra = seen[:4]
    features = feasible.new_empty((*feasible.shape, 0)) if extra is None else extra
    recorded = [nodes, scalars.float(), feasible, features.float()]
    return _Score.apply(clip, recorded, chosen, *cache)
