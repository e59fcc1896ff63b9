"""The registry of problems: eight ids, one object each."""

from __future__ import annotations

from routelearn.errors import InputError
from routelearn.problems.base import Context, DeviceRng, NumpyRng, Problem, Rng
from routelearn.problems.cvrp import CVRP
from routelearn.problems.op import OP
from routelearn.problems.pctsp import PCTSP
from routelearn.problems.sdvrp import SDVRP
from routelearn.problems.spctsp import SPCTSP
from routelearn.problems.tsp import TSP

PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (TSP(), CVRP(), SDVRP(), OP("const"), OP("unif"), OP("dist"), PCTSP(), SPCTSP())
}


def get(name: str) -> Problem:
    """The problem of that id; an unknown id raises and lists the choices."""
    if name not in PROBLEMS:
        raise InputError(f"unknown problem {name!r}; the choices are {', '.join(PROBLEMS)}")
    return PROBLEMS[name]


__all__ = ["PROBLEMS", "Context", "DeviceRng", "NumpyRng", "Problem", "Rng", "get"]
