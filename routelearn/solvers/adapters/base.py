"""The two kinds of foreign solver: a Python package, run in solver workers, and a program, run in a folder."""

from __future__ import annotations

import importlib.util
import logging
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routelearn.errors import InputError
from routelearn.solvers.adapters import runner
from routelearn.solvers.base import Solver, refuse_problem
from routelearn.solvers.tasks import NOTHING, Answer, Task

if TYPE_CHECKING:
    from torch import Tensor

    from routelearn.problems.base import Problem

log = logging.getLogger("routelearn.solvers")


@dataclass(frozen=True)
class Imported:
    """Imports a module, in a solver worker."""

    module: str

    def __call__(self) -> None:
        importlib.import_module(self.module)


@dataclass(frozen=True, kw_only=True)
class Foreign(Solver):
    """What libraries and programs have in common. A row without a feasible answer in time is all -1."""

    name: str
    problems: frozenset[str]
    licence: str
    anytime: bool = False
    exact: bool = False

    def refuse(self, problem: Problem, seconds: float) -> None:
        refuse_problem(self, problem)
        if not seconds > 0:
            raise InputError(f"{self.name}: {seconds:g} seconds for each instance; it must be more than 0")
        if reason := self.unavailable():
            raise InputError(reason)


@dataclass(frozen=True, kw_only=True)
class Library(Foreign):
    """A solver that is a Python package."""

    package: str = ""  # what is imported, if it has another name
    extra: str  # the extra of this package that installs it
    function: runner.SolveOne
    prepare: Callable[[], None] | None = None  # in a solver worker, outside the time of any instance, if not an import
    refusal: Callable[[], str | None] = lambda: None  # why it cannot be used although it is installed

    def unavailable(self) -> str | None:
        if importlib.util.find_spec(self.package or self.name) is None:
            return f'{self.name} needs the package {self.package or self.name}: pip install "routelearn[{self.extra}]"'
        return self.refusal()

    def solve(self, problem: Problem, x: Any, *, seconds: float, seed: int = 0) -> Tensor:
        self.refuse(problem, seconds)
        prepare = self.prepare or Imported(self.package or self.name)

        def solve_row(task: Task, row: int) -> Answer:
            """In a worker that called `prepare` before its first task."""
            return runner.run_task(self.function, task, seconds, seed, row, prepare)

        return runner.solve_rows(problem, x, solve_row)


@dataclass(frozen=True, kw_only=True)
class Program(Foreign):
    """A solver that is a program of its own."""

    variable: str  # the environment variable that holds its path
    title: str  # what to build
    command: Callable[[Task, Path, str, float, int], Sequence[str]]  # (task, folder, program, seconds, seed)
    read: Callable[[Task, Path], list[int]]  # the answer in that folder; OSError or ValueError if there is none
    by_hand: Callable[[Task], Answer] = lambda task: NOTHING  # answers what the program itself cannot take
    shares: tuple[float, ...] = (1.0,)  # of the time, for one seed after another

    def unavailable(self) -> str | None:
        path = os.environ.get(self.variable)
        if not path:
            return f"{self.name} runs {self.title}: build it and set {self.variable} to the path of the program"
        if not Path(path).is_file() or not os.access(path, os.X_OK):
            return f"{self.variable} is {path!r}, which is not a program; set it to the path of {self.title}"
        return None

    def solve(self, problem: Problem, x: Any, *, seconds: float, seed: int = 0) -> Tensor:
        self.refuse(problem, seconds)
        return runner.solve_rows(problem, x, lambda task, row: self._solve_one(task, row, seconds, seed))

    def _solve_one(self, task: Task, row: int, seconds: float, seed: int) -> Answer:
        by_hand = self.by_hand(task)
        if by_hand.nodes is not None:
            return by_hand
        program = os.path.abspath(os.environ[self.variable])
        end = time.perf_counter() + seconds
        for attempt in range(max(len(self.shares), 3)):
            left = end - time.perf_counter()
            if attempt and left < runner.SHORTEST:
                break
            share = self.shares[min(attempt, len(self.shares) - 1)]
            limit = left if attempt >= len(self.shares) - 1 else min(left, share * seconds)
            with tempfile.TemporaryDirectory(prefix="routelearn-") as name:
                folder = Path(name)
                command = self.command(task, folder, program, limit, runner.new_seed(seed, row, attempt))
                finished = runner.run_program(command, folder, runner.hard_limit(limit))
                try:
                    return Answer(self.read(task, folder), proved=self.exact and finished)
                except (OSError, ValueError) as error:
                    reason = error if finished else "it ran out of time"
                    log.warning("%s: instance %d, attempt %d: no answer: %s", self.name, row, attempt, reason)
        return NOTHING
