"""Problems that no search here has heard of, for the general engine: rules and costs of several kinds."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from routelearn.problems.base import (
    Context,
    check_finite,
    check_limit,
    check_once,
    check_shape,
    from_depot,
    is_node,
    leg,
    legs_from,
    refuse,
    visits,
    with_depot,
)
from routelearn.problems.cvrp import CVRP
from routelearn.problems.op import OP
from routelearn.problems.tsp import TSP


class PlainTSP(TSP):
    name = "plain-tsp"


class PlainCVRP(CVRP):
    name = "plain-cvrp"


class PlainOP(OP):
    def __init__(self):
        super().__init__("unif")
        self.name = "plain-op"


class Instance(NamedTuple):
    xy: Tensor
    due: Tensor  # [B, N]: latest arrival
    distances: Tensor | None = None

    def public(self):
        return self


class State(NamedTuple):
    last: Tensor
    time: Tensor
    visited: Tensor


class Arrivals:
    """Every customer once, by several vehicles; the cost is 3 a vehicle and the squares of arrival times. It arrives
    before the customer is due, and the numbers of its customers alternate between odd and even: a rule of its own.
    """

    name = "arrivals"
    feature_dims: tuple[int, ...] = (2, 3)
    context_nodes, context_scalars, step_dim = 1, 1, 0
    has_depot, maximise, reveals_on_visit = True, False, False

    def sample(self, rng, batch, n):
        xy = with_depot(rng.uniform(batch, 2), rng.uniform(batch, n, 2))
        return Instance(xy, 1.5 + rng.uniform(batch, n + 1))

    def validate(self, x):
        check_finite(x, self.name)
        check_limit(x._replace(due=x.due.sum(1)), "due", self.name)

    def max_steps(self, x):
        return 2 * (x.xy.shape[1] - 1)

    def features(self, x):
        return x.xy[:, :1], torch.cat((x.xy[:, 1:], x.due[:, 1:, None]), -1)

    def initial(self, x, solutions):
        depot = torch.zeros((x.xy.shape[0], solutions), dtype=torch.long, device=x.xy.device)
        return State(depot, x.xy.new_zeros(depot.shape), is_node(depot, x.xy.shape[1]))

    def feasible(self, x, s):
        numbers = torch.arange(x.xy.shape[1], device=x.xy.device)
        other = (s.last[..., None] == 0) | ((s.last[..., None] + numbers) % 2 == 1)
        in_time = (s.time[..., None] + legs_from(x, s.last) <= x.due[:, None]) | (s.last[..., None] == 0)
        home = (s.last != 0) | self.done(x, s)
        return torch.where(numbers == 0, home[..., None], ~s.visited & in_time & other)

    def step(self, x, s, action):
        time = torch.where(action == 0, 0.0, s.time + leg(x, s.last, action))
        return State(action, time, s.visited | is_node(action, x.xy.shape[1]))

    def done(self, x, s):
        return s.visited.all(-1)

    def context(self, x, s):
        return Context(s.last[..., None], s.time[..., None])

    def step_features(self, x, s):
        return None

    def starts(self, x):
        return (torch.arange(x.xy.shape[1], device=x.xy.device) > 0).expand(x.xy.shape[:2]).contiguous()

    def _arrivals(self, x, tour):
        time = x.xy.new_zeros(tour.shape[:2])
        arrivals = []
        for origin, target in zip(from_depot(tour).unbind(-1), tour.unbind(-1), strict=False):
            time = torch.where(target == 0, 0.0, time + leg(x, origin, target))
            arrivals.append(time)
        return torch.stack(arrivals, -1)

    def cost(self, x, tour):
        vehicles = ((from_depot(tour)[..., :-1] == 0) & (tour > 0)).sum(-1)
        return (self._arrivals(x, tour) ** 2).sum(-1) + 3 * vehicles

    def check(self, x, tour, tolerance=1e-5):
        check_shape(x, tour)
        check_once(visits(tour, x.xy.shape[1]), required=True)
        before = from_depot(tour)[..., :-1]
        late = self._arrivals(x, tour) > x.due.gather(1, tour.flatten(1)).view(tour.shape) * (1 + tolerance)
        refuse((late & (before > 0) & (tour > 0)).any(-1), lambda b, s: "a vehicle arrives late")
        alike = (before > 0) & (tour > 0) & ((before + tour) % 2 == 0)
        refuse(alike.any(-1), lambda b, s: "two odd or two even customers in a row")


class StaysThere(Arrivals):
    """A finished solution stays with its last customer, and going home costs."""

    name = "stays-there"

    def feasible(self, x, s):
        mask = super().feasible(x, s)
        return torch.where(self.done(x, s)[..., None], is_node(s.last, x.xy.shape[1]), mask)

    def step(self, x, s, action):
        there = self.done(x, s)
        after = super().step(x, s, action)
        return after._replace(time=torch.where(there, s.time, after.time))

    def cost(self, x, tour):
        tour = torch.where((visits_so_far(tour) > 1) & (tour > 0), -1, tour)
        homes = ((tour == 0) & (tour.roll(1, -1) > 0)).sum(-1)
        return super().cost(x, tour.clamp(min=0)) + homes

    def check(self, x, tour, tolerance=1e-5):
        check_shape(x, tour)
        again = (visits_so_far(tour) > 1) & (tour > 0)
        moved = again & (tour != tour.roll(1, -1))
        moved[..., :-1] |= again[..., :-1] & ~again[..., 1:]  # only a finished solution stays
        refuse(moved.any(-1), lambda b, s: "a customer is visited twice")
        super().check(x, torch.where(again, 0, tour), tolerance)


def visits_so_far(tour):
    """[B, S, T]: how often each step's node stood in the tour until then."""
    same = tour[..., None] == tour[..., None, :]
    return same.tril().sum(-1)
