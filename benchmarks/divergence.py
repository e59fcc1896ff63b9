"""Which low precision makes training diverge: TSP100 as in the prototype that did (docs/training.md).

    python benchmarks/divergence.py runs/plain                          # as this trainer always works
    python benchmarks/divergence.py runs/low --residual bfloat16        # the residual stream rounded, too
    python benchmarks/divergence.py runs/two --rescore                  # rolled out by one kernel, scored by another

Batch norm, 512 instances x 16 samples, Adam at a constant 7e-4; nothing is skipped and nothing rolled back.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from routelearn.compiling import best_device
from routelearn.config import TrainConfig
from routelearn.policies.attention import AttentionPolicy, Cache
from routelearn.policies.base import Trajectory, leave_out_given, map_seen
from routelearn.policies.layers import Encoder
from routelearn.train import train


def project_low(self: Encoder, features: tuple[Tensor, ...], adjacent: Tensor | None = None) -> tuple[Tensor, None]:
    """`Encoder.project` that leaves the embedding as the matrix product made it; the layers then follow suit."""
    return torch.cat([embed(group) for embed, group in zip(self.embed, features, strict=True)], 1), None


def score_again(self: AttentionPolicy, cache: Cache, trajectory: Trajectory) -> Tensor:
    """`AttentionPolicy.score` by the library's attention, whatever the rollout kept."""
    seen = map_seen(lambda field: field.flatten(1, 2), trajectory.seen)
    picked = self._picked(cache, seen, trajectory.actions.flatten(1, 2))
    return leave_out_given(picked.view(trajectory.actions.shape), trajectory.given)


def show(row: dict[str, Any]) -> None:
    if "validation" in row:
        kept = {name: row[name] for name in ("instances", "cost", "gradient_norm", "validation")}
        print(json.dumps(kept), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the run's folder")
    parser.add_argument("--residual", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--rescore", action="store_true", help="score by the library's attention")
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rate", type=float, default=7e-4)
    parser.add_argument("--minutes", type=float, default=1.5)
    parser.add_argument("--seed", type=int, default=1234)
    options = parser.parse_args()
    config = TrainConfig(
        sizes=(options.n,), baseline="shared", solutions=16, batch=(options.batch,), rate=options.rate, epochs=10**6,
        epoch_steps=400, minutes=options.minutes, explosion=1e9, rollback=1e9, precision="bfloat16",
        validation_instances=1_000, seed=options.seed,
    )  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "switches.json").write_text(json.dumps({"residual": options.residual, "rescore": options.rescore}))
    project = project_low if options.residual == "bfloat16" else Encoder.project
    score = score_again if options.rescore else AttentionPolicy.score
    with mock.patch.object(Encoder, "project", project), mock.patch.object(AttentionPolicy, "score", score):
        train(config, options.out, device=best_device(), report=show)


if __name__ == "__main__":
    main()
