"""Answers as server-sent events: every better solution as it is found, and the last one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from routelearn.serve.formats import JSON
from routelearn.serve.limits import Refused
from routelearn.serve.service import ENDING, Service, gone, response
from routelearn.serve.worker import encode

HEARTBEAT = 10.0  # seconds after which a stream without news sends a comment, so that proxies keep it open
UNSENT = 4  # solutions that a stream keeps for its client


async def stream(service: Service, request: Request, fields: dict[str, Any]) -> Response:
    """Server-sent events. Bad input gets a plain answer, because no event has been sent yet."""
    parts = Parts()
    ticket = service.submit(request, "stream", fields | {"form": JSON}, parts.put)
    ticket.answer.add_done_callback(lambda _: parts.put(b""))
    left: asyncio.Future[Any] = asyncio.create_task(gone(request))
    first = asyncio.create_task(parts.get())
    try:
        await asyncio.wait({first, left}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:  # the grace time is over: an answer all the same
        raise Refused(503, ENDING) from None
    finally:
        if not first.done():
            left.cancel()
            first.cancel()
            service.pool.cancel(ticket)
    if not first.done():
        raise Refused(499, "the client went away")
    if not first.result() and ticket.answer.result()[0] != 200:
        left.cancel()
        return response(*ticket.answer.result())

    async def events() -> AsyncIterator[bytes]:
        part: bytes | None = first.result()
        try:
            while part:
                yield _event(b"better", part)
                while (part := await _next(parts, left)) is None and not left.done():
                    yield b": still searching\n\n"
            if not left.done():
                status, body = ticket.answer.result()
                yield _event(b"done" if status == 200 else b"failed", body)
        except asyncio.CancelledError:
            yield _event(b"failed", encode(Refused(503, ENDING).body()))
        finally:
            left.cancel()
            service.pool.cancel(ticket)

    return Events(events(), media_type="text/event-stream", headers={"cache-control": "no-store"})


class Parts:
    """What a stream has yet to send. For a client that reads slowly, older solutions make way for the newest."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque(maxlen=UNSENT)
        self.there = asyncio.Event()

    def put(self, part: bytes) -> None:
        self.waiting.append(part)
        self.there.set()

    async def get(self) -> bytes:
        await self.there.wait()
        part = self.waiting.popleft()
        if not self.waiting:
            self.there.clear()
        return part


class Events(StreamingResponse):
    """A stream that notices a disconnected client itself, and ends with an event when it is cancelled."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.stream_response(send)


def _event(name: bytes, data: bytes) -> bytes:
    return b"event: " + name + b"\ndata: " + data + b"\n\n"


async def _next(parts: Parts, left: asyncio.Future[Any]) -> bytes | None:
    """The next part of a stream; None if none comes for a while, or the client left."""
    coming = asyncio.create_task(parts.get())
    try:
        await asyncio.wait((coming, left), timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
        return coming.result() if coming.done() else None
    finally:
        coming.cancel()
