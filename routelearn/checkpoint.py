"""The whole state of a training run in one file, written atomically: a run goes on as if never stopped."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch

from routelearn.errors import InputError

FORMAT = 1


def random_state() -> dict[str, Any]:
    """The generators that training draws from."""
    state: dict[str, Any] = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def restore_random_state(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def save(path: Path, state: dict[str, Any]) -> None:
    """Whatever happens, a whole checkpoint is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, lambda file: torch.save({"format": FORMAT, **state}, file))


def write_text(path: Path, text: str) -> None:
    """Whatever happens, the whole text is there, or what was there before."""
    _replace(path, lambda file: file.write(text.encode()))


def _replace(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """To a temporary file, to the disk, then renamed."""
    temporary = path.with_name(f".{path.name}.part")
    with open(temporary, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def load(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Tensors and plain values only; a file that would run code is refused."""
    if not path.is_file():
        raise InputError(f"{path}: no checkpoint there")
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else "truncated"
        raise InputError(f"{path}: not a usable checkpoint ({reason})") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InputError(f"{path}: not a checkpoint of this version")
    return state
