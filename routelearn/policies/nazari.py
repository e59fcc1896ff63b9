"""The model of Nazari et al. (2018): elements embedded anew at each step, a recurrent decoder, a glimpse, a pointer.

Embeddings are linear, so what changes of an element (the load, what a customer is still owed) enters every comparison
as a sum: no element is projected twice.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from routelearn.policies.additive import AdditiveAttention
from routelearn.policies.base import ByLogits, Seen, Shape, Trajectory, at_least_float32, clipped, map_seen, rows
from routelearn.policies.layers import initialise

# Where tanh is next to linear, a query adds the same to all nodes and chooses nothing. Places differ by a third or so;
# hence embeddings begin wider than elsewhere. docs/guides/training.md has the comparison.
SPREAD = 8.0


class Cache(NamedTuple):
    places: Tensor  # [B, N, D] inputs of the decoder LSTM
    elements: Tensor  # [B, N, D] what stays of the elements' embeddings
    glimpse: Tensor  # [B, N, D] the same as the glimpse's reference
    pointer: Tensor  # [B, N, D] and as the pointer's


class Recurrence(nn.Module):
    """An LSTM whose single steps torch.compile can take; it does not take the library's module."""

    def __init__(self, width: int):
        super().__init__()
        self.read, self.recall = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)

    def forward(self, read: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """One step: the new state and cell, all [..., D]."""
        enter, keep, fresh, show = (self.read(read) + self.recall(hidden)).chunk(4, -1)
        cell = keep.sigmoid() * cell + enter.sigmoid() * fresh.tanh()
        return show.sigmoid() * cell.tanh(), cell

    def over(self, read: Tensor) -> Tensor:
        """The states [M, T, D] over whole sequences, from nothing."""
        nothing = read.new_zeros(1, len(read), read.shape[2])
        weights = self.read.weight, self.recall.weight, self.read.bias, self.recall.bias
        with torch.backends.cudnn.flags(enabled=False):  # it would copy the weights into one piece at every call
            return torch.lstm(read, (nothing, nothing), weights, True, 1, 0.0, self.training, False, True)[0]


class NazariPolicy(ByLogits, nn.Module):
    """No encoder, so the order of nodes means nothing; the decoder remembers the places where it was."""

    summary = "no encoder, elements embedded anew at each step, an LSTM decoder (Nazari et al. 2018)"
    compiles = True

    def __init__(self, shape: Shape, width: int = 128, clip: float = 10.0):
        super().__init__()
        self.shape, self.width, self.clip, self.step_width = shape, width, clip, 4 * width
        self.place = nn.Linear(2, width)
        self.embed = nn.ModuleList(nn.Linear(columns, width) for columns in shape.feature_dims)
        changing = shape.context_scalars + shape.step_dim
        self.changing = nn.Linear(changing, width, bias=False) if changing else None
        self.decoder = Recurrence(width)
        self.glimpse = AdditiveAttention(width, width, width)
        self.pointer = AdditiveAttention(width, width, width)
        self.start = nn.Parameter(torch.empty(width))
        initialise(self)
        with torch.no_grad():
            for part in (self.place, *self.embed, self.changing):
                if part is not None:
                    part.weight.mul_(SPREAD)
        nn.init.uniform_(self.start, -1 / math.sqrt(width), 1 / math.sqrt(width))

    def encode(self, features: tuple[Tensor, ...]) -> Cache:
        places = self.place(torch.cat([group[..., :2] for group in features], 1))
        elements = torch.cat([embed(group) for embed, group in zip(self.embed, features, strict=True)], 1)
        return Cache(places, elements, self.glimpse.reference(elements), self.pointer.reference(elements))

    def begin(self, cache: Cache, solutions: int) -> tuple[Tensor, ...]:
        nothing = self.start.new_zeros(len(cache.places), solutions, self.width)
        return nothing, nothing.clone()

    def step(self, cache: Cache, carry: tuple[Tensor, ...], seen: Seen) -> tuple[Tensor, tuple[Tensor, ...]]:
        with torch.autocast(seen.last.device.type, enabled=False):  # as precise as in `recorded_logits`
            hidden, cell = self.decoder(self.inputs(cache, seen.last), *carry)
        return self.logits(cache, hidden, seen), (hidden, cell)

    def recorded_logits(self, cache: Cache, trajectory: Trajectory) -> Tensor:
        """The decoder reads only places, so one LSTM pass over the record gives the queries of every step."""
        batch, solutions, steps = trajectory.actions.shape
        seen = map_seen(lambda field: field.flatten(1, 2), trajectory.seen)
        with torch.autocast(seen.last.device.type, enabled=False):
            output = self.decoder.over(self.inputs(cache, seen.last).view(batch * solutions, steps, self.width))
        return self.logits(cache, output.reshape(batch, solutions * steps, self.width), seen).unflatten(
            1, (solutions, steps)
        )

    def inputs(self, cache: Cache, last: Tensor) -> Tensor:
        """What the decoder reads after the nodes `last` [B, Q]: their places, or the learned start."""
        return torch.where(last[..., None] < 0, self.start, rows(cache.places, last).to(self.start.dtype))

    def logits(self, cache: Cache, query: Tensor, seen: Seen) -> Tensor:
        """A glimpse at all elements for the decoder's state [B, Q, D], the present one among them; then the pointer."""
        scores = self.compare(self.glimpse, cache.glimpse, query, seen)
        weights = at_least_float32(scores).softmax(-1).to(cache.elements.dtype)
        found = weights @ cache.elements
        if self.changing is not None:
            parts = [seen.scalars.to(found.dtype)]
            if seen.step_features is not None:
                parts.append((weights[..., None, :] @ seen.step_features.to(found.dtype))[..., 0, :])
            found = found + self.changing(torch.cat(parts, -1))
        return clipped(self.compare(self.pointer, cache.pointer, found, seen), self.clip, seen.feasible)

    def compare(self, attention: AdditiveAttention, reference: Tensor, query: Tensor, seen: Seen) -> Tensor:
        """[B, Q, N]: queries [B, Q, D] against the elements as they are now; `reference` is what stays of them."""
        against = attention.query(query)
        if self.changing is None:
            return attention(reference, against)
        through = (attention.reference.weight @ self.changing.weight).to(against.dtype).T
        scalars, step = through.split((self.shape.context_scalars, self.shape.step_dim))
        against = against + seen.scalars.to(against.dtype) @ scalars
        if seen.step_features is None:
            return attention(reference, against)
        return attention(reference, against, seen.step_features.to(against.dtype), step)
