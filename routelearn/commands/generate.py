"""`routelearn generate`."""

from __future__ import annotations

from pathlib import Path

import typer


def generate(
    problem: str = typer.Argument(help="Problem id; an unknown one lists them all."),
    n: int = typer.Argument(help="Number of customers (of nodes, where there is no depot)."),
    out: Path = typer.Option(..., help="File to write (.npz)."),
    count: int = typer.Option(
        10_000, help="Number of instances. Each count draws a different set; use --limit for a part of one."
    ),
    seed: int = typer.Option(1234, help="1234 is the paper's test set, 4321 its validation set."),
    limit: int | None = typer.Option(None, help="Write only the first instances of the set."),
) -> None:
    """Write a set of random instances. The defaults give exactly the paper's test set."""
    from routelearn import problems
    from routelearn.data import npz
    from routelearn.data.generate import generate as draw
    from routelearn.errors import InputError
    from routelearn.problems.base import take

    if n < 2 or count < 1 or (limit is not None and limit < 1):
        raise InputError(f"n = {n}, count = {count}, limit = {limit}; n must be 2 or more, the others 1 or more")
    if out.suffix.lower() != ".npz":
        raise InputError(f"{out}: instances are written as .npz; give a name that ends in .npz")
    x = draw(problems.get(problem), n, count=count, seed=seed)
    if limit is not None:
        x = take(x, slice(0, limit))
    npz.save(out, problem, x)
    typer.echo(f"{out}: {x.xy.shape[0]} instances of {problem}, n = {n}, seed {seed}")
