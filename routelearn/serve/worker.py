"""A service worker: takes batches of tickets from a pipe and answers each as it is done, until the pipe closes."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from routelearn.errors import InputError
from routelearn.runtime.garbage import stay_awake
from routelearn.serve.formats import Forms
from routelearn.serve.limits import Limits, Refused

log = logging.getLogger("routelearn.serve")

# Compiles the search for rounds onto the disk, and ends with the worker that started it.
COMPILE_ROUNDS = """
import os, threading, time
os.nice(19)
parent = os.getppid()
def follow():
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
threading.Thread(target=follow, daemon=True).start()
from routelearn.rounds.search import load_kernels
load_kernels()
"""
FIRST = 2  # so many problems, in the registry's order, a worker can search before it says that it is ready

Ticket = tuple[int, str, dict[str, Any]]  # its number, its kind, the request's fields


def work(pipe: Connection, lane: str, niceness: int, limits: Limits, models: dict[str, str]) -> None:
    """Run the process. Long searches get a lower priority, so that short ones find a processor."""
    for number in (signal.SIGINT, signal.SIGTERM):  # often sent to the whole group; the server ends its workers
        signal.signal(number, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(niceness)
    gc.disable()  # until it is ready
    try:
        import torch

        from routelearn import plugins

        torch.set_num_threads(1)
        plugins.from_environment()
        plugins.available()
        ServiceWorker(pipe, limits, lane, models).run()
    except Exception as error:
        with contextlib.suppress(OSError):
            pipe.send(("failed", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"))
        if not isinstance(error, InputError):  # whose one line says it all
            raise
        sys.exit(1)


class ServiceWorker:
    def __init__(self, pipe: Connection, limits: Limits, lane: str, models: dict[str, str] | None = None):
        self.pipe, self.limits, self.lane = pipe, limits, lane
        self.models = models or {}  # files that serve instead of the shipped models, by problem
        self.lock = threading.Lock()
        self.inbox: queue.SimpleQueue[list[Ticket] | None] = queue.SimpleQueue()
        self.boards: dict[int, Any] = {}  # of searches that run
        self.cancelled: set[int] = set()

    def send(self, *message: Any) -> None:
        with self.lock, contextlib.suppress(BrokenPipeError):
            self.pipe.send(message)

    def listen(self) -> None:
        """Receive tickets and cancellations while a ticket runs."""
        while True:
            try:
                kind, content = self.pipe.recv()
            except (EOFError, OSError):  # the server is gone
                os._exit(0)
            if kind == "tickets":
                self.inbox.put(content)
            elif kind == "cancel":
                self.cancelled.add(content)
                board = self.boards.get(content)  # one look: the search may end between two
                if board is not None:
                    board.stop.set()
            else:
                self.inbox.put(None)

    def run(self) -> None:
        threading.Thread(target=self.listen, daemon=True).start()
        warm(self.lane, self.models)
        stay_awake()
        self.send("ready")
        if self.lane != "construct":  # the rest meanwhile: a first request for it must not wait for a compiler
            threading.Thread(target=warm_others, args=(self.lane,), daemon=True).start()
        while (tickets := self.inbox.get()) is not None:
            if self.lane == "construct":
                self.construct(tickets)
            else:
                for ticket in tickets:
                    self.one(*ticket)
            self.cancelled.clear()
            self.send("idle")

    def construct(self, tickets: list[Ticket]) -> None:
        from routelearn.serve.answering import construct

        wanted = [(number, fields) for number, _, fields in tickets if number not in self.cancelled]
        for group in construct(wanted, self.limits, self.models):
            self.send("done", [(number, *ready(result)) for number, result in group])

    def one(self, number: int, kind: str, fields: dict[str, Any]) -> None:
        from routelearn.serve import answering, reading
        from routelearn.serve.think import think
        from routelearn.solving.board import Board

        board = self.boards[number] = Board()
        if number in self.cancelled:
            board.stop.set()

        def tell(part: Any) -> None:
            self.send("part", number, encode(part))

        calls: dict[str, Callable[[], Any]] = {
            "solve": lambda: answering.solve(fields, self.limits, board, None, self.models),
            "stream": lambda: answering.solve(fields, self.limits, board, tell, self.models),
            "job": lambda: answering.solve(
                fields, self.limits, board, lambda better: tell(better["cost"]), self.models
            ),
            "batch": lambda: answering.solve_batch(fields, self.limits, board.stop, self.models),
            "stops": lambda: reading.read_file(fields, self.limits),
            "check": lambda: answering.check(fields),
            "think": lambda: think(fields, self.limits, board.stop, self.models),
        }
        result: Any
        try:
            result = calls[kind]()
        except Exception as error:
            result = error
        finally:
            del self.boards[number]
        self.send("done", [(number, *ready(result))])


def ready(result: Any) -> tuple[int, Any]:
    """Status and body of an answer or an exception, ready to be sent; of a job its body in every format."""
    from routelearn.serve.answering import field_of

    if isinstance(result, InputError):
        result = Refused(422, str(result), field=field_of(str(result)))
    elif isinstance(result, Exception) and not isinstance(result, Refused):
        log.error("a ticket failed", exc_info=result)
        result = Refused(500, f"internal error ({type(result).__name__}); see the service's log")
    if isinstance(result, Refused):
        return result.status, encode(result.body())
    if isinstance(result, Forms):
        return 200, result if len(result) > 1 else next(iter(result.values()))
    return 200, encode(result)


def encode(value: Any) -> bytes:
    """ASCII only, so that a name with half a surrogate pair cannot break the answer."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def warm(lane: str, models: dict[str, str]) -> None:
    """Weights and compiled code of what the lane serves, before the first request needs them."""
    from routelearn.problems import NumpyRng
    from routelearn.problems.base import to_single
    from routelearn.serve import answering, reading, think  # noqa: F401 (their imports take the time)
    from routelearn.serve.catalogue import served

    if lane == "construct":
        from routelearn.decoding.decode import decode
        from routelearn.models import shipped
        from routelearn.solving.models import find_model

        with_model = {entry["problem"] for entry in shipped().values()} | set(models)
        for problem in (problem for name, problem in served().items() if name in with_model):
            model, _ = find_model(problem, 20, True, models.get(problem.name))
            if model is not None:
                for batch in (1, 16):
                    decode(problem, model.policy, to_single(problem.sample(NumpyRng(0), batch, 20)), "greedy")
    else:
        warm_search(list(served())[:FIRST])


def warm_others(lane: str) -> None:
    """Compiled code of the other problems, one after the other."""
    from routelearn.rounds.search import load_kernels
    from routelearn.serve.catalogue import served

    warm_search(list(served())[FIRST:])
    if lane != "short":  # one of the workers compiles for all
        return
    try:
        # In a process of its own: numba holds one lock while it compiles, and requests would wait for it.
        subprocess.run([sys.executable, "-c", COMPILE_ROUNDS], check=True, stdout=subprocess.DEVNULL)
        load_kernels()
    except Exception as error:  # the request that needs it will tell
        log.error("the search for rounds could not be prepared", exc_info=error)


def warm_search(names: list[str]) -> None:
    from routelearn.problems import get
    from routelearn.search.search import load_kernels

    for name in names:
        try:
            load_kernels(get(name))
        except InputError:  # no search knows it: requests are told so
            continue
        except Exception as error:  # the request that needs it will tell
            log.error("the search for %s could not be prepared", name, exc_info=error)
