"""Figures as files: each as PNG and as SVG, or one under a name that the user chose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from routelearn.errors import InputError
from routelearn.runtime.atomic import writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")
PAGE = ".html"
DRAWINGS = (*PICTURES, PAGE)  # of an answer


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write stem.png and stem.svg, whether or not the name has the suffix of one. Equal figures give equal files."""
    import matplotlib

    stem = stem.with_suffix("") if stem.suffix in (".png", ".svg") else stem
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in ("png", "svg")]
    figure.savefig(paths[0], dpi=150)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "routelearn"}):  # text stays text
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def drawn(path: str | Path | None, draw: Callable[[], Figure], page: Callable[[], str] | None = None) -> Figure | None:
    """A figure; with a path a file instead: a picture or, of an answer, its interactive page, as the suffix says."""
    if path is None:
        return draw()
    writers: dict[str, Callable[[], object]] = dict.fromkeys(PICTURES, lambda: draw().savefig(path))
    if page is not None:
        writers[PAGE] = lambda: Path(path).write_text(page(), encoding="utf-8")
    suffix = Path(path).suffix.lower()
    if suffix not in writers:
        raise InputError(f"{path}: a picture ends in {', '.join(writers)}")
    with writing(path):
        writers[suffix]()
    return None
