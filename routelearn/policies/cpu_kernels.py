"""One decoding step on a CPU, compiled with numba: for few solutions an instance it is a matrix-vector product.

Library calls would read and write every intermediate, and each costs more to launch than to compute. Same
mathematics as `AttentionPolicy.logits`, in float32.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

if TYPE_CHECKING:
    from routelearn.policies.attention import Cache
    from routelearn.policies.base import Seen

FEW = 8  # solutions an instance from which matrix products are faster
WORTH = 16  # queries in a step from which loading compiled code pays, unless `warm_up` has done so already
_loaded = False
_threads = 0  # while stepping: how many there are, the library itself being held to one


@contextlib.contextmanager
def stepping(device: torch.device, queries: int) -> Iterator[None]:
    """Around a loop of steps: the compiled loop gets the processors, not the library's threads.

    These wait for work by spinning, and what is left for the library in a step is too small to share anyway.
    """
    global _threads
    if device.type != "cpu" or queries >= FEW or _threads or torch.get_num_threads() == 1:
        yield
        return
    _threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(_threads)
        _threads = 0


def usable(cache: Cache, seen: Seen) -> bool:
    """Few queries an instance, no gradient, single precision, and enough of them, unless loaded on purpose."""
    batch, queries = seen.nodes.shape[:2]
    return (
        queries < FEW
        and cache.keys.device.type == "cpu"
        and cache.keys.dtype == torch.float32
        and not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and (_loaded or batch * queries >= WORTH)
    )


def logits(cache: Cache, seen: Seen, clip: float) -> Tensor:
    """[B, Q, N] float32, -inf where not feasible."""
    from routelearn.policies.cpu_loops import decode_rows  # numba is imported only where it is used

    batch, queries, _ = seen.nodes.shape
    heads, count = cache.keys.shape[1:3]
    out = torch.empty((batch, queries, count))
    extra = seen.scalars.new_zeros((0, 0, 0, 0)) if seen.step_features is None else seen.step_features
    rest = (*cache[3:], *seen[:3], extra, out)
    arguments = (heads, *_columns(cache), *(part.contiguous().numpy() for part in rest), np.float32(clip))
    threads = min(_threads or torch.get_num_threads(), batch)
    if threads > 1 and batch * queries >= 4 * WORTH:
        list(_pool(threads).map(lambda rows: decode_rows(*rows, *arguments), _shares(batch, threads)))
    else:
        decode_rows(0, batch, *arguments)
    return out


_kept = WeakTensorKeyDictionary()


def _columns(cache: Cache) -> tuple[np.ndarray, ...]:
    """Keys, values and pointer as [B, D, N], made once for each encoded batch and kept as long as it lives."""
    if cache.keys not in _kept:
        by_head = (part.transpose(2, 3).flatten(1, 2) for part in (cache.keys, cache.values))
        columns = (*by_head, cache.pointer.transpose(1, 2))
        _kept[cache.keys] = tuple(part.contiguous().numpy() for part in columns)
    return _kept[cache.keys]


def _shares(batch: int, threads: int) -> list[tuple[int, int]]:
    return list(pairwise(batch * i // threads for i in range(threads + 1)))


_pools: dict[int, object] = {}


def _pool(threads: int):
    """Threads that stay: the compiled loop releases the interpreter lock."""
    from concurrent.futures import ThreadPoolExecutor

    if threads not in _pools:
        _pools[threads] = ThreadPoolExecutor(threads)
    return _pools[threads]


def warm_up() -> None:
    """Compile or load now, and use the compiled step for single instances too from then on."""
    global _loaded
    from routelearn.policies.cpu_loops import decode_rows

    columns = [np.zeros((1, 16, 2), np.float32)] * 3
    rows = [np.zeros(shape, np.float32) for shape in ((1, 1, 2, 16), (1, 1, 16), (0, 16), (3, 0, 16))]
    seen = [np.zeros((1, 1, 1), np.int64), np.zeros((1, 1, 0), np.float32), np.ones((1, 1, 2), np.bool_)]
    extra, out = np.zeros((0, 0, 0, 0), np.float32), np.zeros((1, 1, 2), np.float32)
    arguments: tuple[Any, ...] = (0, 1, 1, *columns, *rows, *seen, extra, out, np.float32(10))
    decode_rows(*arguments)
    _loaded = True
