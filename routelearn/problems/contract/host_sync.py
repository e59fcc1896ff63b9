"""Finding code that waits for a device, on a machine that has none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class HostSync(AssertionError):
    """A tensor's value or a data-dependent shape was asked for on the host."""


class _NoHostCalls(TorchFunctionMode):
    """Calls that read a tensor without passing the dispatcher."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ("tolist", "numpy", "cpu", "__array__", "item"):
            raise HostSync(f"Tensor.{func.__name__}() waits for the device")
        return func(*args, **(kwargs or {}))


class _NoHostKernels(TorchDispatchMode):
    """Kernels that return a number to the host, or a tensor whose shape depends on values."""

    scalars = frozenset(("_local_scalar_dense", "item", "is_nonzero", "equal", "allclose"))
    shapes = frozenset(
        ("nonzero", "argwhere", "masked_select", "bincount", "_unique2", "unique_dim", "unique_consecutive")
    )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        refused = name in self.scalars | self.shapes
        if name in ("index", "index_put", "index_put_"):
            # An index by a mask runs nonzero inside, unless it stores one number, which is a masked fill.
            by_mask = any(index is not None and index.dtype == torch.bool for index in args[1])
            refused = by_mask and not (name != "index" and args[2].numel() == 1)
        if name == "repeat_interleave":
            refused = (kwargs or {}).get("output_size") is None
        if refused:
            raise HostSync(f"aten.{name} waits for the device")
        return func(*args, **(kwargs or {}))


@contextmanager
def no_host_sync() -> Iterator[None]:
    """Raise HostSync where the code inside would wait for a device, though it runs on the CPU."""
    with _NoHostCalls(), _NoHostKernels():
        yield
