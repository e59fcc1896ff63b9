"""What every request passes first: token, body size, requests in flight; and what is counted of it afterwards."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from routelearn.serve.limits import Limits, Refused, over
from routelearn.serve.metrics import Metrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BODY_SECONDS = 30.0  # in which a body must have arrived
OPEN = ("/healthz", "/metrics", "/", "/docs", "/openapi.json")  # readable without the token, as is /page/
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:"),
]


class Guard:
    """ASGI middleware. It reads the body, which is bounded, before the application starts on it."""

    def __init__(self, app: Any, limits: Limits, metrics: Metrics, token: str | None, paths: frozenset[str]):
        self.app, self.limits, self.metrics, self.token, self.paths = app, limits, metrics, token, paths
        self.in_flight = 0
        metrics.gauge("routelearn_in_flight", "Requests being answered.", lambda: {(): self.in_flight})

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        self.in_flight += 1
        try:
            try:
                receive = await self._admit(scope, receive)
            except Refused as refusal:
                await _refuse(noted, refusal)
            else:
                await self.app(scope, receive, noted)
        finally:
            self.in_flight -= 1
            path = scope["path"] if scope["path"] in self.paths else "other"
            self.metrics.count("routelearn_requests_total", "Requests by status.", path=path, status=str(status))
            spent = time.perf_counter() - began
            self.metrics.observe("routelearn_request_seconds", "Time to the whole answer.", spent, path=path)

    async def _admit(self, scope: Message, receive: Receive) -> Receive:
        path = scope["path"]
        if self.token is not None and path not in OPEN and not path.startswith("/page/"):
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
                raise Refused(401, "this service asks for a token: Authorization: Bearer TOKEN")
        if scope["method"] != "POST":
            return receive
        if self.in_flight > self.limits.in_flight:
            raise over(429, "in_flight", self.limits.in_flight, "too many requests at once")
        most = self.limits.body_kilobytes * 1024
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > most:
            raise over(413, "body_kilobytes", self.limits.body_kilobytes, f"a body of {int(declared)} bytes")
        body = b""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise over(413, "body_kilobytes", self.limits.body_kilobytes, "a larger body")
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise Refused(408, f"the body did not arrive within {BODY_SECONDS:g} seconds") from None
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        return replay


async def _refuse(send: Send, refusal: Refused) -> None:
    body = json.dumps(refusal.body()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status == 429:
        headers.append((b"retry-after", b"1"))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status in (408, 413):
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
