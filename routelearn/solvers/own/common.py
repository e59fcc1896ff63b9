"""What the solvers written here share: the Solver made from a function, distances, random draws.

The methods are compiled with numba and release the interpreter's lock, so rows of a batch are spread over
threads. Random numbers come from a generator whose whole state is one number per instance: an answer depends
on the seed and the instance's place in the batch, never on threads or chunks.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from torch import Tensor

from routelearn.problems.base import Problem, take
from routelearn.search.graph import euclidean
from routelearn.solvers.adapters.runner import worker_count
from routelearn.solvers.base import Solver, refuse_problem
from routelearn.solvers.tasks import tours_of

CHUNK = 64  # rows a thread takes at once: enough to hide the call
CELLS = 4_000_000  # entries of the distance matrices of those rows, at the most (32 MB)


@dataclass
class Chunk:
    """A few rows of a batch, for one thread."""

    problem: Problem
    x: Any  # the rows of the instance
    first: int  # place of the first of them in the batch
    seconds: float  # for each instance
    seed: int

    def distances(self) -> np.ndarray:
        """[b, N, N] in double precision: the instance's own matrix, or the Euclidean one."""
        if self.x.distances is not None:
            return np.ascontiguousarray(self.x.distances.numpy(), dtype=np.float64)
        return np.stack([euclidean(place) for place in np.ascontiguousarray(self.x.xy.numpy(), dtype=np.float64)])

    def field(self, name: str) -> np.ndarray:
        """[b, ...] a field of the instances, in double precision."""
        return getattr(self.x, name).numpy().astype(np.float64)

    def rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """For each row its distances, these fields, and its generator's state."""
        return zip(self.distances(), *map(self.field, names), self.streams(), strict=True)

    def streams(self) -> np.ndarray:
        """[b, 1]: a generator's state for every row, far from those of other rows and seeds."""
        rows = np.arange(self.first, self.first + self.x.xy.shape[0], dtype=np.uint64)
        return (rows * np.uint64(0xD1342543DE82EF95) + np.uint64(self.seed * 0x2545F4914F6CDD1D % 2**64))[:, None]


Method = Callable[[Chunk], Iterable[np.ndarray]]  # a tour for every row of the chunk


def by_distances(tours: Callable[[np.ndarray], np.ndarray], chunk: Chunk) -> np.ndarray:
    """A method that asks for distances [b, N, N] alone."""
    return tours(chunk.distances())


@dataclass
class Heuristic(Solver):
    """A Solver made from a method that answers a few rows at a time."""

    name: str
    problems: frozenset[str]
    method: Method
    anytime: bool = False
    chunk_rows: int = CHUNK
    licence: str = "MIT"

    def solve(self, problem: Problem, x: Any, *, seconds: float, seed: int = 0) -> Tensor:
        refuse_problem(self, problem)
        return tours_of(over_rows(self.method, problem, x, seconds, seed, self.chunk_rows))


def over_rows(method: Method, problem: Problem, x: Any, seconds: float, seed: int, chunk_rows: int) -> list[np.ndarray]:
    """The method's tours for all rows of x, in order, computed in as many threads as there are workers."""
    batch, nodes = x.xy.shape[:2]
    chunk_rows = max(1, min(chunk_rows, CELLS // nodes**2))

    def part(first: int) -> Iterable[np.ndarray]:
        return method(Chunk(problem, take(x, slice(first, first + chunk_rows)), first, seconds, seed))

    firsts = range(0, batch, chunk_rows)
    if len(firsts) <= 1:
        return [tour for first in firsts for tour in part(first)]
    with ThreadPoolExecutor(worker_count()) as pool:
        return [tour for tours in pool.map(part, firsts) for tour in tours]


def until(seconds: float, slices: int | None, advance: Callable[[], None]) -> None:
    """Call `advance` until the time is up, and at most `slices` times (None: no other end); at least once."""
    end = time.perf_counter() + seconds
    for _ in itertools.count() if slices is None else range(max(1, slices)):
        advance()
        if time.perf_counter() >= end:
            return


@njit(cache=True, nogil=True)
def is_symmetric(d):
    """Whether legs of d [N, N] are as long there as back, up to rounding."""
    nodes = len(d)
    for i in range(nodes):
        for j in range(i):
            if abs(d[i, j] - d[j, i]) > 1e-9 * (d[i, j] + d[j, i]):
                return False
    return True


@njit(cache=True, nogil=True)
def uniform(stream):
    """The next number in [0, 1) of a stream [1] (SplitMix64: Steele, Lea and Flood 2014)."""
    stream[0] += np.uint64(0x9E3779B97F4A7C15)
    z = stream[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def below(stream, bound):
    """The next whole number in [0, bound)."""
    return int(uniform(stream) * bound)
