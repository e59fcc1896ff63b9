"""Routes that only read: random instances, problems, models; and, without a version, health, counters, the page."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response

from routelearn import __version__
from routelearn.problems import PROBLEMS
from routelearn.serve import catalogue
from routelearn.serve import schemas as s
from routelearn.serve.metrics import CONTENT_TYPE
from routelearn.serve.page_settings import settings
from routelearn.serve.routes.table import ALWAYS, Table, failures
from routelearn.serve.service import Service

PAGE = Path(__file__).parents[1] / "page"
FIRST = next(iter(PROBLEMS))  # the problem of a random instance, if none is named


def add(table: Table) -> None:
    service = table.service

    @table.get(
        "/random", response_model=table.bodies.problem, response_model_exclude_none=True,
        responses=failures(*ALWAYS),
    )  # fmt: skip
    async def random_instance(
        problem: Annotated[str, Query(max_length=40, description="problem id")] = FIRST,
        n: Annotated[int, Query(ge=2, description="stops, the depot not counted")] = 20,
        seed: Annotated[int, Query(ge=0, le=2**32 - 1, description="the same seed gives the same instance")] = 0,
    ) -> Response:
        """A random instance as the paper draws them, ready to be solved."""
        service.limits.check("nodes", n + 1, f"{n} stops and a depot", "n")
        return JSONResponse(catalogue.random_instance(problem, n, seed))

    @table.get("/problems", response_model=s.Problems, responses=failures(*ALWAYS))
    async def list_problems() -> Response:
        """The problems, the fields each needs, and the solvers usable here."""
        return JSONResponse({"problems": await asyncio.to_thread(lambda: service.problems)})

    @table.get("/models", response_model=s.Models, responses=failures(*ALWAYS))
    async def list_models() -> Response:
        """The trained models, those that ship with the package and those that were given, with their cards."""
        return JSONResponse({"models": service.models})


def unversioned(service: Service, tiles: str | None) -> APIRouter:
    """What machines watch and people read; open without a token."""
    table = APIRouter()

    @table.get("/healthz", response_model=s.Health, responses={503: {"model": s.Health, "description": "starting"}})
    async def healthz() -> Response:
        """Whether requests are answered: ok; degraded, a worker is being replaced; or starting (503)."""
        workers, serving = service.pool.status(), service.pool.serving()
        whole = all(row["ready"] == row["wanted"] for row in workers.values())
        status = "ok" if whole else "degraded" if serving else "starting"
        body = {"status": status, "version": __version__, "workers": workers}
        return JSONResponse(body, 200 if serving else 503)

    @table.get("/livez", response_model=s.Alive)
    async def livez() -> Response:
        """Whether the server itself runs, whatever its workers do: 200, or no answer at all."""
        return JSONResponse({"status": "ok"})

    @table.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Counters in the text format of Prometheus."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    @table.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(PAGE / "index.html")

    @table.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(PAGE / "docs.html")

    @table.get("/page/settings.json", include_in_schema=False)
    async def page_settings() -> Response:
        return JSONResponse(settings(tiles))

    return table
