"""Exact TSP, OP and PCTSP by Gurobi, as the paper solved them: the programs of `mip.py` with lazy subtour cuts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from routelearn.errors import InputError
from routelearn.solvers.adapters.mip import LOOSE, TIGHT, Cut, Found, Model, exact_solver, solve_exactly
from routelearn.solvers.tasks import Answer, Task

SIZE_LIMITED = 10010  # Gurobi's error number for a model beyond the licence


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
    from gurobipy import GRB, quicksum

    choices = [visit for visit in visits if not isinstance(visit, float)]

    def expression(cut: Cut) -> Any:
        total = quicksum(edges[e] for e in cut.edges)
        if cut.inside:
            return total <= quicksum(visits[i] for i in cut.plus)
        return total >= 2 * visits[cut.node]

    def cuts(values: Callable[[list[Any]], list[float]], tolerance: float) -> list[Cut]:
        chosen = iter(values(choices))
        y = [visit if isinstance(visit, float) else next(chosen) for visit in visits]
        return model.cuts(np.array(values(edges)), np.array(y), tolerance)

    def callback(gurobi: Any, where: int) -> None:
        if where == GRB.Callback.MIPSOL:
            for cut in cuts(gurobi.cbGetSolution, TIGHT):
                gurobi.cbLazy(expression(cut))
        elif where == GRB.Callback.MIPNODE and gurobi.cbGet(GRB.Callback.MIPNODE_STATUS) == GRB.OPTIMAL:
            for cut in cuts(gurobi.cbGetNodeRel, LOOSE):
                gurobi.cbCut(expression(cut))

    return callback


def _search(model: Model, end: float, seed: int) -> Found:
    import gurobipy
    from gurobipy import GRB, quicksum

    with _environment() as environment, gurobipy.Model(env=environment) as gurobi:
        edges, visits, objective = model.formulate(lambda: gurobi.addVar(vtype=GRB.BINARY), quicksum, gurobi.addConstr)
        gurobi.setObjective(objective)
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
                    f"gurobi: {gurobi.NumVars} variables for {model.nodes} nodes are more than this licence "
                    "allows (the bundled one: 2,000); install a full licence, or use scip"
                ) from None
            raise
        if gurobi.SolCount == 0:
            return Found(None, np.inf)
        return Found(np.array([variable.X for variable in edges]), gurobi.ObjVal)


def solve_one(task: Task, seconds: float, seed: int) -> Answer:
    return solve_exactly(task, seconds, lambda model, end: _search(model, end, seed))


SOLVERS = (
    exact_solver(
        "gurobi", "gurobipy", "proprietary; the bundled licence stops at 2,000 variables", solve_one, _refusal
    ),
)
