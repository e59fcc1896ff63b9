"""Bodies of requests, read beside the event loop: megabytes of JSON must not keep others waiting."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from json.decoder import WHITESPACE, JSONArray, JSONDecodeError, JSONObject  # type: ignore[attr-defined]
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError, WrapValidator
from starlette.exceptions import HTTPException

from routelearn.runtime.garbage import collected_later
from routelearn.serve.words import unknown_parameter

SMALL = 32 * 1024  # bytes of a body that is read at once: a thread would take longer
LEVELS = 4  # of nesting that are read in pieces: instances, their lists, and the entries of these
PIECE = 32 * 1024  # characters of a list of numbers that are read at once


AS_BYTES = WrapValidator(lambda body, _: body)  # of a body that FastAPI describes and does not check


class UnreadRequest(Request):
    async def json(self) -> Any:
        return await self.body()


class UnreadRoute(APIRoute):
    """A route whose bodies FastAPI does not parse; it refuses parameters in the address that it does not have."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        handle, known = super().get_route_handler(), [one.alias for one in self.dependant.query_params]

        async def handler(request: Request) -> Any:
            if (stray := next((name for name in request.query_params if name not in known), None)) is not None:
                raise unknown_parameter(stray, known)
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
            with collected_later():  # its passes over all that was read took four fifths of the time
                return await asyncio.to_thread(_fields, kind, body)


def _fields(kind: TypeAdapter[Any], body: bytes) -> dict[str, Any]:
    try:
        given = loads(body)
    except json.JSONDecodeError as error:
        wrong = {"type": "json_invalid", "loc": ("body", error.pos), "input": {}, "ctx": {"error": error.msg}}
        raise RequestValidationError([wrong]) from None
    except Exception as error:  # not UTF-8, or nested too deeply
        raise HTTPException(400, "the body cannot be read") from error
    try:
        fields = _plain(kind.validate_python(given))
    except ValidationError as error:
        raise RequestValidationError(
            [{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_url=False)]
        ) from None
    return fields


def _plain(model: BaseModel) -> dict[str, Any]:
    """The fields of a model by name, models among them likewise; lists of numbers are not copied."""

    def inside(value: Any) -> Any:
        if isinstance(value, list) and value and isinstance(value[0], BaseModel):
            return [_plain(one) for one in value]
        return _plain(value) if isinstance(value, BaseModel) else value

    return {name: inside(value) for name, value in model}


# ------------------------------------------------------------------------------------------ JSON in pieces


def loads(body: bytes) -> Any:
    """As json.loads, which would hold the interpreter's lock, and with it the event loop, for 0.1 s and more."""
    if len(body) <= SMALL:
        return json.loads(body)
    text = body.decode(json.detect_encoding(body), "surrogatepass")
    try:
        value, end = _scan(text, WHITESPACE.match(text).end(), LEVELS)
    except StopIteration as error:
        raise JSONDecodeError("Expecting value", text, error.value) from None
    end = WHITESPACE.match(text, end).end()
    if end != len(text):
        raise JSONDecodeError("Extra data", text, end)
    return value


_once = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def _scan(text: str, at: int, levels: int) -> Any:
    """(the value that begins there, where it ends), containers of the first levels by Python's own code."""
    opening = text[at : at + 1] if levels else ""
    if opening == "{":
        return JSONObject((text, at + 1), True, partial(_scan, levels=levels - 1), None, None, {})
    if opening == "[":
        end = text.find("]", at)
        inside = text[at + 1 : end]
        if end < 0 or "[" in inside or "{" in inside or '"' in inside:
            return JSONArray((text, at + 1), partial(_scan, levels=levels - 1))
        if len(inside) > PIECE:
            return _numbers(text, at + 1, end), end + 1
    return _once(text, at)


def _numbers(text: str, at: int, end: int) -> list[Any]:
    """A list without containers and strings."""
    values: list[Any] = []
    while at <= end:
        comma = text.rfind(",", at, at + PIECE) if end - at > PIECE else end
        piece = text[at : comma if comma >= 0 else end]
        try:
            found, _ = _once(f"[{piece}]", 0)
        except JSONDecodeError as error:
            raise JSONDecodeError(error.msg, text, at + error.pos - 1) from None
        if not found:  # nothing before or after a comma
            raise JSONDecodeError("Expecting value", text, at)
        values += found
        at += len(piece) + 1
    return values
