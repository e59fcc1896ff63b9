"""How the search's kernels are compiled.

numba does not see that a function of another file changed: after an edit in this folder, delete its __pycache__.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numba import njit

OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}
_kernels: list[Any] = []


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that makes no array, with a cache on disk and without the GIL.

    It counts no references to the arrays that it is handed: for tuples of them that was a third of a search's time.
    """
    compiled = njit(**OPTIONS)(function)
    _kernels.append(compiled)
    return compiled


def maker(function: Callable[..., Any]) -> Any:
    """Compile a function that makes arrays."""
    return njit(cache=True, nogil=True)(function)


@contextmanager
def uncached(resources: Sequence[Any]) -> Iterator[None]:
    """Compile past the cache on disk if a resource is a plugin's: nothing there tells that its file has changed."""
    if all(type(one).__module__.startswith("routelearn.problems.") for one in resources):
        yield
        return
    caches = [one._cache for one in _kernels]
    none: Any = njit(lambda: None)  # has the kind of cache that keeps nothing
    try:
        for one in _kernels:
            one._cache = none._cache
        yield
    finally:
        for one, cache in zip(_kernels, caches, strict=True):
            one._cache = cache
