"""The encoder's self-attention as Triton kernels: library attention is made for sequences far longer than tours.

Same mathematics as scaled_dot_product_attention in layers.py. A program holds one head of one instance in registers,
forward and backward; nothing of size [N, N] is ever written.
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
    def _load(QKV, N, H: tl.constexpr, d: tl.constexpr, NP: tl.constexpr):
        """Queries, keys and values [NP, d] of this program's head, out of the joint projection [B, N, 3 D]."""
        D: tl.constexpr = H * d
        nodes = tl.arange(0, NP)
        real = (nodes < N)[:, None]
        columns = tl.program_id(1) * d + tl.arange(0, d)
        first = tl.program_id(0).to(tl.int64) * N
        cells = (first + nodes[:, None]) * (3 * D) + columns[None, :]
        q = tl.load(QKV + cells, mask=real, other=0.0)
        k = tl.load(QKV + cells + D, mask=real, other=0.0)
        v = tl.load(QKV + cells + 2 * D, mask=real, other=0.0)
        return q, k, v, cells, (first + nodes[:, None]) * D + columns[None, :], real

    @triton.jit
    def _weights(q, k, N, scale, NP: tl.constexpr):
        """Softmax weights [NP, NP] before they are divided by their sums, and one over those sums."""
        scores = tl.where((tl.arange(0, NP) < N)[None, :], tl.dot(q, tl.trans(k)), float("-inf"))
        weights = tl.exp2((scores - tl.max(scores, 1)[:, None]) * (scale * 1.4426950408889634))  # log2(e)
        return weights, 1 / tl.sum(weights, 1)

    @triton.jit
    def _attend(QKV, OUT, N, scale, H: tl.constexpr, d: tl.constexpr, NP: tl.constexpr):
        q, k, v, _, own, real = _load(QKV, N, H, d, NP)
        weights, inverse = _weights(q, k, N, scale, NP)
        out = tl.dot(weights.to(v.dtype), v) * inverse[:, None]
        tl.store(OUT + own, out.to(v.dtype), mask=real)

    @triton.jit
    def _attend_gradient(QKV, D_OUT, D_QKV, N, scale, H: tl.constexpr, d: tl.constexpr, NP: tl.constexpr):
        """The weights are computed again; what divides them is applied to the narrow [NP, d] sides."""
        q, k, v, cells, own, real = _load(QKV, N, H, d, NP)
        d_out = tl.load(D_OUT + own, mask=real, other=0.0)
        weights, inverse = _weights(q, k, N, scale, NP)
        share = d_out.to(tl.float32) * inverse[:, None]
        d_v = tl.dot(tl.trans(weights.to(v.dtype)), share.to(v.dtype))
        d_weights = tl.dot(d_out, tl.trans(v))
        along = tl.sum(weights * d_weights, 1) * inverse
        d_scores = (weights * (d_weights - along[:, None]) * (scale * inverse)[:, None]).to(q.dtype)
        tl.store(D_QKV + cells, tl.dot(d_scores, k).to(q.dtype), mask=real)
        tl.store(D_QKV + cells + 2 * H * d, d_v.to(q.dtype), mask=real)
        tl.store(D_QKV + cells + H * d, tl.dot(tl.trans(d_scores), q).to(q.dtype), mask=real)


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


FORWARD_WARPS, BACKWARD_WARPS = {16: 1, 32: 1, 64: 4, 128: 8}, {16: 1, 32: 1, 64: 4, 128: 4}  # the best on an H200


def _attention_sizes(qkv: Tensor, heads: int, warps: dict[int, int]) -> dict[str, Any]:
    padded = max(16, triton.next_power_of_2(qkv.shape[1]))
    return {"H": heads, "d": qkv.shape[-1] // (3 * heads), "NP": padded, "num_warps": warps[padded]}


@torch.library.custom_op("routelearn::self_attention", mutates_args=())
def self_attention(qkv: Tensor, heads: int) -> Tensor:
    """Multi-head self-attention among the nodes of each instance: qkv [B, N, 3 D] -> [B, N, D]."""
    batch, count, triple = qkv.shape
    out = qkv.new_empty((batch, count, triple // 3))
    scale = (triple // (3 * heads)) ** -0.5
    _attend[(batch, heads)](qkv, out, count, scale, **_attention_sizes(qkv, heads, FORWARD_WARPS))
    return out


@self_attention.register_fake
def _(qkv, heads):
    return qkv.new_empty((qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3))


@torch.library.custom_op("routelearn::self_attention_gradient", mutates_args=())
def self_attention_gradient(qkv: Tensor, d_out: Tensor, heads: int) -> Tensor:
    batch, count, triple = qkv.shape
    d_qkv = torch.empty_like(qkv)
    scale = (triple // (3 * heads)) ** -0.5
    sizes = _attention_sizes(qkv, heads, BACKWARD_WARPS)
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
