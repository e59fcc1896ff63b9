"""The same application on Ray Serve: a proxy on every node, replicas wherever there are processors, more under load.

`routelearn` must be installed on every node; a plugin's file must be there too, under the same path. The cluster is the
one RAY_ADDRESS names, one that runs on this machine, or a new one of this machine alone. Each replica is a whole
service: limits, lanes and worker processes are its own.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from routelearn import plugins
from routelearn.errors import InputError
from routelearn.serve.limits import Limits
from routelearn.solvers.farm.cluster import load_ray

NAME = "routelearn"
MISSING = 'Ray Serve is not installed: pip install "routelearn[cluster]"'
HEADROOM = 64  # requests a replica is handed beyond its own limit, so that it refuses them with limit and value


@dataclass(frozen=True)
class Scale:
    """How many replicas, and what each of them may use; every field is a flag of `routelearn serve`."""

    replicas: int = 1  # from the start; without `max_replicas`, for good
    max_replicas: int | None = None  # autoscaling goes from `replicas` to this many
    replica_cpus: int = 1  # processors that Ray sets aside for each
    target_requests: float = 16.0  # requests in flight a replica, above which autoscaling adds one
    upscale_delay: float = 10.0  # seconds of more load before one is added
    downscale_delay: float = 300.0  # seconds of less load before one is taken away

    def __post_init__(self) -> None:
        if self.max_replicas is not None and self.max_replicas < self.replicas:
            raise InputError(
                f"max-replicas {self.max_replicas} is below replicas {self.replicas}; give as many or more"
            )

    @property
    def is_one(self) -> bool:
        """Whether there is never more than one replica: only then the next request finds a job that was made."""
        return max(self.replicas, self.max_replicas or 1) == 1

    def options(self, limits: Limits, grace: float) -> dict[str, Any]:
        """The same settings as options of a Ray deployment."""
        chosen: dict[str, Any] = {
            "ray_actor_options": {"num_cpus": self.replica_cpus},
            "max_ongoing_requests": limits.in_flight + HEADROOM,
            "graceful_shutdown_timeout_s": grace + 5.0,  # the workers end within it too
        }
        if self.max_replicas is None:
            return chosen | {"num_replicas": self.replicas}
        return chosen | {
            "autoscaling_config": {
                "min_replicas": self.replicas,
                "max_replicas": self.max_replicas,
                "target_ongoing_requests": self.target_requests,
                "upscale_delay_s": self.upscale_delay,
                "downscale_delay_s": self.downscale_delay,
                "look_back_period_s": max(1.0, min(self.upscale_delay, 30.0)),
            }
        }


def load_serve() -> Any:
    """The module ray.serve, connected to a cluster; InputError where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to the outside
    try:
        from ray import serve
    except ImportError:
        raise InputError(MISSING) from None
    load_ray()
    return serve


def deployment(
    serve: Any, limits: Limits, workers: dict[str, int], settings: dict[str, Any], options: dict[str, Any]
) -> Any:
    """The application as a Ray deployment; replicas build it themselves, so nothing but plain values travels.

    `settings` are the other arguments of `create_app`.
    """

    needed = plugins.paths()

    def build() -> Any:
        from ray import serve as on_replica

        from routelearn import plugins
        from routelearn.serve.app import create_app

        for plugin in needed:  # the replica's worker processes learn of them from their environment
            plugins.load(plugin)
        plugins.available()

        name = on_replica.get_replica_context().replica_id.unique_id
        return create_app(limits, workers, replica=name, **settings)

    return serve.deployment(serve.ingress(build)(), name="service", **options)


class Ended(BaseException):
    """Raised on SIGTERM or Ctrl-C."""


def run(
    limits: Limits, workers: dict[str, int], settings: dict[str, Any], scale: Scale, host: str, port: int, grace: float,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Serve until SIGTERM or Ctrl-C; then requests in flight have `grace` seconds."""

    def leave(*_: Any) -> None:
        raise Ended

    serve = load_serve()
    import ray

    wanted, there = scale.replicas * scale.replica_cpus, int(ray.cluster_resources().get("CPU", 0))
    if wanted > there:
        say(f"{scale.replicas} replicas of {scale.replica_cpus} processors wait for nodes: the cluster has {there} now")
    shared = bool(serve.status().proxies)  # Ray Serve runs there already, for others too: its address counts
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)
    try:
        application = deployment(serve, limits, workers, settings, scale.options(limits, grace)).bind()
        try:
            if not shared:
                serve.start(proxy_location="EveryNode", http_options={"host": host, "port": port})
            serve.run(application, name=NAME, route_prefix="/")
        except (RuntimeError, ray.exceptions.RayError) as error:  # such as proxies that a busy node starts too slowly
            raise InputError(f"Ray Serve could not start the service: {' '.join(str(error).split())[:500]}") from None
        where = "the Ray Serve that is already running" if shared else f"http://{host}:{port}/ of every node"
        say(f"routelearn on {where}")
        threading.Event().wait()
    except Ended:
        say("stopping")
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # once is enough
        if NAME in serve.status().applications:
            serve.delete(NAME)  # waits until replicas have finished what is in flight; the proxies stay till then
        if not shared:
            serve.shutdown()
