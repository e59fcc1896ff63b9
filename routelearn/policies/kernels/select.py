"""Which implementation of a policy's inner loops runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

BACKENDS = ("auto", "reference")


@contextlib.contextmanager
def backend(name: str) -> Iterator[None]:
    """Run the block with that implementation."""
    yield
