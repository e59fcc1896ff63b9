"""Counters, gauges and histograms in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

LATENCY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)

Labels = tuple[tuple[str, str], ...]


class Histogram:
    def __init__(self, bounds: tuple[float, ...]):
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Metrics:
    """All that the service counts, with `labels` on every line. Gauges are asked for when somebody reads."""

    def __init__(self, labels: dict[str, str] | None = None) -> None:
        self.labels: Labels = tuple((labels or {}).items())
        self.counters: dict[str, dict[Labels, float]] = {}
        self.histograms: dict[str, dict[Labels, Histogram]] = {}
        self.gauges: dict[str, Callable[[], dict[Labels, float]]] = {}
        self.help: dict[str, str] = {}

    def count(self, name: str, help: str, amount: float = 1, **labels: str) -> None:
        self.help.setdefault(name, help)
        series = self.counters.setdefault(name, {})
        key = tuple(sorted(labels.items()))
        series[key] = series.get(key, 0) + amount

    def observe(self, name: str, help: str, value: float, bounds: tuple[float, ...] = LATENCY, **labels: str) -> None:
        self.help.setdefault(name, help)
        series = self.histograms.setdefault(name, {})
        series.setdefault(tuple(sorted(labels.items())), Histogram(bounds)).add(value)

    def gauge(self, name: str, help: str, read: Callable[[], dict[Labels, float]]) -> None:
        self.help[name] = help
        self.gauges[name] = read

    def text(self) -> str:
        lines: list[str] = []
        for name, series in self.counters.items():
            lines += self._head(name, "counter")
            lines += [f"{name}{_braces((*self.labels, *labels))} {_exact(value)}" for labels, value in series.items()]
        for name, read in self.gauges.items():
            lines += self._head(name, "gauge")
            lines += [f"{name}{_braces((*self.labels, *labels))} {_exact(value)}" for labels, value in read().items()]
        for name, histograms in self.histograms.items():
            lines += self._head(name, "histogram")
            for own, histogram in histograms.items():
                labels, total = (*self.labels, *own), 0
                for bound, count in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
                    total += count
                    lines.append(f"{name}_bucket{_braces((*labels, ('le', bound)))} {total}")
                lines.append(f"{name}_sum{_braces(labels)} {_exact(histogram.sum)}")
                lines.append(f"{name}_count{_braces(labels)} {total}")
        return "\n".join(lines) + "\n"

    def _head(self, name: str, kind: str) -> list[str]:
        return [f"# HELP {name} {self.help[name]}", f"# TYPE {name} {kind}"]


def _braces(labels: Labels) -> str:
    def escape(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{escape(value)}"' for name, value in labels) + "}" if labels else ""


def _exact(value: float) -> str:
    """All digits: one more of a million must show."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def resident_bytes() -> float:
    """Memory of this process, where the system tells."""
    try:
        with open("/proc/self/statm") as file:
            import os

            return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0.0
