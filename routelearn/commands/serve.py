"""`routelearn serve`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from enum import StrEnum
from functools import partial
from typing import Any, cast

import typer

RAY = "With --on ray"
BACKLOG = 2048  # connections that wait to be accepted


class Place(StrEnum):
    local = "local"
    ray = "ray"


def serve(
    host: str = typer.Option("127.0.0.1", help="Address to listen on; 0.0.0.0 listens on all."),
    port: int = typer.Option(8000, min=0, max=65535, help="Port to listen on."),
    constructors: int | None = typer.Option(
        None, min=1, help="Processes that build solutions without a search. [default: number of processors]"
    ),
    short_workers: int = typer.Option(1, min=1, help="Processes for searches of up to a second."),
    long_workers: int | None = typer.Option(
        None, min=1, help="Processes for longer searches. [default: number of processors]"
    ),
    body_kilobytes: int = typer.Option(4096, min=1, help="Largest request body, in kilobytes."),
    nodes: int = typer.Option(2000, min=2, max=10_000, help="Most stops in an instance."),
    instances: int = typer.Option(256, min=1, help="Most instances in a batch."),
    seconds: float = typer.Option(60.0, min=0.0, max=86_400.0, help="Longest search for a request, in seconds."),
    iterations: int = typer.Option(1_000_000, min=0, help="Most iterations of a search for a round."),
    entries: int = typer.Option(40_000, min=0, help="Most entries of lists in a round: windows, breaks, visits."),
    rollouts: int = typer.Option(1280, min=1, help="Most rollouts of a decoding strategy."),
    think_nodes: int = typer.Option(200, min=2, help="Most stops in a rollout that is shown step by step."),
    think_numbers: int = typer.Option(100_000, min=4, help="Most steps times stops in such a rollout."),
    legs: int = typer.Option(
        20_000_000,
        min=4,
        help="Most lengths in the matrices of a batch that is searched; latlon and metric make a matrix, too.",
    ),
    head_kilobytes: int = typer.Option(32, min=1, help="Largest request line with headers, in kilobytes."),
    head_seconds: float = typer.Option(10.0, min=0.1, help="Seconds in which they must arrive."),
    unread_seconds: float = typer.Option(
        20.0, min=0.1, help="Seconds after which a client that reads nothing of its answer is disconnected."
    ),
    queue: int = typer.Option(512, min=1, help="Most requests waiting in a lane."),
    in_flight: int = typer.Option(1024, min=1, help="Most requests answered at once."),
    keep_jobs: int = typer.Option(1000, min=1, help="Most jobs kept at once; the oldest finished ones make room."),
    keep_seconds: float = typer.Option(3600.0, min=1.0, help="Seconds that a finished job is kept."),
    keep_megabytes: int = typer.Option(256, min=1, help="Most memory of all jobs, in megabytes."),
    grace: int = typer.Option(10, min=0, help="Seconds that running requests get to finish after SIGTERM."),
    model: list[str] = typer.Option(
        [], help="Model file, or name of a shipped model, to use for all instances of its problem; may be repeated."
    ),
    cors: list[str] = typer.Option(
        [],
        metavar="ORIGIN",
        help="Allow requests from pages of this origin (https://example.org, or *); may be repeated.",
    ),
    tokens: str | None = typer.Option(
        None, metavar="FILE", help="TOML or JSON file of tokens, each with a name and quotas (docs/guides/serve.md)."
    ),
    access_log: str | None = typer.Option(
        None, metavar="FILE", help="Write a line of JSON for each request to this file; - is standard output."
    ),
    tiles: str | None = typer.Option(
        None, metavar="URL", help="Background of the page's maps: a template of tiles with {z}, {x} and {y}."
    ),
    on: Place = typer.Option(Place.local, help="Where to run: this machine, or Ray Serve on a cluster."),
    replicas: int | None = typer.Option(None, min=1, help="Services to start. [default: 1]", rich_help_panel=RAY),
    max_replicas: int | None = typer.Option(
        None, min=1, help="Add services under load, up to this many.", rich_help_panel=RAY
    ),
    replica_cpus: int | None = typer.Option(
        None, min=1, help="Processors of each service. [default: 1]", rich_help_panel=RAY
    ),
    target_requests: float | None = typer.Option(
        None,
        min=0.1,
        help="Add a service above this many running requests per service. [default: 16]",
        rich_help_panel=RAY,
    ),
    upscale_delay: float | None = typer.Option(
        None, min=0.0, help="Seconds of high load before a service is added. [default: 10]", rich_help_panel=RAY
    ),
    downscale_delay: float | None = typer.Option(
        None, min=0.0, help="Seconds of low load before a service is removed. [default: 300]", rich_help_panel=RAY
    ),
) -> None:
    """Answer requests over HTTP, with a web page at /. Set ROUTELEARN_TOKEN, or give --tokens, to require a token."""
    from routelearn.errors import InputError

    try:
        import uvicorn

        from routelearn.serve.app import create_app
        from routelearn.serve.connections import Connection
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("routelearn"):
            raise
        raise InputError(f"the service needs {error.name}; pip install 'routelearn[serve]'") from None

    from routelearn.runtime.processors import usable_processors
    from routelearn.serve.catalogue import own_models
    from routelearn.serve.limits import Limits
    from routelearn.serve.page_settings import tiles_origin
    from routelearn.serve.tokens import FROM_ENVIRONMENT, read_tokens

    token = os.environ.get(FROM_ENVIRONMENT)
    if token == "":
        raise InputError(f"{FROM_ENVIRONMENT} is empty; give it a token, or unset it")
    named = [] if tokens is None else read_tokens(tokens)
    chosen = {
        "replicas": replicas, "max_replicas": max_replicas, "replica_cpus": replica_cpus,
        "target_requests": target_requests, "upscale_delay": upscale_delay, "downscale_delay": downscale_delay,
    }  # fmt: skip
    given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    if given and on is Place.local:
        raise InputError(f"--{next(iter(given)).replace('_', '-')} is for --on ray; leave it out, or add --on ray")
    limits = Limits(
        body_kilobytes, nodes, instances, seconds, rollouts, think_nodes, think_numbers, queue, in_flight, iterations,
        entries, head_kilobytes, head_seconds, unread_seconds, legs, keep_jobs, keep_seconds, keep_megabytes,
    )  # fmt: skip
    processors = usable_processors() if on is Place.local else replica_cpus or 1
    workers = {"construct": constructors or processors, "short": short_workers, "long": long_workers or processors}
    if tiles is not None:
        tiles_origin(tiles)
    settings: dict[str, Any] = {
        "token": token, "tokens": named, "models": own_models(model), "cors": cors, "access_log": access_log,
        "tiles": tiles,
    }  # fmt: skip
    if on is Place.ray:
        from routelearn.serve import on_ray

        if port == 0:
            raise InputError("port 0 lets every node choose its own port; give one port for all nodes")
        scale = on_ray.Scale(**given)
        settings["keeps_jobs"] = scale.is_one
        on_ray.run(limits, workers, settings, scale, host, port, grace, lambda line: typer.echo(line, err=True))
        return
    with bind(host, port) as listening:
        app = create_app(limits, workers, **settings)
        http = cast("type[asyncio.Protocol]", partial(Connection, limits=limits))
        config = uvicorn.Config(
            app, log_level="warning", timeout_graceful_shutdown=grace, backlog=BACKLOG, ws="none", http=http
        )
        server = uvicorn.Server(config)
        reasons: list[str] = []

        def give_up(reason: str) -> None:
            reasons.append(reason)
            server.should_exit = True

        app.state.service.pool.give_up = give_up
        where = address(*listening.getsockname()[:2])
        typer.echo(f"routelearn on {where} (the page), {where}docs (the interface); press Ctrl-C to stop", err=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
    if reasons:
        raise InputError(reasons[0])
    if not server.started:
        raise typer.Exit(1)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; InputError if the address cannot be used."""
    from routelearn.errors import InputError

    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, place = min(found, key=lambda one: one[0] != socket.AF_INET)  # of a name's addresses the older kind
        return socket.create_server(place[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"cannot listen on {address(host, port)}: {why}; choose another --host or --port") from None


def address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
