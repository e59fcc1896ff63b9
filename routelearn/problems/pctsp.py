"""The prize collecting TSP: enough prize, little length, few penalties (appendix E); and the stochastic one (F)."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from routelearn.errors import InputError
from routelearn.problems import base
from routelearn.problems.attributes import MIN_PRIZE, PENALTY, PRIZE, REAL_PRIZE, Attribute
from routelearn.problems.resources import Penalty, Prize, at_least, numbers

# E.1: K^n, half the length of an average optimal TSP tour; penalties are uniform up to 3 K / n.
HALF_LENGTH = {20: 2.0, 50: 3.0, 100: 4.0}

# Prizes may be missing where none has to be collected: then a stop is visited, or its penalty paid.
COLLECTING = (PRIZE._replace(required=False, default=0.0), PENALTY, MIN_PRIZE._replace(required=False, default=0.0))
SLACK = 1e-6  # share of the minimum prize that rounding may leave owed; the referee allows ten times as much


class Instance(NamedTuple):
    xy: Tensor  # [B, N, 2], depot first
    prize: Tensor  # [B, N] expected prize, 0 for the depot
    penalty: Tensor  # [B, N], 0 for the depot
    min_prize: Tensor  # [B]
    real_prize: Tensor | None = None  # [B, N]: what a visit really brings, where that differs
    distances: Tensor | None = None  # [B, N, N]

    def public(self) -> Instance:
        return self._replace(real_prize=None)

    def earned(self) -> Tensor:
        """[B, N]: the prize that a visit brings."""
        return self.prize if self.real_prize is None else self.real_prize


class State(NamedTuple):
    last: Tensor  # [B, S]
    owed: Tensor  # [B, S]: prize still to collect, at least 0
    visited: Tensor  # [B, S, N]
    remaining: Tensor  # [B, S]: customers not yet visited
    over: Tensor  # [B, S]: returned to the depot


class PCTSP:
    """A tour lists the nodes visited and then 0; home only with enough prize, or with all nodes visited."""

    search = "selective"
    name = "pctsp"
    title = "Prize collecting, penalties if left out"
    preference = 0
    published = ("penalty", "prize", "real_prize")
    published_limits: ClassVar = {"min_prize": 1.0}  # E.1: a total prize of 1 is asked for
    attributes: tuple[Attribute, ...] = (*COLLECTING, REAL_PRIZE)
    feature_dims: tuple[int, ...] = (2, 4)
    context_nodes, context_scalars, step_dim = 1, 1, 0
    has_depot, maximise, reveals_on_visit = True, False, False

    def sample(self, rng: base.Rng, batch: int, n: int) -> Instance:
        """E.1: the prizes of half the nodes suffice on average, penalties weigh about as much as length."""
        depot, customers = rng.uniform(batch, 2), rng.uniform(batch, n, 2)
        penalty = rng.uniform(batch, n) * (3 * base.interpolated(n, HALF_LENGTH) / n)
        prize = rng.uniform(batch, n) * (4 / n)
        return Instance(
            base.with_depot(depot, customers),
            base.depot_zero(prize),
            base.depot_zero(penalty),
            torch.ones_like(depot[:, 0]),
        )

    def validate(self, x: Instance) -> None:
        base.check_finite(x, self.name)
        if x.xy.shape[1] < 2:
            raise InputError(f"{self.name}: no node beside the depot; an instance needs at least one")
        for column in ("prize", "penalty") if x.real_prize is None else ("prize", "penalty", "real_prize"):
            values = base.check_column(x, column, self.name)
            base.reject_rows((values < 0).any(1), f"{self.name}: a {column} is negative")
            base.reject_rows(values[:, 0] != 0, f"{self.name}: the depot (node 0) has a {column}; it must be 0")
        base.reject_rows(base.check_limit(x, "min_prize", self.name) < 0, f"{self.name}: the minimum prize is negative")

    def resources(self, x: Instance) -> tuple[Prize, Penalty]:
        return Prize(numbers(x.prize), at_least(x.min_prize)), Penalty(numbers(x.penalty))

    def check_stops(self, given: base.Given) -> None:
        least, total = given.limits["min_prize"], math.fsum(given.columns["prize"])
        if "min_prize" in given.defaults and "prize" not in given.defaults:
            raise InputError(f"{given.source}: {self.name} needs a minimum prize; give min_prize (0 for none)")
        if "prize" in given.defaults and least > 0:
            raise InputError(f"{given.source}: {self.name} needs a prize for every stop; there is no such column")
        if total < least * (1 - 1e-9):
            raise InputError(
                f"{given.source}: the minimum prize {least:g} is out of reach; all prizes together are {total:g}"
            )

    def prize_unit(self, x: Instance) -> Tensor:
        """The minimum, or where there is none, half of all prizes (about as E.1 asks for)."""
        unit = torch.where(x.min_prize > 0, x.min_prize, x.prize.sum(1) / 2)
        return unit.masked_fill(unit == 0, 1.0)

    def max_steps(self, x: Instance) -> int:
        return x.xy.shape[1]  # every customer, then the depot

    def features(self, x: Instance) -> tuple[Tensor, ...]:
        share = x.prize / self.prize_unit(x)[:, None]
        return x.xy[:, :1], torch.cat((x.xy[:, 1:], share[:, 1:, None], x.penalty[:, 1:, None]), -1)

    def initial(self, x: Instance, solutions: int) -> State:
        depot, visited = base.begun_at_depot(x, solutions)
        owed = x.min_prize[:, None].expand(depot.shape).contiguous()
        return State(depot, owed, visited, depot + (x.xy.shape[1] - 1), depot.bool())

    def feasible(self, x: Instance, s: State) -> Tensor:
        """E.2: the depot opens when nothing is owed any more, or when no customer is left."""
        customers = ~s.visited & ~s.over[..., None]
        depot = s.over | (s.owed <= x.min_prize[:, None] * SLACK) | (s.remaining == 0)
        at_depot = torch.arange(x.prize.shape[1], device=x.xy.device) == 0
        return torch.where(at_depot, depot[..., None], customers)

    def step(self, x: Instance, s: State, action: Tensor) -> State:
        home = action == 0
        owed = (s.owed - base.pick(x.earned(), action)).clamp(min=0)  # eq. 31
        visited = s.visited | base.is_node(action, x.prize.shape[1])
        return State(action, owed, visited, s.remaining - (~home).long(), s.over | home)

    def done(self, x: Instance, s: State) -> Tensor:
        return s.over

    def context(self, x: Instance, s: State) -> base.Context:
        """E.2: the last node and the share of the prize that is still to collect."""
        required = x.min_prize.masked_fill(x.min_prize == 0, 1.0)
        return base.Context(s.last[..., None], (s.owed / required[:, None])[..., None])

    def step_features(self, x: Instance, s: State) -> Tensor | None:
        return None

    def starts(self, x: Instance) -> Tensor:
        """Any customer; most do not belong first in the best solution, so rather sample."""
        return base.all_but_depot(x)

    def cost(self, x: Instance, tour: Tensor) -> Tensor:
        """Length and the penalties of what is left out; an empty tour pays all penalties."""
        penalties = x.penalty[:, None].expand(-1, tour.shape[1], -1)
        left_out = penalties.scatter(-1, tour, 0.0).sum(-1)  # a difference of two sums would not be 0 where nothing is
        return base.closed_length(x, base.from_depot(tour)) + left_out

    def explain(self, x: Instance, s: State, units: base.Units) -> base.Explanation:
        owed = float(s.owed) * units.prize
        masked = {
            node: f"the depot opens when the prize is met; {owed:.4g} is to collect"
            if node == 0
            else "visited"
            if s.visited[0, 0, node]
            else "the tour is over"
            for node in base.masked_nodes(self.feasible(x, s))
        }
        return base.Explanation({"prize to collect": owed}, masked)

    def check(self, x: Instance, tour: Tensor, tolerance: float = base.LENGTH_TOLERANCE) -> None:
        base.check_shape(x, tour)
        base.check_ends_at_depot(tour)
        count = base.visits(tour, x.prize.shape[1])
        base.check_once(count, required=False)
        got = base.collected(x.earned(), tour)
        everything = (count[..., 1:] > 0).all(-1)
        base.refuse(
            (got < x.min_prize[:, None] * (1 - tolerance)) & ~everything,
            lambda b, s: (
                f"the tour collects {base.figure(got[b, s], tolerance)} prize; "
                f"{base.figure(x.min_prize[b], tolerance)} is required"
            ),
        )


class SPCTSP(PCTSP):
    """Only the expected prize is known until a node is visited (appendix F).

    The real prizes are drawn with the instance (common random numbers, F.2) and kept from `public()`.
    """

    search = "selective"
    name = "spctsp"
    title = "Prize collecting, prizes known on arrival"
    attributes = (*COLLECTING, REAL_PRIZE._replace(required=True))
    reveals_on_visit = True

    def sample(self, rng: base.Rng, batch: int, n: int) -> Instance:
        return self.imagined(super().sample(rng, batch, n), rng)

    def imagined(self, x: Instance, rng: base.Rng) -> Instance:
        """The real prize is uniform between 0 and twice the expected one."""
        luck = rng.uniform(x.prize.shape[0], x.prize.shape[1] - 1)
        return x._replace(real_prize=base.depot_zero(luck) * x.prize * 2)
