"""Why a run with batch norm at a high rate seems to diverge: its running statistics lag (docs/notes/batch_norm.md).

    python benchmarks/divergence.py runs/high                           # 7e-4, where a prototype "diverged"
    python benchmarks/divergence.py runs/low --rate 3.5e-4
    python benchmarks/divergence.py runs/rounded --residual bfloat16    # as in the prototype: no float32 in the encoder

TSP100, 512 instances x 16 samples, Adam at a constant rate; nothing is skipped and nothing rolled back, and the
statistics stay as training leaves them (`train` would settle them). After each epoch: validation with these, then with
statistics taken anew for the same weights; and for the encoder's first normalisation how far the mean of its input is
from zero, and the running mean from that, both in standard deviations (of the channel that is furthest).
"""

from __future__ import annotations

import argparse
import copy
import json
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from routelearn.policies.layers import Encoder
from routelearn.problems import NumpyRng, Problem
from routelearn.problems.base import to_device, to_single
from routelearn.runtime.compiling import best_device
from routelearn.training.config import TrainConfig
from routelearn.training.loop import run
from routelearn.training.validation import settle, validate


def project_low(self: Encoder, features: tuple[Tensor, ...], adjacent: Tensor | None = None) -> tuple[Tensor, None]:
    """`Encoder.project` that leaves the embedding as the matrix product made it; the layers then follow suit."""
    return torch.cat([embed(group) for embed, group in zip(self.embed, features, strict=True)], 1), None


class Watch:
    """Stands in for `validate` and looks at the statistics, too; the run goes on as if it had not."""

    def __init__(self, path: Path):
        self.path, self.row = path, dict[str, Any]()

    def validate(self, problem: Problem, policy: Any, x: Any, precision: str) -> Tensor:
        cost = validate(problem, policy, x, precision)
        fresh = copy.deepcopy(policy)
        instances = to_device(to_single(problem.sample(NumpyRng(7), 2_048, x.xy.shape[1])), x.xy.device)
        settle(problem, fresh, [instances], precision)
        old, new = (next(m for m in p.modules() if isinstance(m, nn.BatchNorm1d)) for p in (policy, fresh))
        scale = new.get_buffer("running_var").sqrt()
        mean = new.get_buffer("running_mean")
        self.row = {
            "running": float(cost.mean()),
            "anew": float(validate(problem, fresh, x, precision).mean()),
            "mean": float((mean / scale).abs().max()),
            "lag": float(((old.get_buffer("running_mean") - mean) / scale).abs().max()),
        }
        return cost

    def report(self, row: dict[str, Any]) -> None:
        if "validation" in row:
            line = json.dumps({name: row[name] for name in ("step", "instances", "cost", "gradient_norm")} | self.row)
            print(line, flush=True)
            with open(self.path, "a") as file:
                file.write(line + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the run's folder; statistics.jsonl in it gets what is printed")
    parser.add_argument("--residual", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rate", type=float, default=7e-4)
    parser.add_argument("--epoch-steps", type=int, default=400)
    parser.add_argument("--minutes", type=float, default=1.5)
    parser.add_argument("--seed", type=int, default=1234)
    options = parser.parse_args()
    config = TrainConfig(
        sizes=(options.n,), baseline="shared", solutions=16, batch=(options.batch,), rate=options.rate, epochs=10**6,
        epoch_steps=options.epoch_steps, minutes=options.minutes, explosion=1e9, rollback=1e9, precision="bfloat16",
        validation_instances=1_000, seed=options.seed,
    )  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    watch = Watch(options.out / "statistics.jsonl")
    watch.path.unlink(missing_ok=True)
    project = project_low if options.residual == "bfloat16" else Encoder.project
    with (
        mock.patch.object(Encoder, "project", project),
        mock.patch("routelearn.training.validation.settle"),
        mock.patch("routelearn.training.validation.validate", watch.validate),
    ):
        run(config, options.out, device=best_device(), report=watch.report)


if __name__ == "__main__":
    main()
