"""The split delivery VRP: as the CVRP, but a customer may be served over several visits (appendix C)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from routelearn.errors import Infeasible
from routelearn.problems import attributes as known
from routelearn.problems.base import (
    Context,
    Explanation,
    Rng,
    Units,
    check_shape,
    closed_length,
    from_depot,
    is_node,
)
from routelearn.problems.cvrp import Instance, explain_loads, sample_demands, validate_demands
from routelearn.problems.resources import Load, Resource, numbers


class State(NamedTuple):
    last: Tensor  # [B, S]
    room: Tensor  # [B, S] whole: capacity left in the vehicle
    owed: Tensor  # [B, S, N] whole: demand not yet delivered
    remaining: Tensor  # [B, S] whole: sum of owed


class SDVRP:
    """Each visit delivers all it can: what the customer is still owed, or what the vehicle still holds."""

    search = "split routes"
    name = "sdvrp"
    attributes = (known.DEMAND, known.CAPACITY)
    feature_dims: tuple[int, ...] = (2, 3)
    context_nodes, context_scalars, step_dim = 1, 1, 1
    has_depot, maximise, reveals_on_visit = True, False, False

    def sample(self, rng: Rng, batch: int, n: int) -> Instance:
        return sample_demands(rng, batch, n)

    def validate(self, x: Instance) -> None:
        validate_demands(x, self.name)

    def resources(self, x: Instance) -> tuple[Resource, ...]:
        return (Load(numbers(x.demand), float(x.capacity[0])),)

    def max_steps(self, x: Instance) -> int:
        """Every visit serves a customer in full or empties the vehicle; a return may follow each."""
        full_loads = int((x.demand.sum(1) // x.capacity).max())
        return 2 * (x.xy.shape[1] - 1 + full_loads)

    def features(self, x: Instance) -> tuple[Tensor, ...]:
        share = (x.demand / x.capacity[:, None]).to(x.xy.dtype)
        return x.xy[:, :1], torch.cat((x.xy[:, 1:], share[:, 1:, None]), -1)

    def initial(self, x: Instance, solutions: int) -> State:
        batch, nodes = x.demand.shape
        depot = torch.zeros((batch, solutions), dtype=torch.long, device=x.xy.device)
        room = x.capacity[:, None].expand(batch, solutions).contiguous()
        owed = x.demand[:, None].expand(batch, solutions, nodes).contiguous()
        return State(depot, room, owed, owed.sum(-1))

    def feasible(self, x: Instance, s: State) -> Tensor:
        """Customers that are owed something, while the vehicle holds something.

        The paper's text omits the second half; without it deliveries of zero never end.
        """
        customers = (s.owed > 0) & (s.room > 0)[..., None]
        depot = (s.last != 0) | self.done(x, s)
        at_depot = torch.arange(x.demand.shape[1], device=x.xy.device) == 0
        return torch.where(at_depot, depot[..., None], customers)

    def step(self, x: Instance, s: State, action: Tensor) -> State:
        delivered = torch.minimum(s.owed.gather(-1, action[..., None])[..., 0], s.room)
        room = torch.where(action == 0, x.capacity[:, None], s.room - delivered)
        owed = s.owed - is_node(action, x.demand.shape[1]) * delivered[..., None]
        return State(action, room, owed, s.remaining - delivered)

    def done(self, x: Instance, s: State) -> Tensor:
        return s.remaining == 0

    def context(self, x: Instance, s: State) -> Context:
        share = (s.room / x.capacity[:, None]).to(x.xy.dtype)
        return Context(s.last[..., None], share[..., None])

    def step_features(self, x: Instance, s: State) -> Tensor | None:
        """Eq. 23: the demand still owed, as a share of the capacity, enters keys and values."""
        return (s.owed / x.capacity[:, None, None]).to(x.xy.dtype)[..., None]

    def starts(self, x: Instance) -> Tensor:
        return x.demand > 0

    def cost(self, x: Instance, tour: Tensor) -> Tensor:
        return closed_length(x, from_depot(tour))

    def explain(self, x: Instance, s: State, units: Units) -> Explanation:
        return explain_loads(x, s.room, s.owed == 0, self.feasible(x, s), units)

    def check(self, x: Instance, tour: Tensor, tolerance: float = 0.0) -> None:
        """Row by row and step by step in plain numbers: what a visit delivers depends on all before it."""
        check_shape(x, tour)
        demands, capacities = x.demand.tolist(), x.capacity.tolist()
        for row, solutions in enumerate(tour.tolist()):
            for solution, steps in enumerate(solutions):
                owed, room = demands[row].copy(), capacities[row]
                for t, node in enumerate(steps):
                    if node == 0:
                        room = capacities[row]
                        continue
                    delivered = min(owed[node], room)
                    if delivered == 0 and demands[row][node] > 0:
                        raise Infeasible(row, f"nothing is delivered at step {t} (node {node})", solution)
                    owed[node] -= delivered
                    room -= delivered
                short = next((node for node, amount in enumerate(owed) if amount > 0), None)
                if short is not None:
                    raise Infeasible(row, f"node {short} is still owed {owed[short]} of its demand", solution)
