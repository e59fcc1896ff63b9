"""Gap against seconds an instance: what each method reaches in which time, one panel a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

LEAST = 1e-3  # per cent; what is better is drawn there


@dataclass(frozen=True)
class Point:
    """One method with one setting on one problem."""

    method: str  # points of one method are joined by a line
    setting: str
    seconds: float  # an instance
    cost: float  # mean
    gap: float  # per cent
    error: float  # of the gap


def front(panels: Mapping[str, Sequence[Point]], title: str = "") -> Figure:
    figure = Figure(figsize=(11.0, 4.2 * -(-len(panels) // 2)), layout="constrained")
    methods = list(dict.fromkeys(point.method for points in panels.values() for point in points))
    rows = -(-len(panels) // 2)
    axes = figure.subplots(rows, min(2, len(panels)), squeeze=False).flatten()
    for panel, (name, points) in zip(axes, panels.items(), strict=False):
        for index, method in enumerate(methods):
            own = sorted((point for point in points if point.method == method), key=lambda point: point.seconds)
            if own:
                gaps = [max(LEAST, point.gap) for point in own]
                panel.plot([p.seconds for p in own], gaps, "-o", color=f"C{index % 10}", ms=4, lw=1.4, label=method)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_title(name)
        panel.set_xlabel("seconds an instance")
        panel.set_ylabel("mean gap, %")
        panel.grid(alpha=0.3, which="both")
        panel.legend(fontsize=8)
    for panel in axes[len(panels) :]:
        panel.set_visible(False)
    figure.suptitle(title)
    return figure
