"""What training changes in its process, and puts back afterwards: signals, the library's settings, the group."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import torch

from routelearn.policies.kernels.cpu.shares import keeping_memory
from routelearn.training import distributed


@contextlib.contextmanager
def surroundings(device: torch.device, precision: str, deterministic: bool) -> Iterator[list[int]]:
    """Processes joined, the library set up, signals to stop collected in what this yields; put back afterwards."""
    determined, products = torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()
    joined = distributed.start(device)
    if deterministic:  # read at the first matrix product; without it the library refuses to promise the same again
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(deterministic or determined)
    torch.set_float32_matmul_precision("high" if precision == "bfloat16" else "highest")
    received: list[int] = []
    heard = [signal.SIGTERM, signal.SIGINT] if threading.current_thread() is threading.main_thread() else []
    if heard and hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as by nohup
        heard.append(signal.SIGHUP)

    def hear(number: int, frame: Any) -> None:
        if number in received and number == signal.SIGINT:  # asked a second time: at once
            raise KeyboardInterrupt
        received.append(number)

    handlers = {number: signal.signal(number, hear) for number in heard}
    try:
        with keeping_memory() if device.type == "cpu" else contextlib.nullcontext():
            yield received
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        torch.use_deterministic_algorithms(determined)
        torch.set_float32_matmul_precision(products)
        if joined:
            distributed.stop()
