"""Tasks: one instance each as plain numpy arrays, for solvers that take one at a time. Their answers as tours again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from routelearn.errors import InputError

if TYPE_CHECKING:  # solver workers read this file too, and start ten times faster without tensors
    from torch import Tensor

    from routelearn.problems.base import Problem

OP = frozenset({"op-const", "op-unif", "op-dist"})
BY_HAND = 4  # nodes: smaller instances are enumerated, because many programs refuse or mishandle them
ROUNDING = 1e-6  # relative: what fills a limit exactly must fit, however its floats were rounded; `check` allows 1e-5


Answer = list[int] | None  # a tour in the problem's encoding; None where the solver found none


def _none() -> np.ndarray:
    """What a family does not have."""
    return np.zeros(0)


@dataclass(frozen=True)
class Task:
    """One instance. Small to send: a solver derives the matrix of legs where it runs."""

    family: str  # "tsp", "cvrp", "op" or "pctsp": the three OPs differ in their generators only
    xy: np.ndarray  # [N, 2] double
    distances: np.ndarray | None = None  # [N, N] double
    demand: np.ndarray = field(default_factory=_none)  # [N] whole
    capacity: int = 0
    prize: np.ndarray = field(default_factory=_none)  # [N] double
    penalty: np.ndarray = field(default_factory=_none)  # [N] double
    max_length: float = 0.0
    min_prize: float = 0.0

    @property
    def nodes(self) -> int:
        return len(self.xy)

    def legs(self) -> np.ndarray:
        """[N, N] double, 0 on the diagonal: the instance's own matrix, or the Euclidean one."""
        if self.distances is None:
            return np.sqrt(((self.xy[:, None] - self.xy[None]) ** 2).sum(-1))
        legs = self.distances.copy()
        np.fill_diagonal(legs, 0.0)
        return legs

    def symmetric(self) -> bool:
        return self.distances is None or bool(np.allclose(self.distances, self.distances.T, rtol=1e-7, atol=0))

    def must_visit_all(self) -> bool:
        """PCTSP: all prizes together are not enough, so nothing may be left out (appendix E.2)."""
        return float(self.prize.sum()) < self.min_prize * (1 - ROUNDING)

    def vehicles(self) -> int:
        """Routes that always suffice: two consecutive bins of a first-fit packing hold more than one load."""
        return min(self.nodes - 1, 2 * -(-int(self.demand.sum()) // self.capacity) + 1)

    def tour_of(self, routes: Sequence[Sequence[int]]) -> list[int]:
        """Routes of customers in the problem's encoding; but for the CVRP there is one."""
        tour = join(routes)
        return {"tsp": [0, *tour], "cvrp": tour}.get(self.family, [*tour, 0])


def tasks_of(problem: Problem, x: Any) -> list[Task]:
    """B instances (tensors on the CPU) as B tasks."""
    from routelearn.problems.attributes import declared

    fields = {"xy": x.xy, "distances": x.distances}
    fields |= {one.name: getattr(x, one.name) for one in declared(problem) or () if not one.revealed_on_visit}
    arrays = {
        name: (values.double() if values.is_floating_point() else values).detach().cpu().numpy()
        for name, values in fields.items()
        if values is not None
    }
    family = "op" if problem.name in OP else problem.name
    return [
        Task(family, **{name: array[row] if array.ndim > 1 else array[row].item() for name, array in arrays.items()})
        for row in range(len(x.xy))
    ]


def tours_of(rows: Sequence[Sequence[int] | np.ndarray | None]) -> Tensor:
    """[B, 1, T] from B tours of any length: padded with the depot, at least one step; without a tour, a row of -1."""
    import torch

    steps = max((len(row) for row in rows if row is not None), default=1)
    tours = np.zeros((len(rows), 1, max(1, steps)), dtype=np.int64)
    for tour, row in zip(tours[:, 0], rows, strict=True):
        tour[: None if row is None else len(row)] = -1 if row is None else row
    return torch.from_numpy(tours)


def require_symmetric(task: Task, solver: str) -> None:
    if not task.symmetric():
        raise InputError(f"{solver}: the distance matrix is not symmetric; use pyvrp, ortools or scip")


def join(routes: Sequence[Sequence[int]]) -> list[int]:
    """Routes of customers as one tour, 0 between them."""
    tour: list[int] = []
    for route in routes:
        if route:
            tour += [*route, 0]
    return tour[:-1]


def split(tour: Sequence[int]) -> list[list[int]]:
    """The routes of a tour: what stands between the 0s."""
    groups = itertools.groupby(tour, key=lambda node: node == 0)
    return [list(nodes) for depot, nodes in groups if not depot]


# ---------------------------------------------------------------------------------------------- integers


def whole(values: np.ndarray, scale: float) -> np.ndarray:
    return np.rint(values * scale).astype(np.int64)


def unit_scale(values: np.ndarray, largest: float) -> float:
    """The factor that makes the largest of the values (legs, prizes) `largest`."""
    top = float(values.max())
    return largest / top if top > 0 else 1.0


def limited_legs(task: Task, limit: int) -> np.ndarray:
    """OP: legs [N, N] rounded up, scaled so that max_length is `limit`: a tour within it keeps the floats' limit.

    Legs beyond the limit are cut to limit + 1, so the integers stay small.
    """
    legs = np.ceil(task.legs() * (limit / task.max_length) * (1 - 1e-12))  # a leg that fits exactly stays so
    return np.minimum(legs, limit + 1).astype(np.int64)


def whole_prizes(task: Task, scale: int = 10**7) -> tuple[np.ndarray, int]:
    """PCTSP: prizes [N] and the minimum as integers, such that enough of the ones is enough of the others."""
    factor = scale / (max(task.min_prize, float(task.prize.max())) or 1.0)
    return np.floor(task.prize * factor).astype(np.int64), int(task.min_prize * factor * (1 - ROUNDING))


# --------------------------------------------------------------------------------------- small instances


def length(legs: np.ndarray, nodes: Sequence[int]) -> float:
    """Of the closed tour."""
    return float(legs[list(nodes), [*nodes[1:], nodes[0]]].sum()) if nodes else 0.0


@cache
def _orders(count: int) -> np.ndarray:
    return np.array(list(itertools.permutations(range(1, count))), dtype=np.int64).reshape(-1, count - 1)


def best_order(legs: np.ndarray) -> list[int]:
    """TSP by enumeration, for at most 9 nodes."""
    orders = np.pad(_orders(len(legs)), ((0, 0), (1, 0)))
    return orders[legs[orders, np.roll(orders, -1, 1)].sum(1).argmin()].tolist()


def _candidates(task: Task) -> Iterator[list[int]]:
    """Every tour there is, in the problem's encoding."""
    customers = range(1, task.nodes)
    if task.family == "cvrp":
        for order in itertools.permutations(customers):
            for returns in itertools.product((False, True), repeat=len(order) - 1):
                cuts = [0, *(i + 1 for i, back in enumerate(returns) if back), len(order)]
                yield join([order[a:b] for a, b in itertools.pairwise(cuts)])
        return
    for count in range(task.nodes):
        for chosen in itertools.permutations(customers, count):
            yield [*chosen, 0]


def feasible_cost(task: Task, legs: np.ndarray, tour: list[int]) -> float | None:
    total = length(legs, [0, *tour])
    visited = [node for node in tour if node]
    if task.family == "cvrp":
        return None if any(task.demand[route].sum() > task.capacity for route in split(tour)) else total
    if task.family == "op":
        return None if total > task.max_length * (1 + ROUNDING) else -float(task.prize[visited].sum())
    enough = float(task.prize[visited].sum()) >= task.min_prize * (1 - ROUNDING)
    if not enough and len(visited) < task.nodes - 1:
        return None
    return total + float(task.penalty.sum() - task.penalty[visited].sum())


def by_hand(task: Task) -> Answer:
    """The optimum of an instance of at most BY_HAND nodes, by enumeration."""
    legs = task.legs()
    if task.family == "tsp":
        return best_order(legs)
    best: Answer = None
    cost = np.inf
    for tour in _candidates(task):
        found = feasible_cost(task, legs, tour)
        if found is not None and found < cost:
            best, cost = tour, found
    return best
