"""Who is next: a lane for each kind of request, in it fair turns between clients, and as many tickets as fit a batch.

No timer holds a request back. While a worker decodes a batch, the requests that arrive meanwhile form the next
one; so a lone request waits for nothing, and under load the batches grow by themselves.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from routelearn.data.guess import guess
from routelearn.data.names import table
from routelearn.errors import InputError
from routelearn.serve.limits import over

SMALL_NODES = 200  # constructions up to this size share batches
SHORT_SECONDS = 1.0  # searches up to this long, of instances up to SHORT_NODES, have a lane of their own
SHORT_NODES = 500
TURN_SECONDS = 0.5  # of a worker that one turn of a client is worth
SHORT_STEPS = 50_000  # nodes (or loads) times rollouts


@dataclass(eq=False)  # each is only itself: looking for one among hundreds must not compare their fields
class Ticket:
    """A request, or a part of one, on its way to a worker and back."""

    number: int
    kind: str  # solve, stream, job, batch, stops, think, check
    fields: dict[str, Any]
    client: str
    answer: asyncio.Future[tuple[int, Any]]  # status and body; of a job the body in every format
    part: Callable[[bytes], None] | None = None  # hears of better solutions
    lane: str = ""  # in which it waits; the worker may be of another
    attempts: int = 0
    started: float = 0.0  # on the monotonic clock; 0 while it waits
    gone: bool = False  # nobody waits for the answer any more


class Asked(NamedTuple):
    """A whole request: the tickets that answer it."""

    kind: str  # solve, round, batch
    tickets: list[Ticket]
    several: bool = False  # each ticket answers one instance of a batch

    def combined(self, answers: Sequence[tuple[int, Any]]) -> tuple[int, Any]:
        """Status and body of the whole; it fails with the first ticket that does."""
        for status, body in answers:
            if status != 200:
                return status, body
        if not self.several:
            return answers[0]
        return 200, b'{"answers":[' + b",".join(body for _, body in answers) + b"]}"


class FairQueue:
    """First come, first served for each client; between clients, turns, of which longer work costs several."""

    def __init__(self, name: str, most: int):
        self.name, self.most, self.size = name, most, 0
        self.waiting: OrderedDict[str, deque[Ticket]] = OrderedDict()
        self.owed: dict[str, float] = {}  # seconds of workers that clients had beyond their turns, above 0

    def put(self, ticket: Ticket, *, first: bool = False) -> None:
        """Raises the refusal 429 where the queue is full; `first`: a ticket that has waited its turn already."""
        if self.size >= self.most and not first:
            raise over(429, "queue", self.most, f"{self.size} requests wait in the lane {self.name}")
        line = self.waiting.setdefault(ticket.client, deque())
        if first:
            line.appendleft(ticket)
            self.waiting.move_to_end(ticket.client, last=False)
        else:
            line.append(ticket)
        self.size += 1

    def take(self, most: int) -> list[Ticket]:
        """Up to `most` tickets that somebody still waits for, one of each client in turn."""
        taken: list[Ticket] = []
        while self.waiting and len(taken) < most:
            client = self._next()
            line = self.waiting[client]
            ticket = line.popleft()
            self.size -= 1
            if line:
                self.waiting.move_to_end(client)
            else:
                del self.waiting[client]
            if not ticket.gone:
                taken.append(ticket)
        return taken

    def _next(self) -> str:
        """Whose turn it is. A client that owes lets the others pass, unless all of them owe."""
        if least := min(self.owed.get(client, 0.0) for client in self.waiting):
            for client in self.waiting:
                self._owe(client, self.owed[client] - least)
        while (client := next(iter(self.waiting))) in self.owed:
            self._owe(client, self.owed[client] - TURN_SECONDS)
            self.waiting.move_to_end(client)
        return client

    def charge(self, client: str, seconds: float) -> None:
        """Count what a ticket took of a worker."""
        self._owe(client, self.owed.get(client, 0.0) + seconds - TURN_SECONDS)

    def _owe(self, client: str, seconds: float) -> None:
        self.owed.pop(client, None)
        if seconds > 0:
            self.owed[client] = seconds
        if len(self.owed) > self.most:  # of clients that may never come back
            del self.owed[next(iter(self.owed))]

    def discard(self, ticket: Ticket) -> bool:
        """Remove a ticket whose client disconnected; False if it was not waiting."""
        line = self.waiting.get(ticket.client)
        if line is None or ticket not in line:
            return False
        line.remove(ticket)
        self.size -= 1
        if not line:
            del self.waiting[ticket.client]
        return True


def lane_of(kind: str, fields: dict[str, Any], nodes: int, rollouts: int, with_model: Container[str | None]) -> str:
    """construct: decoded in batches; short: up to a second; long: all that takes longer."""
    if kind in ("stops", "think", "check"):
        return "short"
    if "iterations" in fields:  # a round
        counted = fields["iterations"] is not None
        return "short" if fields["seconds"] <= SHORT_SECONDS and nodes <= SHORT_NODES and not counted else "long"
    seconds, solver, nodes = fields["seconds"], fields["solver"], max(nodes, loads_of(fields))
    if seconds == 0 and solver is None and rollouts == 1 and nodes <= SMALL_NODES:
        return "construct" if fields["policy"] and likely_problem(fields) in with_model else "short"
    short = seconds <= SHORT_SECONDS and nodes <= SHORT_NODES and nodes * rollouts <= SHORT_STEPS
    return "short" if short and kind != "batch" else "long"


def loads_of(fields: dict[str, Any]) -> int:
    """Vehicles that the demands fill: split deliveries may take far more visits than there are stops."""
    names = table(fields.get("problem"))
    amounts, holds = (
        [fields.get(name) for name, one in known.items() if one.unit == "amount" and not one.shape]
        for known in (names.columns, names.limits)
    )
    room = min((one for one in holds if one), default=0.0)
    most = max((sum(filter(None, column)) for column in amounts if column), default=0.0)
    loads = most / room if room > 0 else 0.0
    return math.ceil(loads) if 0 < loads < math.inf else 0


def likely_problem(fields: dict[str, Any]) -> str | None:
    """The problem, if the fields show it at once; the service worker decides."""
    if fields.get("problem") is not None:
        return str(fields["problem"])
    names = table()
    given = {name for name in (*names.columns, *names.limits) if fields.get(name) is not None}
    try:
        return guess("the request", given)
    except InputError:
        return None
