"""A picture of a plan by matplotlib: routes on a map, and below it a time line for each vehicle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from routelearn.plots.routes import colours, finish_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from routelearn.rounds.answers import RoundSolution

SHADES = {"driving": 0.35, "service": 1.0, "wait": 0.12}  # how solid a part of a time line is


def caption(solution: RoundSolution) -> str:
    """One line on what is shown."""
    unit = f" {solution.round.length_unit}" if solution.round.length_unit else ""
    count = len(solution.plan.routes)
    parts = [f"{solution.problem}: cost {solution.cost:,.6g}", f"length {solution.length:,.6g}{unit}"]
    parts.append(f"{count} vehicle{'' if count == 1 else 's'}")
    if left := len(solution.plan.unassigned):
        parts.append(f"{left} stop{'' if left == 1 else 's'} left out")
    if broken := len(solution.plan.violations):
        parts.append(f"{broken} rule{'' if broken == 1 else 's'} broken")
    return ", ".join(parts)


def draw(solution: RoundSolution) -> Figure:
    from matplotlib.figure import Figure

    routes = solution.plan.routes
    lines = max(1, min(len(routes), 40))
    figure = Figure(figsize=(8, 7 + 0.25 * lines), dpi=120, layout="constrained")
    map_, times = figure.subplots(2, 1, height_ratios=(6.5, 0.5 + 0.25 * lines))
    _map(solution, map_)
    _times(solution, times)
    map_.set_title(caption(solution), fontsize=10)
    if 1 < len(routes) <= 20:
        map_.legend(fontsize=7, loc="upper right")
    return figure


def _map(solution: RoundSolution, axes: Axes) -> None:
    """Routes in their colours, places where vehicles start or end as squares, stops left out in grey."""
    at, round_ = solution.layout, solution.round
    for route, label, colour in zip(
        solution.plan.routes, solution.labels, colours(len(solution.plan.routes)), strict=True
    ):
        line = [visit.place for visit in route.visits if visit.place is not None]
        stops = [round_.stops[stop].place for stop in route.stops]
        axes.plot(at[line, 0], at[line, 1], color=colour, linewidth=1.4, label=label[:24].replace("$", r"\$"))
        axes.scatter(at[stops, 0], at[stops, 1], s=16, color=colour, zorder=3)
    left = [round_.stops[one.stop].place for one in solution.plan.unassigned]
    axes.scatter(at[left, 0], at[left, 1], s=18, marker="x", color="#909090", zorder=3)
    ends = sorted({p for vehicle in round_.vehicles for p in (vehicle.start, vehicle.end) if p is not None})
    axes.scatter(at[ends, 0], at[ends, 1], marker="s", s=60, color="black", zorder=4)
    finish_map(axes, [(stop.id, at[stop.place]) for stop in round_.stops], solution.embedded)


def _times(solution: RoundSolution, axes: Axes) -> None:
    """Driving, waiting and service of each vehicle, from left to right."""
    routes = solution.plan.routes
    hours = 3600.0 if solution.round.day is not None else 1.0
    for row, (route, colour) in enumerate(zip(routes, colours(len(routes)), strict=True)):
        for visit, before in zip(route.visits, (None, *route.visits), strict=False):
            left = visit.arrival if before is None else before.departure
            parts = [("driving", left, visit.arrival), ("wait", visit.arrival, visit.start)]
            parts.append(("service", visit.start, visit.departure))
            for kind, begin, end in parts:
                if end > begin and math.isfinite(end - begin):
                    shade = colour if visit.kind not in ("break", "reload") or kind != "service" else "#777777"
                    alpha = SHADES[kind]
                    axes.barh(row, (end - begin) / hours, left=begin / hours, height=0.6, color=shade, alpha=alpha)
    axes.set_yticks(range(len(routes)), [label[:24].replace("$", r"\$") for label in solution.labels], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("hours of the day" if hours > 1 else "time", fontsize=8)
    axes.tick_params(labelsize=7)
