"""Connections of the server: limits on what happens before a request is known and after its answer is written."""

from __future__ import annotations

import asyncio
import http
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from routelearn.serve.limits import Limits, Refused, over

LINGER = 1.0  # seconds between a refusal and the close: a close while the client sends would take the answer from it
LEAST_READ = 16 * 1024  # bytes of an answer that a client must read within `unread_seconds`


class Connection(HttpToolsProtocol):
    """uvicorn's protocol, which bounds neither the head of a request (request line and headers) nor unread answers."""

    def __init__(self, *, limits: Limits, **given: Any):
        super().__init__(**given)
        self.limits = limits
        self.in_head, self.head_bytes, self.refused = True, 0, False
        self.head_timer: asyncio.TimerHandle | None = None
        self.unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # `pause_writing` is then called whenever something is left unread
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop("head_timer")
        self._stop("unread_timer")
        super().connection_lost(exc)

    def _stop(self, name: str) -> None:
        if (timer := getattr(self, name)) is not None:
            timer.cancel()
            setattr(self, name, None)

    # ------------------------------------------------------------------------------------------------ requests

    def data_received(self, data: bytes) -> None:
        """Pass on what came; of a head no more than its limit, because the parser keeps all of it."""
        most = self.limits.head_kilobytes * 1024
        while data and not self.refused and not self.transport.is_closing():
            piece = data[: most - self.head_bytes] if self.in_head else data
            data = data[len(piece) :]
            self.head_bytes += len(piece)
            super().data_received(piece)
            if not self.in_head:
                self.head_bytes = 0
            elif self.head_bytes >= most:
                self.refuse(over(431, "head_kilobytes", self.limits.head_kilobytes, "a larger request head"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self.in_head:  # the head of a second request, within what was received with the first
            self.in_head, self.head_bytes = True, 0

    def on_headers_complete(self) -> None:
        self.in_head = False
        self._stop("head_timer")
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            if not self.in_head and not self.cycle.more_body:
                self.in_head, self.head_bytes = True, 0
            self._await_head()

    def _await_head(self) -> None:
        self._stop("head_timer")
        self.head_timer = self.loop.call_later(self.limits.head_seconds, self._head_overdue)

    def _head_overdue(self) -> None:
        if self.in_head and self.head_bytes:
            self.refuse(over(408, "head_seconds", self.limits.head_seconds, "the request head did not arrive in time"))
        else:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self.refuse(Refused(400, "not an HTTP request: its request line, headers or chunks cannot be read"))

    def refuse(self, refusal: Refused) -> None:
        """Answer as all refusals are, and read no more."""
        if self.refused or self.transport.is_closing():
            return
        self.refused = True
        self._stop("head_timer")
        cycle = self.cycle
        if cycle is not None and (cycle.response_started or not cycle.more_body) and not cycle.response_complete:
            self.transport.close()  # an answer is under way, and this one would come in its midst
            return
        body, status = json.dumps(refusal.body()).encode(), http.HTTPStatus(refusal.status)
        self.transport.write(
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
            + body
        )
        self.flow.pause_reading()
        self.loop.call_later(LINGER, self.transport.close)

    # ------------------------------------------------------------------------------------------------- answers

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop("unread_timer")
        self._watch_unread(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop("unread_timer")

    def _watch_unread(self, before: int) -> None:
        def look() -> None:
            left = self.transport.get_write_buffer_size()
            if left > before - LEAST_READ:
                self.transport.abort()  # a close would wait for the client to read the rest
            else:
                self._watch_unread(left)

        self.unread_timer = self.loop.call_later(self.limits.unread_seconds, look)
