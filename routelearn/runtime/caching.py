"""Where compiled code is kept: beside the package or in the user's cache, else in a folder for temporary files."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"  # numba and child processes read it
NONE = "compiled code cannot be kept on the disk (neither package, home nor a temporary folder can be written): "
NONE += f"every start compiles anew; set {VARIABLE} to a folder that can be written"


def choose_place(package: Path) -> str | None:
    """Let numba keep compiled code where that can be written. What the user should hear of, if it is not the usual."""
    if os.environ.get(VARIABLE) or writable(package) or writable(user_cache()):
        return None
    found = private_folder()
    if found is not None:
        os.environ[VARIABLE] = str(found)
        return f"compiled code is kept in {found}, because neither the package nor the home folder can be written"
    from numba.core.dispatcher import Dispatcher

    setattr(Dispatcher, "enable_caching", lambda self: None)  # noqa: B010 (without a place it would raise)
    return NONE


def writable(folder: Path) -> bool:
    """Whether a folder can be written, or made where its nearest parent is."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def user_cache() -> Path:
    """Where numba keeps code of packages that cannot be written."""
    home = os.path.expanduser("~")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path(home) / ".cache") / "numba"


def private_folder() -> Path | None:
    """A folder for temporary files that is ours alone: what lies in it is run."""
    try:
        folder = Path(tempfile.gettempdir()) / f"routelearn-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    ours = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077)
    return folder if ours and stat.S_ISDIR(found.st_mode) and os.access(folder, os.W_OK) else None
