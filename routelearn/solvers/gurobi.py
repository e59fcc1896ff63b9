"""Exact TSP, OP and PCTSP by Gurobi, as the paper solved them: the programs of `mip.py` with lazy subtour cuts."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from routelearn.errors import InputError
from routelearn.solvers.adapters import Library
from routelearn.solvers.jobs import NOTHING, OP, SLACK, Answer, Job
from routelearn.solvers.mip import LOOSE, TIGHT, Cut, Model, build, short_tour

SIZE_LIMITED = 10010  # Gurobi's error number for a model beyond the licence


def prepare() -> None:
    """Imports, and loads the compiled separation."""
    import gurobipy  # noqa: F401

    from routelearn.solvers.cuts import violated_sets

    violated_sets(np.zeros((3, 3)), np.ones(3), TIGHT)


def _environment() -> Any:
    import gurobipy

    environment = gurobipy.Env(empty=True)
    environment.setParam("OutputFlag", 0)
    environment.start()
    return environment


def _refusal() -> str | None:
    import gurobipy

    try:
        _environment().dispose()
    except gurobipy.GurobiError as error:
        return f"gurobi has no usable licence ({error}); see gurobi.com for free academic ones"
    return None


def _callback(model: Model, edges: list[Any], visits: list[Any]) -> Any:
    """Lazy constraints for candidates, cuts for the relaxation at the nodes of the search."""
    from gurobipy import GRB, LinExpr

    def expression(cut: Cut) -> Any:
        total = LinExpr([1.0] * len(cut.edges), [edges[e] for e in cut.edges])
        if cut.inside:
            return total <= LinExpr([1.0] * len(cut.plus), [visits[i] for i in cut.plus])
        return total >= 2 * visits[cut.node]

    def callback(gurobi: Any, where: int) -> None:
        if where == GRB.Callback.MIPSOL:
            x, y = gurobi.cbGetSolution(edges), gurobi.cbGetSolution(visits)
            for cut in model.cuts(np.array(x), np.array(y), TIGHT):
                gurobi.cbLazy(expression(cut))
        elif where == GRB.Callback.MIPNODE and gurobi.cbGet(GRB.Callback.MIPNODE_STATUS) == GRB.OPTIMAL:
            x, y = gurobi.cbGetNodeRel(edges), gurobi.cbGetNodeRel(visits)
            for cut in model.cuts(np.array(x), np.array(y), LOOSE):
                gurobi.cbCut(expression(cut))

    return callback


def _formulate(model: Model, gurobi: Any) -> tuple[list[Any], list[Any]]:
    from gurobipy import GRB, LinExpr, quicksum

    job = model.job
    edges = [gurobi.addVar(vtype=GRB.BINARY) for _ in model.ends]
    visits = [
        gurobi.addVar(lb=float(model.all_visited or node == 0), ub=1.0, vtype=GRB.BINARY) for node in range(model.nodes)
    ]
    for node, touching, degree in model.degree_rows():
        gurobi.addConstr(quicksum(edges[e] for e in touching) == degree * visits[node])
    total = LinExpr(model.cost.tolist(), edges)
    if job.family == "op":
        assert job.prize is not None
        gurobi.addConstr(total <= job.max_length)
        gurobi.setObjective(-LinExpr(job.prize.tolist(), visits))
    elif job.family == "pctsp":
        assert job.prize is not None
        assert job.penalty is not None
        if not model.all_visited:
            gurobi.addConstr(LinExpr(job.prize.tolist(), visits) >= job.min_prize * (1 - SLACK))
        gurobi.setObjective(total + float(job.penalty.sum()) - LinExpr(job.penalty.tolist(), visits))
    else:
        gurobi.setObjective(total)
    return edges, visits


def solve_one(job: Job, seconds: float, seed: int) -> Answer:
    """The best tour found in the time, proved optimal if the search ended before."""
    import gurobipy
    from gurobipy import GRB

    end = time.perf_counter() + seconds
    model = build(job)
    tour, cost = short_tour(job)
    if not (model.ends == 0).any():  # OP: nothing within reach
        return Answer(tour, True)
    with _environment() as environment, gurobipy.Model(env=environment) as gurobi:
        edges, visits = _formulate(model, gurobi)
        gurobi.Params.LazyConstraints = 1
        gurobi.Params.PreCrush = 1  # cuts of the callback are stated in the variables before presolve
        gurobi.Params.MIPGap = 0
        gurobi.Params.Threads = 1
        gurobi.Params.Seed = seed
        gurobi.Params.TimeLimit = max(0.01, end - time.perf_counter())
        try:
            gurobi.optimize(_callback(model, edges, visits))
        except gurobipy.GurobiError as error:
            if error.errno == SIZE_LIMITED:
                raise InputError(
                    f"gurobi: {len(edges) + len(visits)} variables for {job.nodes} nodes are more than this licence "
                    "allows (the bundled one: 2,000); install a full licence, or use scip"
                ) from None
            raise
        proved = gurobi.Status in (GRB.OPTIMAL, GRB.INFEASIBLE)
        if gurobi.SolCount > 0 and gurobi.ObjVal < cost:
            tour = model.tour(np.array([variable.X for variable in edges]))
    return NOTHING if tour is None else Answer(tour, proved)


SOLVERS = (
    Library(
        name="gurobi",
        problems=frozenset({"tsp", "pctsp"}) | OP,
        licence="proprietary; the bundled licence stops at 2,000 variables",
        anytime=False,
        exact=True,
        package="gurobipy",
        extra="exact",
        function=solve_one,
        prepare=prepare,
        refusal=_refusal,
    ),
)
