"""`routelearn reproduce`: the paper's tables and figures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import typer

from routelearn.commands.evaluate import progress
from routelearn.errors import InputError

TRAINING = ("train", "instances", "full", "minutes", "seeds")
# Which options each target reads; giving another is an error, not silence.
READS = {
    "table1": ("limit", "paper_limits", "problems", "rows", "sizes", "samples", "model", "on", "seed"),
    "table-op": ("limit", "paper_limits", "rows", "sizes", "samples", "model", "on", "seed"),
    "table-ablations": ("limit", "sizes", *TRAINING),
    "front": ("limit", "problems", "seconds", "model", "seed"),
    "figures": ("limit", "sizes", "model", "seed"),
    "figure3": ("limit", *TRAINING),
    "figure5": ("limit", "sizes", "model", "seed"),
    "figure6": ("limit", "sizes", *TRAINING),
    "figure7": ("seed",),
}
# Of these, what only training reads: a figure shows runs as they were made, the table only those made as asked.
WITH_TRAIN = {
    "table-ablations": ("minutes",),
    "figure3": ("limit", "instances", "full", "minutes"),
    "figure6": ("limit", "instances", "full", "minutes"),
}


def reproduce(
    target: str = typer.Argument(
        help="table1, table-op, table-ablations, front, figures, or figure3, 5, 6 or 7 alone."
    ),
    out: Path = typer.Option(Path("reproduce"), help="Folder for tables, figures, stored results and training runs."),
    limit: int | None = typer.Option(
        None,
        help="Use the first instances of each test (and validation) set only. "
        "[default: all 10000; figure5: 1000; front: 100]",
    ),
    paper_limits: bool | None = typer.Option(
        None, "--paper-limits", help="Use the paper's time limits instead of 0.3 s per instance (days on two cores)."
    ),
    problems: str | None = typer.Option(None, help="table1, front: only these problems, such as tsp,cvrp."),
    rows: str | None = typer.Option(None, help="Tables: only these rows, such as 'LKH3,AM (greedy)'."),
    sizes: str | None = typer.Option(None, help="Only these sizes, such as 20,50. [default: all; training: 20]"),
    samples: int | None = typer.Option(None, help="Rollouts of AM (sampling). [default: 320 on a CPU, 1280 on a GPU]"),
    model: list[Path] | None = typer.Option(None, help="Model file to prefer over the shipped ones; may be repeated."),
    seconds: str | None = typer.Option(None, help="front: times of searches. [default: 0.1,1,10]"),
    on: str | None = typer.Option(None, help="Where solvers run: local, or ray for a cluster. [default: local]"),
    train: bool | None = typer.Option(None, "--train", help="Train the missing runs, one after another."),
    instances: int | None = typer.Option(None, help="Training: instances per run. [default: 6400000]"),
    full: bool | None = typer.Option(None, "--full", help="Training: the paper's 128000000 instances per run."),
    minutes: float | None = typer.Option(
        None, help="Training: stop after this long; run the command again to continue."
    ),
    seeds: str | None = typer.Option(
        None, help="Training runs with these seeds only, such as 1234. [default: 1234,1235]"
    ),
    seed: int | None = typer.Option(None, help="Seed of solvers and sampling. [default: 1234]"),
) -> None:
    """Reproduce a table (text, Markdown, CSV, LaTeX) or the figures (PNG, SVG) of the paper.

    Results are stored in --out as they arrive; run the same command again to continue. Solvers and models that are
    missing here are listed with the reason. table-ablations, figure3 and figure6 show training runs: those in --out,
    or else those in docs/runs. --train trains the missing ones, for which you want a GPU.
    """
    from routelearn.commands.train import parse_numbers

    if target not in READS:
        raise InputError(f"unknown target {target!r}; the choices are {', '.join(READS)}")
    given: dict[str, Any] = {
        "limit": limit, "paper_limits": paper_limits, "problems": problems, "rows": rows, "sizes": sizes,
        "samples": samples, "model": model or None, "on": on, "train": train, "instances": instances, "full": full,
        "minutes": minutes, "seeds": seeds, "seed": seed, "seconds": seconds,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in READS[target]:
            readers = ", ".join(other for other in READS if name in READS[other])
            raise InputError(f"--{name.replace('_', '-')} has no meaning for {target}; it is for {readers}")
        if name in WITH_TRAIN.get(target, ()) and "train" not in given:
            raise InputError(f"--{name} has no meaning for {target} without training; give --train, or leave it out")
    for name in ("sizes", "seeds"):
        if name in given:
            given[name] = parse_numbers(given[name], name)
    if "model" in given:
        given["model_files"] = tuple(given.pop("model"))
    if "train" in READS[target]:
        runs(target, out, given)
    elif target == "front":
        fronts(out, given)
    elif target.startswith("figure"):
        figures(out, () if target == "figures" else (target,), given)
    else:
        tables(target, out, given)


bar = partial(progress, echo=True)


def tables(target: str, out: Path, given: dict[str, Any]) -> None:
    from routelearn.reproduce.rows import TABLE1, TABLE_OP, check_problems, named_rows
    from routelearn.reproduce.running import Options, table1, table_op
    from routelearn.solvers.adapters.runner import worker_count

    wanted = [name.strip() for name in given.pop("problems", "").split(",") if name.strip()]
    names = check_problems(wanted, TABLE1) if target == "table1" else list(TABLE_OP)
    options = Options(**given | {"rows": named_rows(given.get("rows", ""), names)})
    typer.echo(f"{options.limit} instances each, on {worker_count()} cores", err=True)
    paths = table1(names, out, options, watch=bar) if target == "table1" else table_op(out, options, watch=bar)
    tell(paths)


def fronts(out: Path, given: dict[str, Any]) -> None:
    from routelearn.reproduce.front import Options, named_sets, reproduce_front

    if "seconds" in given:
        try:
            given["seconds"] = tuple(float(part) for part in given["seconds"].split(","))
        except ValueError:
            raise InputError(f"seconds is {given['seconds']!r}; give numbers joined by commas, such as 0.1,1") from None
    options = Options(**given | {"sets": named_sets(given.pop("problems", ""))})
    tell(reproduce_front(out, options, watch=bar))


def tell(paths: list[Path]) -> None:
    """The table as text, and where it was written."""
    typer.echo(paths[0].read_text(encoding="utf-8"))
    typer.echo("written: " + " ".join(map(str, paths)))


def runs(target: str, out: Path, given: dict[str, Any]) -> None:
    """The table of ablations, figure 3 or figure 6: train what is missing if asked to, then show what there is."""
    from routelearn.reproduce import ablations

    training = given.pop("train", False)
    if given.pop("full", False):
        if "instances" in given:
            raise InputError("--full means 128000000 instances per run; leave out --instances")
        given["instances"] = ablations.FULL_INSTANCES
    options = ablations.Options(**given)
    if training:
        wanted = {
            "table-ablations": lambda: ablations.all_runs(options.sizes, options.seeds),
            "figure3": lambda: list(ablations.baseline_runs(options.seeds)),
            "figure6": lambda: [run for n in options.sizes for run in ablations.schedule_runs(n, options.seeds)],
        }[target]()
        typer.echo(f"{len(wanted)} runs of {options.instances:,} instances on {options.device}", err=True)
        if options.device.type == "cpu" and options.instances >= 100_000:
            typer.echo("no GPU here: a run takes hours; you can stop and resume it at any time", err=True)
        missing = ablations.train_runs(wanted, options, out, report=report_validation)
        if missing:
            typer.echo(
                f"the time is up: {len(missing)} of {len(wanted)} runs are not done; run the command again to continue",
                err=True,
            )
    if target != "table-ablations":
        sizes = {"rate_sizes": options.sizes} if "sizes" in given else {}
        figures(out, (target,), {"run_seeds": options.seeds, **sizes})
        return
    tell(ablations.table_ablations(out, options, watch=bar))


def report_validation(row: dict[str, Any]) -> None:
    if row.get("validation"):
        costs = " ".join(f"{cost:.4f}" for cost in row["validation"].values())
        speed = f"{row['instances_per_second']:,.0f} instances/s"
        typer.echo(f"{row['run']}, epoch {row['epoch']}, {row['elapsed']:.0f} s: validation {costs}, {speed}", err=True)


def figures(out: Path, only: tuple[str, ...], given: dict[str, Any]) -> None:
    from routelearn.reproduce.figures import Drawn, Options, draw_figures

    def report(drawn: Drawn) -> None:
        typer.echo(f"{drawn.name}: {' '.join(map(str, drawn.paths)) or 'not drawn'}" + f"  {drawn.note}".rstrip())

    draw_figures(out, Options(**given), only=only, watch=bar, report=report)
