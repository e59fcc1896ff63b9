"""Limits that protect the machine, with their defaults, and the refusal that names limit and value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

GUESS_SECONDS = 0.1  # until the refusal of a wrong token or id of a job: who tries many must not keep the server busy


@dataclass(frozen=True)
class Limits:
    """Each is a flag of `routelearn serve`."""

    body_kilobytes: int = 4096  # of one request
    nodes: int = 2000  # stops of one instance
    instances: int = 256  # instances of one batch
    seconds: float = 60.0  # search time of one request
    rollouts: int = 1280  # constructions of one request that a decoding strategy may ask for
    think_nodes: int = 200  # stops of a construction shown step by step
    think_numbers: int = 100_000  # its steps times its stops: each step shows a probability for each stop
    queue: int = 512  # requests that wait for a worker, per lane
    in_flight: int = 1024  # requests being answered at once
    iterations: int = 1_000_000  # steps of one search of a round that ends by count
    entries: int = 40_000  # of all lists in a round's stops, vehicles and routes: windows, breaks, skills, visits
    head_kilobytes: int = 32  # request line and headers of one request
    head_seconds: float = 10.0  # in which they must have arrived
    unread_seconds: float = 20.0  # in which a client must read some of its answer
    legs: int = 20_000_000  # stops times stops, of all instances of a searched batch that are measured by a matrix
    keep_jobs: int = 1000  # jobs at once, finished ones among them
    keep_seconds: float = 3600.0  # that a finished job is kept
    keep_megabytes: int = 256  # of all jobs: requests that wait, and answers

    def check(self, limit: str, asked: float, what: str, field: str | None = None) -> None:
        """Raises the refusal 422 of more than the limit of that name; `what` says how much was asked for."""
        if asked > (most := getattr(self, limit)):
            raise over(422, limit, most, what, field)


class Refused(Exception):
    """An answer other than 2xx: its status, one line for the person, and the limit or field it is about."""

    def __init__(
        self, status: int, error: str, *, field: str | None = None, limit: str | None = None,
        value: float | None = None, retry_after: float | None = 1.0,
    ):  # fmt: skip
        super().__init__(error)
        self.status, self.error, self.field, self.limit, self.value = status, error, field, limit, value
        self.retry_after = retry_after  # seconds, told with 409, 429 and 503; None: it is of no use

    def body(self) -> dict[str, Any]:
        return {"error": self.error, "field": self.field, "limit": self.limit, "value": self.value}

    def headers(self) -> dict[str, str]:
        if self.status == 401:
            return {"www-authenticate": "Bearer"}
        if self.retry_after is None or self.status not in (409, 429, 503):
            return {}
        return {"retry-after": str(max(1, math.ceil(self.retry_after)))}


def over(
    status: int, limit: str, value: float, what: str, field: str | None = None, retry_after: float = 1.0
) -> Refused:
    """The refusal of something beyond a limit: `what` says how much was asked for."""
    words = f"{what}; the limit {limit} is {value:.15g}"
    return Refused(status, words, field=field, limit=limit, value=value, retry_after=retry_after)
