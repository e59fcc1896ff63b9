"""The search that `routelearn solve` runs, alone: from a construction of its own, on one thread, without a policy."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from torch import Tensor

from routelearn.problems import PROBLEMS
from routelearn.problems.base import Problem, Varies, declared_search, take
from routelearn.search import Search
from routelearn.solvers.base import Solver, refuse_problem
from routelearn.solvers.own.common import Chunk, over_rows
from routelearn.solvers.tasks import tours_of


class SearchAlone(Solver):
    name, licence, anytime = "search", "MIT", True

    @property
    def problems(self) -> frozenset[str]:  # type: ignore[override]
        """Those of plugins, too, that have come by now; families without an engine are solved as rounds."""
        return frozenset(name for name, problem in PROBLEMS.items() if _is_searched(problem))

    def solve(self, problem: Problem, x: Any, *, seconds: float, seed: int = 0) -> Tensor:
        refuse_problem(self, problem)
        return tours_of(over_rows(_tours, problem, x, seconds, seed, chunk_rows=1))


def _is_searched(problem: Problem) -> bool:
    known = declared_search(problem) is not None or not isinstance(problem, Varies)
    return known and not problem.reveals_on_visit


def _tours(chunk: Chunk) -> list[np.ndarray]:
    tours = []
    for row in range(len(chunk.x.xy)):
        began = time.perf_counter()
        search = Search(chunk.problem, take(chunk.x, slice(row, row + 1)), chunk.seed, horizon=chunk.seconds)
        search.run(max(0.0, chunk.seconds - (time.perf_counter() - began)))
        assert search.best_tour is not None
        tours.append(search.best_tour[0, 0].numpy())
    return tours


SOLVERS = (SearchAlone(),)
