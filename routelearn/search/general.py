"""The general engine: a search for any problem, through the problem's own functions and nothing else.

Each iteration changes the present sequence of nodes in many ways at once (`sequence_moves`), keeps the most promising
orders, and builds them all in one batch along the masks (`decoding.replay`), so that every candidate is feasible.
`problem.cost` judges them. A linear guess of the cost from a few lengths and counts, fitted to the candidates built
so far, says which orders are promising; a share of them is kept at random, because the guess may be wrong.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from routelearn.decoding.replay import nearest_feasible, replay
from routelearn.problems.base import Problem, distance_matrix
from routelearn.search.graph import Graph, Places, draw, euclidean, graph_from, graph_of, random_state
from routelearn.search.sequence_moves import FEATURES, measure, propose

Tour = NDArray[np.int64]

NEIGHBOURS = 20
CANDIDATES, CELLS = 128, 1 << 14  # built in one batch: at most so many, and so many times nodes
FEWEST = 8
PROPOSALS = 32  # orders proposed for each one that is built
TRUSTED = 0.75  # share of the candidates that is chosen by the guess
MEMORY = 2048  # candidates that the guess is fitted to
HOT, COLD = 0.1, 0.01  # temperature in mean costs of a visit
STUBBORN = 12  # iterations without gain after which a descent has ended
MARGIN = 1.3  # an iteration may take so many times as long as the last one
RETURN = 40  # iterations after which a search that found nothing goes back to the best solution
SEEN = 1 << 20  # orders that are remembered, so that none is built twice


class GeneralEngine:
    """Large neighbourhood search of one instance (batch axis 1, CPU) of any problem."""

    def __init__(self, problem: Problem, x: Any, seed: int, graph: Graph | None = None):
        self.legs = distance_matrix(x)[0]
        self.problem, self.x = problem, x._replace(distances=self.legs[None])  # measured once, not at every step
        self.graph = graph_of(problem, x, NEIGHBOURS) if graph is None else graph
        assert not isinstance(self.graph.legs, Places)  # it knows too little of the problem to do without a matrix
        self.lengths = self.graph.legs
        nodes = len(self.lengths)
        self.first = int(problem.has_depot)
        self.exhausted = nodes - self.first < 2
        self.candidates = max(FEWEST, min(CANDIDATES, CELLS // nodes))
        self.random = random_state(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.slow = 0.0  # seconds of one iteration, as far as is known
        self.now = self.shortest = np.zeros(0, np.int64)
        self.cost = self.best_cost = np.inf
        self.fresh = True  # no batch of random constructions was built yet
        self.idle, self.away = 0, 0  # iterations without gain of a descent, since the best solution was left
        self.seen: set[int] = set()
        self.known, self.costs = np.zeros((0, FEATURES)), np.zeros(0)
        self.weights: NDArray[np.float64] | None = None

    # ---------------------------------------------------------------------------------------- the interface

    def construct(self) -> None:
        begun = time.perf_counter()
        self._adopt(nearest_feasible(self.problem, self.x)[0])
        self.slow = 3 * (time.perf_counter() - begun)

    def load(self, tour: Tour) -> bool:
        begun = time.perf_counter()
        tours = torch.from_numpy(np.array(tour, dtype=np.int64))[None]
        self.best_cost = np.inf
        self._adopt(tours)
        if not self.slow:  # building one takes about a third of building many
            replay(self.problem, self.x, tours, self.legs)
            self.slow = 3 * (time.perf_counter() - begun)
        return True

    def descend(self, work: int) -> bool:
        """One iteration that takes only what is better; True after a number of them in vain."""
        if self.exhausted:
            return True
        before = self.best_cost
        self._iterate(0.0)
        self.idle = 0 if self.best_cost < before else self.idle + 1
        return self.idle >= STUBBORN

    def explore(self, cooled: float, work: int) -> None:
        scale = abs(self.best_cost) / max(1, len(self.shortest))
        for _ in range(work):
            self._iterate(HOT * (COLD / HOT) ** cooled * scale)

    def return_to_best(self) -> None:
        """Unless the search left the best one only a short while ago: it is called after every few iterations."""
        if self.away < RETURN:
            return
        self.away = 0
        self.now, self.cost = trimmed(self.shortest), self.best_cost

    def best(self) -> Tour:
        return self.shortest

    # ------------------------------------------------------------------------------------------ one iteration

    def _adopt(self, tours: torch.Tensor) -> None:
        """The one tour [1, T] becomes the present one."""
        self.idle = 0
        self._take(tours[0].numpy(), float(self.problem.cost(self.x, tours[None])[0, 0]))

    def _take(self, tour: Tour, cost: float) -> None:
        """The tour becomes the present one; the best is kept as it was built, to the last step."""
        self.now, self.cost = trimmed(tour), cost
        if cost < self.best_cost:
            self.away = 0
            self.shortest, self.best_cost = np.array(tour, dtype=np.int64), cost

    def _iterate(self, temperature: float) -> None:
        """Build a batch of candidates and go on from the best one, if it is good enough."""
        begun = time.perf_counter()
        self.away += 1
        if self.fresh:
            self.fresh = False
            tours = self._constructions()
        else:
            tours = self._built(self._orders())
        costs = self.problem.cost(self.x, tours[None])[0].double().numpy()
        self._learn(tours.numpy(), costs)
        chosen = int(costs.argmin())
        if costs[chosen] >= self.best_cost and temperature > 0:  # else the best is taken, whatever the temperature
            chances = torch.rand(len(costs), generator=self.generator, dtype=torch.float64).clamp(min=1e-12).numpy()
            chosen = int((costs - temperature * np.log(chances)).argmin())
        if costs[chosen] < self.cost - temperature * np.log(max(draw(self.random), 1e-12)):
            self._take(tours[chosen].numpy(), float(costs[chosen]))
        self.slow = MARGIN * (time.perf_counter() - begun)

    def _constructions(self) -> torch.Tensor:
        """Solutions by the nearest feasible node, blurred; half of them visit the depot only if they must."""
        count = self.candidates
        nothing, blur = torch.full((count, 1), -1), torch.linspace(0.0, 2.0, count, dtype=self.legs.dtype)
        last = torch.arange(count) % 2 == 0
        return replay(self.problem, self.x, nothing, self.legs, home_last=last, noise=blur, generator=self.generator)

    def _orders(self) -> NDArray[np.int64]:
        """[S, L]: changed sequences, most of them with the least cost by the guess, none that was built before."""
        count, present = PROPOSALS * self.candidates, self.now
        room = 2 * len(present) + 8
        orders, sizes = np.empty((count, room), np.int64), np.empty(count, np.int64)
        features, digests = np.empty((count, FEATURES)), np.empty(count, np.uint64)
        optional = len(np.unique(present[present >= self.first])) < len(self.graph.legs) - self.first
        propose(
            present, self.graph.legs, self._guide(), self.graph.near, self.problem.has_depot, optional, self.random,
            orders, sizes, features, digests, np.empty(room, np.int64),
        )  # fmt: skip
        if len(self.seen) > SEEN:
            self.seen.clear()
        new: list[int] = []
        met = set()
        for p, key in enumerate(digests.tolist()):
            if key not in self.seen and key not in met:
                met.add(key)
                new.append(p)
        rows = np.array(new or [0])
        if self.weights is not None and len(rows) > self.candidates:
            trusted = int(TRUSTED * self.candidates)
            ranked = rows[np.argsort(features[rows] @ self.weights, kind="stable")]
            others = np.sort(ranked[trusted:])[: self.candidates - trusted]  # as they were drawn
            rows = np.concatenate((ranked[:trusted], others))
        rows = rows[: self.candidates]
        self.seen.update(digests[rows].tolist())
        return orders[rows, : sizes[rows].max()]

    def _built(self, orders: NDArray[np.int64]) -> torch.Tensor:
        home_first = torch.rand(len(orders), generator=self.generator) < 0.5
        return replay(self.problem, self.x, torch.from_numpy(orders), self.legs, home_first=home_first)

    def _guide(self) -> NDArray[np.float64]:
        """The legs, with those from and to the depot in the measure in which they seem to cost."""
        if self.weights is None or not self.first or self.weights[1] <= 0:
            return self.lengths
        guide = self.lengths.copy()
        out, back = np.clip(self.weights[2:4] / self.weights[1], 0.0, 1.0)
        guide[0] *= out
        guide[:, 0] *= back
        return guide

    def _learn(self, tours: NDArray[np.int64], costs: NDArray[np.float64]) -> None:
        """Fit the guess to the latest candidates."""
        features = np.empty((len(tours), FEATURES))
        for row, tour in zip(features, tours, strict=True):
            sequence = trimmed(tour)
            measure(sequence, len(sequence), self.graph.legs, self.problem.has_depot, row)
        self.known = np.concatenate((self.known, features))[-MEMORY:]
        self.costs = np.concatenate((self.costs, costs))[-MEMORY:]
        scale = np.maximum(np.abs(self.known).max(0), 1e-12)
        scaled = self.known / scale
        ridge = 1e-6 * len(scaled) * np.eye(FEATURES)
        self.weights = np.linalg.solve(scaled.T @ scaled + ridge, scaled.T @ self.costs) / scale


def trimmed(tour: NDArray[np.int64]) -> NDArray[np.int64]:
    """The tour without the repetitions of its last node, in which a finished solution stays."""
    size = len(tour)
    while size > 1 and tour[size - 2] == tour[size - 1]:
        size -= 1
    return np.array(tour[:size], dtype=np.int64)


@cache
def load_general_kernels() -> None:
    """Compile what the engine needs, or load it from the cache on disk; it is the same for all problems."""
    legs = euclidean(np.arange(8.0).reshape(4, 2))
    graph, present = graph_from(legs, 2), np.array([1, 2, 0, 3])
    orders, sizes, features = np.empty((2, 16), np.int64), np.empty(2, np.int64), np.empty((2, FEATURES))
    digests, scratch = np.empty(2, np.uint64), np.empty(16, np.int64)
    random = random_state(0)
    draw(random)
    propose(present, legs, legs, graph.near, True, True, random, orders, sizes, features, digests, scratch)
    measure(present, 4, legs, True, features[0])
