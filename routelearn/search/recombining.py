"""Routes that a search has met, and a cheaper plan put together from them (Subramanian, Uchoa and Ochi 2013).

A plan is a set of routes that visits every stop once, or leaves it out for its price: a set partitioning problem, which
HiGHS solves. Its linear relaxation, over all routes, tells which of them are worth a look; the problem in whole numbers
has only these.
"""

from __future__ import annotations

from time import monotonic
from typing import Any, NamedTuple

import highspy
import numpy as np
from numpy.typing import NDArray

from routelearn.search.compiling import kernel, merged
from routelearn.search.graph import Floats

MOST = 1 << 15  # routes that are remembered
LENGTH = 16  # ids of a route on average, for which there is room
FEW = 2  # routes for each stop that the problem in whole numbers has at first
GROWTH = 1.5  # how that number changes from one problem to the next
NODES = 200  # of its search tree
A_ROUTE = 1e-5  # seconds that the linear relaxation takes for each route, or more
PRECISE = 1e-6  # a share of the cost: a better plan is better by more

Ints = NDArray[np.int64]


class Met(NamedTuple):
    """Routes of different stops or kinds of vehicles; of those that differ in their order alone, the cheapest."""

    word: NDArray[np.uint64]  # [n + kinds]: random; a route's name is the exclusive or of those of its stops and kind
    name: NDArray[np.uint64]  # [MOST]
    cost: Floats  # [MOST]
    kind: Ints  # [MOST]
    span: Ints  # [MOST, 2]: where its ids are
    ids: Ints  # stops, and what else the search writes down: numbers below 0
    table: Ints  # [2 MOST]: routes by their names, -1: none
    size: Ints  # [2]: how many routes and ids there are


def new_met(stops: int, kinds: int) -> Met:
    words = np.random.default_rng(0).integers(1, np.iinfo(np.uint64).max, stops + kinds, dtype=np.uint64)
    return Met(
        words, np.zeros(MOST, np.uint64), np.zeros(MOST), np.zeros(MOST, np.int64), np.zeros((MOST, 2), np.int64),
        np.zeros(MOST * LENGTH, np.int64), np.full(2 * MOST, -1, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip


@merged
def slot_of(met, name):
    """Where in the table a route of this name is, or may go."""
    at = np.int64(name % np.uint64(met.table.shape[0]))
    while met.table[at] >= 0 and met.name[met.table[at]] != name:
        at = (at + 1) % met.table.shape[0]
    return at


@merged
def meet(met, name, kind, cost, end):
    """Remember a route, whose ids stand from `size[1]` to `end`, unless a cheaper one has its stops; its number."""
    at = slot_of(met, name)
    j = met.table[at]
    if j < 0:
        j = met.size[0]
        met.size[0] += 1
        met.table[at] = j
        met.name[j], met.kind[j] = name, kind
    elif met.cost[j] <= cost:
        return j
    met.cost[j] = cost
    met.span[j, 0], met.span[j, 1] = met.size[1], end
    met.size[1] = end
    return j


@kernel
def forget(met):
    """Forget the older half of the routes: those that were met first."""
    for at in range(met.table.shape[0]):
        met.table[at] = -1
    count, first, size = np.int64(0), met.size[0] // 2, np.int64(0)
    oldest = met.span[first, 0]
    for j in range(first, met.size[0]):
        oldest = min(oldest, met.span[j, 0])
    for at in range(oldest, met.size[1]):  # room for ids comes free from the beginning on
        met.ids[at - oldest] = met.ids[at]
    for j in range(first, met.size[0]):
        met.name[count], met.kind[count], met.cost[count] = met.name[j], met.kind[j], met.cost[j]
        met.span[count, 0], met.span[count, 1] = met.span[j, 0] - oldest, met.span[j, 1] - oldest
        met.table[slot_of(met, met.name[count])] = count
        size = max(size, met.span[count, 1])
        count += 1
    met.size[0], met.size[1] = count, size


class Minimum(NamedTuple):
    """What was found for a problem."""

    values: Floats  # [C]
    prices: Floats  # [C]: reduced costs
    proven: bool


class Problem(NamedTuple):
    """Set partitioning: columns are routes, then stops that are left out; rows are stops, then kinds of vehicles."""

    stops: int
    cost: Floats  # [C]
    begin: Ints  # [C + 1]: where the rows of each column begin
    rows: Ints
    most: Floats  # [kinds]: vehicles

    def of(self, columns: Ints) -> Problem:
        """The problem with these columns alone."""
        lengths = np.diff(self.begin)[columns]
        begin = np.concatenate(([0], np.cumsum(lengths)))
        rows = self.rows[np.repeat(self.begin[columns] - begin[:-1], lengths) + np.arange(begin[-1])]
        return Problem(self.stops, self.cost[columns], begin, rows, self.most)

    def minimum(self, seconds: float, start: Floats | None = None) -> Minimum:
        """By HiGHS: in whole numbers, from a first solution on; without one, the linear relaxation."""
        n, model = self.stops, highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self.cost), n + len(self.most)
        model.col_cost_, model.col_lower_ = self.cost, np.zeros_like(self.cost)
        model.col_upper_ = np.full_like(self.cost, np.inf if start is None else 1.0)
        model.row_lower_ = np.concatenate((np.ones(n), np.zeros_like(self.most)))
        model.row_upper_ = np.concatenate((np.ones(n), self.most))
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = self.begin, self.rows
        model.a_matrix_.value_ = np.ones(len(self.rows))
        options: dict[str, Any] = {"output_flag": False, "threads": 1, "time_limit": seconds}
        if start is None:
            options["presolve"] = "off"  # it takes longer than it saves
        else:
            options["mip_max_nodes"] = NODES
            model.integrality_ = [highspy.HighsVarType.kInteger] * len(self.cost)
        solver = highspy.Highs()
        for name, value in options.items():
            solver.setOptionValue(name, value)
        solver.passModel(model)
        if start is not None:
            first = highspy.HighsSolution()
            first.col_value = start.tolist()
            solver.setSolution(first)
        solver.run()
        found, proven = solver.getSolution(), solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return Minimum(np.array(found.col_value), np.array(found.col_dual), bool(proven))


def problem_of(met: Met, unserved: Floats, vehicles: Floats) -> Problem:
    """All routes met; what it costs to leave out each stop, and how many vehicles there are of each kind."""
    n, routes = len(unserved), int(met.size[0])
    spans = met.span[:routes]
    lengths = spans[:, 1] - spans[:, 0]
    owner = np.repeat(np.arange(routes), lengths)
    begin = np.cumsum(lengths) - lengths
    ids = met.ids[np.repeat(spans[:, 0] - begin, lengths) + np.arange(lengths.sum())]
    stops = ids >= 0
    columns = np.concatenate((owner[stops], np.arange(routes), routes + np.arange(n)))
    rows = np.concatenate((ids[stops], n + met.kind[:routes], np.arange(n)))
    order = np.argsort(columns, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(columns, minlength=routes + n))))
    return Problem(n, np.concatenate((met.cost[:routes], unserved)), starts, rows[order], vehicles)


class Recombining:
    """The routes of one search, put together anew from time to time."""

    def __init__(self, unserved: Floats, vehicles: Floats):
        self.unserved, self.vehicles = unserved, vehicles
        self.met = new_met(len(unserved), len(vehicles))

    def make_room(self, routes: int, ids: int) -> None:
        """Forget older routes if there may be no room for so many more."""
        if self.met.size[0] + routes > MOST or self.met.size[1] + ids > len(self.met.ids):
            forget(self.met)

    def cheaper(self, plan: Ints, cost: float, seconds: float) -> Ints | None:
        """Routes, by number, that make a plan for less than `cost`, which the routes of `plan` cost; None: none found.

        It is not tried if it would take longer than so many seconds.
        """
        routes, n, until = int(self.met.size[0]), len(self.unserved), monotonic() + seconds
        if A_ROUTE * routes > seconds:
            return None
        problem = problem_of(self.met, self.unserved, self.vehicles)
        rows = problem.of(plan).rows
        chosen = np.zeros(routes + n)
        chosen[plan], chosen[routes:] = 1.0, 1.0
        chosen[routes + rows[rows < n]] = 0.0
        relaxed = problem.minimum(seconds)
        if not relaxed.proven:
            return None
        gain = cost - float(problem.cost @ relaxed.values)  # at most; so a route of a higher price is on no better plan
        order = np.argsort(relaxed.prices, kind="stable")
        worth = int((relaxed.prices < gain).sum())
        few, proven, better = FEW * n, True, chosen
        while proven and few < GROWTH * worth and monotonic() < until:
            columns = np.union1d(order[: min(few, worth)], np.flatnonzero(better))
            found = problem.of(columns).minimum(until - monotonic(), better[columns])
            better = np.zeros_like(chosen)
            better[columns], proven, few = np.round(found.values), found.proven, int(GROWTH * few)
        plan = np.flatnonzero(better)
        return plan[plan < routes] if problem.cost[plan].sum() < cost * (1.0 - PRECISE) else None
