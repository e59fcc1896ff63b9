"""The encoder's parts: normalisations, the attention layer (eq. 2 and 3), initialisation, neighbour masks."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from routelearn.errors import InputError
from routelearn.policies.base import at_least_float32
from routelearn.policies.kernels import select
from routelearn.policies.kernels.select import implemented_by_kernels


@implemented_by_kernels(forward="d14fd42f603d")
class BatchNorm(nn.BatchNorm1d):
    """Eq. 16: statistics over all nodes of all instances."""

    def forward(self, h: Tensor) -> Tensor:
        return super().forward(h.flatten(0, 1)).view(h.shape)


@implemented_by_kernels(forward="5576e242d3f7")
class InstanceNorm(nn.Module):
    """Statistics per instance over its nodes: the same at every size, in training and evaluation alike."""

    by_instance = True

    def __init__(self, width: int, eps: float = 1e-5):
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width)), eps

    def forward(self, h: Tensor) -> Tensor:
        variance, mean = torch.var_mean(h, 1, correction=0, keepdim=True)
        return (h - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias


NORMS = {"batch": BatchNorm, "instance": InstanceNorm, "layer": nn.LayerNorm, "rms": nn.RMSNorm}


def make_norm(name: str, width: int) -> nn.Module:
    if name not in NORMS:
        raise InputError(f"unknown normalisation {name!r}; the choices are {', '.join(NORMS)}")
    return NORMS[name](width)


@implemented_by_kernels(forward="9b000e2e13df", attend="4163e46c8663", feed_forward="3a510ff4ea40")
class AttentionLayer(nn.Module):
    """Multi-head attention and a feed-forward sublayer, each with a skip connection and normalisation.

    The residual stream `h` and the normalisation stay in the precision of `h` (float32), whatever the
    matrix products use under autocast.
    """

    def __init__(self, width: int, heads: int, hidden: int, norm: str):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm_attention = make_norm(norm, width)
        self.expand = nn.Linear(width, hidden)
        self.contract = nn.Linear(hidden, width)
        self.norm_feed_forward = make_norm(norm, width)

    def forward(self, h: Tensor, adjacent: Tensor | None = None) -> Tensor:
        """h [B, N, D]; adjacent [B, 1, N, N] bool limits who may send to whom (eq. 11)."""
        h = self.norm_attention(h + self.out(self.attend(self.qkv(h), adjacent)))
        return self.norm_feed_forward(h + self.feed_forward(h))

    def attend(self, qkv: Tensor, adjacent: Tensor | None = None) -> Tensor:
        """What the nodes hear from each other, [B, N, D], from queries, keys and values side by side [B, N, 3 D]."""
        batch, nodes, columns = qkv.shape
        q, k, v = qkv.view(batch, nodes, 3, self.heads, columns // (3 * self.heads)).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=adjacent).transpose(1, 2).flatten(2)

    def feed_forward(self, h: Tensor) -> Tensor:
        return self.contract(F.relu(self.expand(h), inplace=True))


class Encoder(nn.Module):
    """One input projection per node group, then N attention layers (section 3.1)."""

    def __init__(
        self,
        feature_dims: tuple[int, ...],
        width: int,
        heads: int,
        hidden: int,
        layers: int,
        norm: str,
        neighbours: int = 0,
        layer: type[AttentionLayer] = AttentionLayer,
    ):
        super().__init__()
        if width % heads:
            raise InputError(f"width {width} is not a multiple of {heads} heads")
        self.embed = nn.ModuleList(nn.Linear(columns, width) for columns in feature_dims)
        self.layers = nn.ModuleList(layer(width, heads, hidden, norm) for _ in range(layers))
        self.neighbours = neighbours

    def forward(self, features: tuple[Tensor, ...], adjacent: Tensor | None = None) -> Tensor:
        """Node embeddings [B, N, D]; adjacent [B, N, N] bool, else the k nearest, else everyone."""
        return self.attend(*self.project(features, adjacent))

    def project(self, features: tuple[Tensor, ...], adjacent: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Every group of nodes through its own projection, [B, N, D] in float32, and who may send to whom."""
        groups = [embed(group) for embed, group in zip(self.embed, features, strict=True)]
        h = groups[0] if len(groups) == 1 else torch.cat(groups, 1)
        if adjacent is None and self.neighbours:
            xy = torch.cat([group[..., :2] for group in features], 1)
            adjacent = nearest(xy, self.neighbours)
        mask = None if adjacent is None else adjacent[:, None]
        return at_least_float32(h), mask

    def attend(self, h: Tensor, mask: Tensor | None) -> Tensor:
        """The layers alone: the same for every problem."""
        for layer in self.layers:
            h = select.run_layer(layer, h, mask)
        return h


@torch.no_grad()
def deepen(encoder: Encoder, added: int) -> bool:
    """Make the last `added` layers begin as the identity; False where the normalisation does not allow it.

    A sublayer that adds nothing leaves only its normalisation. What comes in was normalised already, by column, so that
    the same factor and offset give it back.
    """
    before, fresh = list(encoder.layers[:-added]), list(encoder.layers[-added:])
    last: Any = before[-1].norm_feed_forward if before else None
    if not isinstance(last, BatchNorm | InstanceNorm):
        return False
    for layer in fresh:
        for name in ("out.weight", "contract.weight", "contract.bias"):
            layer.get_parameter(name).zero_()
        for norm in ("norm_attention", "norm_feed_forward"):
            layer.get_parameter(f"{norm}.weight").copy_(last.weight.abs())
            layer.get_parameter(f"{norm}.bias").copy_(last.bias)
    return True


def nearest(xy: Tensor, k: int) -> Tensor:
    """[B, N, N] bool: who is among each node's k nearest, itself included; a graph for appendix A."""
    distances = (xy[:, :, None] - xy[:, None]).norm(dim=-1)
    distances.diagonal(dim1=1, dim2=2).fill_(-1)  # itself first, even where nodes coincide
    index = distances.topk(min(k, xy.shape[1]), largest=False).indices
    return torch.zeros_like(distances, dtype=torch.bool).scatter(-1, index, True)


def initialise(module: nn.Module) -> None:
    """Section 5: every weight uniform within 1 / sqrt(input dimension); normalisations stay at identity."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            bound = 1 / math.sqrt(part.in_features)
            nn.init.uniform_(part.weight, -bound, bound)
            if part.bias is not None:
                nn.init.uniform_(part.bias, -bound, bound)
        elif isinstance(part, nn.LSTM):
            for parameter in part.parameters():
                nn.init.uniform_(parameter, -1 / math.sqrt(part.hidden_size), 1 / math.sqrt(part.hidden_size))
