"""TSP, CVRP, OP and PCTSP by the routing library of OR-Tools, as the paper states them (D.3, E.3)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from routelearn.solvers.adapters.base import Library
from routelearn.solvers.tasks import OP, Answer, Task, limited_legs, unit_scale, whole, whole_prizes

SCALE = 10**7  # D.3, E.3: floats times 10^7, here relative to the longest leg or to the length limit
LARGEST_PRIZE = 100 * SCALE  # OP: prize comes before length by far

# The search settles within a fraction of a second for the OP, and where depends on where it began: these three
# starts, a third of the time each, found 15 % more prize than the first alone (6 instances, n = 50, 1 s).
OP_STARTS = ("PARALLEL_CHEAPEST_INSERTION", "SAVINGS", "ALL_UNPERFORMED")
START = ("PATH_CHEAPEST_ARC",)


def prepare() -> None:
    import ortools.util.optional_boolean_pb2  # noqa: F401
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2  # noqa: F401


def _order(nodes: int, seed: int) -> np.ndarray:
    """[N]: which node stands at which place. The search itself knows no seed, but depends on the numbering."""
    return np.r_[0, 1 + np.random.default_rng(seed).permutation(nodes - 1)]


def _search(task: Task, order: np.ndarray, start: str, ends: Sequence[float]) -> Iterator[tuple[list[int], float]]:
    """One search, told at each of the ends: tours, and objectives in the library's own integers."""
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2
    from ortools.util.optional_boolean_pb2 import BOOL_TRUE

    legs = limited_legs(task, SCALE) if task.family == "op" else whole(task.legs(), unit_scale(task.legs(), SCALE))
    vehicles = task.vehicles() if task.family == "cvrp" else 1
    manager = pywrapcp.RoutingIndexManager(task.nodes, vehicles, 0)
    routing = pywrapcp.RoutingModel(manager)
    transit = routing.RegisterTransitMatrix(legs[np.ix_(order, order)].tolist())
    routing.SetArcCostEvaluatorOfAllVehicles(transit)
    parameters = pywrapcp.DefaultRoutingSearchParameters()
    if task.family == "cvrp":
        load = routing.RegisterUnaryTransitVector(task.demand[order].tolist())
        routing.AddDimensionWithVehicleCapacity(load, 0, [task.capacity] * vehicles, True, "load")
    elif task.family == "op":
        # D.3 has no cost of length at all; a small one changes no ranking of prizes, and guides the search
        routing.AddDimension(transit, 0, SCALE, True, "length")
        _allow_skipping(routing, manager, whole(task.prize, unit_scale(task.prize, LARGEST_PRIZE))[order])
        parameters.local_search_operators.use_extended_swap_active = BOOL_TRUE
    elif task.family == "pctsp" and not task.must_visit_all():
        prizes, minimum = whole_prizes(task)
        collect = routing.RegisterUnaryTransitVector(prizes[order].tolist())
        routing.AddDimension(collect, 0, int(prizes.sum()), True, "prize")
        routing.GetDimensionOrDie("prize").CumulVar(routing.End(0)).SetMin(minimum)
        _allow_skipping(routing, manager, whole(task.penalty, unit_scale(task.legs(), SCALE))[order])
    parameters.first_solution_strategy = getattr(routing_enums_pb2.FirstSolutionStrategy, start)
    parameters.local_search_metaheuristic = routing_enums_pb2.LocalSearchMetaheuristic.GUIDED_LOCAL_SEARCH
    solution = None
    for end in ends:
        parameters.time_limit.FromMilliseconds(max(1, int(1000 * (end - time.perf_counter()))))
        if solution is None:
            solution = routing.SolveWithParameters(parameters)
        else:
            solution = routing.SolveFromAssignmentWithParameters(solution, parameters) or solution
        if solution is not None:
            routes = [_route(routing, manager, solution, vehicle) for vehicle in range(vehicles)]
            yield task.tour_of([order[route].tolist() for route in routes]), float(solution.ObjectiveValue())


def _route(routing: Any, manager: Any, solution: Any, vehicle: int) -> list[int]:
    """The places a vehicle visits, without the depot."""
    index, route = routing.Start(vehicle), []
    while not routing.IsEnd(index):
        route.append(manager.IndexToNode(index))
        index = solution.Value(routing.NextVar(index))
    return route[1:]


def _allow_skipping(routing: Any, manager: Any, penalties: np.ndarray) -> None:
    """Disjunctions: every node may be left out at its penalty."""
    for place in range(1, len(penalties)):
        routing.AddDisjunction([manager.NodeToIndex(place)], int(penalties[place]))


def solve_one(task: Task, seconds: float, seed: int) -> Iterator[Answer]:
    """Better and better solutions; tours in the encoding of the task's problem."""
    begin = time.perf_counter()
    cost = np.inf
    # what is known after a part of the time answers for the case that the end comes too late on a busy machine
    shares = [(0.33,), (0.66,), (0.98,)] if task.family == "op" else [(0.3, 0.98)]
    for turn, (start, parts) in enumerate(zip(OP_STARTS if task.family == "op" else START, shares, strict=True)):
        ends = [begin + share * seconds for share in parts]
        for tour, found in _search(task, _order(task.nodes, seed + turn), start, ends):
            if found < cost:
                cost = found
                yield tour


SOLVERS = (
    Library(
        name="ortools",
        problems=frozenset({"tsp", "cvrp", "pctsp"}) | OP,
        licence="Apache-2.0",
        anytime=True,
        extra="solvers",
        function=solve_one,
        prepare=prepare,
    ),
)
