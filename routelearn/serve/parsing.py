"""Bodies of requests, read beside the event loop: megabytes of JSON must not keep others waiting."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError, WrapValidator
from starlette.exceptions import HTTPException

SMALL = 32 * 1024  # bytes of a body that is read at once: a thread would take longer


AS_BYTES = WrapValidator(lambda body, _: body)  # of a body that FastAPI describes and does not check


class UnreadRequest(Request):
    async def json(self) -> Any:
        return await self.body()


class UnreadRoute(APIRoute):
    """A route whose bodies FastAPI does not parse."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Any:
            return await handle(UnreadRequest(request.scope, request.receive))

        return handler


class Parser:
    """Reads one large body at a time, in a thread."""

    def __init__(self) -> None:
        self.turn = asyncio.Semaphore(1)

    async def read(self, kind: TypeAdapter[Any], body: bytes) -> dict[str, Any]:
        """The fields of a request; raises what FastAPI would for a body that is wrong."""
        if len(body) <= SMALL:
            return _fields(kind, body)
        async with self.turn:
            gc.disable()  # its passes over all that was read took four fifths of the time, and held up all threads
            try:
                return await asyncio.to_thread(_fields, kind, body)
            finally:
                gc.enable()


def _fields(kind: TypeAdapter[Any], body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body)
    except json.JSONDecodeError as error:
        wrong = {"type": "json_invalid", "loc": ("body", error.pos), "input": {}, "ctx": {"error": error.msg}}
        raise RequestValidationError([wrong]) from None
    except Exception as error:  # not UTF-8, or nested too deeply
        raise HTTPException(400, "the body cannot be read") from error
    try:
        fields: dict[str, Any] = kind.validate_python(given).model_dump()
    except ValidationError as error:
        raise RequestValidationError(
            [{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_url=False)]
        ) from None
    return fields
