"""The service workers of all lanes: hand out tickets, replace workers that die, lose no ticket in silence."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from routelearn.serve.batching import FairQueue, Ticket
from routelearn.serve.limits import Limits, Refused
from routelearn.serve.metrics import Metrics
from routelearn.serve.worker import encode, work

log = logging.getLogger("routelearn.serve")

# Forked from a process that has imported what they need, workers start in a fraction of the time and share its memory.
CONTEXT = multiprocessing.get_context("forkserver") if sys.platform == "linux" else multiprocessing.get_context("spawn")
CONTEXT.set_forkserver_preload(["routelearn.serve.loaded"])
NICENESS = {"construct": 2, "short": 4, "long": 10}  # the server itself comes first: all requests wait for it
BATCH = {"construct": 64, "short": 1, "long": 1}
HELPERS = {"short": "long"}  # a lane, and the one whose idle workers take its tickets, of which each is soon done
ENOUGH = 16  # tickets for which a second worker starts a batch beside one that runs: few cost nearly as much
ATTEMPTS = 2  # a ticket whose worker died is given to another one; if that dies too, the ticket is to blame
OVERDUE = 60.0  # seconds beyond its own after which a ticket is given up and its worker replaced
STOPPING = 3.0  # seconds that a cancelled ticket may take to stop
TRIES = 4  # deaths in a row, before one was ever ready, after which a lane is given up
LONGEST_PAUSE = 30.0  # seconds between two starts of a worker that dies before it is ready


class Process:
    """One service worker as the server sees it."""

    def __init__(
        self, lane: str, limits: Limits, models: dict[str, str], hear: Callable[[Process, tuple[Any, ...]], None]
    ):
        self.lane, self.ready, self.busy, self.dead = lane, False, False, False
        self.reason = ""  # why it died, where it could still say so
        self.tickets: dict[int, Ticket] = {}  # handed to it and not yet answered, by number
        self.pipe, far = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=work, args=(far, lane, NICENESS[lane], limits, models), daemon=True)
        self.process.start()
        far.close()  # the only other end is the worker's: its death closes the pipe
        self.out = ThreadPoolExecutor(1)  # a worker that does not read must not stop the event loop
        threading.Thread(target=self._listen, args=(hear, asyncio.get_running_loop()), daemon=True).start()

    def _listen(self, hear: Callable[[Process, tuple[Any, ...]], None], loop: asyncio.AbstractEventLoop) -> None:
        while True:
            try:
                message = self.pipe.recv()
            except (EOFError, OSError):
                message = ("died",)
                self.process.join(1.0)  # here, where nobody waits: then its exit status is known
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server ends
                loop.call_soon_threadsafe(hear, self, message)
            if message[0] == "died":
                return

    def tell(self, kind: str, content: Any = None) -> None:
        def put() -> None:
            with contextlib.suppress(OSError, ValueError):  # its death is noticed by the listener
                self.pipe.send((kind, content))

        self.out.submit(put)


def refuse(ticket: Ticket, words: str) -> None:
    """The answer 503, if there is none yet."""
    if not ticket.answer.done():
        ticket.answer.set_result((503, encode(Refused(503, words).body())))


class Pool:
    """All service workers. Every method runs on the event loop."""

    def __init__(self, limits: Limits, counts: dict[str, int], metrics: Metrics, models: dict[str, str] | None = None):
        self.limits, self.counts, self.metrics, self.models = limits, counts, metrics, models or {}
        self.queues = {lane: FairQueue(lane, limits.queue) for lane in counts}
        self.workers: dict[str, list[Process]] = {lane: [] for lane in counts}
        self.numbers = itertools.count()
        self.failures = dict.fromkeys(counts, 0)  # deaths in a row before a worker was ready
        self.opened: set[str] = set()  # lanes that have had a worker
        self.closing = False
        self.give_up: Callable[[str], None] | None = None  # told why no worker of a lane starts; None: try for ever
        self.background: set[asyncio.Task[None]] = set()
        for lane in counts:
            metrics.waiting.labels(lane).set_function(partial(self._now, lane, "waiting"))
            metrics.ready.labels(lane).set_function(partial(self._now, lane, "ready"))

    def start(self) -> None:
        for lane, count in self.counts.items():
            for _ in range(count):
                self._spawn(lane)
        self._later(self._watch())

    def _later(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    def _spawn(self, lane: str) -> None:
        self.workers[lane].append(Process(lane, self.limits, self.models, self._hear))

    def submit(
        self, lane: str, kind: str, fields: dict[str, Any], client: str, part: Callable[[bytes], None] | None = None
    ) -> Ticket:
        """A ticket whose `answer` will come, whatever happens to its worker; raises Refused if the queue is full."""
        answer = asyncio.get_running_loop().create_future()
        ticket = Ticket(next(self.numbers), kind, fields, client, answer, part, lane)
        self.queues[lane].put(ticket)
        self._dispatch(lane)
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Cancel a ticket that nobody waits for: take it from the queue, or stop its search."""
        if ticket.answer.done():
            return
        ticket.gone = True
        ticket.answer.cancel()
        if any(queue.discard(ticket) for queue in self.queues.values()):
            return
        for worker in itertools.chain(*self.workers.values()):
            if ticket.number in worker.tickets:
                self.metrics.cancelled.inc()
                worker.tell("cancel", ticket.number)
                if worker.lane != "construct":
                    self._later(self._insist(worker, ticket))

    async def _insist(self, worker: Process, ticket: Ticket) -> None:
        """Kill the worker if its ticket cannot be stopped, such as a foreign solver."""
        await asyncio.sleep(STOPPING)
        if ticket.number in worker.tickets and not self.closing:
            worker.process.kill()

    def _free(self, worker: Process) -> None:
        """Give a worker that has nothing to do a ticket of its own lane, else of one that it helps."""
        self._dispatch(worker.lane)
        for lane, helper in HELPERS.items():
            if helper == worker.lane and lane in self.queues:
                self._dispatch(lane)

    def _dispatch(self, lane: str) -> None:
        for worker in (*self.workers[lane], *self.workers.get(HELPERS.get(lane, ""), ())):
            if worker.ready and not worker.busy and not worker.dead:
                if BATCH[lane] > 1 and self.queues[lane].size < ENOUGH and any(w.busy for w in self.workers[lane]):
                    return  # they join the batch that starts when the running one ends
                tickets = self.queues[lane].take(BATCH[lane])
                if not tickets:
                    return
                now = time.monotonic()
                for ticket in tickets:
                    ticket.attempts += 1
                    ticket.started = now
                worker.tickets = {ticket.number: ticket for ticket in tickets}
                worker.busy = True
                self.metrics.batch.labels(lane).observe(len(tickets))
                worker.tell("tickets", [(ticket.number, ticket.kind, ticket.fields) for ticket in tickets])

    def _hear(self, worker: Process, message: tuple[Any, ...]) -> None:
        kind, *content = message
        if kind == "ready":
            worker.ready = True
            self.opened.add(worker.lane)
            self.failures[worker.lane] = 0
            self._free(worker)
        elif kind == "idle":
            worker.tickets, worker.busy = {}, False
            self._free(worker)
        elif kind == "failed":
            worker.reason = content[0]  # its death follows
        elif kind == "part":
            ticket = worker.tickets.get(content[0])
            if ticket is not None and ticket.part is not None and not ticket.gone:
                ticket.part(content[1])
        elif kind == "done":
            for number, status, body in content[0]:
                ticket = worker.tickets.pop(number, None)
                if ticket is not None and worker.lane != "construct":  # there many share what it takes
                    self.queues[ticket.lane].charge(ticket.client, time.monotonic() - ticket.started)
                if ticket is not None and not ticket.answer.done():
                    ticket.answer.set_result((status, body))
        else:
            self._died(worker)

    def _died(self, worker: Process) -> None:
        """Replace a dead worker, and give its tickets to others or answer them."""
        worker.dead = True
        worker.out.shutdown(wait=False)
        worker.pipe.close()
        if worker in self.workers[worker.lane]:
            self.workers[worker.lane].remove(worker)
        if self.closing:
            return
        self.metrics.deaths.labels(worker.lane).inc()
        reason = worker.reason or f"exit status {worker.process.exitcode}"
        log.warning("a service worker of the lane %s died (process %s): %s", worker.lane, worker.process.pid, reason)
        for ticket in reversed(worker.tickets.values()):
            if ticket.gone or ticket.answer.done():
                continue
            if ticket.attempts < ATTEMPTS:
                ticket.started = 0.0
                self.queues[ticket.lane].put(ticket, first=True)
            else:
                refuse(ticket, "the service worker of this request died twice; try again later")
        pause = 0.0
        if not worker.ready:
            self.failures[worker.lane] += 1
            pause = min(LONGEST_PAUSE, 2.0 ** self.failures[worker.lane])
            if self.give_up is not None and worker.lane not in self.opened and self.failures[worker.lane] >= TRIES:
                self.give_up(f"no service worker of the lane {worker.lane} starts, after {TRIES} tries: {reason}")
                return
        self._later(self._respawn(worker.lane, pause))
        for lane in {worker.lane, *(ticket.lane for ticket in worker.tickets.values())}:
            self._dispatch(lane)

    async def _respawn(self, lane: str, pause: float) -> None:
        await asyncio.sleep(pause)
        if not self.closing:
            self._spawn(lane)

    async def _watch(self) -> None:
        """A ticket that overstays its time is answered, and its worker replaced."""
        while not self.closing:
            await asyncio.sleep(1.0)
            now = time.monotonic()
            for worker in list(itertools.chain(*self.workers.values())):
                late = [
                    ticket
                    for ticket in worker.tickets.values()
                    if now - ticket.started > float(ticket.fields.get("seconds", 0.0)) + OVERDUE
                ]
                for ticket in late:
                    refuse(ticket, "the service worker of this request did not answer in time; try again later")
                if late:
                    worker.process.kill()

    def status(self) -> dict[str, dict[str, int]]:
        """By lane: workers wanted, ready and busy, and requests that wait."""
        return {
            lane: {
                "wanted": self.counts[lane],
                "ready": sum(worker.ready for worker in workers),
                "busy": sum(worker.busy for worker in workers),
                "waiting": self.queues[lane].size,
            }
            for lane, workers in self.workers.items()
        }

    def _now(self, lane: str, what: str) -> int:
        return self.status()[lane][what]

    def serving(self) -> bool:
        """Whether every lane has a ready worker, or is replacing one that had been ready."""
        return all(
            any(worker.ready for worker in workers) or (lane in self.opened and self.failures[lane] == 0)
            for lane, workers in self.workers.items()
        )

    async def close(self) -> None:
        """End all workers; what still waits is answered."""
        self.closing = True
        waiting = [ticket for queue in self.queues.values() for ticket in queue.take(queue.size)]
        workers = list(itertools.chain(*self.workers.values()))
        for ticket in itertools.chain(waiting, *(worker.tickets.values() for worker in workers)):
            refuse(ticket, "the service is shutting down")
        for task in list(self.background):
            task.cancel()
        for worker in workers:
            worker.process.kill()  # they keep nothing that could be lost
        for worker in workers:
            await asyncio.to_thread(worker.process.join, 2.0)
            worker.out.shutdown(wait=False)
