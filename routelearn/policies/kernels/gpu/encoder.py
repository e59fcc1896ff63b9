"""The encoder's self-attention and half of its feed-forward sublayer as Triton kernels.

Library attention is made for sequences far longer than tours. Same mathematics as scaled_dot_product_attention in
layers.py; a program holds one head of one instance in registers, forward and backward, and takes some queries at a
time; nothing of size [N, N] is ever written. The feed-forward's wide intermediate is what an encoder writes most of:
here the rectifier is part of the product that makes it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # CPU builds of torch come without it
    triton = None

# Triton's interpreter (TRITON_INTERPRET=1) runs the kernels on a CPU, for tests.
INTERPRETED = triton is not None and bool(triton.knobs.runtime.interpret)

if triton is not None:

    @triton.jit
    def _place(rows, N, d: tl.constexpr, width):
        """Where these nodes' rows of the program's head are, in an array of `width` columns, and which are there."""
        columns = tl.program_id(1) * d + tl.arange(0, d)
        first = tl.program_id(0).to(tl.int64) * N
        return (first + rows[:, None]) * width + columns[None, :], (rows < N)[:, None]

    @triton.jit
    def _weights(q, k, N, scale, NP: tl.constexpr):
        """Softmax weights [BQ, NP] before they are divided by their sums, and one over those sums."""
        scores = tl.where((tl.arange(0, NP) < N)[None, :], tl.dot(q, tl.trans(k)), float("-inf"))
        weights = tl.exp2((scores - tl.max(scores, 1)[:, None]) * (scale * 1.4426950408889634))  # log2(e)
        return weights, 1 / tl.sum(weights, 1)

    @triton.jit
    def _attend(QKV, OUT, N, scale, H: tl.constexpr, d: tl.constexpr, NP: tl.constexpr, BQ: tl.constexpr):
        """One head of one instance out of the joint projection [B, N, 3 D]."""
        D: tl.constexpr = H * d
        cells, real = _place(tl.arange(0, NP), N, d, 3 * D)
        k = tl.load(QKV + D + cells, mask=real, other=0.0)
        v = tl.load(QKV + 2 * D + cells, mask=real, other=0.0)
        for start in range(0, N, BQ):
            rows = start + tl.arange(0, BQ)
            at, some = _place(rows, N, d, 3 * D)
            weights, inverse = _weights(tl.load(QKV + at, mask=some, other=0.0), k, N, scale, NP)
            out = tl.dot(weights.to(v.dtype), v) * inverse[:, None]
            own, some = _place(rows, N, d, D)
            tl.store(OUT + own, out.to(v.dtype), mask=some)

    @triton.jit
    def _attend_gradient(
        QKV, D_OUT, D_QKV, N, scale, H: tl.constexpr, d: tl.constexpr, NP: tl.constexpr, BQ: tl.constexpr
    ):
        """The weights are computed again; what divides them is applied to the narrow [BQ, d] sides."""
        D: tl.constexpr = H * d
        cells, real = _place(tl.arange(0, NP), N, d, 3 * D)
        k = tl.load(QKV + D + cells, mask=real, other=0.0)
        v = tl.load(QKV + 2 * D + cells, mask=real, other=0.0)
        d_k = tl.zeros((NP, d), tl.float32)
        d_v = tl.zeros((NP, d), tl.float32)
        for start in range(0, N, BQ):
            rows = start + tl.arange(0, BQ)
            at, some = _place(rows, N, d, 3 * D)
            q = tl.load(QKV + at, mask=some, other=0.0)
            own, some = _place(rows, N, d, D)
            d_out = tl.load(D_OUT + own, mask=some, other=0.0)
            weights, inverse = _weights(q, k, N, scale, NP)
            share = d_out.to(tl.float32) * inverse[:, None]
            d_v += tl.dot(tl.trans(weights.to(v.dtype)), share.to(v.dtype))
            d_weights = tl.dot(d_out, tl.trans(v))
            along = tl.sum(weights * d_weights, 1) * inverse
            d_scores = (weights * (d_weights - along[:, None]) * (scale * inverse)[:, None]).to(q.dtype)
            tl.store(D_QKV + at, tl.dot(d_scores, k).to(q.dtype), mask=some)
            d_k += tl.dot(tl.trans(d_scores), q)
        tl.store(D_QKV + D + cells, d_k.to(k.dtype), mask=real)
        tl.store(D_QKV + 2 * D + cells, d_v.to(k.dtype), mask=real)

    @triton.jit
    def _expand(X, WEIGHT, BIAS, OUT, M, WIDE: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
        """A tile of relu(x W^T + b)."""
        rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
        wide, columns = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, D)
        real = (rows < M)[:, None]
        x = tl.load(X + rows[:, None] * D + columns[None, :], mask=real, other=0.0)
        weight = tl.load(WEIGHT + wide[:, None] * D + columns[None, :])
        out = tl.dot(x, tl.trans(weight)) + tl.load(BIAS + wide)[None, :].to(tl.float32)
        tl.store(OUT + rows[:, None] * WIDE + wide[None, :], tl.maximum(out, 0.0).to(x.dtype), mask=real)


def usable(h: Tensor, layer: Any) -> bool:
    """Whether any of a layer's work can be done here."""
    return triton is not None and (h.is_cuda or INTERPRETED)


def layer_forward(layer: Any, h: Tensor) -> Tensor:
    """`layer(h)`, with kernels for the parts that they cover."""
    qkv = layer.qkv(h)
    mixed = self_attention(qkv, layer.heads) if attends(qkv, layer.heads) else layer.attend(qkv)
    h = layer.norm_attention(h + layer.out(mixed))
    covered = expands(h, layer.expand.weight)
    fed = layer.contract(expanded(h, layer.expand)) if covered else layer.feed_forward(h)
    return layer.norm_feed_forward(h + fed)


def attends(qkv: Tensor, heads: int) -> bool:
    """Whether `self_attention` covers this case: bfloat16 on a GPU, one instance's scores in registers."""
    per_head = qkv.shape[-1] // (3 * heads)
    return (
        triton is not None
        and (qkv.is_cuda or INTERPRETED)
        and (qkv.dtype == torch.bfloat16 or INTERPRETED)
        and qkv.shape[1] <= 128
        and per_head >= 16
        and per_head & (per_head - 1) == 0
        and heads & (heads - 1) == 0
    )


# By padded number of nodes: queries at a time, warps, registers; the best of some ten each on an H200.
FORWARD_BLOCK: dict[int, dict[str, int]] = {
    16: {"BQ": 16, "num_warps": 1},
    32: {"BQ": 16, "num_warps": 1},
    64: {"BQ": 64, "num_warps": 4, "num_stages": 1},
    128: {"BQ": 64, "num_warps": 4, "maxnreg": 96},
}
BACKWARD_BLOCK: dict[int, dict[str, int]] = {
    16: {"BQ": 16, "num_warps": 1, "num_stages": 1},
    32: {"BQ": 16, "num_warps": 1, "num_stages": 1},
    64: {"BQ": 64, "num_warps": 4, "num_stages": 1, "maxnreg": 168},
    128: {"BQ": 16, "num_warps": 1, "num_stages": 1},
}


def _attention_sizes(qkv: Tensor, heads: int, blocks: dict[int, dict[str, int]]) -> dict[str, Any]:
    padded = max(16, triton.next_power_of_2(qkv.shape[1]))
    return {"H": heads, "d": qkv.shape[-1] // (3 * heads), "NP": padded, **blocks[padded]}


@torch.library.custom_op("routelearn::self_attention", mutates_args=())
def self_attention(qkv: Tensor, heads: int) -> Tensor:
    """Multi-head self-attention among the nodes of each instance: qkv [B, N, 3 D] -> [B, N, D]."""
    batch, count, triple = qkv.shape
    out = qkv.new_empty((batch, count, triple // 3))
    scale = (triple // (3 * heads)) ** -0.5
    _attend[(batch, heads)](qkv, out, count, scale, **_attention_sizes(qkv, heads, FORWARD_BLOCK))
    return out


@self_attention.register_fake
def _(qkv, heads):
    return qkv.new_empty((qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3))


@torch.library.custom_op("routelearn::self_attention_gradient", mutates_args=())
def self_attention_gradient(qkv: Tensor, d_out: Tensor, heads: int) -> Tensor:
    batch, count, triple = qkv.shape
    d_qkv = torch.empty_like(qkv)
    scale = (triple // (3 * heads)) ** -0.5
    sizes = _attention_sizes(qkv, heads, BACKWARD_BLOCK)
    _attend_gradient[(batch, heads)](qkv, d_out, d_qkv, count, scale, **sizes)
    return d_qkv


@self_attention_gradient.register_fake
def _(qkv, d_out, heads):
    return torch.empty_like(qkv)


def _keep_input(ctx: Any, inputs: tuple[Tensor, int], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.heads = inputs[1]


def _attention_backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, None]:
    (qkv,) = ctx.saved_tensors
    return self_attention_gradient(qkv, d_out.contiguous(), ctx.heads), None


self_attention.register_autograd(_attention_backward, setup_context=_keep_input)


# ------------------------------------------------------------------------------------------- feed-forward

EXPAND_TILE = {"BM": 128, "BN": 128, "num_warps": 8}  # the best of a few on an H200


def expands(h: Tensor, weight: Tensor) -> bool:
    """Whether `expand_relu` covers this case: bfloat16 products on a GPU, a width that one tile holds."""
    wide, width = weight.shape
    return (
        triton is not None
        and ((h.is_cuda and torch.is_autocast_enabled("cuda")) or INTERPRETED)
        and width & (width - 1) == 0
        and 16 <= width <= 256
        and wide % EXPAND_TILE["BN"] == 0
    )


@torch.library.custom_op("routelearn::expand_relu", mutates_args=())
def expand_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """relu(x W^T + b), the wide intermediate written once: x [M, D], W [F, D], b [F] -> [M, F]."""
    (count, width), wide = x.shape, weight.shape[0]
    out = x.new_empty((count, wide))
    grid = (triton.cdiv(count, EXPAND_TILE["BM"]), wide // EXPAND_TILE["BN"])
    _expand[grid](x, weight, bias, out, count, WIDE=wide, D=width, **EXPAND_TILE)
    return out


@expand_relu.register_fake
def _(x, weight, bias):
    return x.new_empty((x.shape[0], weight.shape[0]))


def _keep_expanded(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs, output)


def _expand_backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x, weight, bias, out = ctx.saved_tensors
    d_sum = torch.where(out > 0, d_out, 0)
    return d_sum @ weight, d_sum.T @ x, d_sum.sum(0, dtype=bias.dtype)


expand_relu.register_autograd(_expand_backward, setup_context=_keep_expanded)


def expanded(h: Tensor, linear: torch.nn.Linear) -> Tensor:
    """A feed-forward sublayer's first half, h [B, N, D] -> [B, N, F], in the precision of matrix products."""
    kind = torch.get_autocast_dtype("cuda") if h.is_cuda else h.dtype
    x, weight = h.flatten(0, 1).to(kind), linear.weight.to(kind)
    return expand_relu(x, weight, linear.bias).unflatten(0, h.shape[:2])
