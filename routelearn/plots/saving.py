"""Figures as files: each as PNG and as SVG, or one under a name that the user chose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from routelearn.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")


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
    if Path(path).suffix.lower() not in PICTURES:
        raise InputError(f"{path}: a picture ends in {', '.join(PICTURES)}")
    try:
        figure.savefig(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
