"""The registry: names, choices, and an import that compiles and loads nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from routelearn import solvers
from routelearn.errors import InputError


def test_names_are_those_of_the_solvers():
    assert all(solver.name == name for name, solver in solvers.SOLVERS.items())
    assert all(isinstance(solver, solvers.Solver) for solver in solvers.SOLVERS.values())


def test_no_name_is_registered_twice():
    from importlib import import_module

    names = [s.name for module in solvers.MODULES for s in import_module(f"routelearn.solvers.{module}").SOLVERS]
    assert len(names) == len(set(names))


def test_an_unknown_name_lists_the_choices():
    with pytest.raises(InputError, match=r"unknown solver 'farthest'; the choices are .*farthest-insertion.*pctsp-ils"):
        solvers.get("farthest")


def test_the_solvers_of_a_problem():
    assert "christofides+2opt" in [solver.name for solver in solvers.for_problem("tsp")]
    assert "savings" not in [solver.name for solver in solvers.for_problem("tsp")]
    with pytest.raises(InputError, match=r"unknown problem 'atsp'; the choices are tsp"):
        solvers.for_problem("atsp")


def test_the_import_loads_no_foreign_solver_and_compiles_nothing():
    code = (
        "import sys; from routelearn.solvers import SOLVERS; "
        "from routelearn.solvers.own.constructions import insertion; "
        "print([m for m in ('pyvrp', 'ortools', 'pyscipopt', 'gurobipy', 'elkai', 'hygese') if m in sys.modules], "
        "insertion.signatures)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"
