"""The anytime search of one instance: policy, local search and metaheuristic, and both together, until the time is up.

Threads share a board with the best solution. The first thread begins with the policy (greedy, then augmented and
sampled while that beats what the others have found), the others with a constructive heuristic; all of them search
on. Now and then the first thread takes a part of the best solution away, lets the policy build it again and searches
from there; where that finds nothing, it is tried ever more rarely.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from routelearn.problems.base import Problem, declared_search
from routelearn.runtime.processors import usable_processors
from routelearn.solving.board import Board
from routelearn.solving.guide import Guide
from routelearn.solving.heuristic import cut_tour

if TYPE_CHECKING:
    from routelearn.search import Search

SLICES = 20  # looks at the board, and at what is found, in one search
SHORTEST_SLICE, LONGEST_SLICE = 0.02, 0.5  # seconds; an interrupt is heard after one
GRACE = 0.005  # seconds of search that are granted even if the processors were busy until the time was up
POLICY_SHARE = 0.2  # of the time that the first construction of the policy may take
SAMPLES = 8  # draws per symmetry, and partial solutions rebuilt at once
LEFT_OFF = (0.1, 0.2, 0.4)  # shares of the solution that are taken away, in turn
AFTER_A_LOSS = 4  # slices to the first rebuilding where the first construction was worse than what others had found
MOST_THREADS = 4  # more searches of one instance find little more
JOIN = 0.6  # share of the time after which all threads go on from the best solution of all


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Run torch on one thread, so that the searches get the other processors."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def anytime(
    problem: Problem,
    x: Any,
    board: Board,
    *,
    deadline: float,
    guide: Guide | None = None,
    given: Tensor | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> None:
    """Search until `deadline` (of `time.perf_counter`) and leave the best solution on the board.

    `given` [1, 1, T] is a solution to start from. An interrupt ends the search early.
    """
    from routelearn.search import Search  # compiled code: only where there is time to use it

    threads = threads or min(usable_processors(), MOST_THREADS)
    horizon = max(deadline - time.perf_counter(), 1e-9)
    first = Search(problem, x, seed * MOST_THREADS, horizon=horizon)
    searches = [first] + [
        Search(problem, x, seed * MOST_THREADS + i, horizon=horizon, graph=first.graph) for i in range(1, threads)
    ]
    cut = None if declared_search(problem) is None else cut_tour(problem, x)
    searchers = [
        Searcher(search, board, deadline, guide if i == 0 else None, given, threads == 1, cut)
        for i, search in enumerate(searches)
    ]
    in_threads(board, [searcher.run for searcher in searchers])


def in_threads(board: Board, works: Sequence[Callable[[], None]]) -> None:
    """Run all of them at once. An interrupt sets `board.stop`, upon which they finish soon; so does an error in one.

    The interrupt is passed on only if they leave nothing on the board.
    """
    interrupt: KeyboardInterrupt | None = None
    with one_torch_thread(), ThreadPoolExecutor(len(works)) as pool:
        try:
            running = {pool.submit(work) for work in works}
            while running:  # with a pause, because a thread that waits for ever hears no interrupt
                done, running = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
        except KeyboardInterrupt as error:
            board.stop.set()
            interrupt = error
        except BaseException:
            board.stop.set()
            raise
    if interrupt is not None and board.tour is None:
        raise interrupt


class Searcher:
    """One thread of the search."""

    def __init__(
        self,
        search: Search,
        board: Board,
        deadline: float,
        guide: Guide | None,
        given: Tensor | None,
        alone: bool,
        cut: list[int] | None = None,
    ):
        self.search, self.board, self.deadline = search, board, deadline
        self.guide, self.given, self.alone = guide, given, alone
        self.cut = cut  # a tour that single insertions cannot find
        self.total = max(deadline - time.perf_counter(), 1e-9)
        self.pause, self.waited, self.tries = 1, 0, 0  # slices between two rebuildings, since the last one; rebuildings

    @property
    def left(self) -> float:
        return 0.0 if self.board.stop.is_set() else self.deadline - time.perf_counter()

    def run(self) -> None:
        search, board = self.search, self.board
        length = min(max(self.total / SLICES, SHORTEST_SLICE), LONGEST_SLICE)
        if self.given is not None:
            search.offer(self.given)
        elif self.guide is not None and not self.alone:
            self._policy()
        if search.best_tour is None:
            search.run(0.0)
            if self.cut is not None:
                search.offer(torch.tensor(self.cut))
            board.submit(search.best_tour, search.best_cost, "heuristic")
            if self.guide is not None and self.alone:  # nobody else has searched what the policy is held against
                search.run(min(length, max(self.left, 0.0)))
                board.submit(search.best_tour, search.best_cost, "search")
                self._policy()
        if self.left < GRACE:  # a bare construction is far from an answer, and milliseconds away from a good one
            search.run(GRACE)
            board.submit(search.best_tour, search.best_cost, "search")
        while (left := self.left) > search.engine.slow:  # what does not fit any more is not begun
            length = max(length, 2 * search.engine.slow)
            search.run(length if left > 1.5 * length else left)
            board.submit(search.best_tour, search.best_cost, "search")
            if search.engine.exhausted:
                return
            if self.guide is not None:
                self._rebuild(length)
            if self.left < (1 - JOIN) * self.total and board.cost < search.best_cost and board.tour is not None:
                search.offer(board.tour)

    def _policy(self) -> None:
        """Greedy if there is time for it, then more of it while the policy is ahead of the other threads."""
        assert self.guide is not None
        limit = time.perf_counter() + POLICY_SHARE * self.left
        if self.guide.expected() > POLICY_SHARE * self.left:
            return
        for construct in (self.guide.greedy, self.guide.augmented, lambda end: self.guide.sampled(SAMPLES, end)):
            found = construct(limit)
            if found is None:
                return
            self.search.offer(found[0])
            if not self.board.submit(*found, "policy"):
                if construct == self.guide.greedy:
                    self.pause = AFTER_A_LOSS
                return

    def _rebuild(self, length: float) -> None:
        """Destroy a part of the best solution, let the policy rebuild it, search from there; back off on failure."""
        assert self.guide is not None
        search = self.search
        self.waited += 1
        if self.waited < self.pause or self.guide.expected() > POLICY_SHARE * self.left:
            return
        if self.board.cost < search.best_cost and self.board.tour is not None:
            search.offer(self.board.tour)
        prefix = search.destroyed(SAMPLES, LEFT_OFF[self.tries % len(LEFT_OFF)])
        found = self.guide.rebuilt(prefix, time.perf_counter() + POLICY_SHARE * self.left)
        self.tries, self.waited = self.tries + 1, 0
        if found is not None:
            search.offer(found[0], restart=True)
            search.run(min(length, max(self.left, 0.0)))
            if self.board.submit(search.best_tour, search.best_cost, "rebuild"):
                self.pause = 1
                return
            assert search.best_tour is not None
            search.offer(search.best_tour, restart=True)  # back from where the rebuilt one led
        self.pause *= 2
