"""S2V-DQN (Dai et al. 2017): structure2vec judges which node joins the tour next, and insertion says where.

What it gives as logits are estimates Q of the length still to be added, negative and times `sharpness`, so that draws
prefer what is nearly best. The loss `q-learning` teaches it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from routelearn.errors import InputError
from routelearn.policies.base import ByLogits, Choice, Seen, Shape, Trajectory, has_no_state
from routelearn.policies.insertion import empty, inserted, offers
from routelearn.policies.layers import initialise

SHARPNESS = 30.0  # logits for each unit of length
UNIT = 1 / 3  # lengths as the network sees them are about 1: those of a good tour are small beside coordinates


class Cache(NamedTuple):
    legs: Tensor  # [B, N, N]
    near: Tensor  # [B, N, N] the graph that messages pass along; rows sum to 1
    still: Tensor  # [B, N, D] what a node and its edges are, whatever the tour


class Round(nn.Module):
    """h <- relu(x + W_1 h + W_2 mean over neighbours + W_3 mean over all)."""

    def __init__(self, width: int):
        super().__init__()
        self.own = nn.Linear(width, width, bias=False)
        self.neighbours = nn.Linear(width, width, bias=False)
        self.all = nn.Linear(width, width)

    def forward(self, x: Tensor, h: Tensor, near: Tensor) -> Tensor:
        """h and x [B, N, Q, D]: all partial tours of an instance share one product with its graph [B, N, N]."""
        beside = torch.bmm(near, h.flatten(2)).view_as(h)
        return F.relu(x + self.own(h) + self.neighbours(beside) + self.all(h.mean(1, keepdim=True)))


class DaiPolicy(ByLogits, nn.Module):
    """Chooses the order of insertion, not of visits."""

    summary = "structure2vec chooses who is inserted next, by Q-learning (Dai et al. 2017)"
    compiles = True
    takes = staticmethod(has_no_state)
    inserts = True

    def __init__(
        self, shape: Shape, width: int = 64, layers: int = 4, neighbours: int = 10, sharpness: float = SHARPNESS
    ):
        super().__init__()
        if not self.takes(shape):
            raise InputError("only closed tours through all nodes are built by insertion; use the attention model here")
        self.shape, self.width, self.neighbours, self.sharpness = shape, width, neighbours, sharpness
        self.step_width = 8 * width
        self.place = nn.Linear(shape.feature_dims[0], width, bias=False)
        self.edge = nn.Linear(1, width)
        self.edges = nn.Linear(width, width, bias=False)
        self.state = nn.Linear(3, width)  # whether a node has joined, what it would add, how far it is
        self.rounds = nn.ModuleList(Round(width) for _ in range(layers))
        self.node, self.pool = nn.Linear(width, width), nn.Linear(width, width)
        self.advantage = nn.Linear(width, 1)
        self.value = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        initialise(self)

    def encode(self, features: tuple[Tensor, ...]) -> Cache:
        (nodes,) = features
        with torch.autocast(nodes.device.type, enabled=False):  # bfloat16 would round lengths to a hundredth
            xy, count = nodes[..., :2], nodes.shape[1]
            legs = (xy[:, :, None] - xy[:, None]).norm(dim=-1)
            others = legs + torch.diag(torch.full((count,), math.inf, dtype=legs.dtype, device=legs.device))
            known = min(self.neighbours or count, count - 1)
            near = torch.zeros_like(legs).scatter(2, others.topk(known, largest=False).indices, 1 / known)
            edges = (F.relu(self.edge(legs[..., None] / UNIT)) * near[..., None]).sum(2)
            centred = torch.cat((xy - xy.mean(1, keepdim=True), nodes[..., 2:]), -1)
            return Cache(legs, near, self.edges(edges) + self.place(centred))

    def begin(self, cache: Cache, solutions: int) -> tuple[Tensor, ...]:
        """Partial tours without the node chosen last, where each node would join them, and the nodes' state."""
        tour = empty(cache.legs, solutions)
        return tour, tour, cache.legs.new_zeros((*tour.shape, 3))

    def step(self, cache: Cache, carry: tuple[Tensor, ...], seen: Seen) -> tuple[Tensor, tuple[Tensor, ...]]:
        carry = self.joined(cache, carry, seen.last)
        return self.logits(cache, carry[2], seen.feasible), carry

    def choose(
        self,
        cache: Any,
        carry: tuple[Tensor, ...],
        seen: Seen,
        temperature: float,
        forced: Tensor | None = None,
        keep: bool = False,
    ) -> Choice:
        choice = super().choose(cache, carry, seen, temperature, forced)
        return choice._replace(kept=(choice.carry[2],)) if keep else choice

    def recorded_logits(self, cache: Cache, trajectory: Trajectory) -> Tensor:
        """[B, S, T, N]: all states are judged at once; where none were kept, tours are built along the record first."""
        if trajectory.kept:
            states = trajectory.kept[1]
        else:
            carry, found = self.begin(cache, trajectory.actions.shape[1]), []
            for node in trajectory.seen.last.unbind(2):
                carry = self.joined(cache, carry, node)
                found.append(carry[2])
            states = torch.stack(found, 2)
        logits = self.logits(cache, states.flatten(1, 2), trajectory.seen.feasible.flatten(1, 2))
        return logits.unflatten(1, trajectory.actions.shape[1:])

    @torch.no_grad()
    def joined(self, cache: Cache, carry: tuple[Tensor, ...], node: Tensor) -> tuple[Tensor, ...]:
        """The carry once the node [B, S] has joined: tours, places and state [B, S, N, 3]."""
        tour, places, _ = carry
        tour = inserted(tour, node, places.gather(-1, node.clamp(min=0)[..., None])[..., 0])
        offered = offers(cache.legs, tour)
        here = torch.zeros_like(offered.added).scatter_add(-1, tour.clamp(min=0), (tour >= 0).to(offered.added.dtype))
        return tour, offered.place, torch.stack((here, offered.added / UNIT, offered.away / UNIT), -1)

    def logits(self, cache: Cache, state: Tensor, feasible: Tensor) -> Tensor:
        """[B, Q, N] from states [B, Q, N, 3]."""
        with torch.autocast(state.device.type, enabled=False):
            x = self.state(state.transpose(1, 2)) + cache.still[:, :, None]
            h = F.relu(x)
            for layer in self.rounds:
                h = layer(x, h, cache.near)
            together = h.mean(1, keepdim=True)
            q = self.advantage(F.relu(self.node(h) + self.pool(together))) + self.value(together)  # [B, N, Q, 1]
            return (self.sharpness * q[..., 0].transpose(1, 2)).masked_fill(~feasible, -math.inf)
