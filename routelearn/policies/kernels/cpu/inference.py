"""An attention layer on a CPU where no gradient is wanted: pieces that stay in the processor's cache, compiled loops.

Same mathematics as `AttentionLayer.forward` in evaluation mode, in float32. The matrix products are the library's; what
it would do between them in several passes over memory (self-attention of short tours, adding, normalising, relu) is one
compiled pass each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from routelearn.policies.kernels.cpu.encoder import suits
from routelearn.policies.kernels.cpu.shares import HEAD, flat, in_threads, pieces

ROWS = 1600  # of a piece, at most (or one instance)
WORTH = 16  # instances from which loading compiled code pays


def usable(h: Tensor, layer: Any) -> bool:
    """Single precision on a CPU without gradients, heads of sixteen columns, and a normalisation that is known here."""
    return (
        suits(h, gradients=False)
        and h.shape[2] == HEAD * layer.heads
        and layer.expand.out_features % HEAD == 0
        and layer.qkv.weight.dtype == torch.float32
        and h.shape[0] >= WORTH
        and all(_known(norm) for norm in (layer.norm_attention, layer.norm_feed_forward))
    )


def _known(norm: Any) -> bool:
    fixed = isinstance(norm, torch.nn.BatchNorm1d) and not norm.training and norm.track_running_stats and norm.affine
    return fixed or getattr(norm, "by_instance", False)


class _Normal:
    """y <- the normalisation of x + y + bias, for pieces of whole instances."""

    def __init__(self, norm: Any, bias: Tensor | None = None):
        self.by_instance = not isinstance(norm, torch.nn.BatchNorm1d)
        if self.by_instance:  # the mean goes off, and with it the bias
            self.first, self.second, self.eps = norm.weight.numpy(), norm.bias.numpy(), norm.eps
        else:
            factor = norm.weight * (norm.running_var + norm.eps).rsqrt()
            shift = -norm.running_mean if bias is None else bias - norm.running_mean
            self.first, self.second, self.eps = factor.numpy(), (norm.bias + shift * factor).numpy(), 0.0

    def __call__(self, instances: int, nodes: int, x: np.ndarray, y: np.ndarray) -> None:
        from routelearn.policies.kernels.cpu.columns import add_normal, add_scaled

        if self.by_instance:
            add_normal(instances, nodes, self.first.size, x, y, self.first, self.second, self.eps)
        else:
            add_scaled(instances * nodes, self.first.size, x, y, self.first, self.second)


def layer_forward(layer: Any, h: Tensor) -> Tensor:
    """`layer(h)`; `usable` says where."""
    from routelearn.policies.kernels.cpu.attention import attend
    from routelearn.policies.kernels.cpu.columns import add_relu

    batch, nodes, width = h.shape
    h = h.contiguous()
    result = torch.empty_like(h)
    expand_bias = layer.expand.bias.numpy()
    first, second = _Normal(layer.norm_attention), _Normal(layer.norm_feed_forward, layer.contract.bias)

    def work(low: int, high: int) -> None:
        for at in pieces(low, high, max(1, ROWS // nodes)):
            count = at.stop - at.start
            x, out = h[at].view(-1, width), result[at].view(-1, width)
            projected, mixed = torch.mm(x, layer.qkv.weight.T), torch.empty_like(x)
            attend(count, nodes, layer.heads, HEAD**-0.5, flat(projected), flat(mixed))
            y = torch.mm(mixed, layer.out.weight.T)
            first(count, nodes, flat(x), flat(y))
            wide = torch.mm(y, layer.expand.weight.T)
            add_relu(count * nodes, expand_bias.size, expand_bias, flat(wide))
            torch.mm(wide, layer.contract.weight.T, out=out)
            second(count, nodes, flat(y), flat(out))

    in_threads(work, batch)
    return result


@torch.no_grad()
def warm_up() -> None:
    """Compile or load now."""
    from routelearn.policies.layers import AttentionLayer

    for norm in ("batch", "instance"):
        layer_forward(AttentionLayer(HEAD, 1, HEAD, norm).eval(), torch.zeros(WORTH, 2, HEAD))
