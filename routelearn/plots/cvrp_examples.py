"""Example CVRP solutions, a panel each, with the routes in the order in which they were built (figure 7)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from routelearn.problems import get
from routelearn.problems.base import distance_matrix, routes_of, take


def cvrp_examples(x: Any, tours: Tensor, title: str = "") -> Figure:
    """Panels for instances x [B] and tours [B, 1, T]. Legs from and to the depot are left out, as in the paper."""
    count = x.xy.shape[0]
    columns = min(3, count)
    lines = math.ceil(count / columns)
    figure = Figure(figsize=(4.6 * columns, 6.2 * lines + 0.4))
    panels = figure.subplots(lines, columns, squeeze=False).flatten()
    # Room below each panel for its legend: a CVRP100 has a dozen routes.
    figure.subplots_adjust(
        left=0.02, right=0.98, top=1 - 0.45 / lines / 3, bottom=0.3 / lines, hspace=0.42, wspace=0.06
    )
    for row, axes in enumerate(panels):
        if row < count:
            draw(axes, take(x, slice(row, row + 1)), tours[row : row + 1])
        else:
            axes.set_axis_off()
    figure.suptitle(title)
    return figure


def draw(axes: Axes, x: Any, tour: Tensor) -> None:
    """One instance [1] and its tour [1, 1, T]; the legend gives stops, load of capacity, and length of each route."""
    xy, legs, demand = x.xy[0].tolist(), distance_matrix(x)[0], x.demand[0].tolist()
    routes = routes_of(tour[0, 0].tolist())
    colours = matplotlib.colormaps["nipy_spectral"]
    for number, route in enumerate(routes):
        colour = colours(0.05 + 0.88 * number / max(1, len(routes) - 1))
        stops = [0, *route, 0]
        length = sum(float(legs[a, b]) for a, b in itertools.pairwise(stops))
        load = sum(demand[node] for node in route)
        label = f"R{number + 1}, {len(route)} stops, {load}/{int(x.capacity[0])}, {length:.2f}"
        axes.plot([xy[v][0] for v in route], [xy[v][1] for v in route], ".", color=colour, ms=5, label=label)
        ways = [(*xy[a], xy[b][0] - xy[a][0], xy[b][1] - xy[a][1]) for a, b in itertools.pairwise(route)]
        if ways:
            axes.quiver(*zip(*ways, strict=True), angles="xy", scale_units="xy", scale=1, color=colour, width=0.004)
    axes.plot(*xy[0], "ks", ms=7)
    total = float(get("cvrp").cost(x, tour))
    axes.set_title(f"{len(routes)} routes, total length {total:.2f}", fontsize=10)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=2, frameon=False)
