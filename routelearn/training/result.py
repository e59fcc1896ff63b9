"""What a training run gives back: where it is, its best model, and how it went."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routelearn.models.model_file import Model


@dataclass(frozen=True, repr=False)
class TrainingResult:
    """The end of a run, or of a part of it that was stopped."""

    folder: Path  # config.json, metrics.jsonl, checkpoint.pt, best.safetensors and last.safetensors
    model: Model  # the best by validation, ready to use
    history: list[dict[str, Any]]  # the rows of metrics.jsonl, from the run's first step on
    validation: dict[int, float]  # mean greedy cost by size, at the last validation
    instances: int  # trained on
    minutes: float
    step: int
    skipped: int  # steps that were not applied
    stopped: bool  # by a signal; `resume` goes on

    def __repr__(self) -> str:
        costs = ", ".join(f"{cost:.4f} at n = {size}" for size, cost in self.validation.items())
        stopped = ", stopped" if self.stopped else ""
        return (
            f"TrainingResult({self.model.kind} for {self.model.problem} in {self.folder}: validation {costs}, "
            f"{self.instances:,} instances in {self.minutes:.1f} minutes{stopped})"
        )

    def plot(self, path: str | Path | None = None) -> Any:
        """The learning curve as a matplotlib figure; with a path also written there, as .png and .svg."""
        from routelearn.plots.learning_curves import curves_of, learning_curves
        from routelearn.plots.saving import save

        steps = self.model.card["config"]["epoch_steps"]
        figure = learning_curves(curves_of(self.history, self.folder.name, steps))
        if path is not None:
            save(figure, Path(path))
        return figure
