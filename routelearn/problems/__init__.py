"""Problems by id: the paper's eight and a family of vehicle routing variants, one object each, and those of plugins."""

from __future__ import annotations

from routelearn.problems.attributes import Attribute
from routelearn.problems.base import Context, DeviceRng, NumpyRng, Problem, Rng
from routelearn.problems.cvrp import CVRP
from routelearn.problems.op import OP
from routelearn.problems.pctsp import PCTSP, SPCTSP
from routelearn.problems.resources import Length, Load, Penalty, Prize, Resource
from routelearn.problems.sdvrp import SDVRP
from routelearn.problems.tsp import TSP
from routelearn.problems.vrp import VRP
from routelearn.registry import Registry

_OWN = (TSP(), CVRP(), SDVRP(), OP("const"), OP("unif"), OP("dist"), PCTSP(), SPCTSP(), VRP())

PROBLEMS: Registry[Problem] = Registry("problem", {problem.name: problem for problem in _OWN})
get = PROBLEMS.find


__all__ = [
    "PROBLEMS",
    "Attribute",
    "Context",
    "DeviceRng",
    "Length",
    "Load",
    "NumpyRng",
    "Penalty",
    "Prize",
    "Problem",
    "Resource",
    "Rng",
    "get",
]
