"""One table of routes, which the application mounts twice: under `/v1`, and without a version."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter

from routelearn.serve import formats
from routelearn.serve import schemas as s
from routelearn.serve.parsing import AS_BYTES, UnreadRoute
from routelearn.serve.service import Service

WORDS = {
    400: "not JSON", 401: "no token, or a wrong one", 403: "not allowed here", 404: "no such job",
    406: "not possible in the type that is asked for", 408: "the body did not arrive",
    409: "the job has no answer, or not yet", 413: "the body is too large",
    415: "the body is not declared as JSON, or is compressed", 422: "bad input, or over a limit",
    429: "too many requests, or over a quota", 501: "no jobs on several replicas",
    503: "the service worker died, or the service is shutting down",
}  # fmt: skip

Described = dict[int | str, dict[str, Any]]
Handler = Callable[..., Awaitable[Response]]


def failures(*statuses: int) -> Described:
    return {status: {"model": s.Failure, "description": WORDS[status]} for status in statuses}


READING = (400, 408, 413, 415, 422)  # of a body
ALWAYS = (401, 422, 429)  # of all that needs a token
FAILURES = failures(*sorted((*READING, *ALWAYS, 503)))


def typed(*possible: str, what: str = "the answer") -> Described:
    """The answer 200 in formats beside JSON, which the route's own model describes."""
    kinds = {formats.CSV: {"type": "string"}}
    content = {
        formats.MEDIA[form]: {"schema": kinds.get(form, {"type": "object"})}
        for form in possible
        if form != formats.JSON
    }
    return {200: {"description": f"{what}; the type is that of the header `accept`", "content": content}}


class Table(APIRouter):
    """Routes with their bodies read beside the event loop."""

    def __init__(self, service: Service, bodies: s.Bodies):
        super().__init__(route_class=UnreadRoute)
        self.service, self.bodies = service, bodies

    def methods(self, path: str) -> list[str]:
        """Those that the routes of a path take."""
        plain = s.unversioned(path)
        known = [route for route in self.routes if isinstance(route, APIRoute) and route.path_regex.match(plain)]
        return sorted({method for route in known for method in route.methods or ()})

    def taking(self, path: str, **described: Any) -> Callable[[Handler], Any]:
        """POST with the body that the path takes; the handler gets its fields."""
        kind: Any = self.bodies.taken(path)
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        examples: Any = {name: {"value": value} for name, value in s.EXAMPLES[path].items()}

        def added(handler: Handler) -> Any:
            async def read(request: Request, body: bytes) -> Response:
                return await handler(request, await self.service.parser.read(adapter, body))

            read.__name__, read.__doc__ = handler.__name__, handler.__doc__  # they are in the description
            marked = (AS_BYTES, Body(openapi_examples=examples))
            read.__annotations__ = {"request": Request, "body": Annotated[kind, *marked]}
            return self.post(path, **({"responses": FAILURES} | described))(read)

        return added
