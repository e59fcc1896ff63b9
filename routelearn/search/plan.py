"""Planning the rest of a prize collecting route from where the vehicle stands, on public information alone."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from routelearn.problems.base import EXACT, Problem, is_large
from routelearn.problems.resources import Penalty, Prize, numbers
from routelearn.search.engines import NEIGHBOURS_ROUTES, SelectiveEngine
from routelearn.search.graph import Graph, euclidean, floats, graph_from, graph_of_places, rounding_of

SLICE = 0.002  # seconds between two looks at the clock
DESCENT_WORK = 500


def graph_ahead(problem: Problem, x: Any, nodes: NDArray[np.int64]) -> Graph:
    """The graph of the nodes. The first stands for both ends: ways out start there, ways into it end at the depot."""
    if is_large(problem, x):
        xy = floats(x.xy[0])
        return graph_of_places(xy[nodes], rounding_of(x), NEIGHBOURS_ROUTES, end=xy[0])
    whole = euclidean(floats(x.xy[0])) if x.distances is None else floats(x.distances[0])
    legs = np.ascontiguousarray(whole[np.ix_(nodes, nodes)])
    legs[:, 0] = whole[nodes, 0]
    legs[0, 0] = 0.0
    return graph_from(legs, NEIGHBOURS_ROUTES)


def engine_ahead(problem: Problem, x: Any, nodes: NDArray[np.int64], required: float, seed: int = 0) -> SelectiveEngine:
    """The search of a way from the first of the nodes through some of the others to the depot."""
    prize, penalty = numbers(x.prize)[nodes], numbers(x.penalty)[nodes]
    prize[0] = penalty[0] = 0
    rules = Prize(prize, max(required, 0.0) * (1 - EXACT)), Penalty(penalty)
    return SelectiveEngine(rules, False, seed, graph_ahead(problem, x, nodes))


def plan(
    problem: Problem,
    x: Any,
    start: int,
    visited: Tensor,
    required: float,
    *,
    seconds: float = 0.05,
    seed: int = 0,
    ahead: Sequence[int] = (),
    stop: Event | None = None,
    deadline: float = math.inf,
) -> list[int]:
    """The nodes to visit next, in order, on the way from `start` to the depot (PCTSP, SPCTSP; batch axis 1).

    Least length plus penalties of what is left out, with at least `required` of expected prize still to come (all
    open nodes if they bring less). `visited` [N] marks what is out of reach now; real prizes are never read. `ahead` is
    an earlier plan to go on from. The `seconds` of search follow a first plan, which is made in any case; they end
    early when `stop` is set, or at the `deadline` (of `time.perf_counter`).
    """
    x, stop = x.public(), stop or Event()
    open_nodes = np.flatnonzero(~visited.numpy())
    open_nodes = open_nodes[(open_nodes != start) & (open_nodes != 0)]
    if len(open_nodes) == 0:
        return []
    engine = engine_ahead(problem, x, np.concatenate(([start], open_nodes)), required, seed)
    if len(ahead) > 0:
        engine.load(np.searchsorted(open_nodes, ahead) + 1)
        engine.descend(0)
    else:
        engine.construct()
    begun, settled = time.perf_counter(), False
    seconds = min(seconds, deadline - begun)
    while not settled and time.perf_counter() - begun < seconds and not stop.is_set():
        settled = engine.descend(DESCENT_WORK)
    engine.return_to_best()
    work, now = 1, time.perf_counter()
    while now - begun < seconds and not stop.is_set():
        engine.explore((now - begun) / seconds, work)
        then, now = now, time.perf_counter()
        work = max(1, int(work * min(SLICE, begun + seconds - now) / max(now - then, 1e-9)))
    return [int(open_nodes[node - 1]) for node in engine.best() if node > 0]
