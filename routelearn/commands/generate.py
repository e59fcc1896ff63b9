"""`routelearn generate`."""

from __future__ import annotations

from pathlib import Path

import typer


def generate(
    problem: str = typer.Argument(help="Problem id, or a variant such as ovrptw; an unknown one lists them all."),
    n: int = typer.Argument(help="Number of customers (of nodes, where there is no depot)."),
    out: Path = typer.Option(..., help="File to write (.npz)."),
    count: int | None = typer.Option(
        None,
        help="Number of instances. Each count draws a different set; use --limit for a part of one. "
        "[default: 10000; 1000 of a variant]",
    ),
    seed: int = typer.Option(1234, help="1234 is the public test set, 4321 the validation set."),
    collection: str | None = typer.Option(
        None, "--set", help="Whose set, if a name is in both: paper, or routefinder for variants. [default: paper]"
    ),
    limit: int | None = typer.Option(None, help="Write only the first instances of the set."),
) -> None:
    """Write a set of random instances. The defaults give exactly the test set of the paper, or of RouteFinder."""
    from routelearn.data import npz
    from routelearn.data.generate import generate as draw
    from routelearn.data.generate import of_set
    from routelearn.errors import InputError
    from routelearn.problems.base import take

    if n < 2 or min(one for one in (count, limit, 1) if one is not None) < 1:
        raise InputError(f"n = {n}, count = {count}, limit = {limit}; n must be 2 or more, the others 1 or more")
    if out.suffix.lower() != ".npz":
        raise InputError(f"{out}: instances are written as .npz; give a name that ends in .npz")
    chosen = of_set(problem, collection)
    x = draw(chosen, n, count=count, seed=seed)
    if limit is not None:
        x = take(x, slice(0, limit))
    npz.save(out, chosen.name, x)
    typer.echo(f"{out}: {x.xy.shape[0]} instances of {problem}, n = {n}, seed {seed}")
