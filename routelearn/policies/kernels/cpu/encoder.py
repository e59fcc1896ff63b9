"""An attention layer and its gradient on a CPU, for training: a share of the batch for each thread, piece by piece.

Same mathematics as `AttentionLayer.forward` with batch normalisation, in float32. Library calls on the whole batch
write and read every intermediate in main memory, and wait for all threads after each. Here a thread takes one piece of
its share through a whole sublayer while it is in the processor's cache; threads meet only where batch normalisation
needs everybody's sums (eq. 16). What divides and shifts the columns is folded into one factor and one offset each.
A piece is a handful of calls, all of them long and without Python's lock: at short ones threads wait for one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from routelearn.policies.kernels.cpu.shares import HEAD, flat, in_threads, pieces

ROWS = 640  # of a piece, at most (or one instance): the widest intermediate then stays in a processor's own cache
WORTH = 4096  # rows in a batch from which compiled code and threads pay


def suits(h: Tensor, *, gradients: bool) -> bool:
    """Single precision on a CPU that nothing casts or compiles, and gradients are wanted, or are not."""
    return (
        h.device.type == "cpu"
        and h.dtype == torch.float32
        and torch.is_grad_enabled() == gradients
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
    )


def usable(h: Tensor, layer: Any) -> bool:
    """Training with batch normalisation, enough rows, and heads of sixteen columns."""
    return (
        suits(h, gradients=True)
        and h.shape[0] * h.shape[1] >= WORTH
        and h.shape[2] == HEAD * layer.heads
        and layer.expand.out_features % HEAD == 0
        and layer.qkv.weight.dtype == torch.float32
        and all(_normalises(norm) for norm in (layer.norm_attention, layer.norm_feed_forward))
    )


def _normalises(norm: Any) -> bool:
    return isinstance(norm, torch.nn.BatchNorm1d) and norm.training and norm.momentum is not None and norm.affine


def _normal(norm: Any, shift: Tensor | None, shares: list[Any]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Factor and offset [D] that normalise, the mean and one over the deviation; the running averages move on.

    From the pieces' numbers of rows and their moments [3, D]: a rough mean, sums of distances to it and of squares.
    A `shift` [D] of all rows changes nothing but the running mean, and is not in them.
    """
    each = torch.tensor([count for rows, _ in shares for count in rows], dtype=torch.float64)[:, None]
    rough, away, squares = torch.from_numpy(np.concatenate([moments for _, moments in shares])).double().unbind(1)
    count = float(each.sum())
    means = rough + away / each  # [pieces, D]
    mean = (each * means).sum(0) / count
    variance = (squares - away**2 / each + each * (means - mean) ** 2).sum(0) / count
    if norm.track_running_stats:
        norm.running_mean.lerp_((mean if shift is None else mean + shift).float(), norm.momentum)
        norm.running_var.lerp_((variance * count / (count - 1)).float(), norm.momentum)
        norm.num_batches_tracked += 1
    inverse = (variance + norm.eps).rsqrt()
    factor = norm.weight.detach() * inverse
    return factor.float(), (norm.bias.detach() - mean * factor).float(), mean.float(), inverse.float()


def _normal_gradient(
    rows: int, shares: list[np.ndarray], weight: Tensor, mean: Tensor, inverse: Tensor
) -> tuple[list[np.ndarray], list[Tensor]]:
    """p, q, r [D] such that d p + y q + r is the gradient of what was normalised, y; then those of weight and bias.

    From the pieces' sums [2, D] of the gradient d of the result, and of d (y - mean).
    """
    total, along = torch.from_numpy(np.concatenate(shares)).double().sum(0)
    along = along * inverse
    p = weight * inverse
    q = -p * inverse * along / rows
    return [part.float().numpy() for part in (p, q, -p * total / rows - q * mean)], [along.float(), total.float()]


class _Share:
    """A thread's share of the instances, cut into pieces; tensors have one row for each node of each instance."""

    def __init__(self, low: int, high: int, nodes: int):
        self.instances = [at.stop - at.start for at in pieces(low, high, max(1, ROWS // nodes))]
        self.rows = [count * nodes for count in self.instances]
        self.span = slice(low * nodes, high * nodes)

    def views(self, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """The pieces of several tensors side by side, for the library."""
        return zip(*(tensor[self.span].split(self.rows) for tensor in tensors), strict=True)

    def arrays(self, *tensors: Tensor) -> Iterator[tuple[np.ndarray, ...]]:
        """The same as flat arrays, for compiled code."""
        ends = np.array(list(accumulate(self.rows)))[:-1]
        cut = (np.split(flat(tensor[self.span]), ends * tensor.shape[1]) for tensor in tensors)
        return zip(*cut, strict=True)

    def room(self, width: int) -> list[tuple[Tensor, np.ndarray]]:
        """For each piece the same [rows, width] of memory, as a tensor and as a flat array."""
        memory = torch.empty(max(self.rows), width)
        by_rows = {rows: (memory[:rows], flat(memory[:rows])) for rows in set(self.rows)}
        return [by_rows[rows] for rows in self.rows]

    def sums(self, count: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Room for `count` sums of each piece, [pieces, count, width], and the same flat by piece."""
        memory = np.empty((len(self.rows), count, width), np.float32)
        return memory, memory.reshape(len(self.rows), -1)


class _Layer(torch.autograd.Function):
    """h [B, N, D] and the layer's parameters -> the next h."""

    @staticmethod
    def forward(ctx: Any, layer: Any, h: Tensor, *parameters: Tensor) -> Tensor:
        from routelearn.policies.kernels.cpu.attention import attend
        from routelearn.policies.kernels.cpu.columns import add_moments, add_relu, scaled

        batch, nodes, width = h.shape
        qkv, out, expand, expand_bias, contract, contract_bias = (p.detach() for p in parameters[:6])
        heads, scale, bias = layer.heads, HEAD**-0.5, flat(expand_bias)
        h = h.detach().contiguous().view(-1, width)
        projected, wide = h.new_empty(h.shape[0], 3 * width), h.new_empty(h.shape[0], expand.shape[0])
        mixed, attended, normal, fed, result = (torch.empty_like(h) for _ in range(5))

        def attention(low: int, high: int) -> tuple[list[int], np.ndarray]:
            share = _Share(low, high, nodes)
            moments, by_piece = share.sums(3, width)
            views, arrays = share.views(h, projected, mixed, attended), share.arrays(h, projected, mixed, attended)
            for i, ((x, triple, heard, y), (a_x, a_triple, a_heard, a_y)) in enumerate(zip(views, arrays, strict=True)):
                torch.mm(x, qkv.T, out=triple)
                attend(share.instances[i], nodes, heads, scale, a_triple, a_heard)
                torch.mm(heard, out.T, out=y)
                add_moments(share.rows[i], width, a_x, a_y, by_piece[i])
            return share.rows, moments

        first = _normal(layer.norm_attention, None, in_threads(attention, batch))
        factor, offset = flat(first[0]), flat(first[1])

        def feed_forward(low: int, high: int) -> tuple[list[int], np.ndarray]:
            share = _Share(low, high, nodes)
            moments, by_piece = share.sums(3, width)
            views, arrays = share.views(normal, wide, fed), share.arrays(attended, normal, wide, fed)
            for i, ((x, w, y), (a_from, a_x, a_w, a_y)) in enumerate(zip(views, arrays, strict=True)):
                scaled(share.rows[i], width, a_from, factor, offset, a_x)
                torch.mm(x, expand.T, out=w)
                add_relu(share.rows[i], bias.size, bias, a_w)
                torch.mm(w, contract.T, out=y)
                add_moments(share.rows[i], width, a_x, a_y, by_piece[i])
            return share.rows, moments

        # The last bias would be taken off again with the mean: only the running mean knows of it.
        second = _normal(layer.norm_feed_forward, contract_bias, in_threads(feed_forward, batch))
        last_factor, last_offset = flat(second[0]), flat(second[1])

        def normalise(low: int, high: int) -> None:
            span = slice(low * nodes, high * nodes)
            rows = span.stop - span.start
            scaled(rows, width, flat(fed[span]), last_factor, last_offset, flat(result[span]))

        in_threads(normalise, batch)
        ctx.save_for_backward(h, projected, mixed, attended, normal, wide, fed, *first, *second, *parameters)
        ctx.shape, ctx.heads = (batch, nodes, width), heads
        return result.view(batch, nodes, width)

    @staticmethod
    def backward(ctx: Any, d_result: Tensor) -> Any:
        from routelearn.policies.kernels.cpu.attention import attend_gradient
        from routelearn.policies.kernels.cpu.columns import combined, product_sums, relu_gradient

        h, projected, mixed, attended, normal, wide, fed, *rest = ctx.saved_tensors
        first, second = rest[:4], rest[4:8]
        qkv, out, expand, _, contract, _, weight_attention, _, weight_fed, _ = (p.detach() for p in rest[8:])
        batch, nodes, width = ctx.shape
        heads, scale, rows, hidden = ctx.heads, HEAD**-0.5, h.shape[0], expand.shape[0]
        d_result = d_result.contiguous().view(rows, width)
        d_x, d_h = torch.empty_like(h), torch.empty_like(h)
        mean_attended, mean_fed = flat(first[2]), flat(second[2])

        def result_sums(low: int, high: int) -> np.ndarray:
            share = _Share(low, high, nodes)
            sums, by_piece = share.sums(2, width)
            for i, (a_d, a_y) in enumerate(share.arrays(d_result, fed)):
                product_sums(share.rows[i], width, a_d, a_y, mean_fed, by_piece[i])
            return sums

        last, d_norm_fed = _normal_gradient(rows, in_threads(result_sums, batch), weight_fed, *second[2:])

        def feed_forward(low: int, high: int) -> tuple[list[Tensor], np.ndarray]:
            share = _Share(low, high, nodes)
            sums, by_piece = share.sums(2, width)
            d_expand, d_contract, d_bias = torch.zeros_like(expand), torch.zeros_like(contract), h.new_zeros(hidden)
            a_bias, room = flat(d_bias), share.room(hidden)
            views = share.views(d_x, wide, normal)
            arrays = share.arrays(d_result, fed, d_x, wide, attended)
            for i, ((d_y, w, x), (a_d, a_y, a_d_y, a_w, a_from)) in enumerate(zip(views, arrays, strict=True)):
                d_w, a_d_w = room[i]
                combined(share.rows[i], width, a_d_y, a_d, a_y, *last)
                d_contract.addmm_(d_y.T, w)
                torch.mm(d_y, contract, out=d_w)
                relu_gradient(share.rows[i], hidden, a_w, a_d_w, a_bias)
                d_expand.addmm_(d_w.T, x)
                d_y.addmm_(d_w, expand)  # now the gradient of x
                product_sums(share.rows[i], width, a_d_y, a_from, mean_attended, by_piece[i])
            return [d_expand, d_bias, d_contract], sums

        shares = in_threads(feed_forward, batch)
        d_feed_forward = (*_total([parts for parts, _ in shares]), h.new_zeros(width))  # the last bias has none
        before, d_norm_attention = _normal_gradient(rows, [sums for _, sums in shares], weight_attention, *first[2:])

        def attention(low: int, high: int) -> list[Tensor]:
            share = _Share(low, high, nodes)
            d_qkv, d_out = torch.zeros_like(qkv), torch.zeros_like(out)
            room, wide_room = share.room(width), share.room(3 * width)
            views = share.views(d_h, mixed, h)
            arrays = share.arrays(d_x, attended, d_h, projected, mixed)
            for i, ((d_y, heard, x), (a_d, a_y, a_d_y, a_triple, a_heard)) in enumerate(
                zip(views, arrays, strict=True)
            ):
                (d_heard, a_d_heard), (d_triple, a_d_triple) = room[i], wide_room[i]
                combined(share.rows[i], width, a_d_y, a_d, a_y, *before)
                d_out.addmm_(d_y.T, heard)
                torch.mm(d_y, out, out=d_heard)
                attend_gradient(share.instances[i], nodes, heads, scale, a_triple, a_heard, a_d_heard, a_d_triple)
                d_qkv.addmm_(d_triple.T, x)
                d_y.addmm_(d_triple, qkv)  # now the gradient of h
            return [d_qkv, d_out]

        d_attention = _total(in_threads(attention, batch))
        return None, d_h.view(batch, nodes, width), *d_attention, *d_feed_forward, *d_norm_attention, *d_norm_fed


def _total(shares: list[list[Tensor]]) -> list[Tensor]:
    """The threads' sums, added up in their order."""
    return [torch.stack(parts).sum(0) for parts in zip(*shares, strict=True)]


def layer_forward(layer: Any, h: Tensor) -> Tensor:
    """`layer(h)` with its gradient; `usable` says where."""
    norms = (layer.norm_attention, layer.norm_feed_forward)
    linear = (layer.qkv.weight, layer.out.weight, layer.expand.weight, layer.expand.bias)
    parameters = (*linear, layer.contract.weight, layer.contract.bias)
    return _Layer.apply(layer, h, *parameters, *(p for norm in norms for p in (norm.weight, norm.bias)))
