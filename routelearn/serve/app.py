"""The application: thin. It checks limits, finds the lane, waits for the service worker's answer, and passes it on."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from routelearn import __version__
from routelearn.decoding import decode
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS
from routelearn.runtime.garbage import stay_awake
from routelearn.serve import catalogue
from routelearn.serve import schemas as s
from routelearn.serve.batching import Job, lane_of
from routelearn.serve.guard import Guard
from routelearn.serve.jobs import MEASURED, PLACES, field_of, source_of
from routelearn.serve.limits import Limits, Refused, over
from routelearn.serve.metrics import CONTENT_TYPE, Metrics
from routelearn.serve.parsing import AS_BYTES, Parser, UnreadRoute
from routelearn.serve.words import refusal_of, unreadable
from routelearn.serve.worker import encode
from routelearn.serve.workers import Pool

log = logging.getLogger("routelearn.serve")

PAGE = Path(__file__).parent / "page"
JSON = "application/json"
WORDS = {
    400: "not JSON", 401: "no token, or a wrong one", 408: "the body did not arrive", 413: "the body is too large",
    415: "the body is not declared as JSON, or is compressed", 422: "bad input, or over a limit",
    429: "too many requests", 503: "the service worker died, or the service is shutting down",
}  # fmt: skip
FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": s.Failure, "description": words} for status, words in WORDS.items()
}
READ_ONLY: dict[int | str, dict[str, Any]] = {status: FAILURES[status] for status in (401, 422)}
FIRST = next(iter(PROBLEMS))  # the problem of a random instance, if none is named
ENDING = "the service is shutting down"
TAKE_ROUNDS = ("/solve", "/solve/stream")
HEARTBEAT = 10.0  # seconds after which a stream without news sends a comment, so that proxies keep it open
UNSENT = 4  # solutions that a stream keeps for its client


class Service:
    """Limits, workers and counters of one application."""

    def __init__(self, limits: Limits, workers: dict[str, int], replica: str | None, models: dict[str, str]):
        self.limits, self.metrics = limits, Metrics({} if replica is None else {"replica": replica})
        self.pool = Pool(limits, workers, self.metrics, models)
        self.models = catalogue.models(models)
        self.own = models
        self.parser = Parser()
        self.with_model = frozenset(model["problem"] for model in self.models)

    @cached_property
    def problems(self) -> list[dict[str, Any]]:
        return catalogue.problems(self.own)

    # ------------------------------------------------------------------------------------------ checking

    def nodes(self, fields: dict[str, Any], prefix: str = "") -> int:
        """Stops of an instance, within the limit."""
        if s.kind_of(fields) == "round":
            return self.round_nodes(fields)
        name = next((name for name in PLACES if fields.get(name) is not None), "coords")
        count = len(fields.get(name) or ())
        if count > self.limits.nodes:
            raise over(422, "nodes", self.limits.nodes, f"{count} stops", prefix + name)
        return count

    def round_nodes(self, fields: dict[str, Any]) -> int:
        """Stops of a round, within the limit."""
        counts = {name: len(fields[name]) for name in s.OF_ROUNDS if isinstance(fields.get(name), list)}
        if (count := sum(counts.values())) > self.limits.nodes:
            raise over(422, "nodes", self.limits.nodes, f"{count} stops", next(iter(counts)))
        for name in ("depots", "vehicles", "routes", "profiles"):
            many = fields.get(name)
            if isinstance(many, list | dict) and len(many) > self.limits.nodes:
                raise over(422, "nodes", self.limits.nodes, f"{len(many)} {name}", name)
        for name in (*counts, "vehicles", "routes"):
            entries = sum(map(_entries, fields[name])) if isinstance(fields.get(name), list) else 0
            if entries > self.limits.entries:
                raise over(422, "entries", self.limits.entries, f"{entries} entries of lists in {name}", name)
        return count

    def legs(self, instances: Sequence[dict[str, Any]]) -> None:
        """Refuse a batch whose matrices would not fit into memory: a search holds all of them at once."""
        legs = sum(
            max(len(one[name] or ()) for name in PLACES) ** 2
            for one in instances
            if any(one[name] is not None for name in MEASURED)
        )
        if legs > self.limits.legs:
            what = f"{legs} lengths between the stops of all instances, measured by latlon, matrix or metric"
            raise over(422, "legs", self.limits.legs, f"{what}; send fewer instances", "instances")

    def rollouts(self, fields: dict[str, Any], nodes: int = 0) -> int:
        """Constructions that the decoding strategy asks for at that many nodes, within the limit."""
        if fields["seconds"] > self.limits.seconds:
            what = f"{fields['seconds']:g} seconds"
            raise over(422, "seconds", self.limits.seconds, what, "seconds")
        if s.kind_of(fields) == "round":
            most, asked = self.limits.iterations, fields["iterations"] or 0
            if asked > most:
                raise over(422, "iterations", most, f"{asked} iterations", "iterations")
            return 1
        if fields["solver"] is not None and fields["decode"] is not None:
            raise InputError("both solver and decode are given; a solver does not decode")
        if fields["decode"] is None:
            return 1
        if fields["seconds"] > 0:
            raise InputError(
                "decode builds with the policy alone, and seconds above 0 asks for a search; leave one out"
            )
        if not fields["policy"]:
            raise InputError("decode needs the policy, but policy is false; leave one of them out")
        rollouts = decode.parse(fields["decode"]).constructions(max(1, nodes))
        if rollouts > self.limits.rollouts:
            raise over(422, "rollouts", self.limits.rollouts, f"{rollouts} constructions", "decode")
        return rollouts

    def submit(self, request: Request, kind: str, fields: dict[str, Any], part: Any = None) -> Job:
        nodes = 0 if kind == "stops" else self.nodes(fields) if kind != "batch" else 0
        rollouts = self.rollouts(fields, nodes) if "seconds" in fields else 1
        lane = lane_of(kind, fields, nodes, rollouts, self.with_model)
        return self.pool.submit(lane, kind, fields, _client(request), part)

    # ------------------------------------------------------------------------------------------- answering

    async def answered(self, request: Request, *jobs: Job) -> list[tuple[int, bytes]]:
        """The answers of the jobs; if the client goes away first, they are cancelled."""
        left: asyncio.Future[Any] = asyncio.create_task(_left(request))
        try:
            for job in jobs:
                await asyncio.wait((job.answer, left), return_when=asyncio.FIRST_COMPLETED)
                if not job.answer.done():
                    raise Refused(499, "the client went away")
            return [job.answer.result() for job in jobs]
        except asyncio.CancelledError:  # the grace time is over: an answer all the same
            raise Refused(503, ENDING) from None
        finally:
            left.cancel()
            for job in jobs:
                self.pool.cancel(job)

    async def stream(self, request: Request, fields: dict[str, Any]) -> Response:
        """Server-sent events. Bad input gets a plain answer, because no event has been sent yet."""
        parts = Parts()
        job = self.submit(request, "stream", fields, parts.put)
        job.answer.add_done_callback(lambda _: parts.put(b""))
        left: asyncio.Future[Any] = asyncio.create_task(_left(request))
        first = asyncio.create_task(parts.get())
        try:
            await asyncio.wait({first, left}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # the grace time is over: an answer all the same
            raise Refused(503, ENDING) from None
        finally:
            if not first.done():
                left.cancel()
                first.cancel()
                self.pool.cancel(job)
        if not first.done():
            raise Refused(499, "the client went away")
        if not first.result() and job.answer.result()[0] != 200:
            left.cancel()
            return _response(*job.answer.result())

        async def events() -> AsyncIterator[bytes]:
            part: bytes | None = first.result()
            try:
                while part:
                    yield _event(b"better", part)
                    while (part := await _next(parts, left)) is None and not left.done():
                        yield b": still searching\n\n"
                if not left.done():
                    status, body = job.answer.result()
                    yield _event(b"done" if status == 200 else b"failed", body)
            except asyncio.CancelledError:
                yield _event(b"failed", encode(Refused(503, ENDING).body()))
            finally:
                left.cancel()
                self.pool.cancel(job)

        return Events(events(), media_type="text/event-stream", headers={"cache-control": "no-store"})


class Parts:
    """What a stream has yet to send. For a client that reads slowly, older solutions make way for the newest."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque(maxlen=UNSENT)
        self.there = asyncio.Event()

    def put(self, part: bytes) -> None:
        self.waiting.append(part)
        self.there.set()

    async def get(self) -> bytes:
        await self.there.wait()
        part = self.waiting.popleft()
        if not self.waiting:
            self.there.clear()
        return part


class Events(StreamingResponse):
    """A stream that notices a disconnected client itself, and ends with an event when it is cancelled."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.stream_response(send)


def _event(name: bytes, data: bytes) -> bytes:
    return b"event: " + name + b"\ndata: " + data + b"\n\n"


async def _next(parts: Parts, left: asyncio.Future[Any]) -> bytes | None:
    """The next part of a stream; None if none comes for a while, or the client left."""
    coming = asyncio.create_task(parts.get())
    try:
        await asyncio.wait((coming, left), timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
        return coming.result() if coming.done() else None
    finally:
        coming.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _entries(thing: Any) -> int:
    """How many entries the lists in an object have, those of its own objects too (VROOM's pickup and delivery)."""
    if not isinstance(thing, dict):
        return len(thing) if isinstance(thing, list) else 0
    return sum(_entries(value) for value in thing.values() if isinstance(value, list | dict))


def _client(request: Request) -> str:
    return request.client.host if request.client else ""


def _response(status: int, body: bytes) -> Response:
    headers = {"retry-after": "1"} if status in (429, 503) else None
    return Response(body, status_code=status, media_type=JSON, headers=headers)


def create_app(
    limits: Limits | None = None,
    workers: dict[str, int] | None = None,
    token: str | None = None,
    replica: str | None = None,
    models: dict[str, str] | None = None,
    cors: Sequence[str] = (),
) -> FastAPI:
    """The application with its own workers, which start and end with it.

    `token` is asked for if it is given; `replica` is this application's name among its like, for the counters;
    `models` are files that serve instead of the shipped models, by problem; `cors` are origins of pages elsewhere that
    may ask.
    """
    service = Service(limits or Limits(), workers or {"construct": 1, "short": 1, "long": 1}, replica, models or {})

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.pool.start()
        stay_awake()
        yield
        await service.pool.close()

    app = FastAPI(
        title="routelearn", version=__version__, lifespan=life, docs_url=None, redoc_url=None,
        description="Routes for your own stops, by a learned heuristic and by search.",
    )  # fmt: skip
    app.state.service = service
    app.router.route_class = UnreadRoute
    bodies = s.bodies()
    _add_errors(app, bodies)
    _add_solving(app, service, bodies)
    _add_reading(app, service, bodies)
    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    paths = frozenset((*app.openapi()["paths"], "/", "/docs", "/metrics"))
    app.add_middleware(Guard, limits=service.limits, metrics=service.metrics, token=token, paths=paths)
    if cors:  # outside the guard: a browser asks first, without the token
        headers = ("authorization", "content-type")
        app.add_middleware(CORSMiddleware, allow_origins=cors, allow_methods=("GET", "POST"), allow_headers=headers)
    return app


def _add_errors(app: FastAPI, bodies: s.Bodies) -> None:
    def failure(refusal: Refused, headers: Any = None) -> JSONResponse:
        if refusal.status in (429, 503):
            headers = {**(headers or {}), "retry-after": "1"}
        return JSONResponse(refusal.body(), refusal.status, headers)

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> JSONResponse:
        return failure(error)

    @app.exception_handler(InputError)
    async def wrong(_: Request, error: InputError) -> JSONResponse:
        return failure(Refused(422, str(error), field=field_of(str(error))))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        asked, errors = bodies.of(request.url.path), list(error.errors())
        keys = [] if asked is None else list(asked.model_fields)
        if request.url.path in TAKE_ROUNDS:
            errors = [one | {"loc": s.untagged(one["loc"])} for one in errors]
        return failure(refusal_of(errors, keys, list(bodies.instance.model_fields)))

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> JSONResponse:
        return failure(Refused(error.status_code, unreadable(error) or str(error.detail)), error.headers)

    @app.exception_handler(Exception)
    async def defect(_: Request, error: Exception) -> JSONResponse:
        log.error("a request failed", exc_info=error)
        return failure(Refused(500, "internal error; see the service's log"))


def _add_solving(app: FastAPI, service: Service, bodies: s.Bodies) -> None:
    def post(path: str, **described: Any) -> Callable[[Callable[..., Awaitable[Response]]], Any]:
        def added(handler: Callable[..., Awaitable[Response]]) -> Any:
            kind: Any = bodies.solve_or_round if path in TAKE_ROUNDS else bodies.of(path)
            adapter: TypeAdapter[Any] = TypeAdapter(kind)

            async def read(request: Request, body: bytes) -> Response:
                return await handler(request, await service.parser.read(adapter, body))

            read.__name__, read.__doc__ = handler.__name__, handler.__doc__  # they are in the description
            read.__annotations__ = {"request": Request, "body": Annotated[kind, AS_BYTES, Body()]}
            return app.post(path, **({"responses": FAILURES} | described))(read)

        return added

    @post("/solve", response_model=s.Answer | s.RoundAnswer)
    async def solve(request: Request, fields: dict[str, Any]) -> Response:
        """One set of stops: a good route within `seconds`; for 0, the better construction of policy and heuristic.

        A body with `stops` (or VROOM's `jobs`) is a round: vehicles, windows, shifts and the like.
        """
        [answer] = await service.answered(request, service.submit(request, "solve", fields))
        return _response(*answer)

    @post("/solve/batch", response_model=s.Answers)
    async def solve_batch(request: Request, fields: dict[str, Any]) -> Response:
        """Many sets of stops. Constructions share the decoder's passes; a search divides its seconds among all."""
        most, count = service.limits.instances, len(fields["instances"])
        if count > most:
            raise over(422, "instances", most, f"{count} instances", "instances")
        for row, one in enumerate(fields["instances"]):
            service.nodes(one, f"instances.{row}.")
        if fields["seconds"] > 0 and fields["solver"] is None:
            service.legs(fields["instances"])
            [answer] = await service.answered(request, service.submit(request, "batch", fields))
            return _response(*answer)
        shared = {name: value for name, value in fields.items() if name != "instances"}
        service.rollouts(shared)  # the limit is on the seconds of all of them
        shared["seconds"] /= count
        jobs: list[Job] = []
        try:
            for row, one in enumerate(fields["instances"]):
                jobs.append(service.submit(request, "solve", {**one, **shared, "source": source_of(row)}))
        except Refused:
            for job in jobs:
                service.pool.cancel(job)
            raise
        answers = await service.answered(request, *jobs)
        for status, text in answers:
            if status != 200:  # the whole request fails with the first instance that does
                return _response(status, text)
        return _response(200, b'{"answers":[' + b",".join(text for _, text in answers) + b"]}")

    @post(
        "/solve/stream",
        response_class=StreamingResponse,
        responses={**FAILURES, 200: {"content": {"text/event-stream": {}}, "description": "better, ..., done"}},
    )
    async def solve_stream(request: Request, fields: dict[str, Any]) -> Response:
        """Server-sent events: `better` for each better solution as it is found, then `done` with the last one."""
        return await service.stream(request, fields)

    @post("/check", response_model=s.RoundAnswer)
    async def check(request: Request, fields: dict[str, Any]) -> Response:
        """A plan of a round: its times, its cost, and every rule that it breaks."""
        [answer] = await service.answered(request, service.submit(request, "check", fields))
        return _response(*answer)

    @post("/think", response_model=s.Thoughts)
    async def think(request: Request, fields: dict[str, Any]) -> Response:
        """A construction by the policy, step by step: probabilities, what is masked and why, what is left."""
        [answer] = await service.answered(request, service.submit(request, "think", fields))
        return _response(*answer)

    @post("/stops", response_model=bodies.file)
    async def stops(request: Request, fields: dict[str, Any]) -> Response:
        """A file of stops (CSV, JSON, GeoJSON, TSPLIB, CVRPLIB) as the fields of a request."""
        [answer] = await service.answered(request, service.submit(request, "stops", fields))
        return _response(*answer)


def _add_reading(app: FastAPI, service: Service, bodies: s.Bodies) -> None:
    @app.get("/random", response_model=bodies.problem, response_model_exclude_none=True, responses=READ_ONLY)
    async def random(
        problem: Annotated[str, Query(max_length=40)] = FIRST,
        n: Annotated[int, Query(ge=2)] = 20,
        seed: Annotated[int, Query(ge=0, le=2**32 - 1)] = 0,
    ) -> Response:
        """A random instance as the paper draws them, ready to be solved."""
        if n >= service.limits.nodes:
            raise over(422, "nodes", service.limits.nodes, f"{n} stops and a depot", "n")
        return JSONResponse(catalogue.random_instance(problem, n, seed))

    @app.get("/problems", response_model=s.Problems, responses={401: FAILURES[401]})
    async def problems() -> Response:
        """The problems, the fields each needs, and the solvers usable here."""
        return JSONResponse({"problems": await asyncio.to_thread(lambda: service.problems)})

    @app.get("/models", response_model=s.Models, responses={401: FAILURES[401]})
    async def models() -> Response:
        """The trained models, those that ship with the package and those that were given, with their cards."""
        return JSONResponse({"models": service.models})

    @app.get("/healthz", response_model=s.Health, responses={503: {"model": s.Health, "description": "starting"}})
    async def healthz() -> Response:
        """Whether requests are answered: ok; degraded, a worker is being replaced; or starting (503)."""
        workers, serving = service.pool.status(), service.pool.serving()
        whole = all(row["ready"] == row["wanted"] for row in workers.values())
        status = "ok" if whole else "degraded" if serving else "starting"
        body = {"status": status, "version": __version__, "workers": workers}
        return JSONResponse(body, 200 if serving else 503)

    @app.get("/livez", response_model=s.Alive)
    async def livez() -> Response:
        """Whether the server itself runs, whatever its workers do: 200, or no answer at all."""
        return JSONResponse({"status": "ok"})

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Counters in the text format of Prometheus."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(PAGE / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(PAGE / "docs.html")
