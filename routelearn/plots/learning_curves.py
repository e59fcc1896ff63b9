"""Learning curves of training runs: validation gap or cost against epochs, instances or time (figures 3 and 6)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from routelearn.errors import InputError, about

# Axis -> (unit from this value on, size of the unit, label), the largest first.
AXES = {
    "epochs": ((0, 1, "epochs"),),
    "instances": (
        (2e6, 1e6, "training instances, millions"),
        (20_000, 1_000, "training instances, thousands"),
        (0, 1, "training instances"),
    ),
    "time": ((180, 60, "hours of training"), (2, 1, "minutes of training"), (0, 1 / 60, "seconds of training")),
}
MEASURES = {"gap": "validation gap, %", "cost": "validation cost (greedy)"}


@dataclass(frozen=True)
class Curve:
    """What the validations of one run showed, of one size."""

    label: str
    n: int
    epochs: list[float]
    instances: list[float]
    time: list[float]  # minutes
    cost: list[float]
    gap: list[float]  # per cent; empty if the run had no reference

    def against(self, optimum: float) -> Curve:
        """The same curve with gaps to this mean cost of optimal solutions."""
        return replace(self, gap=[100 * (cost / optimum - 1) for cost in self.cost])


def read_run(folder: Path, label: str | None = None) -> list[Curve]:
    """The curves, one for each size, in the folder of a run (or in its metrics.jsonl)."""
    path = folder / "metrics.jsonl" if folder.is_dir() else folder
    if not path.is_file():
        raise InputError(f"{path}: no metrics there; name the folder of a training run")
    rows: list[dict[str, Any]] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a run's metrics; name the folder of a training run") from None
    for number, line in enumerate(lines, 1):
        try:
            rows.append(dict(json.loads(line)))
        except (ValueError, TypeError):
            if number < len(lines):  # a run that is being written may end in half a line
                raise InputError(
                    f"{path}, line {number}: not a line of metrics; is it a training run's file?"
                ) from None
    steps = 0
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        steps = json.loads(path.with_name("config.json").read_text())["epoch_steps"]
    with about(path):
        return curves_of(rows, label or path.resolve().parent.name, steps)


def curves_of(rows: Sequence[dict[str, Any]], label: str, epoch_steps: int = 0) -> list[Curve]:
    """The curves, one for each size, of a run's rows; with parts of an epoch, where it is known how long one is."""
    rows = [row for row in rows if row.get("validation")]
    if not rows:
        raise InputError("no validation yet; a run validates after each epoch")
    try:
        sizes = list(rows[0]["validation"])
        return [
            Curve(
                label if len(sizes) == 1 else f"{label}, n = {size}",
                int(size),
                [row["step"] / epoch_steps if epoch_steps and "step" in row else row.get("epoch", 0) for row in rows],
                [row["instances"] for row in rows],
                [row["elapsed"] / 60 for row in rows],
                [row["validation"][size] for row in rows],
                [100 * row["gap"][size] for row in rows] if all(size in row.get("gap", {}) for row in rows) else [],
            )
            for size in sizes
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"its validations do not fit together ({error}); were there two runs in it?") from None


def measure_of(curves: Sequence[Curve], wanted: str | None = None) -> str:
    """The gap if every run has one, else the cost."""
    if wanted == "gap":
        for curve in curves:
            if not curve.gap:
                raise InputError(f"{curve.label}: trained without reference costs, so it has no gap; draw the cost")
    return wanted or ("gap" if all(curve.gap for curve in curves) else "cost")


def draw(axes: Axes, curves: Sequence[Curve], along: str, measure: str) -> None:
    """Curves of one label share a colour: they are seeds of one setting."""
    most = max(value for curve in curves for value in getattr(curve, along))
    unit, words = next((unit, words) for least, unit, words in AXES[along] if most >= least)
    colours: dict[str, str] = {}
    for curve in curves:
        known = curve.label in colours
        colour = colours.setdefault(curve.label, f"C{len(colours) % 10}")
        marker = "." if len(curve.epochs) < 3 else ""  # a line needs two points
        label = None if known else curve.label
        places = [value / unit for value in getattr(curve, along)]
        axes.plot(places, getattr(curve, measure), color=colour, lw=1.3, marker=marker, label=label)
    axes.set_xlabel(words)
    axes.set_ylabel(MEASURES[measure])
    values = [value for curve in curves for value in getattr(curve, measure)]
    if measure == "gap" and min(values) > 0 and max(values) > 10 * min(values):
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def learning_curves(
    curves: Sequence[Curve], *, along: str | None = None, measure: str | None = None, title: str = ""
) -> Figure:
    """One panel with all runs; along epochs if every run has made a few, else instances, unless an axis is named."""
    if along is not None and along not in AXES:
        raise InputError(f"unknown axis {along!r}; the choices are {', '.join(AXES)}")
    along = along or ("epochs" if all(curve.epochs[-1] >= 3 for curve in curves) else "instances")
    if measure is not None and measure not in MEASURES:
        raise InputError(f"unknown measure {measure!r}; the choices are {', '.join(MEASURES)}")
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    draw(axes, curves, along, measure_of(curves, measure))
    axes.set_title(title)
    return figure


def rate_schedules(curves: Sequence[Curve]) -> Figure:
    """One panel a size, of curves labelled by their schedule; those of one schedule and size are its seeds."""
    sizes = sorted({curve.n for curve in curves})
    figure = Figure(figsize=(5.2 * len(sizes), 4.0), layout="constrained")
    for axes, n in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes, strict=True):
        of_size = [curve for curve in curves if curve.n == n]
        draw(axes, of_size, "epochs", measure_of(of_size))
        axes.set_title(f"TSP{n}, schedules of the learning rate")
    return figure
