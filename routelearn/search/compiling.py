"""How the search's kernels are compiled.

numba does not see that a function of another file changed: after an edit in this folder, delete its __pycache__.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

from routelearn.errors import is_own

OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}
PART: dict[str, Any] = {"nogil": True, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_kernels: list[Any] = []
_lock = threading.RLock()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that makes no array, with a cache on disk and without the GIL.

    It counts no references to the arrays that it is handed: for tuples of them that was a third of a search's time.
    """
    compiled = njit(**OPTIONS)(function)
    _kernels.append(compiled)
    return compiled


def part(function: Callable[..., Any]) -> Any:
    """A kernel that only kernels call: without an entry for Python and a file on disk, it compiles in half the time."""
    return njit(**PART)(function)


def merged(function: Callable[..., Any]) -> Any:
    """A part that LLVM puts into each of its callers: handing over many arrays costs more than a short function."""
    return njit(forceinline=True, **PART)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A kernel that is compiled as if it were written where it is called: quicker than `merged` for a single caller."""
    return njit(inline="always", **OPTIONS)(function)


def maker(function: Callable[..., Any]) -> Any:
    """Compile a function that makes arrays."""
    return njit(cache=True, nogil=True)(function)


class _PluginCache(FunctionCache):
    """The cache on disk of one kernel, for one state of a plugin's file."""

    def __init__(self, function: Any, mark: str):
        super().__init__(function)
        name, stamp = f"{self._impl.filename_base}-{mark}", self._impl.locator.get_source_stamp()
        self._cache_file = IndexDataCacheFile(self._cache_path, name, stamp)


def _mark(resources: Sequence[Any]) -> str | None:
    """What tells the states of plugins' resources apart; "" if all are our own, None if that cannot be told."""
    digest, foreign = hashlib.sha256(), False
    for kind in map(type, resources):
        if not is_own(kind):
            foreign, file = True, getattr(sys.modules.get(kind.__module__), "__file__", None)
            if file is None or kind.__qualname__ != kind.__name__:
                return None
            digest.update(kind.__module__.encode() + Path(file).read_bytes())
    return digest.hexdigest()[:16] if foreign else ""


@contextmanager
def compiling(resources: Sequence[Any]) -> Iterator[None]:
    """Around the first calls of kernels with these resources, one thread at a time.

    What is compiled for a plugin's resources goes into files of their own on disk, because a file that others read must
    not name a class that they do not have; with the plugin's file in their names, because that may be edited.
    """
    with _lock:
        mark = _mark(resources)
        if mark == "":
            yield
            return
        before = [(one, one._cache) for one in _kernels]  # another thread may import more of them meanwhile
        none: Any = njit(lambda: None)  # has the kind of cache that keeps nothing
        try:
            for one, _ in before:
                nowhere = mark is None or isinstance(one._cache, NullCache)
                one._cache = none._cache if nowhere else _PluginCache(one.py_func, str(mark))
            yield
        finally:
            for one, cache in before:
                one._cache = cache
