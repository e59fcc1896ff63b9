"""The application: its routes under `/v1` and without a version, its errors, and the guard before all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from routelearn import __version__
from routelearn.errors import InputError
from routelearn.runtime.garbage import stay_awake
from routelearn.serve import schemas as s
from routelearn.serve.access_log import AccessLog
from routelearn.serve.answering import field_of
from routelearn.serve.guard import OPEN, Guard, failure
from routelearn.serve.limits import GUESS_SECONDS, Limits, Refused
from routelearn.serve.page_settings import tiles_origin
from routelearn.serve.routes import jobs, reading, solving
from routelearn.serve.routes.table import Table
from routelearn.serve.service import Service
from routelearn.serve.tokens import FROM_ENVIRONMENT, Callers, Token, digest_of
from routelearn.serve.words import misdirected, refusal_of, unreadable

log = logging.getLogger("routelearn.serve")

ABOUT = (
    "Routes for your own stops, by a learned heuristic and by search. Under /v1 fields are only added: what a client "
    "reads and sends today stays valid. The same paths without /v1 answer the same."
)
BEARER = {"type": "http", "scheme": "bearer", "description": "needed where the service asks for a token"}


class Application(FastAPI):
    """FastAPI, whose description also tells of the token and of the events of streams."""

    openapi_schema: dict[str, Any] | None

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI description, made once."""
        if self.openapi_schema is None:
            made = get_openapi(
                title=self.title, version=self.version, description=self.description, routes=self.routes,
                openapi_version=self.openapi_version,
            )  # fmt: skip
            for path, methods in made["paths"].items():
                if path not in OPEN:
                    for operation in methods.values():
                        operation["security"] = [{"bearer": []}]
            _, streamed = models_json_schema(
                [(one, "validation") for one in s.STREAMED], ref_template="#/components/schemas/{model}"
            )
            schemas = made["components"]["schemas"]
            schemas |= {one.__name__: streamed["$defs"][one.__name__] for one in s.STREAMED}
            for unused in ("HTTPValidationError", "ValidationError"):  # FastAPI's own refusals, which are never sent
                schemas.pop(unused, None)
            made["components"]["securitySchemes"] = {"bearer": BEARER}
            self.openapi_schema = made
        return self.openapi_schema


def create_app(
    limits: Limits | None = None,
    workers: dict[str, int] | None = None,
    token: str | None = None,
    replica: str | None = None,
    models: dict[str, str] | None = None,
    cors: Sequence[str] = (),
    tokens: Sequence[Token] = (),
    access_log: str | None = None,
    keeps_jobs: bool = True,
    tiles: str | None = None,
) -> FastAPI:
    """The application with its own workers, which start and end with it.

    `token` is asked for if it is given, or one of `tokens`, with their quotas; `replica` is this application's name
    among its like, for the counters; `models` are files that serve instead of the shipped models, by problem; `cors`
    are origins of pages elsewhere that may ask; `access_log` is a file, or - for standard output; `keeps_jobs` is false
    where the next request may reach another replica; `tiles` is a template of addresses, from which the page loads the
    background of its maps.
    """
    images = "" if tiles is None else tiles_origin(tiles)
    service = Service(limits or Limits(), workers or {"construct": 1, "short": 1, "long": 1}, replica, models or {})
    written = None if access_log is None else AccessLog(access_log, service.metrics.unlogged)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.pool.start()
        stay_awake()
        yield
        await service.pool.close()
        if written is not None:
            await asyncio.to_thread(written.close)

    app = Application(
        title="routelearn", version=__version__, description=ABOUT, lifespan=life, docs_url=None, redoc_url=None,
        redirect_slashes=False,  # to an address that only this server knows, not who stands before it
        generate_unique_id_function=lambda route: route.name,
    )  # fmt: skip
    app.state.service = service
    bodies = s.bodies()
    table = Table(service, bodies)
    solving.add(table)
    jobs.add(table, here=keeps_jobs)
    reading.add(table)
    _add_errors(app, table)
    app.include_router(table, include_in_schema=False)
    app.include_router(table, prefix=s.VERSION)
    app.include_router(reading.unversioned(service, tiles))
    app.mount("/page", StaticFiles(directory=reading.PAGE), name="page")
    known = [] if token is None else [Token(FROM_ENVIRONMENT, digest_of(token))]
    paths = frozenset((*(route.path for route in table.routes if isinstance(route, APIRoute)), *OPEN))
    app.add_middleware(
        Guard, limits=service.limits, metrics=service.metrics, callers=Callers([*known, *tokens]), paths=paths,
        access_log=written, images=images,
    )  # fmt: skip
    if cors:  # outside the guard: a browser asks first, without the token
        app.add_middleware(
            CORSMiddleware, allow_origins=cors, allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("authorization", "content-type"), expose_headers=("location", "retry-after"),
        )  # fmt: skip
    return app


def _add_errors(app: FastAPI, table: Table) -> None:
    bodies = table.bodies

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> JSONResponse:
        if error.status == 404:  # of a job
            await asyncio.sleep(GUESS_SECONDS)
        return failure(error)

    @app.exception_handler(InputError)
    async def wrong(_: Request, error: InputError) -> JSONResponse:
        return failure(Refused(422, str(error), field=field_of(str(error))))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        path, errors, kind = s.unversioned(request.url.path), list(error.errors()), None
        if path in s.TAGGED:
            for one in errors:
                one["loc"], kind = s.untagged(one["loc"])
        asked = bodies.of(path, kind)
        keys = [] if asked is None else list(asked.model_fields)
        return failure(refusal_of(errors, keys, list(bodies.instance.model_fields)))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> JSONResponse:
        headers = {name.lower(): value for name, value in (error.headers or {}).items()}
        method, path = request.method, request.url.path
        if error.status_code == 405 and (methods := table.methods(path)):  # the router tells those of one route
            headers["allow"] = ", ".join(methods)
        told = unreadable(error) or misdirected(error.status_code, method, path, headers.get("allow", ""))
        return failure(Refused(error.status_code, told or str(error.detail)), headers)

    @app.exception_handler(Exception)
    async def defect(_: Request, error: Exception) -> JSONResponse:
        log.error("a request failed", exc_info=error)
        return failure(Refused(500, "internal error; see the service's log"))
