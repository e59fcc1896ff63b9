"""The registry of solvers: every classical method and foreign program by the name the command line uses."""

from __future__ import annotations

from importlib import import_module

from routelearn import problems
from routelearn.registry import Registry
from routelearn.solvers.base import Solver

# One method family or one foreign program a module, each with a tuple SOLVERS.
OWN = (
    *("constructions", "savings", "christofides", "twoopt", "sweep"),
    *("tsiligirides", "op_genetic", "pctsp_ils", "reopt", "search"),
)
ADAPTERS = ("pyvrp", "ortools", "cpsat", "scip", "gurobi", "elkai", "hygese", "lkh3", "concorde", "compass")
MODULES = (*(f"own.{name}" for name in OWN), *(f"adapters.{name}" for name in ADAPTERS))

_OWN = [solver for module in MODULES for solver in import_module(f"{__name__}.{module}").SOLVERS]

SOLVERS: Registry[Solver] = Registry("solver", {solver.name: solver for solver in _OWN})
get = SOLVERS.find


def for_problem(problem: str) -> list[Solver]:
    """The solvers of a problem id, in the order of the registry."""
    problems.get(problem)  # raises for an unknown one
    return [solver for solver in SOLVERS.values() if problem in solver.problems]


__all__ = ["SOLVERS", "Solver", "for_problem", "get"]
