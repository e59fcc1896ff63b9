"""How foreign solvers are run: one task at a time, in solver workers that may crash or hang without harm.

A solver worker is a process of its own that takes one task after another. It is started once and serves all
solvers. One that dies or overstays its time is killed and replaced, so a time limit holds whatever the solver
does. Several solver workers share a batch: as many as there are cores, or ROUTELEARN_WORKERS.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import logging
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from routelearn import plugins
from routelearn.errors import InputError
from routelearn.runtime.processors import usable_processors
from routelearn.solvers.tasks import BY_HAND, Answer, Task, by_hand, tasks_of, tours_of

if TYPE_CHECKING:
    from torch import Tensor

    from routelearn.problems.base import Problem

log = logging.getLogger("routelearn.solvers")

# (task, seconds, seed) -> the answer, or better and better ones; a module's own function, found by its name
SolveOne = Callable[[Task, float, int], Answer | Iterator[Answer]]
ATTEMPTS = 3  # runs of one instance, each with a seed of its own, before it counts as unsolved
PREPARE_LIMIT = 120.0  # seconds
SHORTEST = 0.05  # seconds: less than this is no attempt


# The number of the first instance of a batch among all those that are solved: what messages count from.
first_row: contextvars.ContextVar[int] = contextvars.ContextVar("first_row", default=0)


class SolverError(RuntimeError):
    """A solver raised an error of its own: a defect or a version that does not fit, not a hard instance."""


def hard_limit(seconds: float) -> float:
    """When a run is killed: what a solver may take beyond `seconds` to stop and answer."""
    return 1.04 * seconds + 0.15


def worker_count() -> int:
    text = os.environ.get("ROUTELEARN_WORKERS")
    if text is not None:
        if not text.isdecimal() or int(text) < 1:
            raise InputError(f"ROUTELEARN_WORKERS is {text!r}; it must be a whole number above 0")
        return int(text)
    return usable_processors()


def new_seed(seed: int, row: int, attempt: int) -> int:
    """Below 2^30, so that every program takes it; another for every instance and every attempt."""
    return (seed * 1_000_003 + row + attempt * 7_919_993) % (1 << 30)


def serve() -> None:
    """What a solver worker does: tasks in on stdin, answers out on stdout, until stdin closes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    inbox = os.fdopen(os.dup(0), "rb")
    outbox = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "r+b") as nowhere:  # what a library prints must not mix with the answers
        for stream in (0, 1):
            os.dup2(nowhere.fileno(), stream)

    def send(kind: str, content: Any) -> None:
        pickle.dump((kind, content), outbox)
        outbox.flush()

    prepared: set[Any] = set()
    while True:
        try:
            prepare, function, task, seconds, seed = pickle.load(inbox)
        except EOFError:
            return
        try:
            if prepare is not None and prepare not in prepared:
                prepare()
                prepared.add(prepare)
            if function is None:
                send("done", None)
                continue
            _alarm(math.ceil(hard_limit(seconds)) + 5)
            answer = function(task, seconds, seed)
            if isinstance(answer, Iterator):
                best = None
                for best in answer:
                    send("so far", best)  # kept if the time is up before the next one
                answer = best
            _alarm(0)
            send("done", answer)
        except InputError as error:
            send("input", str(error))
        except BaseException:
            send("error", traceback.format_exc())


def _alarm(seconds: int) -> None:
    """Ask the kernel to end this process if the task outlives the parent that should have ended it."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


def _worker_code() -> str:
    """The code that starts a solver worker. It enters the packages without their __init__, which would import torch:
    a solver worker has no use for tensors, and starts in a fraction of the time without. With plugins, whose files may
    import anything, it enters them as usual."""
    if plugins.paths():
        return f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
    package = Path(__file__).resolve().parents[2]
    folders = {"routelearn": str(package), "routelearn.solvers": str(package / "solvers")}
    return "\n".join(
        (
            "import sys, types",
            f"sys.path[:] = {sys.path!r}",
            f"for name, folder in {folders!r}.items():",
            "    sys.modules[name] = types.ModuleType(name)",
            "    sys.modules[name].__path__ = [folder]",
            "from routelearn.solvers.adapters.runner import serve",
            "serve()",
        )
    )


class Died(Exception):
    """The solver worker ended without an answer."""


class SolverWorker:
    """A process that runs tasks; every call has its deadline."""

    def __init__(self) -> None:
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, "-c", _worker_code()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | single,
        )
        self.timed_out = False
        self.plugins = plugins.paths()  # that it can find

    def ask(self, message: tuple[Any, ...], limit: float) -> Any:
        """The reply, or Died when there is none within `limit` seconds."""
        so_far = None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        watch = threading.Timer(limit, self._overdue)
        watch.daemon = True
        watch.start()
        try:
            pickle.dump(message, self.process.stdin)
            self.process.stdin.flush()
            while True:
                kind, content = pickle.load(self.process.stdout)
                if kind == "so far":
                    so_far = content
                elif kind == "done":
                    return content
                else:
                    raise InputError(content) if kind == "input" else SolverError(content)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            self.close()
            if so_far is not None:
                return so_far
            reason = "ran out of time" if self.timed_out else f"died (exit status {self.process.returncode})"
            raise Died(reason) from error
        finally:
            watch.cancel()

    def _overdue(self) -> None:
        self.timed_out = True
        self.process.kill()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


_idle: list[SolverWorker] = []
_lock = threading.Lock()


def _borrow() -> SolverWorker:
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.plugins == plugins.paths():
                return worker
            worker.close()
        return SolverWorker()


def _give_back(worker: SolverWorker) -> None:
    if worker.process.poll() is not None:
        return
    with _lock:
        _idle.append(worker)


@atexit.register
def close_workers() -> None:
    """End the solver workers that wait for tasks; the next task starts new ones."""
    with _lock:
        while _idle:
            _idle.pop().close()


def run_task(
    function: SolveOne, task: Task, seconds: float, seed: int, row: int, prepare: Callable[[], None]
) -> Answer:
    """One instance: a crash is answered with a new seed in the time that is left."""
    started: float | None = None
    for attempt in range(ATTEMPTS):
        worker = _borrow()
        try:
            worker.ask((prepare, None, None, 0.0, 0), PREPARE_LIMIT)  # imports and compiling are not solving
            started = time.perf_counter() if started is None else started
            left = seconds - (time.perf_counter() - started)
            if attempt and left < SHORTEST:
                _give_back(worker)
                return None
            answer: Answer = worker.ask((prepare, function, task, left, new_seed(seed, row, attempt)), hard_limit(left))
        except Died as death:
            if worker.process.returncode == -signal.SIGINT:  # Ctrl-C reaches the workers too: no new attempt
                raise KeyboardInterrupt from None
            log.warning("%s: instance %d: the solver %s", function.__module__, first_row.get() + row, death)
            continue
        except (InputError, SolverError):
            _give_back(worker)
            raise
        except BaseException:
            worker.close()
            raise
        _give_back(worker)
        return answer
    return None


def solve_rows(problem: Problem, x: Any, solve_row: Callable[[Task, int], Answer]) -> Tensor:
    """Tours [B, 1, T] from solve_row(task, row), as many rows at a time as there are workers; instances of a handful
    of nodes are enumerated instead."""

    def solve(row: int, task: Task) -> Answer:
        return by_hand(task) if task.nodes <= BY_HAND else solve_row(task, row)

    tasks = tasks_of(problem, x)
    with ThreadPoolExecutor(max(1, min(len(tasks), worker_count()))) as pool:
        futures = [pool.submit(contextvars.copy_context().run, solve, row, task) for row, task in enumerate(tasks)]
        try:
            return tours_of([future.result() for future in futures])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


class Ended(NamedTuple):
    """How a program ended, and the last line that it printed."""

    in_time: bool
    status: int
    said: str

    def why(self, error: Exception) -> str:
        """In words, what was wrong with a run whose answer could not be read."""
        if not self.in_time:
            return "it ran out of time"
        said = f": {self.said}" if self.said else " and said nothing"
        if self.status < 0:
            return f"it crashed ({signal.Signals(-self.status).name}){said}"
        if self.status:
            return f"it ended with exit status {self.status}{said}"
        return f"it wrote no answer{said}" if isinstance(error, FileNotFoundError) else str(error)


def run_program(command: Sequence[str], folder: Path, seconds: float) -> Ended:
    """Runs a program in `folder`; after so many seconds it is stopped, with all processes it started."""
    output = folder / "output.log"
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    in_time = True
    try:
        process.wait(seconds)
    except BaseException as error:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        in_time = False
    return Ended(in_time, process.returncode, _last_line(output))


def _last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1000))
        lines = file.read().decode(errors="replace").split("\n")
    return next((" ".join(line.split())[:200] for line in reversed(lines) if line.strip()), "")
