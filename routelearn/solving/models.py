"""Find the trained model for an instance, if there is one."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from routelearn.errors import InputError
from routelearn.models.model_file import Model
from routelearn.problems import Problem
from routelearn.solving.guide import usable


def find_model(
    problem: Problem, size: int, policy: bool = True, path: str | Path | Model | None = None, device: str = "cpu"
) -> tuple[Model | None, tuple[str, ...]]:
    """(a model to use, notes for the user where there is none); `size` in stops or visits (`Converted.size`)."""
    if not policy:
        return None, ()
    if isinstance(path, Model):
        if path.problem != problem.name:
            raise InputError(f"a model for {path.problem}, not for {problem.name}")
        path.policy.to(device).eval()
        return path, ()
    if path is not None:
        if not isinstance(path, str | Path):
            from routelearn.models import wrong_type

            raise wrong_type(path)
        return _load(problem.name, None, str(path), device, _version(Path(path))), ()
    try:
        model = _load(problem.name, size if _count(problem.name) > 1 else None, None, device)
    except InputError:
        return None, (f"no trained model for {problem.name}: a constructive heuristic starts the search",)
    if not usable(model, size):
        sizes = max(model.card["sizes"])
        return None, (
            f"{size} stops or loads, far from the {sizes} of the trained model: a heuristic starts the search",
        )
    return model, ()


@lru_cache(maxsize=8)
def _count(problem: str) -> int:
    """How many models ship for the problem: with one, instances of all sizes share it in memory."""
    from routelearn.models import shipped

    return sum(entry["problem"] == problem for entry in shipped().values())


def _version(path: Path) -> tuple[int, int] | None:
    """A value that changes when the file is replaced; None for a shipped model."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=8)
def _load(
    problem: str, nodes: int | None, path: str | None, device: str, version: tuple[int, int] | None = None
) -> Model:
    """`version` is read by the cache alone: a file that was replaced is another model."""
    from routelearn.models import load_model

    return load_model(problem, nodes, path=path, device=device)
