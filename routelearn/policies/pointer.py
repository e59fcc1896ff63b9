"""The Pointer Network (section 5.2, after Bello et al. 2016): LSTM encoder and decoder, a glimpse, a pointer."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from routelearn.errors import InputError
from routelearn.policies.base import ByLogits, Seen, Shape, Trajectory, clipped, has_no_state, rows
from routelearn.policies.layers import initialise


class Cache(NamedTuple):
    embedded: Tensor  # [B, N, D] inputs of the decoder LSTM
    memory: Tensor  # [B, N, D] encoder outputs
    glimpse: Tensor  # [B, N, D] memory as the glimpse's reference
    pointer: Tensor  # [B, N, D] memory as the pointer's reference
    hidden: Tensor  # [B, D] encoder's last state, where the decoder begins
    cell: Tensor  # [B, D]


class PointerPolicy(ByLogits, nn.Module):
    """Reads the nodes in their order, so it is not invariant to it; context scalars are not seen."""

    summary = "LSTM encoder and decoder (Vinyals et al. 2015, Bello et al. 2016)"
    compiles = False  # torch.compile does not take LSTMs
    reads_in_order = True
    takes = staticmethod(has_no_state)

    def __init__(self, shape: Shape, width: int = 128, clip: float = 10.0):
        super().__init__()
        if not self.takes(shape):
            raise InputError("the Pointer Network reads one kind of node and no state; use the attention model here")
        self.shape, self.width, self.clip, self.step_width = shape, width, clip, 2 * width
        self.embed = nn.Linear(shape.feature_dims[0], width, bias=False)
        self.encoder = nn.LSTM(width, width, batch_first=True)
        self.decoder = nn.LSTM(width, width, batch_first=True)
        self.glimpse_reference = nn.Linear(width, width)
        self.glimpse_query = nn.Linear(width, width)
        self.glimpse_score = nn.Linear(width, 1, bias=False)
        self.pointer_reference = nn.Linear(width, width)
        self.pointer_query = nn.Linear(width, width)
        self.pointer_score = nn.Linear(width, 1, bias=False)
        self.start = nn.Parameter(torch.empty(width))
        initialise(self)
        nn.init.uniform_(self.start, -1 / math.sqrt(width), 1 / math.sqrt(width))

    def encode(self, features: tuple[Tensor, ...]) -> Cache:
        embedded = self.embed(features[0])
        memory, (hidden, cell) = self.encoder(embedded)
        return Cache(
            embedded, memory, self.glimpse_reference(memory), self.pointer_reference(memory), hidden[0], cell[0]
        )

    def begin(self, cache: Cache, solutions: int) -> tuple[Tensor, ...]:
        batch, width = cache.hidden.shape
        return tuple(
            state[:, None].expand(batch, solutions, width).contiguous() for state in (cache.hidden, cache.cell)
        )

    def step(self, cache: Cache, carry: tuple[Tensor, ...], seen: Seen) -> tuple[Tensor, tuple[Tensor, ...]]:
        batch, solutions = seen.last.shape
        read = self._inputs(cache, seen.last)
        state = tuple(part.reshape(1, batch * solutions, self.width) for part in carry)
        output, new = self.decoder(read.reshape(batch * solutions, 1, self.width), state)
        logits = self._point(cache, output.view(batch, solutions, self.width), seen.feasible)
        return logits, tuple(part.view(batch, solutions, self.width) for part in new)

    def recorded_logits(self, cache: Cache, trajectory: Trajectory) -> Tensor:
        """The decoder reads only the chosen nodes, so one LSTM pass over the record gives every step's logits."""
        batch, solutions, steps = trajectory.actions.shape
        read = self._inputs(cache, trajectory.seen.last.flatten(1)).view(batch * solutions, steps, self.width)
        state = tuple(part.reshape(1, batch * solutions, self.width) for part in self.begin(cache, solutions))
        output, _ = self.decoder(read, state)
        queries = output.reshape(batch, solutions * steps, self.width)
        logits = self._point(cache, queries, trajectory.seen.feasible.flatten(1, 2))
        return logits.unflatten(1, (solutions, steps))

    def _inputs(self, cache: Cache, last: Tensor) -> Tensor:
        """What the decoder LSTM reads after `last` [B, Q]: that node's embedding, or the learned start."""
        return torch.where(last[..., None] < 0, self.start.to(cache.embedded.dtype), rows(cache.embedded, last))

    def _point(self, cache: Cache, query: Tensor, feasible: Tensor) -> Tensor:
        """A glimpse over the feasible nodes refines the query [B, Q, D]; then the clipped pointer, [B, Q, N]."""
        scores = self.glimpse_score(torch.tanh(cache.glimpse[:, None] + self.glimpse_query(query)[:, :, None]))[..., 0]
        weights = scores.masked_fill(~feasible, -math.inf).softmax(-1)
        glimpse = weights.to(cache.memory.dtype) @ cache.memory
        scores = self.pointer_score(torch.tanh(cache.pointer[:, None] + self.pointer_query(glimpse)[:, :, None]))
        return clipped(scores[..., 0], self.clip, feasible)
