"""TSP by LKH (Helsgaun 2000, 2017), symmetric and asymmetric, as packaged by elkai."""

from __future__ import annotations

from routelearn.solvers.adapters.base import Library
from routelearn.solvers.adapters.tsplib import tsp_text
from routelearn.solvers.tasks import Answer, Task

TRIALS_PER_NODE = 1  # LKH's own default: as many trials as nodes


def solve_one(task: Task, seconds: float, seed: int) -> Answer:
    """One run of LKH, cut short by the time limit (which counts per run)."""
    from elkai import _elkai  # the public functions take neither seed nor time limit

    settings = {
        "PROBLEM_FILE": ":stdin:",
        "RUNS": 1,
        "MAX_TRIALS": TRIALS_PER_NODE * task.nodes,
        "SEED": 1 + seed,
        "TIME_LIMIT": f"{seconds:.3f}",
        "TRACE_LEVEL": 0,
    }
    found = _elkai.solve_problem("".join(f"{key} = {value}\n" for key, value in settings.items()), tsp_text(task))
    tour = [int(node) - 1 for node in found]
    return tour if sorted(tour) == list(range(task.nodes)) else None


SOLVERS = (
    Library(
        name="elkai",
        problems=frozenset({"tsp"}),
        licence="LKH: free for academic and non-commercial use only",
        extra="lkh",
        function=solve_one,
    ),
)
