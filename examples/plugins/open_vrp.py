"""Open vehicle routing: vehicles need not come back. Each has a capacity, and each route a longest length.

`routelearn train open-vrp 20 --plugin open_vrp.py --out runs/open`; then `solve`, `evaluate` and `serve` know it, too.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

import routelearn
from routelearn.errors import InputError
from routelearn.problems import Length, Load, attributes, base
from routelearn.problems.resources import numbers

SLACK = 1e-6  # share of the limit that rounding may add to a sum of lengths


class Instance(NamedTuple):
    xy: Tensor  # [B, N, 2], depot first
    demand: Tensor  # [B, N] whole numbers, 0 for the depot
    capacity: Tensor  # [B] whole numbers
    max_length: Tensor  # [B]: of each route, from the depot to its last customer
    distances: Tensor | None = None  # [B, N, N]

    def public(self) -> Instance:
        return self


class State(NamedTuple):
    last: Tensor  # [B, S]
    room: Tensor  # [B, S] whole: capacity left
    gone: Tensor  # [B, S]: length of the present route
    visited: Tensor  # [B, S, N]


@routelearn.register
class OpenVRP:
    """A tour lists customers, with 0 between routes; going back to the depot is free."""

    name, title = "open-vrp", "Open vehicle routing"
    attributes = (attributes.DEMAND, attributes.CAPACITY, attributes.MAX_LENGTH)
    feature_dims = (2, 3)
    context_nodes, context_scalars, step_dim = 1, 2, 0
    has_depot, maximise, reveals_on_visit = True, False, False
    search = "routes"  # without this line and the next two functions, the general engine would search

    def sample(self, rng, batch, n):
        xy = base.with_depot(rng.uniform(batch, 2), rng.uniform(batch, n, 2))
        demand = base.depot_zero(rng.integers(1, 10, batch, n))
        capacity = torch.full((batch,), 30 + n // 5, device=demand.device)
        return Instance(xy, demand, capacity, torch.full((batch,), 2.0, dtype=xy.dtype, device=xy.device))

    def validate(self, x):
        base.check_finite(x, self.name)
        base.check_limit(x, "max_length", self.name)
        base.reject_rows((base.check_column(x, "demand", self.name) < 0).any(1), f"{self.name}: a demand is negative")
        if x.demand.is_floating_point() or x.capacity.is_floating_point():
            raise InputError(f"{self.name}: demand and capacity must be whole numbers")
        base.reject_rows((x.demand > x.capacity[:, None]).any(1), f"{self.name}: a demand exceeds the capacity")
        too_far = (base.distance_matrix(x)[:, 0] > x.max_length[:, None]).any(1)
        base.reject_rows(too_far, f"{self.name}: a customer is farther from the depot than the longest route allowed")

    def resources(self, x):
        """What the search must know of the rules, for one instance."""
        return Load(numbers(x.demand), float(x.capacity[0])), Length(float(x.max_length[0]) * (1 + SLACK))

    def legs(self, x):
        """What routes are measured by: going back to the depot is free."""
        legs = base.distance_matrix(x).clone()
        legs[:, :, 0] = 0
        return legs

    def max_steps(self, x):
        return 2 * (x.xy.shape[1] - 1)  # a new route for every single customer

    def features(self, x):
        share = (x.demand / x.capacity[:, None]).to(x.xy.dtype)
        return x.xy[:, :1], torch.cat((x.xy[:, 1:], share[:, 1:, None]), -1)

    def initial(self, x, solutions):
        depot = torch.zeros((x.xy.shape[0], solutions), dtype=torch.long, device=x.xy.device)
        room = x.capacity[:, None].expand(depot.shape).contiguous()
        visited = base.is_node(depot, x.xy.shape[1])  # the depot counts as visited
        return State(depot, room, torch.zeros_like(depot, dtype=x.xy.dtype), visited)

    def feasible(self, x, s):
        """Customers that fit and are near enough; the depot unless the vehicle is there, or once all are visited."""
        reached = s.gone[..., None] + base.legs_from(x, s.last) <= x.max_length[:, None, None] * (1 + SLACK)
        customers = ~s.visited & (x.demand[:, None] <= s.room[..., None]) & reached
        home = (s.last != 0) | self.done(x, s)
        return torch.where(base.is_node(torch.zeros_like(s.last), x.xy.shape[1]), home[..., None], customers)

    def step(self, x, s, action):
        home = action == 0
        room = torch.where(home, x.capacity[:, None], s.room - base.pick(x.demand, action))
        gone = torch.where(home, 0.0, s.gone + base.leg(x, s.last, action))
        return State(action, room, gone, s.visited | base.is_node(action, x.xy.shape[1]))

    def done(self, x, s):
        return s.visited.all(-1)

    def context(self, x, s):
        room, gone = (s.room / x.capacity[:, None]).to(x.xy.dtype), s.gone / x.max_length[:, None]
        return base.Context(s.last[..., None], torch.stack((room, gone), -1))

    def step_features(self, x, s):
        return None

    def starts(self, x):
        return ~base.is_node(torch.zeros((x.xy.shape[0],), dtype=torch.long, device=x.xy.device), x.xy.shape[1])

    def _paid(self, x, tour):
        """[B, S, T]: the leg to each node of the tour; to the depot it is free."""
        origins = base.from_depot(tour)[..., :-1]
        return torch.where(tour == 0, 0.0, base.leg(x, origins.flatten(1), tour.flatten(1)).view(tour.shape))

    def cost(self, x, tour):
        return self._paid(x, tour).sum(-1)

    def check(self, x, tour, tolerance=1e-5):
        base.check_shape(x, tour)
        base.check_once(base.visits(tour, x.xy.shape[1]), required=True)
        route = (tour == 0).cumsum(-1)  # which route each step belongs to
        for what, amount, limit in (
            ("loads", x.demand.gather(1, tour.flatten(1)).view(tour.shape), x.capacity),
            ("has a length of", self._paid(x, tour), x.max_length * (1 + SLACK + tolerance)),
        ):
            total = torch.zeros(*tour.shape[:2], tour.shape[2] + 1, dtype=amount.dtype, device=tour.device)
            total = total.scatter_add(-1, route, amount)
            worst, most = total.amax(-1), limit[:, None]
            base.refuse(
                worst > most, lambda b, s, w=worst, m=most, what=what: f"a route {what} {w[b, s]:g} of {m[b, 0]:g}"
            )
