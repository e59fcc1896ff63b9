"""`routelearn reproduce`: the paper's tables and figures."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from routelearn.errors import InputError

TARGETS = ("table1", "table-op", "table-ablations", "figures")
# Which options each target reads; giving another is an error, not silence.
READS = {
    "table1": ("limit", "paper_limits", "problems", "sizes", "samples", "model", "engine", "seed"),
    "table-op": ("limit", "paper_limits", "sizes", "samples", "model", "engine", "seed"),
    "table-ablations": ("limit", "sizes", "instances", "full"),
    "figures": ("limit", "sizes", "model", "seed"),
}


def reproduce(
    target: str = typer.Argument(help="table1, table-op, table-ablations or figures."),
    out: Path = typer.Option(Path("reproduce"), help="Folder for tables, figures and stored results."),
    limit: int | None = typer.Option(
        None, help="Only the first instances of each test set. [default: all 10000; figures: 1000]"
    ),
    paper_limits: bool | None = typer.Option(
        None, "--paper-limits", help="The paper's time limits instead of 0.3 s an instance: days on two cores."
    ),
    problems: str | None = typer.Option(None, help="table1: only these, such as tsp,cvrp."),
    sizes: str | None = typer.Option(None, help="Only these sizes, such as 20,50. [table-ablations: 20]"),
    samples: int | None = typer.Option(None, help="Rollouts of AM (sampling). [default: 320 on a CPU, 1280 on a GPU]"),
    model: list[Path] | None = typer.Option(None, help="A model file to use before those that ship; may be repeated."),
    engine: str | None = typer.Option(None, help="local, or ray for a cluster."),
    instances: int | None = typer.Option(None, help="table-ablations: instances a run. [default: 6400000]"),
    full: bool | None = typer.Option(None, "--full", help="table-ablations: the paper's 128000000 instances a run."),
    seed: int | None = typer.Option(None, help="Seed of solvers and sampling. [default: 1234]"),
) -> None:
    """Make a table (text, Markdown, CSV, LaTeX) or the figures (PNG, SVG) of the paper again.

    Results are stored in --out as they come; the same command goes on where it was stopped.
    `routelearn reproduce table1 --limit 100` took 34 minutes on two busy cores. table-ablations trains 48 models: use
    a GPU. What cannot be had here (a solver, a model) is listed with the reason.
    """
    if target not in TARGETS:
        raise InputError(f"unknown target {target!r}; the choices are {', '.join(TARGETS)}")
    given: dict[str, Any] = {
        "limit": limit, "paper_limits": paper_limits, "problems": problems, "sizes": sizes, "samples": samples,
        "model": model or None, "engine": engine, "instances": instances, "full": full, "seed": seed,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in READS[target]:
            readers = ", ".join(other for other in TARGETS if name in READS[other])
            raise InputError(f"--{name.replace('_', '-')} has no meaning for {target}; it is for {readers}")
    if sizes is not None:
        given["sizes"] = numbers(sizes)
    if "model" in given:
        given["model_files"] = tuple(given.pop("model"))
    if target == "table-ablations":
        ablations(out, given)
    elif target == "figures":
        figures(out, given)
    else:
        tables(target, out, given)


def numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"sizes are {text!r}; they must be whole numbers joined by commas, such as 20,50") from None


@contextlib.contextmanager
def bar(label: str, total: int) -> Iterator[Any]:
    """A progress bar on a terminal, nothing but the label otherwise."""
    from rich.progress import Progress

    if not sys.stderr.isatty():
        typer.echo(label, err=True)
        yield lambda done: None
        return
    from rich.console import Console

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done: progress.advance(task, done)


def tables(target: str, out: Path, given: dict[str, Any]) -> None:
    from routelearn.paper_rows import TABLE1, TABLE_OP, check_problems
    from routelearn.reproduce import Options, estimate, table1, table_op
    from routelearn.solvers.runner import worker_count
    from routelearn.tables import duration

    wanted = [name.strip() for name in given.pop("problems", "").split(",") if name.strip()]
    options = Options(**given)
    names = check_problems(wanted, TABLE1) if target == "table1" else list(TABLE_OP)
    expected = duration(estimate(names, options))
    typer.echo(f"{options.limit} instances each; solvers about {expected} on {worker_count()} cores", err=True)
    paths = table1(names, out, options, watch=bar) if target == "table1" else table_op(out, options, watch=bar)
    typer.echo(paths[0].read_text(encoding="utf-8"))
    typer.echo("written: " + " ".join(map(str, paths)))


def ablations(out: Path, given: dict[str, Any]) -> None:
    from routelearn.ablations import FULL_INSTANCES, Options, all_runs, table_ablations

    if given.pop("full", False):
        if "instances" in given:
            raise InputError("--full means 128000000 instances a run; leave out --instances")
        given["instances"] = FULL_INSTANCES
    options = Options(**given)
    runs = all_runs(options.sizes)
    typer.echo(f"{len(runs)} runs of {options.instances:,} instances on {options.device}", err=True)
    if options.device.type == "cpu" and options.instances >= 100_000:
        typer.echo("no GPU here: a run takes hours; it can be stopped and resumed at any time", err=True)

    def report(row: dict[str, Any]) -> None:
        if row.get("validation"):
            costs = " ".join(f"{cost:.4f}" for cost in row["validation"].values())
            typer.echo(f"{row['run']}, epoch {row['epoch']}: validation {costs}", err=True)

    paths = table_ablations(out, options, watch=bar, report=report)
    typer.echo(paths[0].read_text(encoding="utf-8"))
    typer.echo("written: " + " ".join(map(str, paths)))


def figures(out: Path, given: dict[str, Any]) -> None:
    from routelearn.figures import Drawn, Options, draw_figures

    def report(drawn: Drawn) -> None:
        typer.echo(f"{drawn.name}: {' '.join(map(str, drawn.paths)) or 'not drawn'}" + f"  {drawn.note}".rstrip())

    draw_figures(out, Options(**given), watch=bar, report=report)
