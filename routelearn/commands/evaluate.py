"""`routelearn evaluate`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

BACKEND = "auto, or reference: run without compiled kernels, slower, for checking an edit."


class Backend(StrEnum):
    auto = "auto"
    reference = "reference"


# Which options each way of solving reads; giving one of the other is an error, not silence.
FOR_MODEL, FOR_SOLVER = ("model", "decode", "device", "precision", "backend"), ("seconds", "on", "store")


def evaluate(
    data: Path = typer.Argument(help="Instances: .npz of ours, or .pkl of the paper's authors (then give --problem)."),
    model: str | None = typer.Option(None, help="Model file, or the name of a shipped one. [default: the shipped one]"),
    decode: str | None = typer.Option(
        None,
        help="For a model: greedy, sample:1280, sample:1280@0.8, multistart:50, augment:8, beam:10, guided:4, "
        "active:50, +improve, +improve:0.5 (seconds an instance); join by +. [default: greedy]",
    ),
    solver: str | None = typer.Option(None, help="A classical solver instead of a model; see `routelearn solvers`."),
    seconds: float | None = typer.Option(None, help="For a solver: seconds an instance. [default: 1]"),
    problem: str | None = typer.Option(None, help="Problem id, where the file does not say."),
    limit: int | None = typer.Option(None, help="Only the first instances."),
    reference: Path | None = typer.Option(None, help="Costs (.npz) of the same instances, to report the paired gap."),
    json_out: Path | None = typer.Option(None, "--json", help="Write the result, with every cost, there."),
    costs_out: Path | None = typer.Option(None, "--costs", help="Write the costs there (.npz), to be a --reference."),
    seed: int = typer.Option(0, help="Seed of sampling, or of the solver."),
    device: str | None = typer.Option(None, help="For a model: cpu, cuda, or auto. [default: auto]"),
    precision: str | None = typer.Option(
        None, help="For a model: float32, bfloat16, or auto (bfloat16 on a GPU). [default: float32]"
    ),
    backend: Backend | None = typer.Option(None, help=f"For a model: {BACKEND} [default: auto]"),
    on: str | None = typer.Option(None, help="For a solver: local, or ray for a cluster. [default: local]"),
    store: Path | None = typer.Option(None, help="For a solver: keep results as they come, to resume later."),
) -> None:
    """Solve every instance, check every solution, and report mean cost, standard error, time and gap."""
    import torch

    from routelearn import api
    from routelearn.errors import InputError
    from routelearn.evaluation.evaluate import means_by_variant
    from routelearn.problems.attributes import first_customer

    given = {
        "model": model, "decode": decode, "device": device, "precision": precision, "backend": backend,
        "seconds": seconds, "on": on, "store": store,
    }  # fmt: skip
    for name in FOR_SOLVER if solver is None else FOR_MODEL:
        if given[name] is not None:
            what = (
                "a model; it is for a solver, so give --solver" if solver is None else "a solver; leave one of them out"
            )
            raise InputError(f"--{name} has no meaning for {what}")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed {seed}; it must lie between 0 and 2^63 - 1")
    for file in (json_out, costs_out):  # before the work, not after it
        if file is not None and not file.parent.is_dir():
            raise InputError(f"{file}: there is no folder {file.parent} to write into")
    chosen, x = api.instances(data, problem, limit)
    name, (count, nodes) = chosen.name, x.xy.shape[:2]
    customers = nodes - first_customer(chosen, x)
    known: Any = None
    kinds = set(means_by_variant(chosen, x, torch.zeros(count)))
    label = kinds.pop() if len(kinds) == 1 else name  # what arrays of reference costs are called
    if reference is not None:
        known = read_costs(reference, label, customers, count, instances=x)
    method: Any = None if model is None else Path(model)  # a text could also name a solver
    if solver is not None:
        from routelearn import solvers

        method = solvers.get(solver)
    with progress(f"{name} {solver or or_default(decode, 'greedy')}", count) as done:
        found = api.evaluate(
            method, x, or_default(decode, "greedy"), problem=chosen, device=or_default(device, "auto"),
            backend=or_default(backend, "auto"), precision=or_default(precision, "float32"), seed=seed,
            seconds=seconds, on=on, store=store, progress=done,
        )  # fmt: skip
    result = {**found.to_dict(), "nodes": nodes, "customers": customers, "problem": name}
    typer.echo(f"{data.name}: {count} instances of {name}, {nodes} nodes, {found.decode}")
    typer.echo(f"mean cost {found.mean:.5f} +- {found.standard_error:.5f} (standard error)")
    typer.echo(f"infeasible {found.infeasible}; {found.seconds:.2f} s on {found.device}")
    by_variant = means_by_variant(chosen, x, torch.tensor(found.to_dict()["costs"], dtype=torch.float64))
    if len(by_variant) > 1:
        result["by_variant"] = by_variant
        for variant, mean in by_variant.items():
            typer.echo(f"{variant:<12} {mean:.5f}")
    if reference is not None:
        gap, error = found.gap(torch.as_tensor(known))
        result["gap"], result["gap_standard_error"] = gap, error
        unknown = missing(known[:count])
        typer.echo(f"gap to {reference.name} {gap:+.3%} +- {error:.3%}" + (f"; it lacks {unknown}" if unknown else ""))
    if json_out is not None:
        json_out.write_text(json.dumps(without_nan(result), allow_nan=False) + "\n")
    if costs_out is not None:
        write_costs(costs_out, label, customers, result["costs"], x)
    if without := missing(found.costs.cpu().numpy()):
        typer.echo(f"no solution of {without}", err=True)
    if found.infeasible:
        raise typer.Exit(1)


def without_nan(value: Any) -> Any:
    """The value with None for each NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {name: without_nan(one) for name, one in value.items()}
    return [without_nan(one) for one in value] if isinstance(value, list) else None if value != value else value


def missing(costs: Any, most: int = 20) -> str:
    """Which of the costs [B] are missing (NaN), in words; empty if none is."""
    import numpy as np

    from routelearn.errors import first_few

    rows = np.flatnonzero(np.isnan(costs)).tolist()
    return f"{len(rows)} of {len(costs)}: instance {first_few([str(row) for row in rows], most)}" if rows else ""


def or_default(given: Any, default: Any) -> Any:
    """The default if nothing was given; an empty text was given, and is wrong."""
    return default if given is None else given


@contextmanager
def progress(label: str, total: int, *, echo: bool = False) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal, if standard error is one; in a pipe or a file nothing, or the label alone."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if echo and not console.is_terminal:
        typer.echo(label, err=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.advance(task, done)


def write_costs(path: Path, problem: str, n: int, costs: list[float], x: Any) -> None:
    """The costs [B] with marks of what they are costs of, so that `read_costs` can refuse another set."""
    import numpy as np

    from routelearn.data.fields import fingerprints

    with path.open("wb") as target:  # an open file, because savez would append a suffix to a bare name
        np.savez_compressed(target, costs=np.array(costs), problem=problem, n=n, instances=fingerprints(x))


def read_costs(
    path: Path, problem: str, n: int, count: int = 1, *, instances: Any = None, several: bool = False
) -> Any:
    """At least `count` costs from an .npz: its array `costs`, or the one named by problem and size, or the only one.

    Where the file is marked (`write_costs`), it must be of this problem and size, and of these `instances`. With
    `several` sizes to read, each needs an array of its own name.
    """
    import numpy as np

    from routelearn.data.files import TEXT_LIMIT, read_bytes
    from routelearn.data.npz import arrays_of
    from routelearn.errors import InputError

    arrays, own = arrays_of(read_bytes(path), str(path), TEXT_LIMIT), f"{problem}{n}"
    for key in (own,) if several else ("costs", own, next(iter(arrays)) if len(arrays) == 1 else ""):
        if key in arrays and arrays[key].ndim == 1 and arrays[key].dtype.kind in "fiu":
            costs = arrays[key].astype(np.float64)
            known = costs[~np.isnan(costs)]  # without a solution there is none
            if not np.isfinite(known).all() or not known.any():
                raise InputError(f"{path}: `{key}` holds costs that are no finite numbers, or only 0")
            if len(costs) < count:
                raise InputError(f"{path}: {len(costs)} costs for {count} instances; give one for each")
            if key == "costs":
                _check_marks(path, arrays, problem, n, instances)
            return costs
    wanted = f"`{own}`, and several sizes need one each" if several else f"`costs` or `{own}`"
    raise InputError(f"{path}: no array {wanted}; it holds {', '.join(arrays) or 'nothing'}")


def _check_marks(path: Path, arrays: dict[str, Any], problem: str, n: int, instances: Any) -> None:
    """Refuse costs that say they are of another problem, size or set; a file without marks passes."""
    import numpy as np

    from routelearn.data.fields import fingerprints
    from routelearn.errors import InputError

    if not {"problem", "n", "instances"} <= set(arrays):
        return
    of, size, marks = str(arrays["problem"]), str(arrays["n"]), arrays["instances"]
    if (of, size) != (problem, str(n)):
        raise InputError(f"{path}: costs of {of}, n = {size}; give those of {problem}, n = {n}")
    if instances is not None:
        rows = min(len(instances.xy), marks.size)
        differs = marks.reshape(-1)[:rows] != fingerprints(instances)[:rows]
        if differs.any():
            raise InputError(
                f"{path}: costs of another set (instance {int(np.argmax(differs))} is not the same); "
                "`evaluate --costs` writes those of this one"
            )
