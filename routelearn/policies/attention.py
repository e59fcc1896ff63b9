"""The attention model (section 3): an encoder of attention layers and a decoder of one glimpse and one pointer.

Nothing is projected twice. The query is linear in the context, so every node is projected through each
context slot once (`tables`), and a step's query is a sum of gathered rows; the glimpse's output projection
W^O is folded into the pointer's keys. A step is then two gathers and three small batched products.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from routelearn.policies.base import (
    Choice,
    Seen,
    Shape,
    Trajectory,
    choose_by_logits,
    leave_out_given,
    map_seen,
    picked,
)
from routelearn.policies.kernels import select
from routelearn.policies.kernels.cache import Cache
from routelearn.policies.layers import AttentionLayer, Encoder, initialise

ENCODED = 12_800  # nodes encoded at once on a CPU: memory of that size is used again, more is asked from the system


@select.implemented_by_kernels(
    begin="fef088095af2",
    step="a0ec6889aa14",
    choose="b65f5ccdd101",
    logits="7b484010dd52",
    query="02b0a2bdacb8",
    glimpse_weights="6e9fdb484fa7",
    score="6a6902a135f2",
    recorded_logits="da5cafeee300",
)
class AttentionPolicy(nn.Module):
    summary = "the attention model of the paper"
    compiles = True  # torch.compile can take its steps
    layer = AttentionLayer  # what the encoder is made of; a subclass may name another

    def __init__(
        self,
        shape: Shape,
        width: int = 128,
        heads: int = 8,
        layers: int = 3,
        hidden: int = 512,
        norm: str = "batch",
        clip: float = 10.0,
        neighbours: int = 0,
    ):
        super().__init__()
        self.shape, self.width, self.heads, self.clip = shape, width, heads, clip
        self.encoder = Encoder(shape.feature_dims, width, heads, hidden, layers, norm, neighbours, self.layer)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.pointer = nn.Linear(width, width, bias=False)
        self.graph = nn.Linear(width, width, bias=False)
        self.context = nn.Linear(shape.context_nodes * width + shape.context_scalars, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.step_features = nn.Linear(shape.step_dim, 3 * width, bias=False) if shape.step_dim else None
        self.placeholder = nn.Parameter(torch.empty(shape.context_nodes, width).uniform_(-1, 1))
        initialise(self)

    def encode(self, features: tuple[Tensor, ...], adjacent: Tensor | None = None) -> Cache:
        batch, nodes = features[0].shape[0], sum(group.shape[1] for group in features)
        many = features[0].device.type == "cpu" and batch * nodes > ENCODED and not torch.compiler.is_compiling()
        plain = adjacent is None and not self.training and not torch.is_grad_enabled()
        if many and plain and type(self).prepare is AttentionPolicy.prepare and "prepare" not in self.__dict__:
            groups = zip(*(group.split(max(1, ENCODED // nodes)) for group in features), strict=True)
            parts = [self.prepare(self.encoder(group)) for group in groups]
            by_instance = [torch.cat(fields) for fields in zip(*(part[:5] for part in parts), strict=True)]
            return Cache(*by_instance + list(parts[0][5:]))
        return self.prepare(self.encoder(features, adjacent))

    def parts_to_compile(self) -> list[tuple[nn.Module, str]]:
        """The parts of `encode` to compile, each alone: the layers', the largest, is the same for all problems."""
        return [(self.encoder, "project"), (self.encoder, "attend"), (self, "prepare")]

    def prepare(self, h: Tensor) -> Cache:
        """Everything of the decoder that does not depend on the step (eq. 5), h [B, N, D]."""
        batch, nodes, width = h.shape
        slots = self.shape.context_nodes
        heads, per_head = self.heads, width // self.heads
        # The query is scaled by 1 / sqrt(d) once here rather than every compatibility (eq. 6, 7).
        context = select.matrix(self.context) * per_head**-0.5
        by_slot = context[:, : slots * width].view(width, slots, width).permute(1, 0, 2)  # [K, D out, D in]
        fold = width**-0.5 * select.matrix(self.out).T  # heads -> query of the pointer, and its 1 / sqrt(D)
        key, value, point = map(select.matrix, (self.key, self.value, self.pointer))
        weights = torch.cat((key, value, fold @ point, by_slot.flatten(0, 1)))
        projected = F.linear(h, weights).view(batch, nodes, 3 + slots, width)
        keys, values, pointer, tables = projected.split((1, 1, 1, slots), 2)  # one gradient for all, made once
        graph = F.linear(h.mean(1), select.matrix(self.graph) * per_head**-0.5)  # [B, D]
        # Slot 0 carries the graph embedding, so that a query is one gathered row per slot and no more.
        offset = F.pad(graph[:, None], (0, 0, 0, slots - 1))  # [B, K, D]
        placeholder = torch.einsum("koi,ki->ko", by_slot, self.placeholder)
        if self.step_features is None:
            step = h.new_zeros(3, 0, width)
        else:
            columns = select.matrix(self.step_features).T.unflatten(1, (3, width))
            into_keys, into_values, into_pointer = columns.unbind(1)
            step = torch.stack((into_keys, into_values, into_pointer @ fold.T))
        cache = Cache(
            keys=keys.view(batch, nodes, heads, per_head),
            values=values.view(batch, nodes, heads, per_head),
            pointer=pointer[:, :, 0],
            tables=tables.transpose(1, 2) + offset[:, :, None],
            empty=placeholder[None] + offset,
            scalars=context[:, slots * width :].T,
            step=step,
        )
        return Cache(*(field.to(projected.dtype).contiguous() for field in cache))

    def begin(self, cache: Cache, solutions: int) -> tuple[Tensor, ...]:
        kernels = select.decoder(self, cache, solutions)
        if kernels is None:
            select.tell_why_not(self, cache)
        return () if kernels is None else kernels.begin(cache, solutions)

    def step(self, cache: Cache, carry: tuple[Tensor, ...], seen: Seen) -> tuple[Tensor, tuple[Tensor, ...]]:
        kernels = select.decoder(self, cache, seen.nodes.shape[:2].numel())
        return self.logits(cache, seen) if kernels is None else kernels.logits(cache, self.clip, seen), carry

    def choose(
        self,
        cache: Cache,
        carry: tuple[Tensor, ...],
        seen: Seen,
        temperature: float,
        forced: Tensor | None = None,
        keep: bool = False,
    ) -> Choice:
        kernels = select.decoder(self, cache, seen.nodes.shape[:2].numel())
        if kernels is None:
            return choose_by_logits(self, cache, carry, seen, temperature, forced)
        return kernels.choose(cache, self.clip, carry, seen, temperature, forced, keep)

    def query(self, cache: Cache, nodes: Tensor, scalars: Tensor) -> Tensor:
        """The context's query (eq. 4 and 5), [B, Q, D], already scaled: a sum of gathered rows."""
        batch, queries, _ = nodes.shape
        total = None
        for index, table, empty in zip(nodes.unbind(2), cache.tables.unbind(1), cache.empty.unbind(1), strict=True):
            row = index.clamp(min=0)[..., None].expand(batch, queries, self.width)
            part = torch.where(index[..., None] < 0, empty[:, None], table.gather(1, row))
            total = part if total is None else total + part
        assert total is not None, "a context has at least one node slot"
        if self.shape.context_scalars:
            total = total + scalars.to(total.dtype) @ cache.scalars
        return total

    def logits(self, cache: Cache, seen: Seen) -> Tensor:
        """Eq. 6 to 8 for Q queries of each instance: [B, Q, N], -inf where not feasible."""
        batch, queries, _ = seen.nodes.shape
        per_head = self.width // self.heads
        q = self.query(cache, seen.nodes, seen.scalars).view(batch, queries, self.heads, per_head).transpose(1, 2)
        keys, values, feasible = cache.keys.transpose(1, 2), cache.values.transpose(1, 2), seen.feasible[:, None]
        if seen.step_features is None:
            if queries > 32 and q.is_cuda:
                heads = F.scaled_dot_product_attention(q, keys, values, attn_mask=feasible, scale=1.0)
            else:
                heads = self.glimpse_weights(q @ keys.transpose(-1, -2), feasible, cache) @ values
            glimpse = heads.transpose(1, 2).reshape(batch, queries, self.width)
            compatibility = glimpse @ cache.pointer.transpose(1, 2)
        else:
            # Eq. 23 without a key per step: q.(k + w g) = q.k + (q.w) g, a low-rank term.
            extra = seen.step_features.to(q.dtype)  # [B, Q, N, G]
            into_keys, into_values = cache.step[:2].unflatten(-1, (self.heads, per_head))
            along = torch.einsum("bhqd,ghd->bhqg", q, into_keys)
            scores = q @ keys.transpose(-1, -2) + torch.einsum("bhqg,bqng->bhqn", along, extra)
            weights = self.glimpse_weights(scores, feasible, cache)
            heads = weights @ values
            moved = torch.einsum("bhqn,bqng->bhqg", weights, extra)
            heads = heads + torch.einsum("bhqg,ghd->bhqd", moved, into_values)
            glimpse = heads.transpose(1, 2).reshape(batch, queries, self.width)
            compatibility = glimpse @ cache.pointer.transpose(1, 2)
            along = torch.einsum("bqd,gd->bqg", glimpse, cache.step[2])
            compatibility = compatibility + torch.einsum("bqg,bqng->bqn", along, extra)
        if compatibility.dtype != torch.float64:
            compatibility = compatibility.float()
        return (self.clip * torch.tanh(compatibility)).masked_fill(~seen.feasible, -math.inf)

    @staticmethod
    def glimpse_weights(scores: Tensor, feasible: Tensor, cache: Cache) -> Tensor:
        """Eq. 12 over the feasible nodes; the softmax itself at least in float32."""
        wide = scores if scores.dtype == torch.float64 else scores.float()
        return wide.masked_fill(~feasible, -math.inf).softmax(-1).to(cache.values.dtype)

    def score(self, cache: Cache, trajectory: Trajectory) -> Tensor:
        """Teacher-forced: given the record, every step is independent of the others."""
        kernels = select.scorer(self, cache, trajectory.seen.feasible.numel())
        if kernels is None:
            log_prob = picked(self.recorded_logits(cache, trajectory), trajectory.actions)
            return leave_out_given(log_prob, trajectory.given)
        seen = map_seen(lambda field: field.flatten(1, 2), trajectory.seen)
        kept = tuple(part.flatten(1, 2) for part in trajectory.kept)
        log_prob = kernels.score(cache, self.clip, seen, trajectory.actions.flatten(1, 2), kept)
        return leave_out_given(log_prob.view(trajectory.actions.shape), trajectory.given)

    def recorded_logits(self, cache: Cache, trajectory: Trajectory) -> Tensor:
        """[B, S, T, N]: the steps of all solutions are so many queries of their instance."""
        seen = map_seen(lambda field: field.flatten(1, 2), trajectory.seen)
        logits, _ = self.step(cache, (), seen)
        return logits.unflatten(1, trajectory.actions.shape[1:])
