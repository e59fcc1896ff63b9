"""Exact TSP, OP and PCTSP by SCIP, which is told of subtours as they appear (branch and cut)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from routelearn.solvers.adapters.mip import LOOSE, TIGHT, Cut, Found, Model, exact_solver, solve_exactly
from routelearn.solvers.tasks import Answer, Task


def _handler(model: Model, edges: list[Any], visits: list[Any]) -> Any:
    """SCIP's constraint handler for the subtour constraints: separates, enforces and checks them."""
    from pyscipopt import SCIP_RESULT, Conshdlr

    class Subtours(Conshdlr):
        def violated(self, solution: Any, tolerance: float) -> list[Cut]:
            value = self.model.getSolVal
            x = np.array([value(solution, variable) for variable in edges])
            y = np.array([1.0 if isinstance(v, float) else value(solution, v) for v in visits])
            return model.cuts(x, y, tolerance)

        def add(self, cuts: list[Cut]) -> None:
            scip = self.model
            for cut in cuts:
                terms: list[tuple[Any, float]] = [(edges[e], 1.0) for e in cut.edges]
                others = [(visits[i], -1.0) for i in cut.plus] if cut.inside else [(visits[cut.node], -2.0)]
                constant = -sum(w * v for v, w in others if isinstance(v, float))
                terms += [(v, w) for v, w in others if not isinstance(v, float)]
                low, high = (None, constant) if cut.inside else (constant, None)
                row = scip.createEmptyRowUnspec("subtour", lhs=low, rhs=high, local=False)
                scip.cacheRowExtensions(row)
                for variable, weight in terms:
                    scip.addVarToRow(row, variable, weight)
                scip.flushRowExtensions(row)
                scip.addCut(row, forcecut=True)
                scip.releaseRow(row)

        def conssepalp(self, constraints: Any, *_: Any) -> dict[str, Any]:
            cuts = self.violated(None, LOOSE)
            self.add(cuts)
            return {"result": SCIP_RESULT.SEPARATED if cuts else SCIP_RESULT.DIDNOTFIND}

        def consenfolp(self, constraints: Any, *_: Any) -> dict[str, Any]:
            cuts = self.violated(None, TIGHT)
            self.add(cuts)
            return {"result": SCIP_RESULT.SEPARATED if cuts else SCIP_RESULT.FEASIBLE}

        def consenfops(self, constraints: Any, *_: Any) -> dict[str, Any]:
            return self.conscheck(constraints, None)

        def conscheck(self, constraints: Any, solution: Any, *_: Any) -> dict[str, Any]:
            return {"result": SCIP_RESULT.INFEASIBLE if self.violated(solution, TIGHT) else SCIP_RESULT.FEASIBLE}

        def conslock(self, constraint: Any, locktype: int, nlockspos: int, nlocksneg: int) -> None:
            both = nlockspos + nlocksneg
            for variable in (*edges, *(v for v in visits if not isinstance(v, float))):
                self.model.addVarLocksType(variable, locktype, both, both)

    return Subtours()


def _search(model: Model, end: float, seed: int) -> Found:
    from pyscipopt import Model as Scip
    from pyscipopt import quicksum

    scip = Scip()
    scip.hideOutput()
    edges, visits, objective = model.formulate(lambda: scip.addVar(vtype="B"), quicksum, scip.addCons)
    scip.setObjective(objective, "minimize")
    scip.includeConshdlr(
        _handler(model, edges, visits),
        "subtours",
        "every visited node is connected with the depot",
        sepapriority=1000,
        enfopriority=-10,  # after integrality
        chckpriority=-10,
        sepafreq=1,
        needscons=False,
    )
    scip.setParams(
        {
            "randomization/randomseedshift": seed,
            "misc/usesymmetry": 0,  # the handler's constraints are unknown to SCIP's symmetry detection
            "limits/time": max(0.01, end - time.perf_counter()),
            "timing/clocktype": 2,  # wall clock
        }
    )
    scip.optimize()
    if scip.getNSols() == 0:
        return Found(None, np.inf)
    best = scip.getBestSol()
    return Found(np.array([scip.getSolVal(best, edge) for edge in edges]), scip.getSolObjVal(best))


def solve_one(task: Task, seconds: float, seed: int) -> Answer:
    return solve_exactly(task, seconds, lambda model, end: _search(model, end, seed))


SOLVERS = (exact_solver("scip", "pyscipopt", "Apache-2.0 (SCIP), MIT (PySCIPOpt)", solve_one),)
