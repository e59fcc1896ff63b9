"""Check token, quota, body size and requests in flight before every request; count and log it afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from fastapi.responses import JSONResponse

from routelearn.serve.access_log import LONGEST, AccessLog
from routelearn.serve.limits import GUESS_SECONDS, Limits, Refused, over
from routelearn.serve.metrics import Metrics
from routelearn.serve.schemas import PATHS, unversioned
from routelearn.serve.tokens import Callers

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BODY_SECONDS = 30.0  # in which a body must have arrived
DISCARDED = 64 * 2**20  # bytes of a body too large that are read all the same: many clients listen only afterwards
OPEN = ("/healthz", "/livez", "/metrics", "/", "/docs", "/openapi.json")  # readable without the token, as is /page/
JOB = "/jobs/{id}"
CLOSING = {"connection": "close"}  # what is left of a body is not read
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:"


class Guard:
    """ASGI middleware. It reads the body, which is bounded, before the application starts on it."""

    def __init__(
        self, app: Any, limits: Limits, metrics: Metrics, callers: Callers, paths: frozenset[str],
        access_log: AccessLog | None = None, images: str = "",
    ):  # fmt: skip
        """`images` is an origin beside this one from which the page may load images."""
        self.app, self.limits, self.metrics, self.callers, self.paths = app, limits, metrics, callers, paths
        self.access_log = access_log
        policy = f"{POLICY} {images}".strip().encode()
        self.headers = [(b"x-content-type-options", b"nosniff"), (b"content-security-policy", policy)]
        self.in_flight = 0
        metrics.in_flight.set_function(lambda: self.in_flight)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, sent, head = time.perf_counter(), 0, 0, scope["method"] == "HEAD"
        asked = scope["method"]
        scope["state"] = known = {"caller": self.callers.anyone}  # what is found out about the request on its way
        if head:  # as GET, without the body
            scope = {**scope, "method": "GET"}

        async def noted(message: Message) -> None:
            nonlocal status, sent
            if head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            sent += len(message.get("body", b""))
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *self.headers]
            await send(message)

        self.in_flight += 1
        app = self.app
        try:
            try:
                receive = await self._admit(scope, receive)
            except asyncio.CancelledError:  # the grace time is over, and the body has not arrived
                app = failure(Refused(503, "the service is shutting down"), CLOSING)
            except Refused as refusal:
                if refusal.status == 401:
                    self.in_flight -= 1  # others must find room meanwhile
                    await asyncio.sleep(GUESS_SECONDS)
                    self.in_flight += 1
                app = failure(refusal, CLOSING if refusal.status in (408, 413, 503) else None)
            await app(scope, receive, noted)
        finally:
            self.in_flight -= 1
            self._note(scope, known, asked, status, sent, time.perf_counter() - began)

    def _note(self, scope: Message, known: dict[str, Any], method: str, status: int, sent: int, seconds: float) -> None:
        path, name = self.label(scope["path"]), known["caller"].name
        self.metrics.requests.labels(path, str(status)).inc()
        self.metrics.seconds.labels(path).observe(seconds)
        if name:
            self.metrics.token_requests.labels(name, str(status)).inc()
        if self.access_log is not None:
            client = scope.get("client")
            self.access_log.write(
                client=client[0] if client else None, token=name or None, method=method[:LONGEST],
                # The id of a job is a secret where no token is asked for.
                path=path if path == JOB else scope["path"][:LONGEST],
                status=status, ms=round(1000 * seconds, 3), bytes=sent, lane=known.get("lane"),
            )  # fmt: skip

    def label(self, path: str) -> str:
        """The path as counters have it: without version and ids."""
        plain = unversioned(path)
        return JOB if plain.startswith("/jobs/") else plain if plain in self.paths else "other"

    async def _admit(self, scope: Message, receive: Receive) -> Receive:
        path, headers = scope["path"], dict(scope["headers"])
        if path not in OPEN and not path.startswith("/page/"):
            caller = self.callers.find(headers.get(b"authorization", b""))
            if caller is None:
                wrong = "the given token is not known; " if b"authorization" in headers else ""
                raise Refused(401, f"{wrong}this service asks for a token: Authorization: Bearer TOKEN")
            scope["state"]["caller"] = caller
            caller.count_request()
        if scope["method"] != "POST":
            return receive
        if self.in_flight > self.limits.in_flight:
            raise over(429, "in_flight", self.limits.in_flight, "too many requests at once")
        body = await self._body(headers, receive)
        if unversioned(path) in PATHS:
            _check_declared(headers)
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


def failure(refusal: Refused, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A refusal as it is sent."""
    return JSONResponse(refusal.body(), refusal.status, {**(headers or {}), **refusal.headers()})
