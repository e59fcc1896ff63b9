"""Local search and anytime metaheuristics on top of any solution, compiled, for every problem without hindsight."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from routelearn.problems import PROBLEMS
from routelearn.problems.base import LARGE, NumpyRng, Problem, declared_search, take, to_device
from routelearn.runtime.processors import usable_processors
from routelearn.search.engines import Engine, Tour
from routelearn.search.plan import plan
from routelearn.search.search import DESCENT_WORK, Search, engine_for, load_kernels

__all__ = ["Search", "improve", "plan", "warm_up"]


def improve(
    problem: Problem,
    x: Any,
    tour: Tensor,
    *,
    seconds: float | None,
    seed: int = 0,
    iterations: int | None = None,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Tensor:
    """Improve the tours [B, S, T]; none gets worse. Instances are spread over threads; `progress` hears of each.

    With neither `seconds` nor `iterations`: every solution at its local optimum, [B, S, T']. Else the search goes on
    from the best of the S for `seconds` per instance or so many iterations: [B, 1, T'].
    """
    load_kernels(problem)
    problem.check(x, tour)
    device = tour.device
    x, tour = to_device(x, "cpu"), tour.cpu().long()
    batch = tour.shape[0]
    if seconds is not None or iterations is not None:
        chosen = problem.cost(x, tour).argmin(1)
        tour = tour[torch.arange(batch), chosen][:, None]

        def found(row: int) -> list[Tour]:
            begun = time.perf_counter()
            search = Search(problem, take(x, slice(row, row + 1)), seed, horizon=seconds)
            search.offer(tour[row : row + 1])
            left = None if seconds is None else max(0.0, seconds - (time.perf_counter() - begun))
            search.run(left, iterations=iterations)
            assert search.best_tour is not None
            return [search.best_tour[0, 0].numpy()]
    else:

        def found(row: int) -> list[Tour]:
            engine = engine_for(problem, take(x, slice(row, row + 1)), seed)
            return [local_optimum(engine, one.numpy()) for one in tour[row]]

    rows = []
    with ThreadPoolExecutor(threads or usable_processors()) as pool:
        for row in pool.map(found, range(batch)):
            rows.append(row)
            if progress is not None:
                progress(1)
    better = stack(problem, x, rows, tour.shape[2])
    old = stack(problem, x, [list(row.numpy()) for row in tour], better.shape[2])
    result = torch.where((problem.cost(x, better) < problem.cost(x, tour))[..., None], better, old)
    problem.check(x, result)
    return result.to(device)


def local_optimum(engine: Engine, tour: Tour) -> Tour:
    """The tour after local search; as it was if the engine cannot hold it."""
    if not engine.load(tour):
        return tour
    while not engine.descend(DESCENT_WORK):
        pass
    return engine.best()


def stack(problem: Problem, x: Any, rows: list[list[Tour]], steps: int) -> Tensor:
    """[B, S, T] from lists of tours, T >= steps; filled up with the node in which a finished solution stays."""
    steps = max(steps, *(len(tour) for row in rows for tour in row))
    padded = [
        [np.pad(tour, (0, steps - len(tour)), constant_values=_stay(problem, x, b, tour, steps)) for tour in row]
        for b, row in enumerate(rows)
    ]
    return torch.from_numpy(np.array(padded, dtype=np.int64))


def _stay(problem: Problem, x: Any, row: int, tour: Tour, steps: int) -> int:
    """The one node that is feasible after the tour: the depot or the last node where the problem is known."""
    if declared_search(problem) is not None or len(tour) == steps:
        return 0 if problem.has_depot else int(tour[-1])
    one = take(x, slice(row, row + 1))
    state = problem.initial(one, 1)
    for node in tour.tolist():
        state = problem.step(one, state, torch.tensor([[node]]))
    return int(problem.feasible(one, state)[0, 0].long().argmax())


def warm_up(large: bool = False) -> None:
    """Compile every kernel once (a minute or so); later processes load them from the cache on disk.

    `large`: those for more than 2,500 stops, too.
    """
    for problem in PROBLEMS.values():
        load_kernels(problem)
        if large:
            load_kernels(problem, problem.sample(NumpyRng(0), 1, LARGE + 1))
