"""The orienteering problem: collect the most prize on a tour no longer than allowed (appendix D)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from routelearn.errors import InputError
from routelearn.problems import attributes as known
from routelearn.problems import base
from routelearn.problems.resources import Length, Prize, at_most, numbers

# D.1: about half the length of an average optimal TSP tour; linear in sqrt(n) between and beyond.
MAX_LENGTH = {20: 2.0, 50: 3.0, 100: 4.0}
PRIZES = {"const": "every stop counts 1", "unif": "any prizes", "dist": "far stops earn more"}
SLACK = 1e-6  # share of the limit that rounding may add while building; the referee allows ten times as much


class Instance(NamedTuple):
    xy: Tensor  # [B, N, 2], depot first
    prize: Tensor  # [B, N], 0 for the depot
    max_length: Tensor  # [B]
    distances: Tensor | None = None  # [B, N, N]

    def public(self) -> Instance:
        return self


class State(NamedTuple):
    last: Tensor  # [B, S]
    length: Tensor  # [B, S]: travelled so far
    visited: Tensor  # [B, S, N]
    over: Tensor  # [B, S]: returned to the depot


class OP:
    """A tour lists the nodes visited and then 0 for the return; going home at once is allowed."""

    search = "selective"
    published = ("prize", "max_length")
    feature_dims: tuple[int, ...] = (2, 3)
    context_nodes, context_scalars, step_dim = 1, 1, 0
    has_depot, maximise, reveals_on_visit = True, True, False

    def __init__(self, prizes: str):
        if prizes not in PRIZES:
            raise InputError(f"prizes {prizes!r}; the choices are {', '.join(PRIZES)}")
        self.prizes, self.name = prizes, f"op-{prizes}"
        self.title = f"Orienteering, {PRIZES[prizes]}"
        self.preference = 1 if prizes == "dist" else 0  # uniform prizes are like those of any origin
        usual: dict[str, Any] = {"required": False, "default": 1.0} if prizes == "const" else {}
        self.attributes = (known.PRIZE._replace(**usual), known.MAX_LENGTH)

    def sample(self, rng: base.Rng, batch: int, n: int) -> Instance:
        """D.1, after Fischetti et al. (1998): prizes constant, uniform or growing with the distance."""
        depot, customers = rng.uniform(batch, 2), rng.uniform(batch, n, 2)
        away = (customers - depot[:, None]).norm(dim=-1)
        if self.prizes == "const":
            prize = torch.ones_like(away)
        elif self.prizes == "unif":
            prize = (1 + rng.integers(0, 100, batch, n)).to(away.dtype) / 100
        else:
            prize = (1 + (away / away.amax(-1, keepdim=True) * 99).floor()) / 100
        limit = torch.full_like(away[:, 0], base.interpolated(n, MAX_LENGTH))
        return Instance(base.with_depot(depot, customers), base.depot_zero(prize), limit)

    def validate(self, x: Instance) -> None:
        base.check_finite(x, self.name)
        if x.xy.shape[1] < 2:
            raise InputError(f"{self.name}: no node beside the depot; an instance needs at least one")
        prize = base.check_column(x, "prize", self.name)
        base.reject_rows((prize < 0).any(1), f"{self.name}: a prize is negative")
        base.reject_rows(prize[:, 0] != 0, f"{self.name}: the depot (node 0) has a prize; it must be 0")
        limit = base.check_limit(x, "max_length", self.name)
        base.reject_rows(~(limit > 0), f"{self.name}: the maximum length is not above 0")

    def resources(self, x: Instance) -> tuple[Length, Prize]:
        return Length(at_most(x.max_length)), Prize(numbers(x.prize))

    def max_steps(self, x: Instance) -> int:
        return x.xy.shape[1]  # every customer, then the depot

    def features(self, x: Instance) -> tuple[Tensor, ...]:
        return x.xy[:, :1], torch.cat((x.xy[:, 1:], x.prize[:, 1:, None]), -1)

    def initial(self, x: Instance, solutions: int) -> State:
        depot, visited = base.begun_at_depot(x, solutions)
        return State(depot, x.xy.new_zeros(depot.shape), visited, depot.bool())

    def there_and_back(self, x: Instance, s: State) -> Tensor:
        """[B, S, N]: the tour's length if a node is visited next, and then the depot."""
        return s.length[..., None] + base.legs_from(x, s.last) + base.legs_to_depot(x)[:, None]

    def feasible(self, x: Instance, s: State) -> Tensor:
        """D.2: a node may be visited if the way there and back to the depot still fits."""
        limit = (x.max_length * (1 + SLACK))[:, None, None]
        customers = ~s.visited & ~s.over[..., None] & (self.there_and_back(x, s) <= limit)
        at_depot = torch.arange(x.prize.shape[1], device=x.xy.device) == 0
        return customers | at_depot

    def step(self, x: Instance, s: State, action: Tensor) -> State:
        length = s.length + base.leg(x, s.last, action)
        return State(action, length, s.visited | base.is_node(action, x.prize.shape[1]), s.over | (action == 0))

    def done(self, x: Instance, s: State) -> Tensor:
        return s.over

    def context(self, x: Instance, s: State) -> base.Context:
        """D.2: the last node and the length that is left."""
        return base.Context(s.last[..., None], (x.max_length[:, None] - s.length)[..., None])

    def step_features(self, x: Instance, s: State) -> Tensor | None:
        return None

    def starts(self, x: Instance) -> Tensor:
        """Nodes that can be visited at all; most do not belong in the best solution, so rather sample."""
        starts = self.feasible(x, self.initial(x, 1))[:, 0]
        starts[:, 0] = False
        return starts

    def cost(self, x: Instance, tour: Tensor) -> Tensor:
        """Minus the prize: an empty tour costs 0."""
        return -base.collected(x.prize, tour)

    def explain(self, x: Instance, s: State, units: base.Units) -> base.Explanation:
        limit = float(x.max_length) * units.length
        there_and_back = self.there_and_back(x, s)[0, 0] * units.length
        masked = {
            node: "visited"
            if s.visited[0, 0, node]
            else f"there and home makes {float(there_and_back[node]):.4g}; {limit:.4g} is allowed"
            for node in base.masked_nodes(self.feasible(x, s))
        }
        return base.Explanation({"length": limit - float(s.length) * units.length}, masked)

    def check(self, x: Instance, tour: Tensor, tolerance: float = base.LENGTH_TOLERANCE) -> None:
        base.check_shape(x, tour)
        base.check_ends_at_depot(tour)
        base.check_once(base.visits(tour, x.prize.shape[1]), required=False)
        base.check_length(base.closed_length(x, base.from_depot(tour)), x.max_length, tolerance, "the tour")
