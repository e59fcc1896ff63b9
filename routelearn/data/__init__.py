"""Read and write data: sets of instances for research, stops for people; one format per file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from routelearn.data import authors, npz
from routelearn.data.convert import Converted, Scale, to_instance
from routelearn.data.generate import generate
from routelearn.data.reading import read_stops
from routelearn.data.stops import Stops
from routelearn.errors import InputError
from routelearn.problems import Problem, get
from routelearn.problems.base import take


def read_instances(path: str | Path, problem: str | Problem | None = None, limit: int | None = None) -> tuple[str, Any]:
    """(problem id, Instance [B, ...]) of a set of instances, by suffix: `.npz`, or the authors' `.pkl`.

    A `.pkl` does not say its problem, so it must be named; `limit` keeps the first instances only.
    """
    name = None if problem is None else get(problem).name if isinstance(problem, str) else problem.name
    if limit is not None and limit < 1:
        raise InputError(f"a limit of {limit} instances; it must be at least 1")
    suffix = Path(path).suffix.lower()
    if suffix == ".npz":
        name, x = npz.load(path, name)
    elif suffix == ".pkl":
        if name is None:
            raise InputError(f"{path}: a .pkl does not say which problem it holds; name it")
        x = authors.load(path, name)
    else:
        raise InputError(
            f"{path}: a set of instances is a .npz or a .pkl file, not {suffix or 'a file without suffix'}"
        )
    return name, x if limit is None else take(x, slice(limit))


__all__ = [
    "Converted",
    "Scale",
    "Stops",
    "generate",
    "read_instances",
    "read_stops",
    "to_instance",
]
