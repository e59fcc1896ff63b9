"""Routes that solve while the client waits, and those that look at a plan, a policy or a file."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from routelearn.serve import formats
from routelearn.serve import schemas as s
from routelearn.serve.batching import Asked
from routelearn.serve.routes.table import FAILURES, Table, failures, typed
from routelearn.serve.streaming import stream


def add(table: Table) -> None:
    service = table.service
    by_header = FAILURES | failures(406)

    def form_of(request: Request, fields: dict[str, Any]) -> str:
        possible = formats.OF_ROUND if s.kind_of(fields) == "round" else formats.OF_COLUMNS
        return formats.chosen(request.headers.get("accept"), possible)

    async def answered(request: Request, kind: str, fields: dict[str, Any], form: str = formats.JSON) -> Response:
        return await service.respond(request, Asked(kind, [service.submit(request, kind, fields)]), form)

    @table.taking("/solve", response_model=s.Answer | s.RoundAnswer, responses=by_header | typed(*formats.OF_ROUND))
    async def solve(request: Request, fields: dict[str, Any]) -> Response:
        """One set of stops: a good route within `seconds`; for 0, the better construction of policy and heuristic.

        A body with `stops` (or VROOM's `jobs`) is a round: vehicles, windows, shifts and the like.
        """
        form = form_of(request, fields)
        return await service.respond(request, service.ask(request, fields, form), form)

    @table.taking("/solve/batch", response_model=s.Answers, responses=by_header)
    async def solve_batch(request: Request, fields: dict[str, Any]) -> Response:
        """Many sets of stops. Constructions share the decoder's passes; a search divides its seconds among all."""
        formats.chosen(request.headers.get("accept"), (formats.JSON,))
        return await service.respond(request, service.ask_batch(request, fields))

    @table.taking("/solve/stream", response_class=StreamingResponse, responses=FAILURES | EVENTS)
    async def solve_stream(request: Request, fields: dict[str, Any]) -> Response:
        """Server-sent events: `better` for each better solution as it is found, then `done` with the last one.

        If something goes wrong after the first event, the last one is `failed`. Lines that begin with a colon are
        comments, which keep the connection open.
        """
        return await stream(service, request, fields)

    @table.taking("/check", response_model=s.RoundAnswer, responses=by_header | typed(*formats.OF_ROUND))
    async def check(request: Request, fields: dict[str, Any]) -> Response:
        """A plan of a round: its times, its cost, and every rule that it breaks."""
        form = formats.chosen(request.headers.get("accept"), formats.OF_ROUND)
        return await answered(request, "check", fields | {"form": form}, form)

    @table.taking("/think", response_model=s.Thoughts)
    async def think(request: Request, fields: dict[str, Any]) -> Response:
        """A construction by the policy, step by step: probabilities, what is masked and why, what is left."""
        return await answered(request, "think", fields)

    @table.taking("/stops", response_model=table.bodies.file)
    async def read_stops(request: Request, fields: dict[str, Any]) -> Response:
        """A file of stops (CSV, JSON, GeoJSON, TSPLIB, CVRPLIB) as the fields of a request."""
        return await answered(request, "stops", fields)


EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "better, ..., done",
        "content": {
            "text/event-stream": {
                # What each event holds, as OpenAPI 3.2 and FastAPI write it; tools that know 3.1 alone read the text.
                "itemSchema": {"oneOf": [{"$ref": f"#/components/schemas/{one.__name__}"} for one in s.STREAMED]},
            }
        },
    }
}
