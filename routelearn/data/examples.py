"""Where the example files are."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def examples_folder() -> Path:
    """The folder of the examples: in the installed package, or beside it in a checkout."""
    return next(place for place in (PACKAGE / "examples", PACKAGE.parent / "examples") if place.is_dir())
