"""A block of instances and a solver's answers to it: what the farm hands around."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from routelearn.problems.base import Problem
from routelearn.solvers import reveal
from routelearn.solvers.base import Solver


class Block(NamedTuple):
    """The answers for rows first to first + len(tours)."""

    first: int
    tours: list[list[int] | None]
    seconds: float


def solve_block(solver: Solver, problem: Problem, x: Any, first: int, seconds: float, seed: int) -> Block:
    """One block; what a solver may not see (SPCTSP's real prizes) is told only as nodes are visited."""
    started = time.perf_counter()
    own_seed = (seed * 1_000_003 + first) % 2**31
    tours = reveal.run(solver, problem, x, seconds=seconds, seed=own_seed)
    taken = time.perf_counter() - started
    return Block(first, [None if row[0] < 0 else row for row in tours[:, 0].tolist()], taken)
