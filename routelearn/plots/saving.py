"""Every figure as PNG and as SVG."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write stem.png and stem.svg. The SVG holds no date, so equal figures give equal files."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in ("png", "svg")]
    figure.savefig(paths[0], dpi=150)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "routelearn"}):  # text stays text
        figure.savefig(paths[1], metadata={"Date": None})
    return paths
