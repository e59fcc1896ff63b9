"""An anytime search of one instance: offer it solutions, run it in slices, read off the best."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from routelearn.errors import InputError
from routelearn.problems.base import LARGE, NumpyRng, Problem, declared_search, is_large, routes_of
from routelearn.search.engines import ENGINES, Engine, RoutesEngine
from routelearn.search.general import GeneralEngine, load_general_kernels, trimmed
from routelearn.search.graph import Graph, floats, graph_of_places, lengths

SLICE = 0.004  # seconds between two looks at the clock
SLICES = 64  # slices of a run limited by iterations, and the fewest of one limited by time
FIRST_WORK = 1  # iterations of the first slice, before the speed is known
DESCENT_WORK = 2000  # customers looked at between two looks at the clock


def engine_for(problem: Problem, x: Any, seed: int, graph: Graph | None = None) -> Engine:
    """The engine for an instance with batch axis 1; `graph` is that of another engine for the same instance."""
    if problem.reveals_on_visit:
        raise InputError(
            f"{problem.name}: prizes are known only after each visit, so a finished tour cannot be improved in "
            "hindsight; plan the rest of a route with routelearn.search.plan instead"
        )
    declared = declared_search(problem)
    if declared is None:
        return GeneralEngine(problem, x, seed, graph)
    if declared not in ENGINES:
        raise InputError(f"{problem.name}: there is no search {declared!r}; there are {', '.join(ENGINES)}")
    return ENGINES[declared](problem, x, seed, graph)


class Search:
    """Local search, then a metaheuristic, on one instance (batch axis 1, CPU); one thread, the GIL released.

    `horizon` is the time in seconds that all runs together will take: the search cools over it. Without it every
    run anneals anew from the best solution. Solutions are judged by `problem.cost`; equal seeds and iteration
    limits give equal results. Searches of one instance may share a `graph`.
    """

    def __init__(
        self, problem: Problem, x: Any, seed: int = 0, *, horizon: float | None = None, graph: Graph | None = None
    ):
        load_kernels(problem, x)
        self.problem, self.x, self.horizon = problem, x, horizon
        self.engine = engine_for(problem, x, seed, graph)
        self.graph = self.engine.graph
        self.best_tour: Tensor | None = None  # [1, 1, T]
        self.best_cost = float("inf")
        self.spent = 0.0  # seconds of all runs
        self.started, self.settled = False, False  # a solution is loaded; it is at a local optimum
        self.random = np.random.default_rng(seed)
        self.rate = 0.0  # iterations a second

    def offer(self, tour: Tensor, *, restart: bool = False) -> bool:
        """A feasible tour ([T], or [1, S, T]: the best of them) to go on from; True if it is a new best.

        One that is no better than the best is taken up only with `restart`.
        """
        tours = tour.view(1, 1, -1) if tour.dim() == 1 else tour
        self.problem.check(self.x, tours)
        costs = self.problem.cost(self.x, tours)[0]
        chosen = int(costs.argmin())
        better = float(costs[chosen]) < self.best_cost
        if better:
            self.best_tour, self.best_cost = tours[:, chosen : chosen + 1].clone(), float(costs[chosen])
        if (better or restart) and self.engine.load(tours[0, chosen].numpy()):
            self.started, self.settled = True, False
        return better

    def run(self, seconds: float | None = None, *, iterations: int | None = None) -> bool:
        """Search for `seconds`, or `iterations` of the metaheuristic, whichever ends first; True if improved.

        With neither, run the local search to its optimum and stop.
        """
        begun = time.perf_counter()
        deadline = float("inf") if seconds is None else begun + seconds
        before = self.best_cost
        if not self.started:
            self.engine.construct()
            self.started = True
        while not self.settled and time.perf_counter() + self.engine.slow < deadline:
            self.settled = self.engine.descend(DESCENT_WORK)
        if (seconds is not None or iterations is not None) and not self.engine.exhausted:
            self._explore(begun, seconds, deadline, iterations)
        self._collect()
        self.spent += time.perf_counter() - begun
        return self.best_cost < before

    def _explore(self, begun: float, seconds: float | None, deadline: float, iterations: int | None) -> None:
        self.engine.return_to_best()
        done, now = 0, time.perf_counter()
        while now + self.engine.slow < deadline and (iterations is None or done < iterations):
            if seconds is None:
                assert iterations is not None
                cooled, work = done / iterations, min(max(1, iterations // SLICES), iterations - done)
            else:
                span, gone = (
                    (seconds, now - begun) if self.horizon is None else (self.horizon, self.spent + now - begun)
                )
                cooled = min(1.0, gone / max(span, 1e-9))
                slot = min(SLICE, seconds / SLICES, deadline - now)
                work = max(1, int(self.rate * slot)) if self.rate else FIRST_WORK
                if iterations is not None:
                    cooled, work = max(cooled, done / iterations), min(work, iterations - done)
            self.engine.explore(cooled, work)
            done += work
            then, now = now, time.perf_counter()
            self.rate = work / max(now - then, 1e-9)

    def _collect(self) -> None:
        """The engine's best, if the referee agrees that it is better."""
        found = torch.from_numpy(self.engine.best()).view(1, 1, -1)
        cost = float(self.problem.cost(self.x, found)[0, 0])
        if cost < self.best_cost:
            self.best_tour, self.best_cost = found, cost

    def destroyed(self, count: int = 1, share: float = 0.3) -> Tensor:
        """[1, count, P]: the best solution with about `share` of it left off, to be completed by a policy.

        Each is a prefix for `rollout(prefix=...)`, -1 where the policy chooses; offer the results. What is left off:
        a stretch of the tour (TSP), routes near each other (CVRP, SDVRP), the end of the route (OP, PCTSP) or of the
        whole tour (by the general engine).
        """
        assert self.best_tour is not None, "run the search or offer a solution first"
        tour = self.best_tour[0, 0].tolist()
        prefixes = [self._prefix(tour, share) for _ in range(count)]
        longest = max(map(len, prefixes))
        return torch.tensor([[prefix + [-1] * (longest - len(prefix)) for prefix in prefixes]], dtype=torch.long)

    def _prefix(self, tour: list[int], share: float) -> list[int]:
        engine = self.engine
        if isinstance(engine, RoutesEngine):
            return self._routes_kept(tour, share)
        if isinstance(engine, GeneralEngine):  # nothing is known of what may be turned or left out
            kept: list[int] = trimmed(np.array(tour)).tolist()
            share *= 2 * self.random.random()
            return kept[: len(kept) - max(1, round(share * len(kept)))]
        nodes = [node for node in tour if node] if self.problem.has_depot else tour[: self.x.xy.shape[1]]
        left_off = max(1, round(share * len(nodes)))
        if not self.problem.has_depot:
            start = int(self.random.integers(len(nodes)))
            nodes = nodes[start:] + nodes[:start]
        if self.graph.symmetric and self.random.random() < 0.5:
            nodes = nodes[::-1]
        return nodes[: len(nodes) - left_off]

    def _routes_kept(self, tour: list[int], share: float) -> list[int]:
        """All routes except those nearest to a random customer and those that share a customer with them."""
        assert isinstance(self.engine, RoutesEngine)
        routes = routes_of(tour)
        customers = sum(map(len, routes))
        seed = routes[int(self.random.integers(len(routes)))][0]
        away = [float(lengths(self.graph.legs, np.full(len(route), seed), np.array(route)).min()) for route in routes]
        gone: set[int] = set()
        lost = 0
        for r in np.argsort(away, kind="stable"):
            if lost >= share * customers:
                break
            if not gone.intersection(routes[r]):
                lost += len(routes[r])
            gone.update(routes[r])
        while any(gone.intersection(route) and not gone.issuperset(route) for route in routes):
            for route in routes:
                if gone.intersection(route):
                    gone.update(route)
        return [node for route in routes if not gone.intersection(route) for node in (*route, 0)]


@cache
def _load_kernels(name: str, large: bool) -> None:
    from routelearn.problems import get
    from routelearn.search.plan import engine_ahead

    problem = get(name)
    engine: Engine
    if problem.reveals_on_visit:
        x = problem.sample(NumpyRng(0), 1, LARGE if large else 8)  # and the depot
        engine = engine_ahead(problem, x.public(), np.arange(9), 1.0)
    else:
        x = problem.sample(NumpyRng(0), 1, 8)
        engine = engine_for(problem, x, 0, graph_of_places(floats(x.xy[0]), 0, 8) if large else None)
    engine.construct()
    while not engine.descend(DESCENT_WORK):
        pass
    engine.explore(0.0, 10)
    engine.return_to_best()
    engine.load(engine.best())


def load_kernels(problem: Problem, x: Any = None) -> None:
    """Compile the problem's kernels, or load them from the cache on disk, before timing starts.

    A large instance x needs others than those for a matrix.
    """
    if declared_search(problem) is None:
        load_general_kernels()
    else:
        _load_kernels(problem.name, x is not None and is_large(problem, x))
