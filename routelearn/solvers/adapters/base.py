"""The two kinds of foreign solver: a Python package, run in solver workers, and a program, run in a folder."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from routelearn.errors import InputError
from routelearn.solvers.adapters import runner
from routelearn.solvers.base import Solver, refuse_problem
from routelearn.solvers.tasks import OP, Answer, Task

if TYPE_CHECKING:
    from torch import Tensor

    from routelearn.problems.base import Problem

log = logging.getLogger("routelearn.solvers")

TRIAL_SECONDS = 5.0  # for a dozen nodes, which take a fraction of a second


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


def example(problem: str) -> Task:
    """A dozen places on a circle."""
    angle = np.arange(12) * np.pi / 6
    xy, ones = 0.5 + 0.4 * np.stack((np.cos(angle), np.sin(angle)), 1), np.ones(12)
    ones[0] = 0.0
    if problem in OP:
        return Task("op", xy, prize=ones, max_length=2.0)
    return Task(problem, xy, demand=ones.astype(np.int64), capacity=4) if problem == "cvrp" else Task(problem, xy)


@dataclass(frozen=True, kw_only=True)
class Program(Foreign):
    """A solver that is a program of its own."""

    variable: str  # the environment variable that holds its path
    title: str  # what to build
    command: Callable[[Task, Path, str, float, int], Sequence[str]]  # (task, folder, program, seconds, seed)
    read: Callable[[Task, Path], list[int]]  # the answer in that folder; OSError or ValueError if there is none
    by_hand: Callable[[Task], Answer] = lambda task: None  # answers what the program itself cannot take
    shares: tuple[float, ...] = (1.0,)  # of the time, for one seed after another

    def path(self) -> str | None:
        """Where the program is: the variable holds its path, which may begin with ~, or its name on PATH."""
        found = shutil.which(os.path.expanduser(os.environ.get(self.variable, "")))
        return None if found is None else os.path.abspath(found)

    def unavailable(self) -> str | None:
        given = os.environ.get(self.variable)
        if not given:
            return f"{self.name} runs {self.title}: build it and set {self.variable} to the path of the program"
        if self.path() is None:
            return f"{self.variable} is {given!r}, which is not a program; set it to the path of {self.title}"
        return None

    def impostor(self) -> str | None:
        """Why it cannot be the program that it should be; asked of a few places on a circle."""
        runs: list[str] = []
        if self._solve_one(example(min(self.problems)), 0, TRIAL_SECONDS, 0, runs.append) is not None:
            return None
        given, why = os.environ[self.variable], runs[-1] if runs else "it gave no answer"
        return f"{self.variable} is {given!r}, which did not solve a small example ({why}); is it {self.title}?"

    def solve(self, problem: Problem, x: Any, *, seconds: float, seed: int = 0) -> Tensor:
        self.refuse(problem, seconds)
        return runner.solve_rows(problem, x, lambda task, row: self._solve_one(task, row, seconds, seed))

    def _solve_one(
        self, task: Task, row: int, seconds: float, seed: int, complain: Callable[[str], None] | None = None
    ) -> Answer:
        """Several runs at most; `complain` hears why one gave no answer, instead of the log."""
        if (by_hand := self.by_hand(task)) is not None:
            return by_hand
        program = self.path()
        assert program is not None, "refused before"
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
                try:
                    ended = runner.run_program(command, folder, runner.hard_limit(limit))
                except OSError as error:  # a file that the system cannot run
                    raise InputError(f"{self.name}: {program} cannot be run ({error.strerror})") from None
                try:
                    return self.read(task, folder)
                except (OSError, ValueError) as error:
                    reason = ended.why(error)
                if complain is not None:
                    complain(reason)
                else:
                    number = runner.first_row.get() + row
                    log.warning("%s: instance %d, attempt %d: no answer: %s", self.name, number, attempt, reason)
        return None
