"""One search engine per kind of solution (a tour, vehicle routes, a selective route), behind one small interface.

A problem names its kind in `search` and gives its rules by `resources`; one that names none gets the general engine
(`general.py`).

An engine holds the arrays of one instance and calls the compiled kernels on them. It knows lists of nodes in the
problem's encoding, not tensors, and its own idea of the cost; `search.Search` referees with the problem's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from routelearn.errors import InputError
from routelearn.problems.base import Problem, has_matrix
from routelearn.problems.resources import Length, Load, Penalty, Prize, order_free, uncompiled
from routelearn.search import constructions, routes_local, selective_kernel, sisr_kernel, tsp_kernel
from routelearn.search.compiling import compiling
from routelearn.search.graph import Graph, floats, graph_of, lengths, random_state
from routelearn.search.routes import clear, copy_all, empty_routes, read_split_tour, read_tour, total_length, write_tour
from routelearn.search.rules import hold
from routelearn.search.swap_star import angles

Tour = NDArray[np.int64]

NEIGHBOURS_TOUR, NEIGHBOURS_ROUTES = 10, 40
ROUND = 2  # a round over a selective route takes about 1 / ROUND unit of work for each node
POLISH_LOOKS = 1000  # customers looked at by a local search between two steps of the metaheuristic, at most
LOOK = 4  # units of work in a look at all moves of a customer between routes
BREADTH = 5  # neighbours tried at the third level of a 3-opt move
UNLIMITED = 1 << 60


class Engine(Protocol):
    """A search of one instance, in slices."""

    graph: Graph
    exhausted: bool  # so few nodes that local search finds the optimum: nothing to explore
    slow: float  # seconds that the smallest piece of work takes, where that is not next to nothing

    def construct(self) -> None:
        """A simple first solution becomes the present one."""
        ...

    def load(self, tour: Tour) -> bool:
        """A feasible solution becomes the present one; False if the engine cannot hold it."""
        ...

    def descend(self, work: int) -> bool:
        """Local search with about `work` units of work; True when the local optimum is reached."""
        ...

    def explore(self, cooled: float, work: int) -> None:
        """`work` iterations of the metaheuristic; `cooled` runs from 0 (hot) to 1 (cold)."""
        ...

    def return_to_best(self) -> None:
        """The best solution becomes the present one."""
        ...

    def best(self) -> Tour:
        """The best solution since the last load, in the problem's encoding."""
        ...


def geometric(hot: float, cold: float, cooled: float) -> float:
    """The temperature between hot and cold."""
    return hot * (cold / hot) ** cooled


class TourEngine:
    """TSP: iterated 3-opt. A unit of work is one node looked at, or one kick in `explore`."""

    slow = 0.0
    HOT, COLD = 0.03, 0.003  # temperature in mean legs
    STRETCH = 50  # positions that a kick moves, at most

    def __init__(self, problem: Problem, x: Any, seed: int, graph: Graph | None = None):
        self.graph = graph_of(problem, x, NEIGHBOURS_TOUR) if graph is None else graph
        self.nodes = nodes = self.graph.legs.shape[0]
        self.exhausted = nodes < tsp_kernel.FEWEST
        self.breadth = min(BREADTH, nodes - 1)
        # A kick over more than a third of a tour is no local change, unless the tour is small.
        self.stretch = min(self.STRETCH, max(3 * nodes // 10, 8))
        self.tour, self.pos, self.shortest = (np.zeros(nodes, np.int32) for _ in range(3))
        self.queue, self.queued = np.zeros(nodes, np.int32), np.zeros(nodes, np.bool_)
        self.whole, self.real = np.zeros(4, np.int64), np.zeros(3)
        self.journal, self.touched = np.zeros((512, 4), np.int32), np.zeros(8, np.int32)
        self.random = random_state(seed)

    def construct(self) -> None:
        self.load(constructions.nearest_neighbour(self.graph.legs, self.graph.after).astype(np.int64))

    def load(self, tour: Tour) -> bool:
        self.tour[:] = tour[: self.nodes]  # what follows repeats the last node
        self.pos[self.tour] = np.arange(self.nodes)
        self.queue[:], self.queued[:] = self.tour, True
        length = lengths(self.graph.legs, self.tour, np.roll(self.tour, -1)).sum()
        self.whole[:] = 0, self.nodes, 0, 0
        self.real[:] = length
        self.shortest[:] = self.tour
        return True

    def _run(self, temperature: float, looks: int, kicks: int) -> tuple[int, int]:
        graph = self.graph
        return tsp_kernel.kick_and_repair(
            self.tour, self.pos, self.shortest, graph.legs, graph.after, self.breadth, self.stretch, graph.symmetric,
            graph.epsilon, temperature, self.queue, self.queued, self.whole, self.real, self.journal, self.touched,
            self.random, looks, kicks,
        )  # fmt: skip

    def descend(self, work: int) -> bool:
        self._run(0.0, work, 0)
        return self.whole[tsp_kernel.WAITING] == 0

    def explore(self, cooled: float, work: int) -> None:
        temperature = geometric(self.HOT, self.COLD, cooled) * self.real[tsp_kernel.LENGTH] / self.nodes
        self._run(temperature, UNLIMITED, work)

    def return_to_best(self) -> None:
        if self.whole[tsp_kernel.WAITING] == 0:
            self.load(self.best())
            self.queued[:] = False
            self.whole[:] = 0

    def best(self) -> Tour:
        return self.shortest.astype(np.int64)


class RoutesEngine:
    """Vehicle routes: slack induction by string removals, with local search over the routes now and then.

    Split deliveries know one rule, the load.
    """

    slow = 0.0
    HOT, COLD = 1.0, 0.05  # temperature in mean legs
    WIDE = 20  # neighbours beside which a customer may be inserted
    DESCENT = 10  # split deliveries: ruin-and-recreate steps per customer that stand for a local search
    POLISH = 3  # such steps per customer from one local search to the next
    compiled: ClassVar[set[tuple[type, ...]]] = set()  # kinds of resources and legs that this process has kernels for

    def __init__(self, problem: Problem, x: Any, seed: int, graph: Graph | None = None, *, split: bool = False):
        self.graph = graph_of(problem, x, NEIGHBOURS_ROUTES) if graph is None else graph
        self.split = split
        nodes = self.graph.legs.shape[0]
        resources = declared_resources(problem, x) or (Load(np.zeros(nodes), np.inf),)
        loads = [one for one in resources if isinstance(one, Load)]
        if split and (len(resources) > 1 or not loads):
            raise InputError(f"{problem.name}: the search over split deliveries takes one resource, a Load")
        self.capacity = loads[0].capacity if loads else np.inf
        full = loads[0].amount if loads else np.zeros(nodes)
        # Whole vehicle loads beyond the last go straight there and back; the search plans the rest.
        self.trips = np.where(full > 0, (full - 1) // self.capacity, 0).astype(np.int64) if split else np.zeros(1, int)
        self.demand = full - self.trips * self.capacity if split else full
        self.served = np.flatnonzero(full > 0 if split else np.arange(nodes) > 0).astype(np.int32)
        self.exhausted = len(self.served) < 2
        self.now, self.kept, self.shortest = (empty_routes(nodes, split) for _ in range(3))
        if split:
            resources = (Load(self.now.amount, self.capacity),)
        self.rules = hold(resources, nodes)
        self.turning = self.graph.symmetric and all(map(order_free, resources))
        self.out, self.keys = np.zeros(nodes, np.int32), np.zeros(nodes)
        self.scratch = (np.zeros(64, np.int32), np.zeros(64, np.int32), np.zeros(64))
        self.dirty, self.is_dirty = np.zeros(nodes, np.int32), np.zeros(nodes, np.bool_)
        self.wide = min(self.WIDE, nodes - 1)
        self.polar = not has_matrix(x)
        self.extents = angles(floats(x.xy[0])) if self.polar else floats(x.xy[0])
        self.marks, self.desk = routes_local.fresh_marks(nodes), routes_local.new_desk(nodes)
        self.real = np.zeros(2)
        self.descent_left, self.unpolished = 0, 0
        self.random = random_state(seed)
        kinds = (*map(type, resources), type(self.graph.legs))
        if kinds not in self.compiled and not self.exhausted:
            try:
                with compiling(resources):
                    self.construct()
                    self._local_search(1)
                    self._anneal(0.0, 1)
            except NumbaError as error:
                told = re.findall(r"Error: (.+)", str(error)) or str(error).splitlines()
                names = ", ".join(kind.__name__ for kind in kinds[:-1])
                words = next(filter(None, map(uncompiled, resources)), None)
                words = words or f"numba cannot compile the resources {names}: {told[-1]}"
                raise InputError(f"{problem.name}: {words}") from error
            self.compiled.add(kinds)
            self.random = random_state(seed)

    def construct(self) -> None:
        if self.split:
            self.now.amount[:] = self.demand
        constructions.savings(self.graph, self.turning, self.served, self.now, self.rules)
        self._adopt()

    def load(self, tour: Tour) -> bool:
        if not self.split:
            read_tour(np.array(tour, dtype=np.int64), self.now)
        elif not read_split_tour(self._without_trips(tour), self.demand, self.capacity, self.now):
            clear(self.now)
            copy_all(self.kept, self.now)
            return False
        self._adopt()
        return True

    def _without_trips(self, tour: Tour) -> Tour:
        """The tour less the straight trips and less visits to customers that are owed nothing."""
        trips, kept = self.trips.copy(), []
        wanted = np.zeros(len(self.demand), np.bool_)
        wanted[self.served] = True
        for route in np.split(tour, np.flatnonzero(tour == 0)):
            visits = [int(c) for c in route if wanted[c]]
            if len(visits) == 1 and trips[visits[0]] > 0:
                trips[visits[0]] -= 1
            else:
                kept += [0, *visits]
        return np.array(kept, dtype=np.int64)

    def _settle(self) -> None:
        """The present solution is the one to fall back to."""
        copy_all(self.now, self.kept)
        sisr_kernel.settle(self.now, self.rules, self.graph.legs, self.capacity)

    def _adopt(self) -> None:
        self._settle()
        copy_all(self.now, self.shortest)
        self.real[:] = total_length(self.now, self.graph.legs)
        self.descent_left = self.DESCENT * len(self.served)
        self.marks = routes_local.fresh_marks(len(self.demand))

    def descend(self, work: int) -> bool:
        if self._walkable():
            before = self.real[sisr_kernel.LENGTH]
            done = self._local_search(max(1, work // LOOK))
            if not (done and self.split) or self.real[sisr_kernel.LENGTH] < before - self.graph.epsilon:
                return done and not self.split
        steps = min(self.descent_left, max(1, work // 16))
        self._anneal(0.0, steps)
        self.descent_left -= steps
        return self.descent_left == 0

    def _walkable(self) -> bool:
        """Local search walks every customer, and knows no split deliveries."""
        return len(self.served) == len(self.demand) - 1 and not self.now.tails.any()

    def _local_search(self, looks: int) -> bool:
        """Go on with the descent of the present solution; True at its local optimum."""
        graph = self.graph
        size, done = routes_local.descend_routes(
            write_tour(self.now), self.rules, graph.legs, graph.near, self.wide, self.extents, self.polar,
            graph.turnable, graph.symmetric, graph.epsilon, self.marks, self.desk, looks,
        )  # fmt: skip
        read_tour(self.desk.seq[:size], self.now)
        if self.split:
            self.now.amount[:] = self.demand
        self._settle()
        self.real[sisr_kernel.LENGTH] = total_length(self.now, graph.legs)
        if self.real[sisr_kernel.LENGTH] < self.real[sisr_kernel.BEST] - graph.epsilon:
            self.real[sisr_kernel.BEST] = self.real[sisr_kernel.LENGTH]
            copy_all(self.now, self.shortest)
        return bool(done)

    def _anneal(self, temperature: float, iterations: int) -> None:
        graph = self.graph
        if self.exhausted:
            return
        sisr_kernel.anneal(
            self.now, self.kept, self.shortest, self.rules, graph.legs, graph.back, graph.near, self.demand,
            self.capacity, self.served, self.wide, self.split, graph.symmetric, graph.epsilon, temperature,
            self.out, self.keys, self.scratch, self.dirty, self.is_dirty, self.real, self.random, iterations,
        )  # fmt: skip

    def explore(self, cooled: float, work: int) -> None:
        mean = self.real[sisr_kernel.BEST] / max(1, len(self.served))
        self._anneal(geometric(self.HOT, self.COLD, cooled) * mean, work)
        self.unpolished += work
        due = self.unpolished >= self.POLISH * len(self.served) and self._walkable()
        if due and self._local_search(POLISH_LOOKS):  # not at its end: the next call goes on with it
            self.unpolished = 0
            self.marks = routes_local.fresh_marks(len(self.demand))

    def return_to_best(self) -> None:
        copy_all(self.shortest, self.now)
        self._settle()
        self.real[sisr_kernel.LENGTH] = self.real[sisr_kernel.BEST]

    def best(self) -> Tour:
        tour = write_tour(self.shortest)
        if not self.trips.any():
            return tour
        straight = np.repeat(np.arange(len(self.trips)), self.trips)
        return np.concatenate((np.stack((straight, np.zeros_like(straight)), 1).ravel(), tour))


class SelectiveEngine:
    """One route that may leave stops out: ruin, refill, shorten and drop."""

    slow = 0.0
    LONGEST, WIDE = 10, 12
    LENGTH_PRICE = 0.1  # prizes are all that counts: driving the whole limit costs this many mean prizes

    def __init__(self, resources: tuple[Any, ...], by_prize: bool, seed: int, graph: Graph):
        self.graph = graph
        nodes = graph.legs.shape[0]
        self.exhausted = nodes < 3
        given = {type(one): one for one in resources}
        for kind in given.keys() - {Length, Prize, Penalty}:
            raise InputError(f"the search that leaves stops out knows Length, Prize and Penalty, no {kind.__name__}")
        prize, least = given.get(Prize, Prize(np.zeros(nodes)))
        limit = given[Length].limit if Length in given else np.inf
        penalty = given[Penalty].amount if Penalty in given else np.zeros(nodes)
        self.mean_prize = max(float(prize[1:].mean()), 1e-30)
        price = self.LENGTH_PRICE * self.mean_prize / limit if by_prize else 1.0
        self.rules = selective_kernel.Rules(prize, penalty, limit, least, by_prize, price)
        self.hot, self.cold = (0.5, 0.1) if by_prize else (0.5, 0.05)  # temperature in mean prizes, or mean legs
        self.wide, self.breadth = min(self.WIDE, nodes - 1), min(BREADTH, nodes - 1)
        self.route = selective_kernel.empty_route(nodes)
        self.random = random_state(seed)

    def construct(self) -> None:
        self.load(np.zeros(1, np.int64))
        self.descend(0)

    def load(self, tour: Tour) -> bool:
        visited = tour[tour > 0]
        route = self.route
        route.kept[0] = 0
        route.kept[1 : len(visited) + 1] = visited
        route.size[selective_kernel.KEPT_SIZE] = len(visited) + 1
        route.real[selective_kernel.BEST] = np.inf
        selective_kernel.fall_back(route, self.rules, self.graph.legs)
        if selective_kernel.pays(route, self.rules):
            selective_kernel.keep(route, self.rules, self.graph.epsilon)
        route.ring[:] = 0, len(visited) + 1
        route.queued[:] = False
        route.queue[: len(visited) + 1] = route.tour[: len(visited) + 1]
        route.queued[route.tour[: len(visited) + 1]] = True
        return True

    def descend(self, work: int) -> bool:
        graph = self.graph
        done = selective_kernel.settle(
            self.route, self.rules, graph.legs, graph.back, graph.near, graph.after, self.wide, self.breadth,
            graph.symmetric, graph.epsilon, False, self.random, -(-ROUND * work // graph.legs.shape[0]), work,
        )  # fmt: skip
        if selective_kernel.pays(self.route, self.rules):
            selective_kernel.keep(self.route, self.rules, graph.epsilon)
        return bool(done)

    def explore(self, cooled: float, work: int) -> None:
        graph, route = self.graph, self.route
        if self.rules.by_prize:
            scale = self.mean_prize
        else:
            scale = route.real[selective_kernel.LENGTH] / max(1, route.size[selective_kernel.SIZE])
        selective_kernel.anneal_route(
            route, self.rules, graph.legs, graph.back, graph.near, graph.after, self.wide, self.breadth, self.LONGEST,
            graph.symmetric, graph.epsilon, geometric(self.hot, self.cold, cooled) * scale, self.random, work,
        )  # fmt: skip

    def return_to_best(self) -> None:
        route = self.route
        route.kept[:] = route.best
        route.size[selective_kernel.KEPT_SIZE] = route.size[selective_kernel.BEST_SIZE]
        selective_kernel.fall_back(route, self.rules, self.graph.legs)
        route.real[selective_kernel.COST] = selective_kernel.price(route, self.rules)

    def best(self) -> Tour:
        size = int(self.route.size[selective_kernel.BEST_SIZE])
        tour = self.route.best[:size].astype(np.int64)
        return np.append(np.roll(tour, -int(np.flatnonzero(tour == 0)[0]))[1:], 0)


def declared_resources(problem: Any, x: Any) -> tuple[Any, ...]:
    """What the problem says that the search must know."""
    return tuple(problem.resources(x)) if hasattr(problem, "resources") else ()


def selective_engine(problem: Problem, x: Any, seed: int, graph: Graph | None) -> SelectiveEngine:
    graph = graph_of(problem, x, NEIGHBOURS_ROUTES) if graph is None else graph
    return SelectiveEngine(declared_resources(problem, x), problem.maximise, seed, graph)


Make = Callable[[Problem, Any, int, Graph | None], Engine]

ENGINES: dict[str, Make] = {  # by what a problem names as its `search`
    "tour": TourEngine,
    "routes": RoutesEngine,
    "split routes": partial(RoutesEngine, split=True),
    "selective": selective_engine,
}
