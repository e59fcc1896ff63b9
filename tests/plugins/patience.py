"""A variant that the package has never heard of: customers lose patience, and each minute that they wait costs.

Its attributes are new: how long each customer waits without complaint (`patience`, a time), when they may be called on
(`hours`, two numbers), and what a minute of waiting costs (`impatience_cost`, of the whole round).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

import routelearn
from routelearn.problems import Attribute, base


class Instance(NamedTuple):
    xy: Tensor  # [B, N, 2]
    patience: Tensor  # [B, N]
    hours: Tensor  # [B, N, 2]
    impatience_cost: Tensor  # [B]
    crates: Tensor  # [B, N] whole
    distances: Tensor | None = None  # [B, N, N]

    def public(self):
        return self


class State(NamedTuple):
    last: Tensor  # [B, S]
    visited: Tensor  # [B, S, N]
    over: Tensor  # [B, S]


@routelearn.register
class Impatient:
    """A round from the depot through every customer: its length, and what those cost who wait too long."""

    name, title = "impatient", "A round of impatient customers"
    attributes = (
        Attribute("patience", "stop", "time", required=True, also=("Geduld",), help="how long the stop waits gladly"),
        Attribute("hours", "stop", "time", shape=(2,), default=0.0, also=("Sprechzeit",), library="HOURS_SECTION"),
        Attribute(
            "impatience_cost", "instance", required=True, also=("Wartekosten",), sign="not negative", help="of waiting"
        ),
        Attribute("crates", "stop", "amount", whole=True, default=1, also=("Kisten",), at_depot=False),
    )
    feature_dims = (2, 3)
    context_nodes, context_scalars, step_dim = 1, 0, 0
    has_depot, maximise, reveals_on_visit = True, False, False

    def sample(self, rng, batch, n):
        xy, patience = rng.uniform(batch, n + 1, 2), rng.uniform(batch, n + 1) * 2
        crates = base.depot_zero(rng.integers(1, 4, batch, n))
        return Instance(xy, patience, torch.zeros_like(xy), torch.full_like(xy[:, 0, 0], 3.0), crates)

    def validate(self, x):
        base.check_finite(x, self.name)
        base.check_column(x, "patience", self.name)
        base.check_limit(x, "impatience_cost", self.name)
        base.reject_rows(~x.hours.isfinite().flatten(1).all(1), f"{self.name}: hours that are not finite")

    def max_steps(self, x):
        return x.xy.shape[1]

    def features(self, x):
        return x.xy[:, :1], torch.cat((x.xy[:, 1:], x.patience[:, 1:, None]), -1)

    def initial(self, x, solutions):
        depot = torch.zeros((x.xy.shape[0], solutions), dtype=torch.long, device=x.xy.device)
        return State(depot, base.is_node(depot, x.xy.shape[1]), depot.bool())

    def feasible(self, x, s):
        at_depot = base.is_node(torch.zeros_like(s.last), x.xy.shape[1])
        return torch.where(at_depot, s.visited.all(-1)[..., None], ~s.visited)

    def step(self, x, s, action):
        return State(action, s.visited | base.is_node(action, x.xy.shape[1]), s.over | (action == 0))

    def done(self, x, s):
        return s.over

    def context(self, x, s):
        return base.Context(s.last[..., None], x.xy.new_zeros((*s.last.shape, 0)))

    def step_features(self, x, s):
        return None

    def starts(self, x):
        return ~base.is_node(torch.zeros((x.xy.shape[0],), dtype=torch.long, device=x.xy.device), x.xy.shape[1])

    def cost(self, x, tour):
        """The length, and for each customer what the arrival is later than its patience allows."""
        origins = base.from_depot(tour)[..., :-1]
        legs = base.leg(x, origins.flatten(1), tour.flatten(1)).view(tour.shape)
        patience = x.patience.gather(1, tour.flatten(1)).view(tour.shape)
        late = torch.where(tour == 0, 0.0, (legs.cumsum(-1) - patience).clamp(min=0))
        return legs.sum(-1) + x.impatience_cost[:, None] * late.sum(-1)

    def check(self, x, tour, tolerance=1e-5):
        base.check_shape(x, tour)
        base.check_ends_at_depot(tour)
        base.check_once(base.visits(tour, x.xy.shape[1]), required=True)
