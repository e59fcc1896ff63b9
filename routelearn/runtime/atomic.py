"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from routelearn.errors import InputError, OutOfSpace

PART = ".part"  # what a file that is not finished ends in
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def replace_file(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """To a temporary file, to the disk, then renamed: whatever happens, the file is the new one or the one before."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{PART}")
    with writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


@contextlib.contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Tell in one line why a file cannot be written."""
    try:
        yield
    except OSError as error:
        kind = OutOfSpace if error.errno in FULL else InputError
        raise kind(f"{path}: cannot be written ({error.strerror or error})") from error


def write_text(path: Path, text: str) -> None:
    replace_file(path, lambda file: file.write(text.encode()))
