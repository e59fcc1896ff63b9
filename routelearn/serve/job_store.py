"""Jobs: requests whose answers are fetched later. They are kept in memory, bounded in number, bytes and time."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from routelearn.serve.batching import Asked, Ticket
from routelearn.serve.formats import COST, JSON
from routelearn.serve.limits import Limits, Refused, over
from routelearn.serve.metrics import Metrics
from routelearn.serve.tokens import Caller
from routelearn.serve.worker import encode

IN_MEMORY = 10  # bytes of a request's fields for each byte of its JSON: places of 3 digits take 9.2, of 16 digits 3.5
RECORD = 1000  # bytes of a job beside its request or answer


@dataclass(eq=False)
class Job:
    """A request that is answered in its own time."""

    id: str
    owner: str  # name of the token that made it
    kind: str  # solve, round, batch
    size: int  # bytes in memory
    asked: Asked | None = None  # while it is not answered
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    how: str = ""  # it ended: done, failed or cancelled
    cost: float | None = None  # of the best solution so far
    answers: dict[str, bytes] = field(default_factory=dict)  # by format
    failure: bytes = b""
    timer: asyncio.TimerHandle | None = None

    @property
    def state(self) -> str:
        return self.how or ("running" if self.asked and any(one.started for one in self.asked.tickets) else "queued")

    def hear(self, part: bytes) -> None:
        """The cost of a better solution; of an attempt whose worker died it may be better than what comes."""
        self.cost = min(float(part), float("inf") if self.cost is None else self.cost)

    def record(self) -> dict[str, Any]:
        """The fields of schemas.JobKept."""
        seconds = (time.monotonic() if self.ended is None else self.ended) - self.began
        created = self.created.isoformat(timespec="milliseconds")
        named = {"id": self.id, "kind": self.kind, "state": self.state, "created": created}
        return named | {"seconds": round(seconds, 3), "cost": self.cost}

    def document(self) -> bytes:
        """The JSON of schemas.Job. The answer is JSON already, and may be large."""
        head = encode(self.record())[:-1]
        answer, failure = self.answers.get(JSON, b"null"), self.failure or b"null"
        return head + b',"answer":' + answer + b',"failure":' + failure + b"}"


class Jobs:
    """All jobs of one application. Every method runs on the event loop."""

    def __init__(self, limits: Limits, metrics: Metrics, cancel: Callable[[Ticket], None]):
        self.limits, self.metrics, self.cancel = limits, metrics, cancel
        self.kept: dict[str, Job] = {}  # in the order of their making
        self.finished: dict[str, Job] = {}  # those of them that ended, in the order of their ends
        self.bytes = 0
        metrics.jobs.labels("finished").set_function(lambda: len(self.finished))
        metrics.jobs.labels("unfinished").set_function(lambda: len(self.kept) - len(self.finished))
        metrics.job_bytes.set_function(lambda: self.bytes)

    def begin(self, caller: Caller, kind: str, body: int, ask: Callable[[Job], Asked]) -> Job:
        """Keep a new job of a request of `body` bytes, which `ask` submits; raises Refused if there is no room."""
        mine = [job.size for job in self.kept.values() if job.owner == caller.name and not job.how]
        if caller.jobs is not None and len(mine) >= caller.jobs:
            raise over(429, "jobs", caller.jobs, f"{len(mine)} unfinished jobs of the token {caller.name}")
        size = IN_MEMORY * body + RECORD
        if len(self.kept) - len(self.finished) >= self.limits.keep_jobs:
            raise over(429, "keep_jobs", self.limits.keep_jobs, f"{len(self.kept)} jobs are not finished yet")
        waiting = self.bytes - sum(job.size for job in self.finished.values())
        if waiting + size > self.most:
            raise over(
                429 if waiting else 422, "keep_megabytes", self.limits.keep_megabytes,
                f"{(waiting + size) / 1e6:.1f} MB of unfinished jobs",
            )  # fmt: skip
        if caller.name and mine:  # others must find room, however many one token asks for
            told = f"more unfinished jobs of the token {caller.name}, of which one may have half of all"
            if len(mine) + 1 > self.limits.keep_jobs / 2:
                raise over(429, "keep_jobs", self.limits.keep_jobs, told)
            if sum(mine) + size > self.most / 2:
                raise over(429, "keep_megabytes", self.limits.keep_megabytes, told)
        if not self.make_room(caller.name, size, 1):
            limit = "keep_jobs" if len(self.kept) >= self.limits.keep_jobs else "keep_megabytes"
            told = "the room that is left holds answers of others, who keep less"
            raise over(429, limit, getattr(self.limits, limit), told)
        job = Job(secrets.token_urlsafe(16), caller.name, kind, size)
        job.asked = ask(job)
        self.kept[job.id] = job
        self.bytes += size
        answers = asyncio.gather(*(ticket.answer for ticket in job.asked.tickets), return_exceptions=True)
        answers.add_done_callback(partial(self._answered, job))
        return job

    @property
    def most(self) -> float:
        return self.limits.keep_megabytes * 1e6

    def make_room(self, owner: str, size: int, count: int = 0) -> bool:
        """Forget finished jobs, the oldest first, until one of that size fits in; whether it does.

        Those of the owner that keeps most, finished or not, go first, and never those of one that keeps less than the
        new one's, so that nobody's answers are pushed out by somebody else's.
        """
        held: Counter[str] = Counter({owner: size})
        for job in self.kept.values():
            held[job.owner] += job.size
        while len(self.kept) + count > self.limits.keep_jobs or self.bytes + size > self.most:
            owners = {job.owner for job in self.finished.values()}
            most = max(owners, key=held.__getitem__, default=None)
            if most is None or held[most] < held[owner]:
                return False
            oldest = next(job for job in self.finished.values() if job.owner == most)
            held[most] -= oldest.size
            self.forget(oldest)
        return True

    def _answered(self, job: Job, answers: asyncio.Future[list[Any]]) -> None:
        if job.how or answers.cancelled() or job.asked is None:
            return
        found = answers.result()
        if any(isinstance(one, BaseException) for one in found):
            status, body = 503, encode(Refused(503, "the job was given up").body())
        else:
            status, body = job.asked.combined(found)
        if status == 200:
            self.end(job, "done", body if isinstance(body, dict) else {JSON: body})
        else:
            self.end(job, "failed", failure=body)

    def end(self, job: Job, how: str, answers: dict[str, bytes] | None = None, failure: bytes = b"") -> None:
        """Keep what a job leaves behind: its answer, or why there is none; forget the request."""
        job.how, job.ended, job.failure, job.answers = how, time.monotonic(), failure, dict(answers or {})
        if COST in job.answers:
            job.cost = float(job.answers.pop(COST))
        job.asked = None
        self.bytes -= job.size
        job.size = 0
        size = sum(map(len, job.answers.values())) + len(job.failure) + RECORD
        if not self.make_room(job.owner, size) and job.answers:
            refusal = over(422, "keep_megabytes", self.limits.keep_megabytes, f"an answer of {size} bytes")
            job.how, job.answers, job.failure = "failed", {}, encode(refusal.body())
            size = len(job.failure) + RECORD
        job.size = size
        self.bytes += size
        self.finished[job.id] = job
        self.metrics.jobs_ended.labels(job.how).inc()
        job.timer = asyncio.get_running_loop().call_later(self.limits.keep_seconds, self.forget, job)

    def find(self, caller: Caller, name: str) -> Job:
        """One's own job; that of another is not there, as if it had never been."""
        job = self.kept.get(name)
        if job is None or job.owner != caller.name:
            raise Refused(404, "no such job: its id is wrong, its time is over, or newer jobs took its place")
        return job

    def of(self, caller: Caller) -> list[Job]:
        """The newest first."""
        return [job for job in reversed(self.kept.values()) if job.owner == caller.name]

    def remove(self, job: Job) -> None:
        """Cancel an unfinished job, which is kept as cancelled; forget one that ended."""
        if job.how:
            self.forget(job)
            return
        asked = job.asked
        self.end(job, "cancelled")
        for ticket in asked.tickets if asked else ():
            self.cancel(ticket)

    def forget(self, job: Job) -> None:
        if self.kept.pop(job.id, None) is None:
            return
        self.finished.pop(job.id, None)
        self.bytes -= job.size
        if job.timer is not None:
            job.timer.cancel()
