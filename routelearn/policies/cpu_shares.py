"""A batch on a CPU: a share of it for each thread, in training in pieces that fit the processor's cache.

A library call on the whole batch shares its own work among threads, waits for all of them, and leaves its result in
main memory for the next. Here a thread does all there is to do with its share, piece by piece, and waits for nobody.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

_pools: dict[int, Any] = {}
os.register_at_fork(after_in_child=_pools.clear)  # a child has none of its parent's threads


def pool(threads: int) -> Any:
    """Threads that stay, in which the library uses no others."""
    from concurrent.futures import ThreadPoolExecutor

    if threads not in _pools:
        own, all_there = torch.get_num_threads(), threading.Barrier(threads)
        made = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
        list(made.map(lambda _: all_there.wait(), range(threads)))
        torch.set_num_threads(own)  # a thread that sets its own number changes what new threads begin with
        _pools[threads] = made
    return _pools[threads]


def in_threads(work: Callable[[int, int], Any], batch: int) -> list[Any]:
    """[work(low, high), ...] over all instances, one share for each thread; without gradients unless `work` asks."""

    def ungraded(share: tuple[int, int]) -> Any:
        with torch.no_grad():
            return work(*share)

    threads = min(torch.get_num_threads(), batch)
    if threads == 1:
        return [ungraded((0, batch))]
    return list(pool(threads).map(ungraded, pairwise(batch * i // threads for i in range(threads + 1))))


def pieces(low: int, high: int, longest: int) -> Iterator[slice]:
    """low..high in as few nearly equal pieces as there can be."""
    count = -(-(high - low) // longest)
    return (slice(*ends) for ends in pairwise(low + (high - low) * i // count for i in range(count + 1)))


class _ByPieces(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, fn: Callable[..., Tensor], longest: int, split: int, fixed: Sequence[Tensor], *parts: Tensor
    ) -> Tensor:
        batch, needed = parts[0].shape[0], ctx.needs_input_grad[4:]

        def work(low: int, high: int) -> list[tuple[slice, list[Tensor], Tensor]]:
            done = []
            for at in pieces(low, high, longest):
                own = [part.detach()[at] if i < split else part.detach() for i, part in enumerate(parts)]
                with torch.enable_grad():
                    leaves = [leaf.requires_grad_(need) for leaf, need in zip(own, needed, strict=True)]
                    done.append((at, leaves, fn(leaves, [part[at] for part in fixed])))
            return done

        ctx.shares, ctx.split = in_threads(work, batch), split
        ctx.shapes = [part.shape for part in parts]
        return torch.cat([out.detach() for share in ctx.shares for _, _, out in share])

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> Any:
        needed, split, shares = ctx.needs_input_grad[4:], ctx.split, ctx.shares
        whole = [d_out.new_zeros(shape) if need else None for shape, need in zip(ctx.shapes, needed, strict=True)]

        def work(low: int, high: int) -> list[list[Tensor]]:
            common = []
            for share in shares[low:high]:
                for at, leaves, out in share:
                    wanted = [leaf for leaf in leaves if leaf.requires_grad]
                    found = iter(torch.autograd.grad(out, wanted, d_out[at], materialize_grads=True))
                    gradients = [next(found) if leaf.requires_grad else None for leaf in leaves]
                    for into, gradient in zip(whole[:split], gradients[:split], strict=True):
                        if into is not None and gradient is not None:
                            into[at] = gradient
                    common.append([gradient for gradient in gradients[split:] if gradient is not None])
            return common

        common = [piece for share in in_threads(work, len(shares)) for piece in share]
        for into, *summands in zip([into for into in whole[split:] if into is not None], *common, strict=True):
            into += torch.stack(summands).sum(0)
        return None, None, None, None, *whole


def by_pieces(
    fn: Callable[..., Tensor], parts: Sequence[Tensor], common: Sequence[Tensor], fixed: Sequence[Tensor], longest: int
) -> Tensor:
    """fn([*parts, *common], fixed) with its gradient, at most `longest` instances at a time.

    The result, `parts` and `fixed` have a batch axis first; `common` belongs to all instances, `fixed` has no gradient.
    """
    return _ByPieces.apply(fn, longest, len(parts), fixed, *parts, *common)
