"""`routelearn examples`."""

from __future__ import annotations

import shutil
from pathlib import Path

import typer

PACKAGE = Path(__file__).parents[1]


def examples(
    folder: Path = typer.Argument(Path("examples"), help="Folder to write them into. Files that are there stay."),
) -> None:
    """Copy the example files: stops of every kind, a bakery's round, plugins."""
    source = next(place for place in (PACKAGE / "examples", PACKAGE.parent / "examples") if place.is_dir())
    for file in sorted(source.rglob("*")):
        target = folder / file.relative_to(source)
        if file.is_file() and "__pycache__" not in file.parts:
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
            typer.echo(target)
