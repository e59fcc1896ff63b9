"""TSP, OP and PCTSP as integer programs over edges (or arcs, where distances are asymmetric), for any MIP solver.

x_e: edge e is used; y_i: node i is visited, y_0 = 1. Every visited node has degree 2 (in an arc model one way
in and one way out); subtours are cut off as they appear (`cuts.py`). Tours of a single customer use one edge
twice: `short_tour` knows the best of them, and the programs only look for longer ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from routelearn.solvers.adapters.base import Imported, Library
from routelearn.solvers.adapters.cuts import violated_sets
from routelearn.solvers.adapters.runner import SolveOne
from routelearn.solvers.tasks import OP, ROUNDING, Answer, Task, feasible_cost

LOOSE = 0.05  # fractional cuts: a violation worth a row of the linear program
TIGHT = 1e-4  # candidate solutions: any violation is an error


class Cut(NamedTuple):
    """sum of x over `edges` <= sum of y over `plus` (inside form), or >= 2 y_node (border form)."""

    edges: np.ndarray
    plus: np.ndarray  # nodes whose y are added on the right-hand side; border form: empty
    node: int
    inside: bool


@dataclass(frozen=True)
class Model:
    """The static part of the program."""

    task: Task
    ends: np.ndarray  # [E, 2]: the nodes of each edge or arc
    cost: np.ndarray  # [E]: length
    directed: bool
    all_visited: bool  # y = 1 throughout: TSP, and a PCTSP that cannot collect enough

    @property
    def nodes(self) -> int:
        return self.task.nodes

    def formulate(
        self, variable: Callable[[], Any], quicksum: Callable[..., Any], constrain: Callable[[Any], Any]
    ) -> tuple[list[Any], list[Any], Any]:
        """The edges' variables, the visits' (plain 1.0 where a visit is no choice) and what is minimised."""

        def weighted(weights: np.ndarray, variables: list[Any]) -> Any:
            return quicksum(weight * variable for weight, variable in zip(weights.tolist(), variables, strict=True))

        task = self.task
        edges = [variable() for _ in self.ends]
        visits = [1.0 if self.all_visited or node == 0 else variable() for node in range(self.nodes)]
        for node, touching, degree in self.degree_rows():
            constrain(quicksum(edges[e] for e in touching) == degree * visits[node])
        length = weighted(self.cost, edges)
        if task.family == "op":
            constrain(length <= task.max_length)
            return edges, visits, weighted(-task.prize, visits)
        if task.family == "pctsp":
            if not self.all_visited:
                constrain(weighted(task.prize, visits) >= task.min_prize * (1 - ROUNDING))
            return edges, visits, length + weighted(-task.penalty, visits) + float(task.penalty.sum())
        return edges, visits, length

    def degree_rows(self) -> list[tuple[int, np.ndarray, int]]:
        """(node, edges, k) with x(edges) = k y_node."""
        if not self.directed:
            return [(node, np.flatnonzero((self.ends == node).any(1)), 2) for node in range(self.nodes)]
        return [(node, np.flatnonzero(self.ends[:, side] == node), 1) for node in range(self.nodes) for side in (0, 1)]

    def cuts(self, x: np.ndarray, y: np.ndarray, tolerance: float) -> list[Cut]:
        """Violated subtour constraints of a (fractional) solution x [E], y [N]."""
        weight = np.zeros((self.nodes, self.nodes))
        np.add.at(weight, (self.ends[:, 0], self.ends[:, 1]), np.maximum(x, 0))
        weight += weight.T
        sets, members = violated_sets(weight, y, tolerance)
        cuts = [self._cut(chosen, int(node)) for chosen, node in zip(sets, members, strict=True)]
        if not self.all_visited and tolerance == LOOSE:
            cuts += self._pairs(x, y, tolerance)
        return cuts

    def _cut(self, chosen: np.ndarray, node: int) -> Cut:
        """The sparser of the two forms."""
        head, tail = chosen[self.ends[:, 0]], chosen[self.ends[:, 1]]
        inside = np.flatnonzero(head & tail)
        border = np.flatnonzero(head ^ tail)
        if len(inside) + chosen.sum() <= len(border):
            others = chosen.copy()
            others[node] = False
            return Cut(inside, np.flatnonzero(others), node, True)
        return Cut(border, np.empty(0, np.int64), node, False)

    def _pairs(self, x: np.ndarray, y: np.ndarray, tolerance: float) -> list[Cut]:
        """x_e <= y_i for both ends: subtour constraints of two nodes, also where one of them is the depot."""
        found = []
        for side in (0, 1):
            node = self.ends[:, side]
            for edge in np.flatnonzero((x > y[node] + tolerance) & (node != 0)):
                found.append(Cut(np.array([edge]), np.array([node[edge]]), -1, True))
        return found

    def tour(self, x: np.ndarray) -> list[int]:
        """The tour from the depot of an integral solution x [E], in the problem's encoding."""
        used = self.ends[x > 0.5]
        order, previous = [0], -1
        while True:
            here = order[-1]
            if self.directed:
                onward = used[used[:, 0] == here, 1]
            else:
                touching = used[(used == here).any(1)]
                onward = touching.sum(1) - here
                onward = onward[onward != previous] if len(order) > 1 else onward[:1]
            previous, here = here, int(onward[0])
            if here == 0:
                break
            order.append(here)
        return self.task.tour_of([order[1:]])


def within_reach(legs: np.ndarray, limit: float) -> np.ndarray:
    """[N, N] bool: legs that some closed walk from the depot within the limit can use.

    By shortest ways there and back, so it holds for matrices without the triangle inequality too.
    """
    shortest = legs.copy()
    for via in range(len(legs)):
        np.minimum(shortest, shortest[:, via, None] + shortest[via], out=shortest)
    return shortest[0][:, None] + legs + shortest[:, 0][None] <= limit * (1 + 1e-9)


def build(task: Task) -> Model:
    nodes = task.nodes
    directed = not task.symmetric()
    if directed:
        ends = np.argwhere(~np.eye(nodes, dtype=bool))
    else:
        ends = np.argwhere(np.triu(np.ones((nodes, nodes), bool), 1))
    legs = task.legs()
    if task.family == "op":
        ends = ends[within_reach(legs, task.max_length)[ends[:, 0], ends[:, 1]]]
    everything = task.family == "tsp" or (task.family == "pctsp" and task.must_visit_all())
    return Model(task, ends, legs[ends[:, 0], ends[:, 1]], directed, everything)


def short_tour(task: Task) -> tuple[list[int] | None, float]:
    """The best tour of at most one customer and its cost (None and infinity if none is allowed)."""
    legs = task.legs()
    best: tuple[list[int] | None, float] = (None, np.inf)
    if task.family == "tsp":
        return best
    for tour in ([0], *([node, 0] for node in range(1, task.nodes))):
        cost = feasible_cost(task, legs, tour)
        if cost is not None and cost < best[1]:
            best = (tour, cost)
    return best


class Found(NamedTuple):
    """What a MIP solver came to: x [E] of its best solution (None if it has none) and that solution's objective."""

    x: np.ndarray | None
    objective: float


@dataclass(frozen=True)
class Separating(Imported):
    """Loads the compiled separation, too, so that no instance pays for it."""

    def __call__(self) -> None:
        super().__call__()
        violated_sets(np.zeros((3, 3)), np.ones(3), TIGHT)


def solve_exactly(task: Task, seconds: float, search: Callable[[Model, float], Found]) -> Answer:
    """The best tour found in the time; the optimum if the search ended before.

    `search` gets the program and the time (of time.perf_counter) at which it must end.
    """
    end = time.perf_counter() + seconds
    model = build(task)
    tour, cost = short_tour(task)
    if not (model.ends == 0).any():  # OP: nothing within reach
        return tour
    found = search(model, end)
    if found.x is not None and found.objective < cost:
        tour = model.tour(found.x)
    return tour


def exact_solver(
    name: str, package: str, licence: str, function: SolveOne, refusal: Callable[[], str | None] = lambda: None
) -> Library:
    """A MIP solver that is a Python package; `refusal` says why it cannot be used although it is installed."""
    return Library(
        name=name,
        problems=frozenset({"tsp", "pctsp"}) | OP,
        licence=licence,
        exact=True,
        package=package,
        extra="exact",
        function=function,
        prepare=Separating(package),
        refusal=refusal,
    )
