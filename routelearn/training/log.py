"""The log of a run: what happened between two of its lines, and metrics.jsonl that holds them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from routelearn.runtime.atomic import write_text, writing

METRICS = "metrics.jsonl"


class Tally:
    """What happened since the last line of the log."""

    MEANS = ("cost", "value", "gradient_norm")

    def __init__(self, notes: Iterable[str | None] = ()) -> None:
        self.sums: dict[int, dict[str, float]] = {}  # by size
        self.instances = 0.0
        self.notes: list[str | None] = list(notes)
        self.validation: dict[str, float] = {}
        self.gap: dict[str, float] = {}
        self.by_variant: dict[str, dict[str, float]] = {}  # size -> variant -> mean cost
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
        judged: dict[str, Any] = {"validation": self.validation, "gap": self.gap, "mismatch": self.mismatch}
        judged |= {"by_variant": self.by_variant} if self.by_variant else {}
        return judged if self.validation else {}

    def row(self, seconds: float) -> dict[str, Any]:
        row: dict[str, Any] = {name: self.mean(name, self.sums) for name in self.MEANS}
        if len(self.sums) > 1:
            row["costs"] = {str(n): self.mean("cost", [n]) for n in self.sums}
        row["instances_per_second"] = self.instances / max(seconds, 1e-9)
        notes = "; ".join(note for note in self.notes if note)
        return row | self.judgement() | ({"note": notes} if notes else {})


def append(metrics: Path, row: dict[str, Any]) -> None:
    with writing(metrics), open(metrics, "a") as file:
        file.write(json.dumps(row) + "\n")


def read(metrics: Path) -> list[dict[str, Any]]:
    """The rows of a log, as far as they are whole: a killed run may end in half a line."""
    rows = []
    for line in metrics.read_text().splitlines() if metrics.is_file() else []:
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return rows


def forget_later(metrics: Path, step: int) -> None:
    """Take from the log what came after that step: a killed run had gone on beyond its checkpoint."""
    if metrics.is_file():
        kept = [row for row in read(metrics) if row.get("step", step + 1) <= step]
        text = "".join(json.dumps(row) + "\n" for row in kept)
        if text != metrics.read_text():
            write_text(metrics, text)
