"""Learning curves of training runs: validation gap or cost against epochs, instances or time (figure 3)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from routelearn.errors import InputError

AXES = {"epochs": "epochs", "instances": "training instances", "time": "minutes of training"}
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
    rows = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a run's metrics; name the folder of a training run") from None
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            if row.get("validation"):
                rows.append(row)
        except (ValueError, AttributeError):
            if number < len(lines):  # a run that is being written may end in half a line
                raise InputError(
                    f"{path}, line {number}: not a line of metrics; is it a training run's file?"
                ) from None
    if not rows:
        raise InputError(f"{path}: no validation yet; a run validates after each epoch")
    name = label or path.resolve().parent.name
    epochs = _epochs(rows, path.with_name("config.json"))
    try:
        sizes = list(rows[0]["validation"])
        return [
            Curve(
                name if len(sizes) == 1 else f"{name}, n = {size}",
                int(size),
                epochs,
                [row["instances"] for row in rows],
                [row["elapsed"] / 60 for row in rows],
                [row["validation"][size] for row in rows],
                [100 * row["gap"][size] for row in rows] if all(size in row.get("gap", {}) for row in rows) else [],
            )
            for size in sizes
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: its validations do not fit together ({error}); were there two runs in it?") from None


def _epochs(rows: list[dict[str, Any]], config: Path) -> list[float]:
    """Epochs with the fraction at which a run was validated, if its configuration says how long an epoch is."""
    steps = 0
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        steps = json.loads(config.read_text())["epoch_steps"]
    return [row["step"] / steps if steps and "step" in row else row.get("epoch", 0) for row in rows]


def measure_of(curves: Sequence[Curve], wanted: str | None = None) -> str:
    """The gap if every run has one, else the cost."""
    if wanted == "gap":
        for curve in curves:
            if not curve.gap:
                raise InputError(f"{curve.label}: trained without reference costs, so it has no gap; draw the cost")
    return wanted or ("gap" if all(curve.gap for curve in curves) else "cost")


def draw(axes: Axes, curves: Sequence[Curve], along: str, measure: str) -> None:
    """Curves of one label share a colour: they are seeds of one setting."""
    colours: dict[str, str] = {}
    for curve in curves:
        known = curve.label in colours
        colour = colours.setdefault(curve.label, f"C{len(colours) % 10}")
        marker = "." if len(curve.epochs) < 3 else ""  # a line needs two points
        label = None if known else curve.label
        axes.plot(getattr(curve, along), getattr(curve, measure), color=colour, lw=1.3, marker=marker, label=label)
    axes.set_xlabel(AXES[along])
    axes.set_ylabel(MEASURES[measure])
    values = [value for curve in curves for value in getattr(curve, measure)]
    if measure == "gap" and min(values) > 0 and max(values) > 10 * min(values):
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def learning_curves(
    curves: Sequence[Curve], *, along: str = "epochs", measure: str | None = None, title: str = ""
) -> Figure:
    """One panel with all runs."""
    if along not in AXES:
        raise InputError(f"unknown axis {along!r}; the choices are {', '.join(AXES)}")
    if measure is not None and measure not in MEASURES:
        raise InputError(f"unknown measure {measure!r}; the choices are {', '.join(MEASURES)}")
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    draw(axes, curves, along, measure_of(curves, measure))
    axes.set_title(title)
    return figure
