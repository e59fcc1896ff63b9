"""What a training run tells between two lines of its log, and how its validations compare."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


class Tally:
    """What happened since the last line of the log."""

    MEANS = ("cost", "value", "gradient_norm")

    def __init__(self) -> None:
        self.sums: dict[int, dict[str, float]] = {}  # by size
        self.instances = 0.0
        self.notes: list[str | None] = []
        self.validation: dict[str, float] = {}
        self.gap: dict[str, float] = {}
        self.mismatch = 0.0

    def add(self, n: int, read: dict[str, float], batch: int) -> None:
        self.instances += read["steps"] * batch
        applied, own = read["steps"] - read["skipped"], self.sums.setdefault(n, {})
        for name, value in (("applied", 1.0), *((name, read[name]) for name in self.MEANS)):
            own[name] = own.get(name, 0.0) + value * applied

    def mean(self, name: str, sizes: Iterable[int]) -> float | None:
        """Over the steps that were applied; None if there was none."""
        known = [self.sums[n] for n in sizes if n in self.sums]
        applied = sum(own["applied"] for own in known)
        return sum(own[name] for own in known) / applied if applied else None

    def judgement(self) -> dict[str, Any]:
        """What a validation brought; empty without one."""
        judged = {"validation": self.validation, "gap": self.gap, "mismatch": self.mismatch}
        return judged if self.validation else {}

    def row(self, seconds: float) -> dict[str, Any]:
        row: dict[str, Any] = {name: self.mean(name, self.sums) for name in self.MEANS}
        if len(self.sums) > 1:
            row["costs"] = {str(n): self.mean("cost", [n]) for n in self.sums}
        row["instances_per_second"] = self.instances / max(seconds, 1e-9)
        notes = "; ".join(note for note in self.notes if note)
        return row | self.judgement() | ({"note": notes} if notes else {})


def better(costs: dict[int, float], best: dict[int, float]) -> bool:
    """Whether a validation beats the best one: by the mean over sizes of its change, each as a share of its own."""
    if not best:
        return all(map(math.isfinite, costs.values()))
    return sum((cost - best[n]) / max(abs(best[n]), 1e-9) for n, cost in costs.items()) < 0


def astray(costs: dict[int, float], best: dict[int, float], share: float) -> bool:
    """Whether some size is worse than in the best validation by more than this share, or has no cost at all."""
    return any(not cost <= best.get(n, math.inf) + share * abs(best.get(n, 0.0)) for n, cost in costs.items())
