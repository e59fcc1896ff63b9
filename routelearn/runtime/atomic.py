"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from routelearn.errors import InputError


def replace_file(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """To a temporary file, to the disk, then renamed: whatever happens, the file is the new one or the one before."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
        raise


def write_text(path: Path, text: str) -> None:
    replace_file(path, lambda file: file.write(text.encode()))
