"""A picture of routes by matplotlib, and the colours that all pictures share."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from routelearn.solving.solution import Solution

LABELS = 60  # stops beyond which names would cover the picture


def colours(count: int) -> list[str]:
    """`count` colours far apart: steps of the golden angle round the hues."""
    chosen = []
    for i in range(count):
        rgb = colorsys.hls_to_rgb((0.58 + i * 0.618034) % 1.0, 0.38 + 0.1 * (i % 2), 0.75)
        chosen.append("#" + "".join(f"{round(255 * part):02x}" for part in rgb))
    return chosen


def with_ends(solution: Solution, nodes: list[int]) -> list[int]:
    """The nodes of a route with both ends: the depot, or the first node again."""
    return solution.with_ends(nodes, None if solution.depot is None else 0)


def caption(solution: Solution) -> str:
    """One line on what is shown: lengths with the way back and, where it is neither length nor prize, the objective."""
    unit = f" {solution.unit}" if solution.unit else ""
    parts = [f"{solution.problem}: length {solution.length:,.6g}{unit}"]
    if solution.prize is not None:
        parts.append(f"prize {solution.prize:,.6g}")
    said = (solution.length, -math.inf if solution.prize is None else -solution.prize)
    if not any(math.isclose(solution.cost, value, rel_tol=1e-6, abs_tol=1e-9) for value in said):
        parts.append(f"value {solution.objective:,.6g}" if solution.maximise else f"cost {solution.cost:,.6g}{unit}")
    if len(solution.routes) > 1:
        parts.append(f"{len(solution.routes)} routes")
    if solution.depot is not None and solution.unvisited:
        parts.append(f"{len(solution.unvisited)} stops left out")
    return ", ".join(parts)


def finish_map(axes: Axes, names: Collection[tuple[Any, Any]], embedded: bool) -> None:
    """What all maps have: (name, place) beside the dots unless there are many, one scale for both axes."""
    for name, place in names if len(names) <= LABELS else ():
        axes.annotate(str(name)[:24], place, xytext=(3, 3), textcoords="offset points", fontsize=6, parse_math=False)
    axes.set_aspect("equal", adjustable="datalim")
    axes.tick_params(labelsize=7)
    if embedded:
        axes.set_xlabel("positions made from the distances", fontsize=8)


def draw(solution: Solution) -> Figure:
    """The routes in their colours, depot as a square, stops left out in grey."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 7), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    x = [place[1] for place in solution.layout]
    y = [place[2] for place in solution.layout]
    for i, (nodes, colour) in enumerate(zip(solution.node_routes, colours(len(solution.node_routes)), strict=True), 1):
        line = with_ends(solution, nodes)
        axes.plot([x[v] for v in line], [y[v] for v in line], color=colour, linewidth=1.4, label=f"route {i}")
        axes.scatter([x[v] for v in nodes], [y[v] for v in nodes], s=16, color=colour, zorder=3)
    visited = {v for nodes in solution.node_routes for v in nodes}
    first = 1 if solution.depot is not None else 0
    missed = [v for v in range(first, len(x)) if v not in visited]
    axes.scatter([x[v] for v in missed], [y[v] for v in missed], s=14, color="#b0b0b0", zorder=2)
    if solution.depot is not None:
        axes.scatter(x[:1], y[:1], marker="s", s=70, color="black", zorder=4)
    finish_map(axes, [(name, (a, b)) for name, a, b in solution.layout], solution.embedded)
    axes.set_title(caption(solution), fontsize=10)
    if 1 < len(solution.node_routes) <= 20:
        figure.legend(fontsize=7, loc="outside right upper")
    if solution.on_globe and not solution.embedded:
        axes.set_xlabel("km east", fontsize=8)
        axes.set_ylabel("km north", fontsize=8)
    return figure
