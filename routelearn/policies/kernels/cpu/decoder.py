"""One decoding step on a CPU, compiled with numba: a node for every solution, or its logits.

Library calls would read and write every intermediate and compute all nodes, feasible or not, and each costs more to
launch than to compute. Same mathematics as `AttentionPolicy.logits`, in float32.
"""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from routelearn.policies.base import Choice, Seen
from routelearn.policies.kernels.cache import Cache
from routelearn.policies.kernels.cpu.shares import in_threads, pool

Part = TypeVar("Part")
Result = TypeVar("Result")

FEW = 8  # solutions an instance up to which what the library does in a step is too small for several threads
WORTH = 16  # solutions in a step from which loading compiled code pays, unless `warm_up` has done so already
MOST_HEADS = 16  # a vector's lanes
_loaded = False
_threads = 0  # while stepping: how many there are, the library itself being held to one


@contextlib.contextmanager
def stepping(device: torch.device, spare: bool = True) -> Iterator[None]:
    """Around a loop of steps, where it is to `spare` the library's threads: the compiled loop gets the processors.

    The threads wait for work by spinning, and what is left for the library in a step is too small to share anyway.
    """
    global _threads
    if device.type != "cpu" or not spare or _threads or torch.get_num_threads() == 1:
        yield
        return
    _threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(_threads)
        _threads = 0


def processors() -> int:
    """As many as the library may use."""
    return _threads or torch.get_num_threads()


_inside = threading.local()  # .alone: this thread has one processor, and shares nothing out


def side_by_side(work: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
    """work(part) for every part in order, each on one processor: whole loops share better than their steps."""

    def alone(part: Part) -> Result:
        _inside.alone = True  # for good: these threads do nothing else but work for one processor
        with torch.no_grad():
            return work(part)

    with stepping(torch.device("cpu")):
        yield from map(work, parts) if processors() == 1 else pool(processors()).map(alone, parts)


def usable(cache: Cache, solutions: int) -> bool:
    """On a CPU, no gradient, single precision, and enough `solutions` in all, unless loaded on purpose."""
    return (
        cache.keys.device.type == "cpu"
        and cache.keys.dtype == torch.float32
        and cache.keys.shape[2] <= MOST_HEADS
        and not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and (_loaded or solutions >= WORTH)
    )


def logits(cache: Cache, clip: float, seen: Seen) -> Tensor:
    """[B, Q, N] float32, -inf where not feasible."""
    out = torch.empty(seen.feasible.shape)
    _decode(_laid_out(cache), clip, seen, out.numpy(), 0.0, _NO_DRAWS, _NO_NODES, _NO_DRAWS)
    return out


def begin(cache: Cache, solutions: int) -> tuple[Tensor, ...]:
    """Nothing is carried from step to step."""
    return ()


class Chooser:
    """`Policy.choose` of a policy with this cache and clip, whose kernels were decided on and laid out once for all."""

    def __init__(self, cache: Cache, clip: float):
        self.laid_out, self.clip = _laid_out(cache), clip

    def choose(
        self,
        cache: Cache,
        carry: tuple[Tensor, ...],
        seen: Seen,
        temperature: float,
        forced: Tensor | None = None,
        keep: bool = False,
    ) -> Choice:
        """One number is drawn for each solution; nothing is kept for `score`."""
        shape = seen.feasible.shape[:2]
        chosen = torch.full(shape, -1) if forced is None else forced.clone(memory_format=torch.contiguous_format)
        log_prob = torch.empty(shape)
        uniform = torch.rand(shape).numpy() if temperature > 0 else _NO_DRAWS
        _decode(self.laid_out, self.clip, seen, _NO_LOGITS, temperature, uniform, chosen.numpy(), log_prob.numpy())
        return Choice(chosen, log_prob, carry)


def choose(cache: Cache, clip: float, *step: Any) -> Choice:
    """As `Policy.choose`, with the rest of its arguments in `step`."""
    return Chooser(cache, clip).choose(cache, *step)


_NO_LOGITS, _NO_FEATURES = np.empty((0, 0, 0), np.float32), np.empty((0, 0, 0, 0), np.float32)
_NO_DRAWS, _NO_NODES = np.empty((0, 0), np.float32), np.empty((0, 0), np.int64)


def _decode(
    laid_out: tuple[Any, ...], clip: float, seen: Seen, out: np.ndarray, temperature: float, *chosen: np.ndarray
) -> None:
    from routelearn.policies.kernels.cpu.decoder_loops import decode_rows  # numba is imported only where it is used

    extra = _NO_FEATURES if seen.step_features is None else _array(seen.step_features, torch.float32)
    now = (_array(seen.nodes, torch.int64), _array(seen.scalars, torch.float32), _array(seen.feasible, torch.bool))
    arguments: tuple[Any, ...] = (
        *laid_out, np.float32(clip), *now, extra, out, np.float32(temperature), *chosen,
    )  # fmt: skip
    _shared(lambda low, high: decode_rows(low, high, *arguments), seen.nodes.shape[0] * seen.nodes.shape[1])


def _array(part: Tensor, dtype: torch.dtype) -> np.ndarray:
    return part.to(dtype).contiguous().numpy()


_kept = WeakTensorKeyDictionary()


def _laid_out(cache: Cache) -> tuple[Any, ...]:
    """The cache as `decode_rows` reads it: made once for an encoded batch, kept while it lives, anew if it changed."""
    keys, values, pointer, tables, empty, scalars, step = cache
    versions = (
        keys._version, values._version, pointer._version, tables._version, empty._version, scalars._version,
        step._version,
    )  # fmt: skip
    kept = _kept.get(keys)
    if kept is not None and kept[0] == versions:
        own = kept[1]  # held, so that no other tensor takes their place in memory
        if all(map(operator.is_, own, cache[1:])):
            return kept[2]
    _kept[keys] = versions, cache[1:], _lay_out(cache)
    return _kept[keys][2]


def _lay_out(cache: Cache) -> tuple[Any, ...]:
    from routelearn.policies.kernels.cpu.decoder_loops import interleave, interleaved, lanes_for

    batch, count, heads, per_head = cache.keys.shape
    order, lanes = interleaved(heads, per_head), lanes_for(heads)
    keys, values, pointer, *rows = (part.detach().contiguous().numpy() for part in cache[:6])
    out = np.zeros((3, batch, count, order.size), np.float32)
    _shared(lambda low, high: interleave(low, high, lanes, keys, values, pointer, out), batch, smallest=8)
    step = np.pad(cache.step.detach().numpy(), ((0, 0), (0, 0), (0, 1)))[..., order]
    return (lanes, order, *out.reshape(3, -1), step.ravel(), *rows)


def _shared(work: Callable[[int, int], None], rows: int, smallest: int = 4 * WORTH) -> None:
    """work(low, high) over all rows, a share for each processor where there are enough of them."""
    if rows < smallest or getattr(_inside, "alone", False):
        work(0, rows)
    else:
        in_threads(work, rows, processors())


def warm_up() -> None:
    """Compile or load now, and use the compiled step for single instances too from then on."""
    global _loaded
    shapes = ((1, 2, 1, 16), (1, 2, 1, 16), (1, 2, 16), (1, 1, 2, 16), (1, 1, 16), (0, 16), (3, 0, 16))
    cache = Cache(*(torch.zeros(shape) for shape in shapes))
    node = torch.zeros((1, 1, 1), dtype=torch.int64)
    feasible = torch.ones((1, 1, 2), dtype=torch.bool)
    choose(cache, 10.0, (), Seen(node, torch.zeros(1, 1, 0), feasible, None, node[..., 0], None), 0.0)
    _loaded = True
