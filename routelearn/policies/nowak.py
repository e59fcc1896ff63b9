"""Edges scored by a graph network (Nowak et al. 2017): nodes are encoded once, and the next is chosen by edge alone."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from routelearn.errors import InputError
from routelearn.policies.base import ByLogits, Seen, Shape, Trajectory, at_least_float32, has_no_state, rows
from routelearn.policies.layers import initialise, make_norm

SHARPNESS = (4.0, 16.0, 64.0)  # of the graphs that messages pass along, at first: from far to near


class Cache(NamedTuple):
    edges: Tensor  # [B, N, N] the logits of going from one node to another, the same both ways


class GraphLayer(nn.Module):
    """h <- norm(z), half of z rectified; z sums what a node, its neighbours on each graph and all nodes send."""

    def __init__(self, width: int, graphs: int, norm: str):
        super().__init__()
        self.send = nn.Linear((graphs + 2) * width, width)
        self.norm = make_norm(norm, width)

    def forward(self, h: Tensor, graphs: Tensor) -> Tensor:
        """h [B, N, D] along the graphs [B, G, N, N], whose rows sum to 1."""
        near = (graphs.to(h.dtype) @ h[:, None]).transpose(1, 2).flatten(2)
        sent = self.send(torch.cat((h, near, h.mean(1, keepdim=True).expand_as(h)), -1))
        rectified, linear = at_least_float32(sent).chunk(2, -1)
        return self.norm(torch.cat((F.relu(rectified), linear), -1))


class NowakPolicy(ByLogits, nn.Module):
    """What was visited before the last node means nothing but that it cannot be visited again."""

    summary = "a graph network scores edges, a beam makes tours of them (Nowak et al. 2017)"
    compiles = True
    takes = staticmethod(has_no_state)

    def __init__(self, shape: Shape, width: int = 128, layers: int = 3, norm: str = "batch", clip: float = 10.0):
        super().__init__()
        if not self.takes(shape):
            raise InputError("edges are scored between nodes of one kind without a state; use the attention model here")
        self.shape, self.width, self.clip = shape, width, clip
        self.embed = nn.Linear(shape.feature_dims[0], width)
        self.sharpness = nn.Parameter(torch.tensor(SHARPNESS).log())
        self.layers = nn.ModuleList(GraphLayer(width, len(SHARPNESS), norm) for _ in range(layers))
        self.ends = nn.Linear(width, 2 * width, bias=False)
        initialise(self)

    def encode(self, features: tuple[Tensor, ...]) -> Cache:
        (nodes,) = features
        xy = nodes[..., :2]
        distances = (xy[:, :, None] - xy[:, None]).square().sum(-1).sqrt()
        graphs = (-self.sharpness.exp()[:, None, None] * distances[:, None]).softmax(-1)  # [B, G, N, N]
        h = self.embed(nodes)
        for layer in self.layers:
            h = layer(h, graphs)
        one, other = self.ends(h).chunk(2, -1)
        fit = at_least_float32(one @ other.transpose(1, 2) / math.sqrt(self.width))
        return Cache(self.clip * torch.tanh(fit + fit.transpose(1, 2)))

    def begin(self, cache: Cache, solutions: int) -> tuple[Tensor, ...]:
        return ()

    def step(self, cache: Cache, carry: tuple[Tensor, ...], seen: Seen) -> tuple[Tensor, tuple[Tensor, ...]]:
        return self.logits(cache, seen.last, seen.feasible), carry

    def recorded_logits(self, cache: Cache, trajectory: Trajectory) -> Tensor:
        seen = trajectory.seen
        logits = self.logits(cache, seen.last.flatten(1), seen.feasible.flatten(1, 2))
        return logits.unflatten(1, trajectory.actions.shape[1:])

    def logits(self, cache: Cache, last: Tensor, feasible: Tensor) -> Tensor:
        """[B, Q, N] of the edges from the nodes `last` [B, Q]; a tour may begin anywhere: where edges fit best."""
        itself = torch.eye(cache.edges.shape[2], dtype=torch.bool, device=last.device)
        best = cache.edges.detach().masked_fill(itself, -math.inf).logsumexp(-1)  # [B, N], nothing to learn from
        onward = torch.where(last[..., None] < 0, best[:, None], rows(cache.edges, last))
        return onward.masked_fill(~feasible, -math.inf)
