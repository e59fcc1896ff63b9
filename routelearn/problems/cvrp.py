"""The capacitated vehicle routing problem: every customer once, routes within the capacity (appendix C)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from routelearn.errors import InputError
from routelearn.problems import attributes as known
from routelearn.problems import base
from routelearn.problems.resources import Load, Resource, numbers

# C.1: the paper's capacities (10 is in the authors' code); between and beyond, linear in sqrt(n), whole.
CAPACITY = {10: 20.0, 20: 30.0, 50: 40.0, 100: 50.0}


class Instance(NamedTuple):
    xy: Tensor  # [B, N, 2], depot first
    demand: Tensor  # [B, N] whole numbers, 0 for the depot
    capacity: Tensor  # [B] whole numbers
    distances: Tensor | None = None  # [B, N, N]

    def public(self) -> Instance:
        return self


class State(NamedTuple):
    last: Tensor  # [B, S]
    room: Tensor  # [B, S] whole: capacity left in the vehicle
    visited: Tensor  # [B, S, N]
    remaining: Tensor  # [B, S]: customers not yet visited


class CVRP:
    """A tour lists customers, with 0 between routes; the way from and back to the depot is implied."""

    search = "routes"
    name = "cvrp"
    title = "Vehicle routing with capacities"
    preference = 0
    published = ("demand", "capacity")
    attributes = (known.DEMAND, known.CAPACITY)
    feature_dims: tuple[int, ...] = (2, 3)
    context_nodes, context_scalars, step_dim = 1, 1, 0
    has_depot, maximise, reveals_on_visit = True, False, False

    def sample(self, rng: base.Rng, batch: int, n: int) -> Instance:
        """C.1, after Nazari et al. (2018): uniform places, demands 1 to 9."""
        depot, customers = rng.uniform(batch, 2), rng.uniform(batch, n, 2)
        demand = rng.integers(1, 10, batch, n)
        capacity = torch.full((batch,), max(9, round(base.interpolated(n, CAPACITY))), device=demand.device)
        return Instance(base.with_depot(depot, customers), base.depot_zero(demand), capacity)

    def validate_demands(self, x: Instance) -> Tensor:
        """What both vehicle routing problems ask of an instance; gives the demands of the customers."""
        base.check_finite(x, self.name)
        if x.xy.shape[1] < 2:
            raise InputError(f"{self.name}: no customer; an instance is the depot and at least one customer")
        if x.demand.is_floating_point() or x.capacity.is_floating_point():
            advice = "scale them, 2.5 of 10 as 25 of 100"
            raise InputError(f"{self.name}: demand and capacity must be whole numbers ({advice})")
        demand = base.check_column(x, "demand", self.name)
        base.check_limit(x, "capacity", self.name)
        base.reject_rows(x.capacity < 1, f"{self.name}: the capacity is below 1")
        base.reject_rows(demand[:, 0] != 0, f"{self.name}: the depot (node 0) has a demand; it must be 0")
        base.reject_rows((demand < 0).any(1), f"{self.name}: a demand is negative")
        return demand[:, 1:]

    def validate(self, x: Instance) -> None:
        demand = self.validate_demands(x)
        over = demand > x.capacity[:, None]
        if over.any():
            row, customer = over.nonzero()[0].tolist()
            raise InputError(
                f"cvrp: node {customer + 1} demands {int(demand[row, customer])}, more than the capacity "
                f"{int(x.capacity[row])} (instance {row}); sdvrp may split a delivery"
            )

    def resources(self, x: Instance) -> tuple[Resource, ...]:
        return (Load(numbers(x.demand), float(x.capacity[0])),)

    def check_stops(self, given: base.Given) -> None:
        capacity = given.limits["capacity"]
        for i, demand in enumerate(given.columns["demand"]):
            if demand > capacity:
                raise InputError(
                    f"{given.at(i, 'demand')}: stop {given.called(i)} demands {float(demand):g}, "
                    f"more than the capacity {float(capacity):g}; sdvrp may split a delivery"
                )

    def max_steps(self, x: Instance) -> int:
        return 2 * (x.xy.shape[1] - 1)  # a return to the depot after every single customer

    def features(self, x: Instance) -> tuple[Tensor, ...]:
        share = (x.demand / x.capacity[:, None]).to(x.xy.dtype)
        return x.xy[:, :1], torch.cat((x.xy[:, 1:], share[:, 1:, None]), -1)

    def initial(self, x: Instance, solutions: int) -> Any:
        depot, visited = base.begun_at_depot(x, solutions)
        room = x.capacity[:, None].expand(depot.shape).contiguous()
        return State(depot, room, visited, depot + (x.xy.shape[1] - 1))

    def customers(self, x: Instance, s: Any) -> Tensor:
        """Those not yet visited that fit: at the depot the vehicle is empty, and every customer does (validate)."""
        return ~s.visited & (x.demand[:, None] <= s.room[..., None])

    def feasible(self, x: Instance, s: Any) -> Tensor:
        """The customers, and the depot unless the vehicle is there, or once finished; so the mask is never empty."""
        depot = (s.last != 0) | self.done(x, s)
        at_depot = torch.arange(x.demand.shape[1], device=x.xy.device) == 0
        return torch.where(at_depot, depot[..., None], self.customers(x, s))

    def step(self, x: Instance, s: Any, action: Tensor) -> Any:
        home = action == 0
        room = torch.where(home, x.capacity[:, None], s.room - base.pick(x.demand, action))
        return State(action, room, s.visited | base.is_node(action, x.demand.shape[1]), s.remaining - (~home).long())

    def done(self, x: Instance, s: Any) -> Tensor:
        return s.remaining == 0

    def context(self, x: Instance, s: Any) -> base.Context:
        """C.2: the last node and the share of the capacity that is left."""
        share = (s.room / x.capacity[:, None]).to(x.xy.dtype)
        return base.Context(s.last[..., None], share[..., None])

    def step_features(self, x: Instance, s: Any) -> Tensor | None:
        return None

    def starts(self, x: Instance) -> Tensor:
        return base.all_but_depot(x)

    def cost(self, x: Instance, tour: Tensor) -> Tensor:
        return base.closed_length(x, base.from_depot(tour))

    def served(self, s: Any) -> Tensor:
        """[B, S, N]: who needs no further visit."""
        return s.visited

    def explain(self, x: Instance, s: Any, units: base.Units) -> base.Explanation:
        left, served = int(s.room) / units.demand, self.served(s)
        masked = {}
        for node in base.masked_nodes(self.feasible(x, s)):
            if node == 0:
                masked[node] = "the vehicle is at the depot"
            elif served[0, 0, node]:
                masked[node] = "visited"
            else:
                masked[node] = f"demands {int(x.demand[0, node]) / units.demand:g}; {left:g} is left in the vehicle"
        return base.Explanation({"capacity": left}, masked)

    def check(self, x: Instance, tour: Tensor, tolerance: float = 0.0) -> None:
        base.check_shape(x, tour)
        base.check_once(base.visits(tour, x.demand.shape[1]), required=True)
        route = (tour == 0).cumsum(-1)  # which route each step belongs to
        demand = x.demand.gather(1, tour.flatten(1)).view(tour.shape)
        load = torch.zeros((*tour.shape[:2], tour.shape[2] + 1), dtype=demand.dtype, device=tour.device)
        load = load.scatter_add(-1, route, demand)
        over = load > x.capacity[:, None, None]
        base.refuse(
            over.any(-1),
            lambda b, s: (
                f"route {int(over[b, s].nonzero()[0]) + 1} loads {int(load[b, s][over[b, s]][0])}; "
                f"the capacity is {int(x.capacity[b])}"
            ),
        )
