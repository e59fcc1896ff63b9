"""An attention layer and its gradient on a CPU, for training: a share of the batch for each thread, piece by piece.

Same mathematics as `AttentionLayer.forward` with batch normalisation, in float32. Library calls on the whole batch
write and read every intermediate in main memory, and wait for all threads after each. Here a thread takes one piece of
its share through a whole sublayer while it is in the processor's cache; threads meet only where batch normalisation
needs everybody's sums (eq. 16). What divides and shifts the columns is folded into one factor and one offset each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from routelearn.policies.cpu_shares import in_threads, pieces

ROWS = 640  # of a piece, at most (or one instance): the widest intermediate then stays in a processor's own cache
WORTH = 4096  # rows in a batch from which compiled code and threads pay
HEAD = 16  # columns of a head, a vector of the compiled attention


def trains(h: Tensor) -> bool:
    """Single precision on a CPU, and gradients are wanted."""
    return (
        h.device.type == "cpu"
        and h.dtype == torch.float32
        and torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
    )


def usable(h: Tensor, layer: Any) -> bool:
    """Training with batch normalisation, enough rows, and heads of sixteen columns."""
    return (
        trains(h)
        and h.shape[0] * h.shape[1] >= WORTH
        and h.shape[2] == HEAD * layer.heads
        and layer.expand.out_features % HEAD == 0
        and layer.qkv.weight.dtype == torch.float32
        and all(_normalises(norm) for norm in (layer.norm_attention, layer.norm_feed_forward))
    )


def _normalises(norm: Any) -> bool:
    return isinstance(norm, torch.nn.BatchNorm1d) and norm.training and norm.momentum is not None and norm.affine


# ------------------------------------------------------------------------------------------- normalisation


def _sums(a: Tensor, b: Tensor, a_shift: Tensor, b_shift: Tensor) -> Tensor:
    """Over the rows of a piece, of a - a_shift and of (a - a_shift)(b - b_shift): [2, D]."""
    from routelearn.policies.cpu_attention import column_sums

    sums = torch.zeros(2, a.shape[1])
    column_sums(*a.shape, *_flat(a, b, a_shift, b_shift, sums))
    return sums


def _moments(rows: Tensor) -> Tensor:
    """What `_normal` needs of a piece [R, D]: R, a rough mean, and the sums of distances to it and of their squares."""
    rough = rows[::32].mean(0)  # so that little is lost in single precision
    return torch.cat((torch.stack((torch.full_like(rough, rows.shape[0]), rough)), _sums(rows, rows, rough, rough)))


def _normal(norm: Any, shares: list[list[Tensor]]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Factor and offset [D] that normalise, the mean and one over the deviation; the running averages move on."""
    counts, start, away, squares = torch.stack([piece for share in shares for piece in share]).double().unbind(1)
    count = counts.sum(0)
    means = start + away / counts  # [pieces, D]
    mean = (counts * means).sum(0) / count
    variance = (squares - away**2 / counts + counts * (means - mean) ** 2).sum(0) / count
    if norm.track_running_stats:
        norm.running_mean.lerp_(mean.float(), norm.momentum)
        norm.running_var.lerp_((variance * count / (count - 1)).float(), norm.momentum)
        norm.num_batches_tracked += 1
    inverse = (variance + norm.eps).rsqrt()
    factor = norm.weight.detach() * inverse
    return factor.float(), (norm.bias.detach() - mean * factor).float(), mean.float(), inverse.float()


def _normal_gradient(rows: int, sums: list[Tensor], weight: Tensor, mean: Tensor, inverse: Tensor) -> list[Tensor]:
    """p, q, r [D] such that d p + y q + r is the gradient of what was normalised, y; those of weight and bias.

    From the pieces' sums of the gradient d of the result, and of d (y - mean).
    """
    total, along = torch.stack(sums).double().sum(0)
    along = along * inverse
    p = weight * inverse
    q = -p * inverse * along / rows
    return [part.float() for part in (p, q, -p * total / rows - q * mean, along, total)]


def _flat(*parts: Tensor) -> Iterator[Any]:
    return (part.view(-1).numpy() for part in parts)


# --------------------------------------------------------------------------------------------------- layer


def _cutting(nodes: int) -> tuple[int, Callable[[int, int], Iterator[tuple[slice, slice]]]]:
    """The rows of the longest piece, and what cuts a share low..high into pieces: as instances, and as rows."""
    some = max(1, ROWS // nodes)

    def cut(low: int, high: int) -> Iterator[tuple[slice, slice]]:
        return ((at, slice(at.start * nodes, at.stop * nodes)) for at in pieces(low, high, some))

    return some * nodes, cut


class _Layer(torch.autograd.Function):
    """h [B, N, D] and the layer's parameters -> the next h."""

    @staticmethod
    def forward(ctx: Any, layer: Any, h: Tensor, *parameters: Tensor) -> Tensor:
        from routelearn.policies.cpu_attention import attend

        batch, nodes, width = h.shape
        qkv, out, expand, expand_bias, contract, contract_bias = (p.detach() for p in parameters[:6])
        heads, scale = layer.heads, HEAD**-0.5
        h = h.detach().contiguous().view(-1, width)
        rows = h.shape[0]
        projected, wide = h.new_empty(rows, 3 * width), h.new_empty(rows, expand.shape[0])
        mixed, attended, fed, result = (torch.empty_like(h) for _ in range(4))
        longest, cut = _cutting(nodes)

        def attention(low: int, high: int) -> list[Tensor]:
            moments = []
            for some, at in cut(low, high):
                torch.mm(h[at], qkv.T, out=projected[at])
                attend(some.stop - some.start, nodes, heads, scale, *_flat(projected[at], mixed[at]))
                torch.addmm(h[at], mixed[at], out.T, out=attended[at])
                moments.append(_moments(attended[at]))
            return moments

        first = _normal(layer.norm_attention, in_threads(attention, batch))

        def feed_forward(low: int, high: int) -> list[Tensor]:
            moments, room = [], h.new_empty(longest, width)
            for _, at in cut(low, high):
                x = torch.addcmul(first[1], attended[at], first[0], out=room[: at.stop - at.start])
                torch.addmm(expand_bias, x, expand.T, out=wide[at]).relu_()
                torch.addmm(x.add_(contract_bias), wide[at], contract.T, out=fed[at])
                moments.append(_moments(fed[at]))
            return moments

        second = _normal(layer.norm_feed_forward, in_threads(feed_forward, batch))

        def normalise(low: int, high: int) -> None:
            for _, at in cut(low, high):
                torch.addcmul(second[1], fed[at], second[0], out=result[at])

        in_threads(normalise, batch)
        ctx.save_for_backward(h, projected, mixed, attended, wide, fed, *first, *second, *parameters)
        ctx.shape, ctx.heads = (batch, nodes, width), heads
        return result.view(batch, nodes, width)

    @staticmethod
    def backward(ctx: Any, d_result: Tensor) -> Any:
        from routelearn.policies.cpu_attention import attend_gradient, relu_gradient

        h, projected, mixed, attended, wide, fed, *rest = ctx.saved_tensors
        first, second = rest[:4], rest[4:8]
        qkv, out, expand, _, contract, _, weight_attention, _, weight_fed, _ = (p.detach() for p in rest[8:])
        batch, nodes, width = ctx.shape
        heads, scale, rows = ctx.heads, HEAD**-0.5, h.shape[0]
        d_result = d_result.contiguous().view(rows, width)
        d_x, d_h, zero = torch.empty_like(h), torch.empty_like(h), h.new_zeros(width)
        longest, cut = _cutting(nodes)

        def result_sums(low: int, high: int) -> list[Tensor]:
            return [_sums(d_result[at], fed[at], zero, second[2]) for _, at in cut(low, high)]

        sums = [piece for share in in_threads(result_sums, batch) for piece in share]
        p, q, r, *d_norm_fed = _normal_gradient(rows, sums, weight_fed, *second[2:])

        def feed_forward(low: int, high: int) -> tuple[list[Tensor], list[Tensor]]:
            d_expand, d_contract = torch.zeros_like(expand), torch.zeros_like(contract)
            d_expand_bias, sums = h.new_zeros(expand.shape[0]), []
            room, wide_room = h.new_empty(longest, width), h.new_empty(longest, expand.shape[0])
            for _, at in cut(low, high):
                x, d_fed, d_wide = room[: at.stop - at.start], d_x[at], wide_room[: at.stop - at.start]
                torch.addcmul(r, fed[at], q, out=d_fed).addcmul_(d_result[at], p)
                d_contract.addmm_(d_fed.T, wide[at])
                torch.mm(d_fed, contract, out=d_wide)
                relu_gradient(*d_wide.shape, *_flat(wide[at], d_wide, d_expand_bias))
                d_expand.addmm_(d_wide.T, torch.addcmul(first[1], attended[at], first[0], out=x))
                d_fed.addmm_(d_wide, expand)  # now the gradient of x
                sums.append(_sums(d_x[at], attended[at], zero, first[2]))
            return [d_expand, d_expand_bias, d_contract], sums

        shares = in_threads(feed_forward, batch)
        # What follows takes off the mean, and with it the last bias: that has no gradient.
        d_feed_forward = (*_total([share[0] for share in shares]), zero)
        sums = [piece for share in shares for piece in share[1]]
        p1, q1, r1, *d_norm_attention = _normal_gradient(rows, sums, weight_attention, *first[2:])

        def attention(low: int, high: int) -> list[Tensor]:
            d_qkv, d_out = torch.zeros_like(qkv), torch.zeros_like(out)
            room, wide_room = h.new_empty(longest, width), h.new_empty(longest, 3 * width)
            for some, at in cut(low, high):
                d_attended, d_mixed, d_projected = d_h[at], room[: at.stop - at.start], wide_room[: at.stop - at.start]
                torch.addcmul(r1, attended[at], q1, out=d_attended).addcmul_(d_x[at], p1)
                d_out.addmm_(d_attended.T, mixed[at])
                torch.mm(d_attended, out, out=d_mixed)
                flat = _flat(projected[at], mixed[at], d_mixed, d_projected)
                attend_gradient(some.stop - some.start, nodes, heads, scale, *flat)
                d_qkv.addmm_(d_projected.T, h[at])
                d_attended.addmm_(d_projected, qkv)  # now the gradient of h
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
