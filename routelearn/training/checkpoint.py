"""The whole state of a training run in one file, written atomically: a run goes on as if never stopped."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

import torch

from routelearn.errors import InputError, in_short
from routelearn.runtime.atomic import replace_file

FORMAT = 1
FOLDER = 0x10  # in the attributes of a zip archive's part
REMEDY = "put a good copy of it there, or begin another run with --warm-start from this one's last.safetensors"


class State(dict[str, Any]):
    """What a checkpoint holds, by name; asking for one that is not there is an error for the user."""

    def __init__(self, path: Path, values: dict[str, Any]):
        super().__init__(values)
        self.path = path

    def __missing__(self, name: str) -> Any:
        raise self.unusable(f"it holds no {name!r}")

    def unusable(self, reason: str) -> InputError:
        return InputError(f"{self.path}: not a usable checkpoint ({reason}); {REMEDY}")


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

    def write(file: IO[bytes]) -> None:
        content = io.BytesIO()  # torch.save has errors of its own for a disk that is full
        torch.save({"format": FORMAT, **state}, content)
        file.write(content.getbuffer())

    replace_file(path, write)


def load(path: Path, device: torch.device | str = "cpu") -> State:
    """Tensors and plain values only; a file that would run code, or whose content was damaged, is refused."""
    if not path.is_file():
        raise InputError(f"{path}: no checkpoint there")
    with open(path, "rb") as file:
        try:
            refuse_damage(file)
            with warnings.catch_warnings():  # of odd bytes, which are refused or mean nothing
                warnings.simplefilter("ignore")
                values = torch.load(file, map_location=device, weights_only=True)
        except Exception as error:  # damaged bytes can end in any error of those who read them
            raise InputError(f"{path}: not a usable checkpoint ({in_short(error)}); {REMEDY}") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise InputError(f"{path}: not a checkpoint of this version; {REMEDY}")
    return State(path, values)


def refuse_damage(file: IO[bytes]) -> None:
    """A checkpoint is a zip archive with a checksum for every part; torch.load does not look at them."""
    with ZipFile(file) as archive:
        damaged = archive.testzip()
        # A flipped bit can make a folder of a part, for whose numbers torch.load takes whatever lies in memory.
        folders = [part.filename for part in archive.infolist() if part.external_attr & FOLDER]
    if damaged is not None or folders:
        raise BadZipFile(f"{damaged or folders[0]} is damaged")
    file.seek(0)
