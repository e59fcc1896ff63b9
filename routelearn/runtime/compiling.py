"""Compiling and capturing: torch.compile where it pays and works, CUDA graphs where there is a GPU."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from routelearn.errors import InputError, Notice

if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads, and would wait for them for ever
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


@functools.cache
def cpu_compiler() -> str | None:
    """The C++ compiler that torch.compile needs on a CPU; says once if there is none."""
    found = next((name for name in ("g++", "clang++", "c++") if shutil.which(name)), None)
    if found is None:
        warnings.warn("no C++ compiler found: running uncompiled, which is slower but gives the same answers", Notice)
    return found


def compiled(fn: Callable[..., Any], device: torch.device) -> Callable[..., Any]:
    """`fn` compiled for fixed shapes on this device, or as it is where that is not possible."""
    if device.type == "cpu" and cpu_compiler() is None:
        return fn
    torch._dynamo.config.cache_size_limit = max(torch._dynamo.config.cache_size_limit, 256)
    return torch.compile(fn, dynamic=False, options=_options() if device.type == "cuda" else None)


def _options() -> dict[str, Any]:
    """Of the compiler on a GPU."""
    if torch.are_deterministic_algorithms_enabled():  # no choice among kernels by timing: each adds in its own order
        return {"deterministic": True} if "deterministic" in torch._inductor.list_options() else {}
    return {"combo_kernels": True}  # few small passes are launched together: 4 % of a training step at TSP100


def compiled_encoder(policy: Any, device: torch.device) -> Callable[..., Any]:
    """A policy's `encode`, compiled: as a whole, or with the parts compiled that the policy names (`parts_to_compile`).

    Then `encode` itself runs as it is and finds compiled parts in place of its own, so that an edit of it takes effect.
    """
    if not hasattr(policy, "parts_to_compile"):
        return compiled(policy.encode, device)
    parts = [(owner, name, compiled(getattr(owner, name), device)) for owner, name in policy.parts_to_compile()]

    def encode(*arguments: Any) -> Any:
        with contextlib.ExitStack() as stack:
            for owner, name, part in parts:
                stack.enter_context(_replaced(owner, name, part))
            return policy.encode(*arguments)

    return encode


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Within the block, the object's attribute is another one."""
    own = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


@functools.cache
def capture_stream(device: torch.device) -> torch.cuda.Stream:
    """One stream for all captures: autograd ties a parameter's gradient to the stream that first made it."""
    return torch.cuda.Stream(device)


class Captured:
    """A function without arguments or result, replayed as one CUDA graph after a few ordinary calls.

    Every call does the work exactly once: the first ones run as they are (they also compile and allocate),
    then one is captured, and from then on the graph is replayed. On a CPU it is just called.
    """

    warm_calls = 3

    def __init__(self, fn: Callable[[], None], device: torch.device, pool: Any = None):
        self.fn, self.device, self.pool = fn, device, pool
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.stream = capture_stream(device) if device.type == "cuda" else None

    def __call__(self) -> None:
        if self.stream is None:
            self.fn()
        elif self.graph is not None:
            self.graph.replay()
        elif self.calls < self.warm_calls:
            self.stream.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(self.stream):
                self.fn()
            torch.cuda.current_stream(self.device).wait_stream(self.stream)
        else:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, pool=self.pool, stream=self.stream):
                self.fn()
            self.graph.replay()
        self.calls += 1


@contextlib.contextmanager
def beside(device: torch.device, side: torch.cuda.Stream | None) -> Iterator[None]:
    """Run the block on another stream; `rejoin` waits for it. On a CPU it runs in line."""
    if side is None:
        yield
        return
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        yield


def rejoin(device: torch.device, side: torch.cuda.Stream | None) -> None:
    if side is not None:
        torch.cuda.current_stream(device).wait_stream(side)


def autocast(device: torch.device, precision: str) -> Any:
    """Matrix products in bfloat16 where asked for; everything else keeps its precision."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")


def resolve_precision(precision: str, device: torch.device) -> str:
    """bfloat16 pays on a GPU; on a CPU it is slower than float32."""
    if precision != "auto":
        return precision
    return "bfloat16" if device.type == "cuda" else "float32"


def best_device(name: str = "auto") -> torch.device:
    """The GPU if there is one, unless another device is named; one that is not there raises.

    A GPU becomes the current one: kernels run, and random numbers are drawn, on the current GPU.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise InputError(f"unknown device {name!r}; the choices are auto, cpu and cuda (cuda:1 for the second GPU)")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device {name!r}: {torch.cuda.device_count()} GPU(s) to be found here; use cpu or auto")
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)
    return device
