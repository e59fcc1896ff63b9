"""`routelearn import-authors`."""

from __future__ import annotations

from pathlib import Path

import typer


def import_authors(
    checkpoint: Path = typer.Argument(help="Checkpoint (.pt) as the authors' code saves it."),
    problem: str = typer.Option(..., help="Problem id that it was trained on."),
    out: Path = typer.Option(..., help="Model file to write (.safetensors)."),
) -> None:
    """Convert a checkpoint of the paper's authors to a model file. Only weights are read; no code runs."""
    from routelearn.models import model_file
    from routelearn.models.import_authors import import_checkpoint

    model = import_checkpoint(checkpoint, problem)
    model_file.save(out, model)
    size = sum(p.numel() for p in model.policy.parameters())
    typer.echo(f"{out}: {problem}, {model.options['layers']} layers, {size:,} parameters")
