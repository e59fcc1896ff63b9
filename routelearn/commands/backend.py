"""The option --backend, which several commands have."""

from __future__ import annotations

from enum import StrEnum

BACKEND = "auto, or reference: run without compiled kernels, slower, for checking an edit."


class Backend(StrEnum):
    auto = "auto"
    reference = "reference"
