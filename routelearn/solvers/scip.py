"""Exact TSP, OP and PCTSP by SCIP, which is told of subtours as they appear (branch and cut)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from routelearn.solvers.adapters import Library
from routelearn.solvers.jobs import NOTHING, OP, SLACK, Answer, Job
from routelearn.solvers.mip import LOOSE, TIGHT, Cut, Model, build, short_tour


def prepare() -> None:
    """Imports, and loads the compiled separation."""
    import pyscipopt  # noqa: F401

    from routelearn.solvers.cuts import violated_sets

    violated_sets(np.zeros((3, 3)), np.ones(3), TIGHT)


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

        def conssepalp(self, constraints: Any, nusefulconss: int) -> dict[str, Any]:
            cuts = self.violated(None, LOOSE)
            self.add(cuts)
            return {"result": SCIP_RESULT.SEPARATED if cuts else SCIP_RESULT.DIDNOTFIND}

        def consenfolp(self, constraints: Any, nusefulconss: int, solinfeasible: bool) -> dict[str, Any]:
            cuts = self.violated(None, TIGHT)
            self.add(cuts)
            return {"result": SCIP_RESULT.SEPARATED if cuts else SCIP_RESULT.FEASIBLE}

        def consenfops(
            self, constraints: Any, nusefulconss: int, solinfeasible: bool, objinfeasible: bool
        ) -> dict[str, Any]:
            return {"result": SCIP_RESULT.INFEASIBLE if self.violated(None, TIGHT) else SCIP_RESULT.FEASIBLE}

        def conscheck(
            self,
            constraints: Any,
            solution: Any,
            checkintegrality: bool,
            checklprows: bool,
            printreason: bool,
            completely: bool,
        ) -> dict[str, Any]:
            return {"result": SCIP_RESULT.INFEASIBLE if self.violated(solution, TIGHT) else SCIP_RESULT.FEASIBLE}

        def conslock(self, constraint: Any, locktype: int, nlockspos: int, nlocksneg: int) -> None:
            both = nlockspos + nlocksneg
            for variable in (*edges, *(v for v in visits if not isinstance(v, float))):
                self.model.addVarLocksType(variable, locktype, both, both)

    return Subtours()


def solve_one(job: Job, seconds: float, seed: int) -> Answer:
    """The best tour found in the time, proved optimal if the search ended before."""
    from pyscipopt import Model as Scip
    from pyscipopt import quicksum

    end = time.perf_counter() + seconds
    model = build(job)
    tour, cost = short_tour(job)
    if not (model.ends == 0).any():  # OP: nothing within reach
        return Answer(tour, True)
    scip = Scip()
    scip.hideOutput()
    edges = [scip.addVar(vtype="B") for _ in model.ends]
    # y as a plain 1.0 where a visit is no choice
    visits: list[Any] = [
        1.0 if model.all_visited or node == 0 else scip.addVar(vtype="B") for node in range(model.nodes)
    ]
    for node, touching, degree in model.degree_rows():
        scip.addCons(quicksum(edges[e] for e in touching) == degree * visits[node])
    total = quicksum(cost * variable for cost, variable in zip(model.cost.tolist(), edges, strict=True))
    if job.family == "op":
        assert job.prize is not None
        prize = quicksum(float(p) * v for p, v in zip(job.prize[1:], visits[1:], strict=True))
        scip.addCons(total <= job.max_length)
        scip.setObjective(prize, "maximize")
    elif job.family == "pctsp" and not model.all_visited:
        assert job.prize is not None
        assert job.penalty is not None
        prize = quicksum(float(p) * v for p, v in zip(job.prize[1:], visits[1:], strict=True))
        scip.addCons(prize >= job.min_prize * (1 - SLACK))
        left_out = quicksum(float(p) * (1 - v) for p, v in zip(job.penalty[1:], visits[1:], strict=True))
        scip.setObjective(total + left_out, "minimize")
    else:
        scip.setObjective(total, "minimize")
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
    proved = scip.getStatus() in ("optimal", "infeasible")
    if scip.getNSols() > 0:
        best = scip.getBestSol()
        longer = model.tour(np.array([scip.getSolVal(best, variable) for variable in edges]))
        value = scip.getSolObjVal(best)
        if (-value if job.family == "op" else value) < cost:
            tour = longer
    return NOTHING if tour is None else Answer(tour, proved)


SOLVERS = (
    Library(
        name="scip",
        problems=frozenset({"tsp", "pctsp"}) | OP,
        licence="Apache-2.0 (SCIP), MIT (PySCIPOpt)",
        anytime=False,
        exact=True,
        package="pyscipopt",
        extra="exact",
        function=solve_one,
        prepare=prepare,
    ),
)
