"""CVRP by HGS-CVRP, the hybrid genetic search of Vidal (2022), as packaged by hygese."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from routelearn.solvers.adapters.base import Library
from routelearn.solvers.tasks import Answer, Task, join, unit_scale

LONGEST_LEG = 1000.0  # HGS ends its process when the longest leg or largest demand is beyond 100,000
LARGEST_DEMAND = 100_000


def _load(task: Task) -> tuple[np.ndarray, float]:
    """Demands [N] and capacity in HGS's range. Halving is exact in floats, so full loads stay full."""
    demand, capacity = task.demand.astype(np.float64), float(task.capacity)
    if demand.max() == 0:  # HGS takes no instance without demand: let every customer fit
        return np.r_[0.0, np.ones(task.nodes - 1)], float(task.nodes)
    while demand.max() > LARGEST_DEMAND:
        demand, capacity = demand / 2, capacity / 2
    return demand, capacity


def solve_one(task: Task, seconds: float, seed: int) -> Iterator[Answer]:
    """Better and better solutions.

    HGS counts processor time, which on a busy machine runs slower than the clock. A first run of a tenth of the
    time tells how much slower; what was found answers for a last run that overruns all the same.
    """
    import hygese

    end = time.perf_counter() + seconds
    legs = task.legs()
    place = (task.xy - task.xy.min(0)) * unit_scale(task.xy - task.xy.min(0), LONGEST_LEG)
    demand, capacity = _load(task)
    data = {
        "x_coordinates": place[:, 0],
        "y_coordinates": place[:, 1],
        "distance_matrix": legs * unit_scale(legs, LONGEST_LEG),
        "demands": demand,
        "vehicle_capacity": capacity,
        "num_vehicles": task.vehicles(),
    }
    cost, pace = np.inf, 1.0
    for share in (0.1, 0.4, 1.0):
        begin = time.perf_counter()
        budget = max(0.01, share * (end - begin) / pace)
        parameters = hygese.AlgorithmParameters(timeLimit=budget, seed=seed)
        solution = hygese.Solver(parameters=parameters, verbose=False).solve_cvrp(data)
        pace, seed = max(1.0, (time.perf_counter() - begin) / budget), seed + 1
        if solution.cost < cost:
            cost = solution.cost
            yield join([[int(node) for node in route] for route in solution.routes])


SOLVERS = (
    Library(name="hygese", problems=frozenset({"cvrp"}), licence="MIT", anytime=True, extra="lkh", function=solve_one),
)
