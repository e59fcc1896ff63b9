"""The capacitated vehicle routing problem: every customer once, routes within the capacity (appendix C)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from routelearn.errors import InputError
from routelearn.problems import attributes as known
from routelearn.problems.base import (
    Context,
    Explanation,
    Rng,
    Units,
    check_column,
    check_finite,
    check_limit,
    check_once,
    check_shape,
    closed_length,
    depot_zero,
    from_depot,
    interpolated,
    is_node,
    masked_nodes,
    pick,
    refuse,
    reject_rows,
    visits,
    with_depot,
)
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


def sample_demands(rng: Rng, batch: int, n: int) -> Instance:
    """C.1, after Nazari et al. (2018): uniform places, demands 1 to 9."""
    depot, customers = rng.uniform(batch, 2), rng.uniform(batch, n, 2)
    demand = rng.integers(1, 10, batch, n)
    capacity = torch.full((batch,), max(9, round(interpolated(n, CAPACITY))), device=demand.device)
    return Instance(with_depot(depot, customers), depot_zero(demand), capacity)


def validate_demands(x: Instance, problem: str) -> Tensor:
    """What both vehicle routing problems ask of an instance; gives the demands of the customers."""
    check_finite(x, problem)
    if x.xy.shape[1] < 2:
        raise InputError(f"{problem}: no customer; an instance is the depot and at least one customer")
    if x.demand.is_floating_point() or x.capacity.is_floating_point():
        raise InputError(f"{problem}: demand and capacity must be whole numbers (scale them, 2.5 of 10 as 25 of 100)")
    demand = check_column(x, "demand", problem)
    check_limit(x, "capacity", problem)
    reject_rows(x.capacity < 1, f"{problem}: the capacity is below 1")
    reject_rows(demand[:, 0] != 0, f"{problem}: the depot (node 0) has a demand; it must be 0")
    reject_rows((demand < 0).any(1), f"{problem}: a demand is negative")
    return demand[:, 1:]


def explain_loads(x: Instance, room: Tensor, served: Tensor, feasible: Tensor, units: Units) -> Explanation:
    """For both vehicle routing problems: room [1, 1], served and feasible [1, 1, N]."""
    left = int(room) / units.demand
    masked = {}
    for node in masked_nodes(feasible):
        if node == 0:
            masked[node] = "the vehicle is at the depot"
        elif served[0, 0, node]:
            masked[node] = "visited"
        else:
            masked[node] = f"demands {int(x.demand[0, node]) / units.demand:g}; {left:g} is left in the vehicle"
    return Explanation({"capacity": left}, masked)


class CVRP:
    """A tour lists customers, with 0 between routes; the way from and back to the depot is implied."""

    search = "routes"
    name = "cvrp"
    attributes = (known.DEMAND, known.CAPACITY)
    feature_dims: tuple[int, ...] = (2, 3)
    context_nodes, context_scalars, step_dim = 1, 1, 0
    has_depot, maximise, reveals_on_visit = True, False, False

    def sample(self, rng: Rng, batch: int, n: int) -> Instance:
        return sample_demands(rng, batch, n)

    def validate(self, x: Instance) -> None:
        demand = validate_demands(x, self.name)
        over = demand > x.capacity[:, None]
        if over.any():
            row, customer = over.nonzero()[0].tolist()
            raise InputError(
                f"cvrp: node {customer + 1} demands {int(demand[row, customer])}, more than the capacity "
                f"{int(x.capacity[row])} (instance {row}); sdvrp may split a delivery"
            )

    def resources(self, x: Instance) -> tuple[Resource, ...]:
        return (Load(numbers(x.demand), float(x.capacity[0])),)

    def max_steps(self, x: Instance) -> int:
        return 2 * (x.xy.shape[1] - 1)  # a return to the depot after every single customer

    def features(self, x: Instance) -> tuple[Tensor, ...]:
        share = (x.demand / x.capacity[:, None]).to(x.xy.dtype)
        return x.xy[:, :1], torch.cat((x.xy[:, 1:], share[:, 1:, None]), -1)

    def initial(self, x: Instance, solutions: int) -> State:
        batch, nodes = x.demand.shape
        depot = torch.zeros((batch, solutions), dtype=torch.long, device=x.xy.device)
        visited = torch.zeros((batch, solutions, nodes), dtype=torch.bool, device=x.xy.device)
        room = x.capacity[:, None].expand(batch, solutions).contiguous()
        return State(depot, room, visited, depot + (nodes - 1))

    def feasible(self, x: Instance, s: State) -> Tensor:
        """Customers not yet visited that fit; the depot unless the vehicle is there, or once finished.

        At the depot the vehicle is empty and every customer fits (validate), so the mask is never empty.
        """
        customers = ~s.visited & (x.demand[:, None] <= s.room[..., None])
        depot = (s.last != 0) | self.done(x, s)
        at_depot = torch.arange(x.demand.shape[1], device=x.xy.device) == 0
        return torch.where(at_depot, depot[..., None], customers)

    def step(self, x: Instance, s: State, action: Tensor) -> State:
        home = action == 0
        room = torch.where(home, x.capacity[:, None], s.room - pick(x.demand, action))
        return State(action, room, s.visited | is_node(action, x.demand.shape[1]), s.remaining - (~home).long())

    def done(self, x: Instance, s: State) -> Tensor:
        return s.remaining == 0

    def context(self, x: Instance, s: State) -> Context:
        """C.2: the last node and the share of the capacity that is left."""
        share = (s.room / x.capacity[:, None]).to(x.xy.dtype)
        return Context(s.last[..., None], share[..., None])

    def step_features(self, x: Instance, s: State) -> Tensor | None:
        return None

    def starts(self, x: Instance) -> Tensor:
        starts = torch.ones(x.xy.shape[:2], dtype=torch.bool, device=x.xy.device)
        starts[:, 0] = False
        return starts

    def cost(self, x: Instance, tour: Tensor) -> Tensor:
        return closed_length(x, from_depot(tour))

    def explain(self, x: Instance, s: State, units: Units) -> Explanation:
        return explain_loads(x, s.room, s.visited, self.feasible(x, s), units)

    def check(self, x: Instance, tour: Tensor, tolerance: float = 0.0) -> None:
        check_shape(x, tour)
        check_once(visits(tour, x.demand.shape[1]), required=True)
        route = (tour == 0).cumsum(-1)  # which route each step belongs to
        demand = x.demand.gather(1, tour.flatten(1)).view(tour.shape)
        load = torch.zeros((*tour.shape[:2], tour.shape[2] + 1), dtype=demand.dtype, device=tour.device)
        load = load.scatter_add(-1, route, demand)
        over = load > x.capacity[:, None, None]
        refuse(
            over.any(-1),
            lambda b, s: (
                f"route {int(over[b, s].nonzero()[0]) + 1} loads {int(load[b, s][over[b, s]][0])}; "
                f"the capacity is {int(x.capacity[b])}"
            ),
        )
