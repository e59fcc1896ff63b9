"""CVRP, TSP and OP by PyVRP (Wouda, Lan and Kool 2024): an iterated local search on routes."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from routelearn.solvers.adapters.base import Library
from routelearn.solvers.tasks import OP, Answer, Task, limited_legs, unit_scale, whole

LONGEST_LEG = 100_000  # finer than any route can tell, and its penalties stay within PyVRP's bounds
LIMIT = 10**7  # OP: the length limit in whole numbers
LARGEST_PRIZE = 100 * LIMIT  # OP: a hundredth of it still outweighs every saving in length


def solve_one(task: Task, seconds: float, seed: int) -> Answer:
    """The best solution found in the time; a tour in the encoding of the task's problem."""
    import pyvrp
    from pyvrp.stop import MaxRuntime

    end = time.perf_counter() + seconds
    customers = range(1, task.nodes)
    legs: Any
    if task.family == "op":
        legs = limited_legs(task, LIMIT)
        # So large that prize comes first and length, at a cost of 1, only guides the search. Without a cost of length
        # it has nothing to descend on between two visits gained.
        prizes = whole(task.prize, unit_scale(task.prize, LARGEST_PRIZE))
        clients = [pyvrp.Client(node, prize=int(prizes[node]), required=False) for node in customers]
        vehicles = pyvrp.VehicleType(1, max_distance=LIMIT)
    else:
        exact = task.legs()
        legs = whole(exact, unit_scale(exact, LONGEST_LEG))
        if task.family == "cvrp":
            clients = [pyvrp.Client(node, delivery=[int(task.demand[node])]) for node in customers]
            vehicles = pyvrp.VehicleType(task.vehicles(), capacity=[task.capacity])
        else:
            clients = [pyvrp.Client(node) for node in customers]
            vehicles = pyvrp.VehicleType(1)
    places = [pyvrp.Location(*point) for point in whole(task.xy, unit_scale(np.abs(task.xy), LONGEST_LEG)).tolist()]
    durations: Any = np.zeros_like(legs)
    data = pyvrp.ProblemData(places, clients, [pyvrp.Depot(0)], [vehicles], [legs], [durations])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyvrp.exceptions.PenaltyBoundWarning)
        stop = MaxRuntime(max(0.0, end - time.perf_counter()))
        best = pyvrp.solve(data, stop, seed=seed, collect_stats=False, display=False).best
    if not best.is_feasible():
        return None
    routes = [[activity.idx + 1 for activity in route if activity.is_client()] for route in best.routes()]
    return task.tour_of(routes)


SOLVERS = (
    Library(
        name="pyvrp",
        problems=frozenset({"tsp", "cvrp"}) | OP,
        licence="MIT",
        anytime=True,
        extra="solvers",
        function=solve_one,
    ),
)
