"""Trained models that ship with the package, one file per name, each with its card in the header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from routelearn.errors import InputError
from routelearn.models.model_file import Model, load

FOLDER = Path(__file__).parent / "weights"


def shipped() -> dict[str, dict[str, Any]]:
    """Name -> problem, policy and card of every model in the package, without loading its weights."""
    from safetensors import safe_open

    found = {}
    for path in sorted(FOLDER.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            header = file.metadata()
        found[path.stem] = {
            "problem": header["problem"],
            "policy": header["policy"],
            "card": json.loads(header["card"]),
            "megabytes": path.stat().st_size / 1e6,
        }
    return found


def load_model(
    problem: str | None = None,
    n: int | None = None,
    *,
    path: str | Path | None = None,
    device: torch.device | str = "cpu",
) -> Model:
    """A model by file path or shipped name, or the shipped one that validates best for a problem near size n.

    As section B.5 of the paper suggests: a model does best near the sizes it was trained on.
    """
    if path is not None:
        model = load(file_of(path), device)
        if problem is not None and model.problem != problem:
            raise InputError(f"{path}: a model for {model.problem}, not for {problem}")
        return model
    if problem is None:
        raise InputError("name a problem, or a model by its file or shipped name")
    return load(FOLDER / f"{which(problem, n)}.safetensors", device)


def file_of(path: str | Path) -> Path:
    """The file of a model that is named by its path or by the name under which it ships."""
    if not isinstance(path, str | Path):
        raise InputError(f"a {type(path).__name__} where a model's file is needed, or the name under which it ships")
    named = FOLDER / f"{path}.safetensors"
    if not named.is_file() and str(path) not in ("", ".") and Path(path).is_dir():
        raise InputError(f"{path}: a folder; name the model in it, such as {Path(path) / 'best.safetensors'}")
    if not named.is_file() and not Path(path).is_file():
        have = ", ".join(shipped()) or "none"
        raise InputError(f"{path}: no such model file, and no shipped model has that name (the choices are {have})")
    return named if named.is_file() else Path(path)


def wrong_type(model: Any) -> InputError:
    """The refusal of something that is no model."""
    ways = "give a Model (such as `train(...).model`), its file, or the name under which it ships"
    return InputError(f"the model is of type {type(model).__name__}; {ways}")


def which(problem: str, n: int | None = None) -> str:
    """The name of the shipped model that load_model takes: the lowest cost at the size nearest to n that was validated.

    Without n the largest size decides, where a poor model costs most.
    """
    candidates = {name: _costs(entry["card"]) for name, entry in shipped().items() if entry["problem"] == problem}
    if not candidates and (problem in shipped() or Path(problem).is_file()):
        raise InputError(f'{problem} is a model, not a problem; load it with path="{problem}"')
    if not candidates:
        have = ", ".join(sorted({entry["problem"] for entry in shipped().values()})) or "none"
        raise InputError(f"no trained model ships for {problem} yet (models ship for: {have}); give a model file")
    sizes = {size for costs in candidates.values() for size in costs}
    target = max(sizes, default=0) if n is None else n
    nearest = min(sizes, key=lambda size: abs(size**0.5 - target**0.5), default=0)
    return min(candidates, key=lambda name: candidates[name].get(nearest, float("inf")))


def _costs(card: dict[str, Any]) -> dict[int, float]:
    """Mean greedy cost by size on validation instances; test sets play no part in the choice."""
    return {int(size): float(cost) for size, cost in card.get("validated", {}).items()}
