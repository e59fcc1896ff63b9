"""Vehicle routing in which the vehicles of a depot may not visit some customers: a variant that the model never saw.

`routelearn train barred-vrp 50 --plugin barred_vrp.py --variants mdvrptw --warm-start vrp --out runs/barred`
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

import routelearn
from routelearn.problems import base, vrp
from routelearn.problems.attributes import Attribute

ALLOWED = 0.5  # how likely the vehicles of a depot may visit a customer


class Instance(NamedTuple):
    """As for `vrp`, and who may visit whom."""

    xy: Tensor
    depots: Tensor
    delivery: Tensor
    pickup: Tensor
    capacity: Tensor
    window: Tensor
    service: Tensor
    max_length: Tensor
    open: Tensor
    mixed: Tensor
    allowed: Tensor  # [B, N, DEPOTS] whole: 1 where vehicles of the depot may visit the customer
    distances: Tensor | None = None

    def public(self) -> Instance:
        return self


@routelearn.register
class BarredVRP(vrp.VRP):
    name, title = "barred-vrp", "Vehicle routing with barred customers"
    attributes = (*vrp.VRP.attributes, Attribute("allowed", "stop", None, (vrp.DEPOTS,), whole=True, default=1.0))
    feature_dims = (10, 12 + vrp.DEPOTS)  # what is added comes last: a model of `vrp` is a start

    def sample(self, rng, batch, n):
        x = super().sample(rng, batch, n)
        allowed = (rng.uniform(batch, x.xy.shape[1], vrp.DEPOTS) < ALLOWED).long()
        x = Instance(*x[:-1], allowed=torch.ones_like(allowed))
        reached = self.alone(x).transpose(1, 2) & (allowed[..., : x.depots.shape[1]] > 0)
        allowed[..., 0] |= (~reached.any(-1)).long()  # whom nobody else may or can visit
        return x._replace(allowed=allowed)

    def features(self, x):
        depots, customers = super().features(x)
        return depots, torch.cat((customers, x.allowed[:, depots.shape[1] :].to(customers.dtype)), -1)

    def fits(self, x, vehicle):
        barred = base.pick(x.allowed.transpose(1, 2), vehicle[1]) == 0
        return super().fits(x, vehicle) & ~barred

    def check(self, x, tour, tolerance=base.LENGTH_TOLERANCE):
        super().check(x, tour, tolerance)
        nodes, homes, _ = self.driven(x, tour)
        customer = nodes >= x.depots.shape[1]
        allowed = x.allowed.flatten(1).gather(1, (nodes * vrp.DEPOTS + homes).flatten(1)).view(nodes.shape)
        base.refuse(
            (customer & (allowed == 0)).any(-1), lambda b, s: "a vehicle visits a customer that is barred to it"
        )
