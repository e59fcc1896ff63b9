"""Limits that protect the machine, with their defaults, and the refusal that names limit and value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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


class Refused(Exception):
    """An answer other than 2xx: its status, one line for the person, and the limit or field it is about."""

    def __init__(
        self, status: int, error: str, *, field: str | None = None, limit: str | None = None, value: float | None = None
    ):
        super().__init__(error)
        self.status, self.error, self.field, self.limit, self.value = status, error, field, limit, value

    def body(self) -> dict[str, Any]:
        return {"error": self.error, "field": self.field, "limit": self.limit, "value": self.value}


def over(status: int, limit: str, value: float, what: str, field: str | None = None) -> Refused:
    """The refusal of something beyond a limit: `what` says how much was asked for."""
    return Refused(status, f"{what}; the limit {limit} is {value:.15g}", field=field, limit=limit, value=value)
