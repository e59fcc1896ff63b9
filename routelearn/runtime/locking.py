"""A folder for one process at a time."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from routelearn.errors import InputError
from routelearn.runtime.atomic import PART

LOCK = ".lock"
try:
    import fcntl
except ImportError:  # Windows has no such locks: there nobody is kept out
    fcntl = None  # type: ignore[assignment]


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder. The lock ends with the process that holds it, however that ends.

    Files that a killed process had not finished are taken away. A folder that cannot be written is not locked.
    """
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    path = folder / LOCK
    lock = None
    if fcntl is not None:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            lock = taken(path)
    try:
        for part in folder.glob(f".*{PART}") if lock is not None else ():
            part.unlink(missing_ok=True)
        yield
    finally:
        if lock is not None:
            path.unlink(missing_ok=True)
            lock.close()
        for one in made:
            with suppress(OSError):  # not empty, as after every run that began
                one.rmdir()


def locked(file: Any) -> bool:
    """Lock an open file for this process; False if another one has it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def taken(path: Path) -> Any:
    """The lock's file, open and locked; InputError if another process has it."""
    while True:
        file = open(path, "a+")  # noqa: SIM115 (open as long as the lock is held)
        if not locked(file):
            file.seek(0)
            who = file.read(200).strip() or "another process"
            file.close()
            words = "wait until it ends, stop it, or name another folder"
            raise InputError(f"{path.parent}: a run is at work there ({who}); {words}") from None
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            break
        file.close()  # who held it before took it away
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()
    return file
