"""The split delivery VRP: as the CVRP, but a customer may be served over several visits (appendix C)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from routelearn.errors import Infeasible, InputError
from routelearn.problems import base
from routelearn.problems.cvrp import CVRP, Instance

MOST_LOADS = 10_000


class State(NamedTuple):
    last: Tensor  # [B, S]
    room: Tensor  # [B, S] whole: capacity left in the vehicle
    owed: Tensor  # [B, S, N] whole: demand not yet delivered
    remaining: Tensor  # [B, S] whole: sum of owed


class SDVRP(CVRP):
    """Each visit delivers all it can: what the customer is still owed, or what the vehicle still holds."""

    search = "split routes"
    name = "sdvrp"
    title = "Vehicle routing, deliveries may be split"
    preference = 1  # never guessed: deliveries are whole unless the user says otherwise
    step_dim = 1

    def validate(self, x: Instance) -> None:
        self.validate_demands(x)

    def max_steps(self, x: Instance) -> int:
        """Every visit serves a customer in full or empties the vehicle; a return may follow each."""
        full_loads = int((x.demand.sum(1) // x.capacity).max())
        return 2 * (x.xy.shape[1] - 1 + full_loads)

    def initial(self, x: Instance, solutions: int) -> State:
        owed = x.demand[:, None].expand(-1, solutions, -1).contiguous()
        depot = torch.zeros(owed.shape[:2], dtype=torch.long, device=x.xy.device)
        room = x.capacity[:, None].expand(depot.shape).contiguous()
        return State(depot, room, owed, owed.sum(-1))

    def customers(self, x: Instance, s: State) -> Tensor:
        """Those that are owed something, while the vehicle holds something.

        The paper's text omits the second half; without it deliveries of zero never end.
        """
        return (s.owed > 0) & (s.room > 0)[..., None]

    def step(self, x: Instance, s: State, action: Tensor) -> State:
        delivered = torch.minimum(s.owed.gather(-1, action[..., None])[..., 0], s.room)
        room = torch.where(action == 0, x.capacity[:, None], s.room - delivered)
        owed = s.owed - base.is_node(action, x.demand.shape[1]) * delivered[..., None]
        return State(action, room, owed, s.remaining - delivered)

    def step_features(self, x: Instance, s: State) -> Tensor | None:
        """Eq. 23: the demand still owed, as a share of the capacity, enters keys and values."""
        return (s.owed / x.capacity[:, None, None]).to(x.xy.dtype)[..., None]

    def check_stops(self, given: base.Given) -> None:
        """A demand may exceed the capacity, by as many loads as can be listed one by one."""
        total, capacity = sum(given.columns["demand"]), given.limits["capacity"]
        if total > MOST_LOADS * capacity:
            words = f"at most {MOST_LOADS:,} are planned; take the full loads out of the demands"
            raise InputError(f"{given.source}: the demands fill {float(total / capacity):,.0f} vehicles; {words}")

    def delivered(self, x: Instance, routes: Sequence[Sequence[int]]) -> list[list[int]]:
        """All that is still owed and fits."""
        owed, capacity = x.demand[0].tolist(), int(x.capacity[0])
        amounts: list[list[int]] = []
        for route in routes:
            room = capacity
            amounts.append([])
            for node in route:
                brought = min(owed[node], room)
                owed[node] -= brought
                room -= brought
                amounts[-1].append(brought)
        return amounts

    def starts(self, x: Instance) -> Tensor:
        return x.demand > 0

    def served(self, s: State) -> Tensor:
        return s.owed == 0

    def check(self, x: Instance, tour: Tensor, tolerance: float = 0.0) -> None:
        """Row by row and step by step in plain numbers: what a visit delivers depends on all before it."""
        base.check_shape(x, tour)
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
