"""Learning rate schedules: validation gap against epochs, one panel a problem size (figure 6)."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from routelearn.plots.learning_curves import Curve, draw, measure_of


def rate_schedules(curves: Sequence[Curve]) -> Figure:
    """Curves labelled by their schedule; those of one schedule and size are its seeds."""
    sizes = sorted({curve.n for curve in curves})
    figure = Figure(figsize=(5.2 * len(sizes), 4.0), layout="constrained")
    for axes, n in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes, strict=True):
        of_size = [curve for curve in curves if curve.n == n]
        draw(axes, of_size, "epochs", measure_of(of_size))
        axes.set_title(f"TSP{n}, schedules of the learning rate")
    return figure
