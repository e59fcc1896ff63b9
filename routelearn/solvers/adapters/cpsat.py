"""Exact TSP, OP and PCTSP by OR-Tools' CP-SAT: one circuit constraint, with loops at the nodes left out."""

from __future__ import annotations

import time
from typing import Any

from routelearn.solvers.adapters.base import Imported, Library
from routelearn.solvers.adapters.mip import within_reach
from routelearn.solvers.tasks import OP, Answer, Task, limited_legs, unit_scale, whole, whole_prizes

SCALE = 10**6  # the longest leg, or the length limit, in whole numbers

SEARCHES = 8  # side by side: a portfolio of different methods, worth more than its cores (OR-Tools asks for 8)


def solve_one(task: Task, seconds: float, seed: int) -> Answer:
    """The best tour found in the time; the optimum (of the rounded instance) if the search ended before."""
    from ortools.sat.python import cp_model

    end = time.perf_counter() + seconds
    exact = task.legs()
    factor = unit_scale(exact, SCALE)
    legs = limited_legs(task, SCALE) if task.family == "op" else whole(exact, factor)
    model = cp_model.CpModel()
    optional = task.family == "op" or (task.family == "pctsp" and not task.must_visit_all())
    arcs = [(a, b) for a in range(task.nodes) for b in range(task.nodes) if a != b]
    if task.family == "op":
        near = within_reach(legs, SCALE)
        arcs = [(a, b) for a, b in arcs if near[a, b]]
    used = [model.new_bool_var("") for _ in arcs]
    circuit: list[Any] = [(a, b, literal) for (a, b), literal in zip(arcs, used, strict=True)]
    # a loop at a node says that it is left out; at the depot, that the whole tour is empty
    left_out = [model.new_bool_var("") for _ in range(task.nodes)] if optional else []
    circuit += [(node, node, literal) for node, literal in enumerate(left_out)]
    for node in range(1, len(left_out)):
        model.add_implication(left_out[0], left_out[node])
    model.add_circuit(circuit)
    total = sum(int(legs[a, b]) * literal for (a, b), literal in zip(arcs, used, strict=True))
    if task.family == "op":
        prizes = whole(task.prize, unit_scale(task.prize, SCALE))
        model.add(total <= SCALE)
        model.minimize(sum(int(p) * literal for p, literal in zip(prizes[1:], left_out[1:], strict=True)))
    elif optional:
        worth, minimum = whole_prizes(task, SCALE)
        may_miss = int(worth.sum()) - minimum
        model.add(sum(int(p) * literal for p, literal in zip(worth[1:], left_out[1:], strict=True)) <= may_miss)
        penalties = whole(task.penalty, factor)
        model.minimize(total + sum(int(p) * literal for p, literal in zip(penalties[1:], left_out[1:], strict=True)))
    else:
        model.minimize(total)
    solver = cp_model.CpSolver()
    solver.parameters.random_seed = seed
    solver.parameters.num_workers = SEARCHES
    solver.parameters.max_time_in_seconds = max(0.01, end - time.perf_counter())
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    following = {a: b for (a, b), literal in zip(arcs, used, strict=True) if solver.boolean_value(literal)}
    visits, node = [], 0
    while (node := following.get(node, 0)) != 0:
        visits.append(node)
    return task.tour_of([visits])


SOLVERS = (
    Library(
        name="cpsat",
        problems=frozenset({"tsp", "pctsp"}) | OP,
        licence="Apache-2.0",
        exact=True,
        package="ortools",
        extra="solvers",
        function=solve_one,
        prepare=Imported("ortools.sat.python.cp_model"),
    ),
)
