"""First solutions without a policy and, but for large instances, without compiled code.

At 0 seconds `solve` compares them with the policy's.

Farthest insertion (Rosenkrantz, Stearns and Lewis 1977) for one tour, savings (Clarke and Wright 1964) for vehicles,
cheapest insertion by prize or penalty for routes that leave nodes out, or a whole tour that is cut; the nearest
feasible node for problems that nothing is known of. The legs may be asymmetric.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from routelearn.decoding.replay import nearest_feasible
from routelearn.errors import Infeasible
from routelearn.problems.attributes import Of, Unit, declared, found
from routelearn.problems.base import EXACT, Problem, declared_search, distance_matrix, has_matrix, is_large
from routelearn.solving.strict import check_strictly

SHORTCUTS = 8  # nodes that are tried on the way between all others
NEIGHBOURS = 40  # pairs of customers whose savings are looked at
Floats = NDArray[np.float64]


def first_solution(problem: Problem, x: Any) -> Tensor:
    """A feasible tour [1, 1, T]; for a problem without a search of its own by the nearest feasible nodes."""
    if declared_search(problem) is None:
        return nearest_feasible(problem, x)
    if is_large(problem, x):  # the search's own construction: all pairs in numpy would take seconds
        from routelearn.search import Search, plan

        if problem.reveals_on_visit:
            nowhere = torch.zeros(x.xy.shape[1], dtype=torch.bool)
            return torch.tensor([*plan(problem, x, 0, nowhere, float(x.min_prize[0]), seconds=0.0), 0])[None, None]
        search = Search(problem, x)
        far = declared_search(problem) in ("routes", "split routes")  # from a local optimum: what is built must do
        search.run(0.0 if far else None)
        assert search.best_tour is not None
        return search.best_tour
    tour = construct(problem, x)
    if not problem.reveals_on_visit:  # there nobody could know
        try:
            check_strictly(problem, x, tour)
        except Infeasible:  # a plugin's problem may have rules that the construction does not know
            return nearest_feasible(problem, x)
    return tour


class Rules(NamedTuple):
    """What a problem asks of a tour, of one instance; None where it does not."""

    demand: NDArray[np.int64] | None
    capacity: int | None
    prize: Floats | None
    penalty: Floats | None
    limit: float | None  # of the length
    least: float | None  # prize


def rules_of(problem: Problem, x: Any) -> Rules:
    """By the units of what the problem declares."""

    def field(of: Of, unit: Unit) -> Any:
        values = found(declared(problem) or (), x, of, unit)
        if values is None:
            return None
        return values[0].double().numpy() if values.is_floating_point() else values[0].numpy()

    capacity, limit, least = field("vehicle", "amount"), field("instance", "length"), field("instance", "prize")
    return Rules(
        field("stop", "amount"),
        None if capacity is None else int(capacity),
        field("stop", "prize"),
        field("stop", "length"),
        None if limit is None else float(limit),
        None if least is None else float(least),
    )


def construct(problem: Problem, x: Any) -> Tensor:
    """A feasible tour [1, 1, T] of an instance with batch axis 1, by what its problem has: demands, prizes or neither.

    Only public fields are read. (A prize that turns out lower than expected is the traveller's business.)
    """
    x = x.public()
    legs = legs_of(x)
    rules = rules_of(problem, x)
    if rules.demand is not None and rules.capacity is not None:
        tour = by_savings(legs, rules.demand, rules.capacity, must_visit=bool(rules.demand.max() <= rules.capacity))
    elif (prize := rules.prize) is not None:
        tour = [*by_insertion(legs, rules), 0]
        if (cut := cut_tour(problem, x)) is not None:
            tour = max(tour, cut, key=lambda nodes: float(prize[nodes].sum()))
    else:
        tour = by_farthest_insertion(legs)
    return torch.tensor(tour)[None, None]


def legs_of(x: Any) -> Floats:
    """[N, N] in double precision."""
    return distance_matrix(x)[0].double().numpy()


class Circle:
    """A closed route of edges tail -> head that nodes are inserted into; it starts as node 0 alone."""

    def __init__(self, legs: Floats):
        self.legs, self.back = legs, np.ascontiguousarray(legs.T)  # both ways of a node in one row
        self.tails, self.heads = (np.zeros(len(legs) + 1, dtype=np.int64) for _ in range(2))
        self.across = np.zeros(len(legs) + 1)  # length of each edge
        self.size = 1
        self.length = 0.0

    def detours(self, node: int) -> Floats:
        """[size]: what the node adds in the middle of each edge."""
        edges = slice(self.size)
        return self.back[node][self.tails[edges]] + self.legs[node][self.heads[edges]] - self.across[edges]

    def detours_at(self, edge: int) -> Floats:
        """[N]: what each node adds in the middle of the edge."""
        return self.legs[self.tails[edge]] + self.back[self.heads[edge]] - self.across[edge]

    def insert(self, node: int, edge: int) -> None:
        """Edge becomes tail -> node, and node -> head the newest edge."""
        tail, head, new = self.tails[edge], self.heads[edge], self.size
        self.length += float(self.legs[tail, node] + self.legs[node, head] - self.across[edge])
        self.heads[edge] = self.tails[new] = node
        self.heads[new] = head
        self.across[edge], self.across[new] = self.legs[tail, node], self.legs[node, head]
        self.size += 1

    def order(self) -> list[int]:
        """All nodes from 0 on."""
        following = dict(zip(self.tails[: self.size].tolist(), self.heads[: self.size].tolist(), strict=True))
        nodes = [0]
        while (node := following[nodes[-1]]) != 0:
            nodes.append(node)
        return nodes


def by_farthest_insertion(legs: Floats) -> list[int]:
    """All nodes; always the one farthest from the tour, at its cheapest place."""
    circle, away = Circle(legs), legs[0].copy()
    away[0] = -1.0
    for _ in range(len(legs) - 1):
        node = int(away.argmax())
        circle.insert(node, int(circle.detours(node).argmin()))
        away = np.minimum(away, legs[node])
        away[node] = -1.0
    return circle.order()


def by_insertion(legs: Floats, rules: Rules) -> list[int]:
    """Customers in order: the most prize for its detour while the length allows, or all that is owed and pays."""
    assert rules.prize is not None
    prize, by_prize = rules.prize, rules.limit is not None
    limit = np.inf if rules.limit is None else rules.limit * (1 + EXACT)
    penalty = np.zeros_like(prize) if rules.penalty is None else rules.penalty
    owed = (rules.least or 0.0) * (1 - EXACT)
    circle = Circle(legs)
    detour, edge = circle.detours_at(0), np.zeros(len(legs), dtype=np.int64)
    out = np.ones(len(legs), dtype=bool)
    out[0] = False
    while out.any():
        cost = np.maximum(detour, 1e-12)
        if by_prize:
            score = np.where(out & (circle.length + detour <= limit), prize / cost, -np.inf)
        else:
            gain = penalty - detour
            # What pays comes first; while prize is owed, the rest by least cost per prize.
            score = np.where(gain > 0, gain * 1e12, gain / np.maximum(prize, 1e-12) if owed > 0 else -np.inf)
            score[~out] = -np.inf
        node = int(score.argmax())
        if score[node] == -np.inf:
            break
        taken = int(edge[node])
        circle.insert(node, taken)
        out[node] = False
        owed -= float(prize[node])
        for other in np.flatnonzero(out & (edge == taken)).tolist():  # their place is gone
            beside = circle.detours(other)
            edge[other] = beside.argmin()
            detour[other] = beside[edge[other]]
        for new in (taken, circle.size - 1):
            beside = circle.detours_at(new)
            closer = beside < detour
            edge[closer], detour[closer] = new, beside[closer]
    return circle.order()[1:]


def cut_tour(problem: Problem, x: Any) -> list[int] | None:
    """For a limited length over legs with shortcuts, where no single node may fit though several do; else None."""
    rules = rules_of(problem, x)
    if not has_matrix(x) or rules.limit is None or rules.prize is None or not has_shortcuts(legs := legs_of(x)):
        return None
    return [*by_cutting(legs, rules.prize, rules.limit * (1 + EXACT)), 0]


def has_shortcuts(legs: Floats) -> bool:
    """Whether the triangle inequality fails: some leg is longer than the way through another node (a few are tried)."""
    some, over = (np.unique(np.linspace(0, len(legs) - 1, count).astype(int)) for count in (8 * SHORTCUTS, SHORTCUTS))
    direct = legs[some] * (1 - 1e-6) - 1e-12
    return any(bool((legs[some, k, None] + legs[None, k] < direct).any()) for k in over)


def by_cutting(legs: Floats, prize: Floats, limit: float) -> list[int]:
    """Customers in order: a tour of all, from which nodes go, those first that are long for their prize, until it fits.

    None are left where no cut makes it shorter.
    """
    tour = np.array(by_farthest_insertion(legs))
    length = float(legs[tour, np.roll(tour, -1)].sum())
    while length > limit and len(tour) > 1:
        before, after = np.roll(tour, 1), np.roll(tour, -1)
        saved = legs[before, tour] + legs[tour, after] - legs[before, after]
        worth = saved / np.maximum(prize[tour], 1e-12)
        worth[0] = -np.inf  # the depot stays
        node = int(worth.argmax())
        if saved[node] <= 0:
            return []
        tour, length = np.delete(tour, node), length - float(saved[node])
    return tour[1:].tolist()


def by_savings(legs: Floats, demand: NDArray[np.int64], capacity: int, must_visit: bool) -> list[int]:
    """Routes with 0 after each; whole loads of demands beyond the capacity go straight there and back first."""
    trips = np.maximum(demand - 1, 0) // capacity
    demand = demand - trips * capacity
    served = np.flatnonzero(np.arange(len(legs)) > 0 if must_visit else demand > 0)
    routes = {c: [c] for c in served.tolist()}
    load = {c: int(demand[c]) for c in routes}
    home = {c: c for c in routes}  # customer -> the route it is in
    symmetric = bool(np.array_equal(legs, legs.T))
    for i, j in savings_pairs(legs, served, symmetric):
        a, b = home[i], home[j]
        if a == b or load[a] + load[b] > capacity:
            continue
        first, second = routes[a], routes[b]
        if symmetric and first[-1] != i and first[0] == i:
            first.reverse()
        if symmetric and second[0] != j and second[-1] == j:
            second.reverse()
        if first[-1] != i or second[0] != j:
            continue
        first += second
        load[a] += load.pop(b)
        home.update(dict.fromkeys(routes.pop(b), a))
    straight = [node for c in np.repeat(np.arange(len(legs)), trips).tolist() for node in (c, 0)]
    return straight + [node for route in routes.values() for node in (*route, 0)]


def savings_pairs(legs: Floats, served: NDArray[np.int64], symmetric: bool) -> list[tuple[int, int]]:
    """Customers i, j in the order of what a route saves that goes from i to j instead of home and out again."""
    between = legs[np.ix_(served, served)]
    saved = legs[served, 0][:, None] + legs[0, served][None] - between
    np.fill_diagonal(saved, 0.0)
    if len(served) > NEIGHBOURS + 1:
        far = np.partition(between, NEIGHBOURS, axis=1)[:, NEIGHBOURS, None]
        saved[between > (np.minimum(far, far.T) if not symmetric else np.maximum(far, far.T))] = 0.0
    if symmetric:
        saved = np.triu(saved)
    rows, columns = np.nonzero(saved > 0)
    order = np.argsort(-saved[rows, columns], kind="stable")
    return list(zip(served[rows[order]].tolist(), served[columns[order]].tolist(), strict=True))
