"""Check token, body size and requests in flight before every request; count it afterwards."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from routelearn.serve.limits import Limits, Refused, over
from routelearn.serve.metrics import Metrics
from routelearn.serve.schemas import PATHS

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BODY_SECONDS = 30.0  # in which a body must have arrived
DISCARDED = 64 * 2**20  # bytes of a body too large that are read all the same: many clients listen only afterwards
OPEN = ("/healthz", "/livez", "/metrics", "/", "/docs", "/openapi.json")  # readable without the token, as is /page/
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:"


class Guard:
    """ASGI middleware. It reads the body, which is bounded, before the application starts on it."""

    def __init__(
        self, app: Any, limits: Limits, metrics: Metrics, token: str | None, paths: frozenset[str], images: str = ""
    ):
        """`images` is an origin beside this one from which the page may load images."""
        self.app, self.limits, self.metrics, self.token, self.paths = app, limits, metrics, token, paths
        policy = f"{POLICY} {images}".strip().encode()
        self.headers = [(b"x-content-type-options", b"nosniff"), (b"content-security-policy", policy)]
        self.in_flight = 0
        metrics.in_flight.set_function(lambda: self.in_flight)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, head = time.perf_counter(), 0, scope["method"] == "HEAD"
        if head:  # as GET, without the body
            scope = {**scope, "method": "GET"}

        async def noted(message: Message) -> None:
            nonlocal status
            if head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *self.headers]
            await send(message)

        self.in_flight += 1
        try:
            try:
                receive = await self._admit(scope, receive)
            except asyncio.CancelledError:  # the grace time is over, and the body has not arrived
                await _refuse(noted, Refused(503, "the service is shutting down"))
            except Refused as refusal:
                await _refuse(noted, refusal)
            else:
                await self.app(scope, receive, noted)
        finally:
            self.in_flight -= 1
            path = scope["path"] if scope["path"] in self.paths else "other"
            self.metrics.requests.labels(path, str(status)).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - began)

    async def _admit(self, scope: Message, receive: Receive) -> Receive:
        path = scope["path"]
        if self.token is not None and path not in OPEN and not path.startswith("/page/"):
            scheme, _, given = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self.token.encode()):
                raise Refused(401, "this service asks for a token: Authorization: Bearer TOKEN")
        if scope["method"] != "POST":
            return receive
        if self.in_flight > self.limits.in_flight:
            raise over(429, "in_flight", self.limits.in_flight, "too many requests at once")
        body = await self._body(dict(scope["headers"]), receive)
        if path in PATHS:
            _check_declared(dict(scope["headers"]))
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        return replay

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """The whole body. A body that is too large is refused, after reading it if it is not much too large."""
        most, waits = self.limits.body_kilobytes * 1024, headers.get(b"expect", b"").lower() == b"100-continue"
        given = headers.get(b"content-length", b"0")
        declared, size, body = int(given) if given.isdigit() else 0, 0, bytearray()
        what = f"a body of {declared} bytes" if declared else "a larger body"
        refusal = over(413, "body_kilobytes", self.limits.body_kilobytes, what)
        if declared > most and (waits or declared > DISCARDED):  # it asks first, or there is no end to it
            raise refusal
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if max(size, declared) <= most:
                        body += chunk
                    if size > max(most, DISCARDED) or not message.get("more_body", False):
                        break
        except TimeoutError:
            if max(size, declared) <= most:
                raise Refused(408, f"the body did not arrive within {BODY_SECONDS:g} seconds") from None
        if max(size, declared) > most:
            raise refusal
        return bytes(body)


def _check_declared(headers: dict[bytes, bytes]) -> None:
    """Check that the body is declared as JSON and is not compressed."""
    packed = headers.get(b"content-encoding", b"identity").decode("latin-1").strip().lower()
    if packed not in ("", "identity"):
        raise Refused(415, f"the body is compressed with {packed[:40]}; send it uncompressed, without content-encoding")
    kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        what = f"the body is declared as {kind[:80]}" if kind else "the body is not declared"
        raise Refused(415, f"{what}; send JSON with the header content-type: application/json")


async def _refuse(send: Send, refusal: Refused) -> None:
    body = json.dumps(refusal.body()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status in (429, 503):
        headers.append((b"retry-after", b"1"))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status in (408, 413, 503):
        headers.append((b"connection", b"close"))  # what is left of the body is not read
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
