"""The travelling salesman problem: visit every node once, on the shortest closed tour (appendix B)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from routelearn.errors import InputError
from routelearn.problems import base
from routelearn.problems.attributes import Attribute


class Instance(NamedTuple):
    xy: Tensor  # [B, N, 2]
    distances: Tensor | None = None  # [B, N, N]

    def public(self) -> Instance:
        return self


class State(NamedTuple):
    first: Tensor  # [B, S], -1 before the first step
    last: Tensor  # [B, S], -1 before the first step
    visited: Tensor  # [B, S, N]
    remaining: Tensor  # [B, S]: nodes not yet visited


class TSP:
    """A tour lists every node once; finished, it repeats its last node, which adds no length."""

    search = "tour"
    name = "tsp"
    title = "Travelling salesman"
    preference = 0
    published: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    feature_dims: tuple[int, ...] = (2,)
    context_nodes, context_scalars, step_dim = 2, 0, 0
    has_depot, maximise, reveals_on_visit = False, False, False

    def sample(self, rng: base.Rng, batch: int, n: int) -> Instance:
        """B.2: uniform in the unit square."""
        return Instance(rng.uniform(batch, n, 2))

    def validate(self, x: Instance) -> None:
        base.check_finite(x, self.name)
        if x.xy.shape[1] < 2:
            raise InputError(f"tsp: {x.xy.shape[1]} node(s); a tour needs at least 2")

    def max_steps(self, x: Instance) -> int:
        return x.xy.shape[1]

    def features(self, x: Instance) -> tuple[Tensor, ...]:
        return (x.xy,)

    def initial(self, x: Instance, solutions: int) -> State:
        batch, nodes, _ = x.xy.shape
        none = torch.full((batch, solutions), -1, device=x.xy.device)
        visited = torch.zeros((batch, solutions, nodes), dtype=torch.bool, device=x.xy.device)
        return State(none, none.clone(), visited, torch.full_like(none, nodes))

    def feasible(self, x: Instance, s: State) -> Tensor:
        here = base.is_node(s.last, x.xy.shape[1])
        return torch.where(self.done(x, s)[..., None], here, ~s.visited)

    def step(self, x: Instance, s: State, action: Tensor) -> State:
        here = base.is_node(action, x.xy.shape[1])
        first = torch.where(s.first < 0, action, s.first)
        return State(first, action, s.visited | here, (s.remaining - 1).clamp(min=0))

    def done(self, x: Instance, s: State) -> Tensor:
        return s.remaining == 0

    def context(self, x: Instance, s: State) -> base.Context:
        """Eq. 4: the first node and the last one; both placeholders at the first step."""
        return base.Context(torch.stack((s.first, s.last), -1), x.xy.new_zeros((*s.last.shape, 0)))

    def step_features(self, x: Instance, s: State) -> Tensor | None:
        return None

    def starts(self, x: Instance) -> Tensor:
        return torch.ones(x.xy.shape[:2], dtype=torch.bool, device=x.xy.device)

    def cost(self, x: Instance, tour: Tensor) -> Tensor:
        return base.closed_length(x, tour)

    def explain(self, x: Instance, s: State, units: base.Units) -> base.Explanation:
        return base.Explanation(
            {"stops": int(s.remaining)}, dict.fromkeys(base.masked_nodes(self.feasible(x, s)), "visited")
        )

    def check(self, x: Instance, tour: Tensor, tolerance: float = 0.0) -> None:
        base.check_shape(x, tour)
        nodes = x.xy.shape[1]
        missing = base.visits(tour[..., :nodes], nodes) == 0
        base.refuse(missing.any(-1), lambda b, s: f"node {int(missing[b, s].nonzero()[0])} is never visited")
        tail = tour[..., nodes:] != tour[..., nodes - 1 : nodes]
        base.refuse(
            tail.any(-1), lambda b, s: f"node {int(tour[b, s, nodes:][tail[b, s]][0])} is visited again after the tour"
        )
