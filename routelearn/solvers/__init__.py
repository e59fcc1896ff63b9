"""The registry of solvers: every classical method and foreign program by the name the command line uses."""

from __future__ import annotations

from importlib import import_module

from routelearn.errors import InputError
from routelearn.problems import PROBLEMS
from routelearn.solvers.base import Solver

# One method family or one foreign program a module, each with a tuple SOLVERS.
OWN = (
    *("neighbour", "insertion", "savings", "christofides", "twoopt", "sweep"),
    *("tsiligirides", "op_genetic", "pctsp_ils", "reopt"),
)
ADAPTERS = ("pyvrp", "ortools", "cpsat", "scip", "gurobi", "elkai", "hygese", "lkh3", "concorde", "compass")
MODULES = (*(f"own.{name}" for name in OWN), *(f"adapters.{name}" for name in ADAPTERS))

SOLVERS: dict[str, Solver] = {
    solver.name: solver for module in MODULES for solver in import_module(f"{__name__}.{module}").SOLVERS
}


def get(name: str) -> Solver:
    """The solver of that name; an unknown name raises and lists the choices."""
    if name not in SOLVERS:
        raise InputError(f"unknown solver {name!r}; the choices are {', '.join(SOLVERS)}")
    return SOLVERS[name]


def for_problem(problem: str) -> list[Solver]:
    """The solvers of a problem id, in the order of the registry."""
    if problem not in PROBLEMS:
        raise InputError(f"unknown problem {problem!r}; the choices are {', '.join(PROBLEMS)}")
    return [solver for solver in SOLVERS.values() if problem in solver.problems]


__all__ = ["SOLVERS", "Solver", "for_problem", "get"]
