"""Encode, Attend, Navigate (Deudon et al. 2018): attention layers, and a query made of the last three nodes."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from routelearn.errors import InputError
from routelearn.policies.additive import AdditiveAttention
from routelearn.policies.base import ByLogits, Seen, Shape, Trajectory, clipped, has_no_state, rows
from routelearn.policies.layers import Encoder, initialise

RECENT = 3  # nodes that a query is made of


class Cache(NamedTuple):
    recent: Tensor  # [B, N, RECENT, H]: what a node adds to the query as the last one, the one before it, ...
    reference: Tensor  # [B, N, P]: nodes as the pointer compares them with a query


class EANPolicy(ByLogits, nn.Module):
    """Places are turned onto their principal axes; where the tour began is not seen."""

    summary = "the last three nodes ask, additive attention points (Deudon et al. 2018)"
    compiles = True
    takes = staticmethod(has_no_state)

    def __init__(
        self,
        shape: Shape,
        width: int = 128,
        heads: int = 8,
        layers: int = 3,
        hidden: int = 512,
        norm: str = "batch",
        clip: float = 10.0,
        query_width: int = 360,
        pointer_width: int = 256,
    ):
        super().__init__()
        if not self.takes(shape):
            raise InputError("EAN reads one kind of node and no state; use the attention model here")
        self.shape, self.width, self.heads, self.clip = shape, width, heads, clip
        self.query_width, self.step_width = query_width, 2 * pointer_width
        self.encoder = Encoder(shape.feature_dims, width, heads, hidden, layers, norm)
        self.recent = nn.Linear(width, RECENT * query_width, bias=False)
        self.pointer = AdditiveAttention(width, query_width, pointer_width)
        initialise(self)

    def encode(self, features: tuple[Tensor, ...]) -> Cache:
        (nodes,) = features
        return self.prepare(self.encoder((torch.cat((upright(nodes[..., :2]), nodes[..., 2:]), -1),)))

    def parts_to_compile(self) -> list[tuple[nn.Module, str]]:
        return [(self.encoder, "project"), (self.encoder, "attend"), (self, "prepare")]

    def prepare(self, h: Tensor) -> Cache:
        """Every node of h [B, N, D] as part of a query and as what is pointed at: each projected once."""
        return Cache(self.recent(h).unflatten(-1, (RECENT, self.query_width)), self.pointer.reference(h))

    def begin(self, cache: Cache, solutions: int) -> tuple[Tensor, ...]:
        """The nodes before the last one, [B, S, RECENT - 1]."""
        return (torch.full((len(cache.recent), solutions, RECENT - 1), -1, device=cache.recent.device),)

    def step(self, cache: Cache, carry: tuple[Tensor, ...], seen: Seen) -> tuple[Tensor, tuple[Tensor, ...]]:
        recent = torch.cat((seen.last[..., None], carry[0]), -1)
        return self.logits(cache, recent, seen.feasible), (recent[..., :-1],)

    def recorded_logits(self, cache: Cache, trajectory: Trajectory) -> Tensor:
        """[B, S, T, N]: the steps of all solutions are so many queries of their instance."""
        last, steps = trajectory.seen.last, trajectory.actions.shape[2]
        recent = torch.stack([F.pad(last, (k, 0), value=-1)[..., :steps] for k in range(RECENT)], -1)
        logits = self.logits(cache, recent.flatten(1, 2), trajectory.seen.feasible.flatten(1, 2))
        return logits.unflatten(1, trajectory.actions.shape[1:])

    def logits(self, cache: Cache, recent: Tensor, feasible: Tensor) -> Tensor:
        """[B, Q, N] from the most recent nodes [B, Q, RECENT], the last one first; -1, which adds nothing, is none."""
        query = cache.recent.new_zeros(())
        for k, node in enumerate(recent.unbind(-1)):
            query = query + rows(cache.recent[:, :, k], node).masked_fill(node[..., None] < 0, 0.0)
        scores = self.pointer(cache.reference, self.pointer.query(F.relu(query)))
        return clipped(scores, self.clip, feasible)


def upright(xy: Tensor) -> Tensor:
    """Places [B, N, 2] about their mean, turned so that they spread most along the first axis."""
    x, y = (xy - xy.mean(1, keepdim=True)).unbind(-1)
    angle = 0.5 * torch.atan2(2 * (x * y).mean(1, keepdim=True), (x * x - y * y).mean(1, keepdim=True))
    cos, sin = angle.cos(), angle.sin()
    return torch.stack((cos * x + sin * y, cos * y - sin * x), -1)
