"""What all routes share: limits on what is asked for, tickets for it, and the wait for their answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence, Sized
from functools import cached_property
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from routelearn.decoding import decode
from routelearn.errors import InputError
from routelearn.serve import catalogue, formats
from routelearn.serve import schemas as s
from routelearn.serve.answering import MEASURED, PLACES, source_of
from routelearn.serve.batching import Asked, Ticket, lane_of
from routelearn.serve.job_store import Jobs
from routelearn.serve.limits import Limits, Refused
from routelearn.serve.metrics import Metrics
from routelearn.serve.parsing import Parser
from routelearn.serve.tokens import Caller
from routelearn.serve.workers import Pool

ENDING = "the service is shutting down"


class Service:
    """Limits, workers, jobs and counters of one application."""

    def __init__(self, limits: Limits, workers: dict[str, int], replica: str | None, models: dict[str, str]):
        self.limits, self.metrics = limits, Metrics({} if replica is None else {"replica": replica})
        self.pool = Pool(limits, workers, self.metrics, models)
        self.jobs = Jobs(limits, self.metrics, self.pool.cancel)
        self.models = catalogue.models(models)
        self.own = models
        self.parser = Parser()
        self.with_model = frozenset(model["problem"] for model in self.models)

    @cached_property
    def problems(self) -> list[dict[str, Any]]:
        return catalogue.problems(self.own)

    # ------------------------------------------------------------------------------------------ checking

    def nodes(self, fields: dict[str, Any], prefix: str = "") -> int:
        """Stops of an instance, within the limit."""
        if s.kind_of(fields) == "round":
            return self.round_nodes(fields)
        name = next((name for name in PLACES if fields.get(name) is not None), "coords")
        count = _length(fields.get(name))
        self.limits.check("nodes", count, f"{count} stops", prefix + name)
        return count

    def round_nodes(self, fields: dict[str, Any]) -> int:
        """Stops of a round, within the limit."""
        counts = {name: len(fields[name]) for name in s.OF_ROUNDS if isinstance(fields.get(name), list)}
        count = sum(counts.values())
        self.limits.check("nodes", count, f"{count} stops", next(iter(counts), None))
        for name in ("depots", "vehicles", "routes", "profiles"):
            if isinstance(many := fields.get(name), list | dict):
                self.limits.check("nodes", len(many), f"{len(many)} {name}", name)
        for name in (*counts, "vehicles", "routes"):
            entries = sum(map(_entries, fields[name])) if isinstance(fields.get(name), list) else 0
            self.limits.check("entries", entries, f"{entries} entries of lists in {name}", name)
        return count

    def legs(self, instances: Sequence[dict[str, Any]]) -> None:
        """Refuse a batch whose matrices would not fit into memory: a search holds all of them at once."""
        legs = sum(
            max(_length(one[name]) for name in PLACES) ** 2
            for one in instances
            if any(one[name] is not None for name in MEASURED)
        )
        what = f"{legs} lengths between the stops of all instances, measured by latlon, matrix or metric"
        self.limits.check("legs", legs, f"{what}; send fewer instances", "instances")

    def rollouts(self, fields: dict[str, Any], nodes: int = 0) -> int:
        """Constructions that the decoding strategy asks for at that many nodes, within the limit."""
        self.limits.check("seconds", fields["seconds"], f"{fields['seconds']:g} seconds", "seconds")
        if s.kind_of(fields) == "round":
            asked = fields["iterations"] or 0
            self.limits.check("iterations", asked, f"{asked} iterations", "iterations")
            return 1
        if fields["solver"] is not None and fields["decode"] is not None:
            raise InputError("both solver and decode are given; a solver does not decode")
        if fields["decode"] is None:
            return 1
        if fields["seconds"] > 0:
            raise InputError(
                "decode builds with the policy alone, and seconds above 0 asks for a search; leave one out"
            )
        if not fields["policy"]:
            raise InputError("decode needs the policy, but policy is false; leave one of them out")
        rollouts = decode.parse(fields["decode"]).constructions(max(1, nodes))
        self.limits.check("rollouts", rollouts, f"{rollouts} constructions", "decode")
        return rollouts

    # ---------------------------------------------------------------------------------------------- asking

    def ask(
        self, request: Request, fields: dict[str, Any], form: str = formats.JSON,
        hear: Callable[[bytes], None] | None = None,
    ) -> Asked:  # fmt: skip
        """Tickets for a body of `/solve`, `/solve/batch` or `/jobs`; `hear` is a job's, for the cost of the best."""
        kind = s.job_kind_of(fields)
        if kind == "batch":
            return self.ask_batch(request, fields)
        one = "solve" if hear is None else "job"
        ticket = self.submit(request, one, fields | {"form": form}, hear)
        return Asked("round" if kind == "round" else "solve", [ticket])

    def ask_batch(self, request: Request, fields: dict[str, Any]) -> Asked:
        """A search of all instances together, or a ticket for each of them, so that they are decoded with others."""
        count = len(fields["instances"])
        self.limits.check("instances", count, f"{count} instances", "instances")
        for row, one in enumerate(fields["instances"]):
            self.nodes(one, f"instances.{row}.")
        if fields["seconds"] > 0 and fields["solver"] is None:
            self.legs(fields["instances"])
            return Asked("batch", [self.submit(request, "batch", fields)])
        shared = {name: value for name, value in fields.items() if name != "instances"}
        self.rollouts(shared)  # the limit is on the seconds of all of them
        shared["seconds"] /= count
        tickets: list[Ticket] = []
        try:
            for row, one in enumerate(fields["instances"]):
                tickets.append(self.submit(request, "solve", {**one, **shared, "source": source_of(row)}))
        except Refused:
            for ticket in tickets:
                self.pool.cancel(ticket)
            raise
        return Asked("batch", tickets, several=True)

    def submit(
        self, request: Request, kind: str, fields: dict[str, Any], part: Callable[[bytes], None] | None = None
    ) -> Ticket:
        nodes = 0 if kind in ("stops", "batch") else self.nodes(fields)
        rollouts = self.rollouts(fields, nodes) if "seconds" in fields else 1
        lane = lane_of(kind, fields, nodes, rollouts, self.with_model)
        request.scope["state"]["lane"] = lane
        caller, seconds = caller_of(request), float(fields.get("seconds", 0.0))
        caller.reserve(seconds)
        address = request.client.host if request.client else ""
        try:
            ticket = self.pool.submit(lane, kind, fields, caller.name or address, part)
        except Refused:
            caller.settle(seconds, 0.0)
            raise
        if caller.name:
            ticket.answer.add_done_callback(lambda _: self._settle(caller, ticket, lane, seconds))
        return ticket

    def _settle(self, caller: Caller, ticket: Ticket, lane: str, reserved: float) -> None:
        """Count the time that a worker spent. Constructions share theirs, and it is short: they are free."""
        spent = time.monotonic() - ticket.started if ticket.started and lane != "construct" else 0.0
        caller.settle(reserved, spent)
        self.metrics.token_seconds.labels(caller.name).inc(spent)

    # ------------------------------------------------------------------------------------------- answering

    async def answered(self, request: Request, asked: Asked) -> tuple[int, Any]:
        """Status and body; if the client goes away first, the tickets are cancelled."""
        left: asyncio.Future[Any] = asyncio.create_task(gone(request))
        try:
            for ticket in asked.tickets:
                await asyncio.wait((ticket.answer, left), return_when=asyncio.FIRST_COMPLETED)
                if not ticket.answer.done():
                    raise Refused(499, "the client went away")
            return asked.combined([ticket.answer.result() for ticket in asked.tickets])
        except asyncio.CancelledError:  # the grace time is over: an answer all the same
            raise Refused(503, ENDING) from None
        finally:
            left.cancel()
            for ticket in asked.tickets:
                self.pool.cancel(ticket)

    async def respond(self, request: Request, asked: Asked, form: str = formats.JSON) -> Response:
        return response(*await self.answered(request, asked), form)


def _length(values: Sized | None) -> int:
    return 0 if values is None else len(values)


def _entries(thing: Any) -> int:
    """How many entries the lists in an object have, those of its own objects too (VROOM's pickup and delivery)."""
    if not isinstance(thing, dict):
        return len(thing) if isinstance(thing, list) else 0
    return sum(_entries(value) for value in thing.values() if isinstance(value, list | dict))


def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope["state"]["caller"]
    return caller


async def gone(request: Request) -> None:
    """Returns when the client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def response(status: int, body: bytes, form: str = formats.JSON) -> Response:
    """The answer of a worker, or its refusal, which is always JSON."""
    headers = {"retry-after": "1"} if status in (429, 503) else {}
    form = form if status == 200 else formats.JSON
    return Response(body, status_code=status, media_type=formats.MEDIA[form], headers=headers | {"vary": "accept"})
