"""Figures as files: each as PNG and as SVG, or one under a name that the user chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from routelearn.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")
PAGE = ".html"
DRAWINGS = (*PICTURES, PAGE)  # of an answer


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write stem.png and stem.svg. The SVG holds no date, so equal figures give equal files."""
    import matplotlib

    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in ("png", "svg")]
    figure.savefig(paths[0], dpi=150)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "routelearn"}):  # text stays text
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def save_as(figure: Figure, path: str | Path) -> None:
    """Writes one file; its suffix says the format."""
    write_by_suffix(path, dict.fromkeys(PICTURES, lambda: figure.savefig(path)))


def save_drawing(path: str | Path, draw: Callable[[], Figure], page: Callable[[], str]) -> None:
    """A picture of an answer, or its interactive page, as the suffix says."""
    pictures: dict[str, Callable[[], object]] = dict.fromkeys(PICTURES, lambda: draw().savefig(path))
    write_by_suffix(path, {**pictures, PAGE: lambda: Path(path).write_text(page(), encoding="utf-8")})


def write_by_suffix(path: str | Path, writers: Mapping[str, Callable[[], object]]) -> None:
    suffix = Path(path).suffix.lower()
    if suffix not in writers:
        raise InputError(f"{path}: a picture ends in {', '.join(writers)}")
    try:
        writers[suffix]()
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
