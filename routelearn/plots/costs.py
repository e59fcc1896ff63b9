"""How costs, or gaps to a reference, spread over a set of instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 40


def histogram(values: Tensor, title: str, label: str = "cost") -> Figure:
    """The values [B] by how many instances have them, with their mean; NaN (no solution) is left out."""
    from matplotlib.figure import Figure

    known = values[~values.isnan()].tolist()
    figure = Figure(figsize=(7, 4.2), dpi=120, layout="constrained")
    axes = figure.subplots()
    axes.hist(known, bins=min(BINS, max(1, len(known))), color="#3b6ea5")
    if known:
        mean = sum(known) / len(known)
        axes.axvline(mean, color="black", linewidth=1.2, label=f"mean {mean:.5g}")
        axes.legend(fontsize=8)
    axes.set_xlabel(label)
    axes.set_ylabel("instances")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    return figure
