"""`routelearn examples`."""

from __future__ import annotations

import shutil
from pathlib import Path

import typer

from routelearn.data.examples import examples_folder


def examples(
    folder: Path = typer.Argument(Path("examples"), help="Folder to write them into. Files that are there stay."),
) -> None:
    """Copy the example files: stops of every kind, a bakery's round, plugins."""
    source = examples_folder()
    for file in sorted(source.rglob("*")):
        target = folder / file.relative_to(source)
        if file.is_file() and "__pycache__" not in file.parts:
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
            typer.echo(target)
