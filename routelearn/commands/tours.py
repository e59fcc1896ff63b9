"""`routelearn tours`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer


def tours(
    problem: str = typer.Argument(help="Problem id; an unknown one lists them all."),
    n: int = typer.Argument(help="Number of customers (of nodes, where there is no depot)."),
    out: Path = typer.Option(..., help="File to write (.npz)."),
    count: int = typer.Option(100_000, help="Number of instances."),
    seed: int = typer.Option(1, help="Seed of the instances."),
    solver: str | None = typer.Option(None, help="A solver, such as elkai; see `routelearn solvers`."),
    seconds: float | None = typer.Option(None, help="For a solver: seconds an instance. [default: 1]"),
    model: str | None = typer.Option(None, help="Model, where no solver is named. [default: the shipped one]"),
    decode: str | None = typer.Option(None, help="For a model: how it decodes. [default: augment:8+improve]"),
    device: str | None = typer.Option(None, help="For a model: cpu, cuda, or auto. [default: auto]"),
) -> None:
    """Solve random instances for `train --loss supervised --tours FILE`, by a solver or by a model and local search."""
    from routelearn import api, problems, solvers
    from routelearn.commands.evaluate import or_default, progress
    from routelearn.errors import InputError
    from routelearn.training import tours as storing

    by_model = solver is None
    unread = {"seconds": seconds} if by_model else {"model": model, "decode": decode, "device": device}
    for name, value in unread.items():
        if value is not None:
            raise InputError(f"--{name} has no meaning {'without' if by_model else 'beside'} --solver; leave it out")
    if out.suffix.lower() != ".npz":
        raise InputError(f"{out}: tours are written as .npz; give a name that ends in .npz")
    if n < 2 or count < 1:
        raise InputError(f"n = {n}, count = {count}; n must be 2 or more, count 1 or more")
    chosen = problems.get(problem)
    x = storing.instances(chosen, n, count, seed)
    method: Any = None if model is None else Path(model)
    if solver is not None:
        method = solvers.get(solver)
    with progress(f"{problem} {n}", count) as done:
        found = api.evaluate(
            method, x, or_default(decode, "augment:8+improve" if by_model else "greedy"), problem=chosen,
            device=or_default(device, "auto"), seconds=seconds, progress=done,
        )  # fmt: skip
    if found.infeasible:
        raise InputError(f"{found.infeasible} of {count} instances have no valid tour by {found.decode}")
    storing.write(out, chosen, n, seed, x, found.tours.cpu())
    typer.echo(
        f"{out}: {count} tours of {problem}, n = {n}, seed {seed}, by {found.decode}; "
        f"mean cost {found.mean:.5f}, {found.seconds:.0f} s"
    )
