"""Optimality gap over problem sizes: models away from the sizes they were trained on, and heuristics (figure 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

LEARNED, GENERAL, SEARCH = "learned", "general", "search"


@dataclass(frozen=True)
class Series:
    """One method's gaps by problem size."""

    label: str
    kind: str  # LEARNED: solid line; GENERAL: dashed line; SEARCH (more than one solution): points only
    gaps: dict[int, float]  # n -> per cent
    trained_on: tuple[int, ...] = ()


def generalisation(series: Sequence[Series], title: str = "") -> Figure:
    """As in the paper, train sizes are marked by vertical bars."""
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    axes = figure.subplots()
    styles = {LEARNED: "-o", GENERAL: "--", SEARCH: "x"}
    sizes = sorted({n for one in series for n in one.gaps})
    for index, one in enumerate(series):
        where = sorted(one.gaps)
        colour = f"C{index % 10}"
        axes.plot(where, [one.gaps[n] for n in where], styles[one.kind], color=colour, ms=4, lw=1.4, label=one.label)
        for n in one.trained_on:
            axes.axvline(n, color=colour, lw=3, alpha=0.25)
    axes.set_xticks(sizes, [str(n) for n in sizes], fontsize=8)
    axes.set_xlabel("problem size n")
    axes.set_ylabel("optimality gap, %")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, ncols=2)
    return figure
