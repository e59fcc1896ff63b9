"""`routelearn plot-run`."""

from __future__ import annotations

from pathlib import Path

import typer


def plot_run(
    runs: list[Path] = typer.Argument(help="Folders of training runs (or their metrics.jsonl)."),
    out: Path = typer.Option(Path("learning-curves"), help="Files to write, without suffix: a .png and an .svg."),
    along: str | None = typer.Option(
        None,
        help="Horizontal axis: epochs, instances or time. [default: epochs; instances for runs of less than three]",
    ),
    measure: str | None = typer.Option(None, help="gap or cost. [default: gap if all runs have reference costs]"),
    title: str = typer.Option("", help="Title of the picture."),
) -> None:
    """Plot the validation gap or cost of training runs over epochs, instances or time."""
    from routelearn.plots.learning_curves import learning_curves, read_run
    from routelearn.plots.saving import save

    curves = [curve for run in runs for curve in read_run(run)]
    figure = learning_curves(curves, along=along, measure=measure, title=title)
    typer.echo("written: " + " ".join(map(str, save(figure, out))))
