"""What one application counts, for Prometheus."""

from __future__ import annotations

import os
from collections.abc import Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    disable_created_metrics,
    generate_latest,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LATENCY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)

disable_created_metrics()  # a line with the time of creation beside each counter


class Metrics(CollectorRegistry):
    """A registry of its own for each application, with `labels` on every line."""

    def __init__(self, labels: dict[str, str] | None = None) -> None:
        super().__init__()
        self.fixed = labels or {}
        path, lane = ("path",), ("lane",)
        self.requests = Counter("routelearn_requests_total", "Requests by status.", ("path", "status"), registry=self)
        self.seconds = Histogram(
            "routelearn_request_seconds", "Time to the whole answer.", path, registry=self, buckets=LATENCY
        )
        self.batch = Histogram(
            "routelearn_batch_size", "Requests handed to a worker at once.", lane, registry=self, buckets=SIZES
        )
        self.cancelled = Counter("routelearn_cancelled_total", "Tickets whose client went away.", registry=self)
        self.deaths = Counter(
            "routelearn_worker_deaths_total", "Workers that died and were replaced.", lane, registry=self
        )
        self.in_flight = Gauge("routelearn_in_flight", "Requests being answered.", registry=self)
        self.waiting = Gauge("routelearn_waiting", "Requests that wait for a worker.", lane, registry=self)
        self.ready = Gauge("routelearn_workers_ready", "Workers that can take a request.", lane, registry=self)
        token = ("token",)
        self.token_requests = Counter(
            "routelearn_token_requests_total",
            "Requests by the name of their token.",
            ("token", "status"),
            registry=self,
        )
        self.token_seconds = Counter(
            "routelearn_token_seconds_total", "Search time by the name of the token.", token, registry=self
        )
        self.jobs = Gauge("routelearn_jobs", "Jobs that are kept.", ("state",), registry=self)
        self.job_bytes = Gauge("routelearn_job_bytes", "Memory of the jobs that are kept.", registry=self)
        self.jobs_ended = Counter("routelearn_jobs_ended_total", "Jobs by their end.", ("state",), registry=self)
        self.unlogged = Counter(
            "routelearn_access_log_dropped_total", "Lines that the access log could not take.", registry=self
        )
        resident = Gauge("routelearn_resident_bytes", "Memory of the server's own process.", registry=self)
        resident.set_function(resident_bytes)

    def collect(self) -> Iterator[Metric]:
        for metric in super().collect():
            metric.samples = [one._replace(labels={**self.fixed, **one.labels}) for one in metric.samples]
            yield metric

    def text(self) -> bytes:
        return generate_latest(self)


def resident_bytes() -> float:
    """Memory of this process, where the system tells."""
    try:
        with open("/proc/self/statm") as file:
            return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0.0
