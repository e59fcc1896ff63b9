"""What the training tests share: tiny configurations, one step without the loop around it, whole states."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from routelearn import policies, problems
from routelearn.decoding.insertion import viewed
from routelearn.policies.base import shape_of
from routelearn.problems import DeviceRng
from routelearn.training import checkpoint, loop
from routelearn.training.baselines import Baseline, NoBaseline, SharedBaseline
from routelearn.training.config import TrainConfig
from routelearn.training.optimiser import make_optimiser
from routelearn.training.result import TrainingResult
from routelearn.training.state import make_loss
from routelearn.training.step import Meter, Step

CPU = torch.device("cpu")
TINY = TrainConfig(
    problem="tsp", sizes=(6,), width=32, heads=2, layers=1, hidden=32, norm="instance", baseline="shared", solutions=2,
    batch=(8,), epochs=2, epoch_steps=3, rate=1e-3, evaluation_instances=32, validation_instances=32,
)  # fmt: skip


def tiny(**changes: Any) -> TrainConfig:
    return replace(TINY, **changes)


def make_step(
    config: TrainConfig,
    baseline: Baseline | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    steps: int | None = None,
    rng: Any = None,
) -> Step:
    """One training step ready to be called, with its policy, optimiser and meter as attributes."""
    problem, size = problems.get(config.problem), config.sizes[0]
    policy = policies.build(config.policy, shape_of(problem), config.policy_options()).to(dtype)
    if baseline is None:
        baseline = SharedBaseline() if config.baseline == "shared" else NoBaseline()
    optimiser = make_optimiser(config.optimiser, policy, baseline.to(dtype), config.rate, CPU)
    rng = DeviceRng(CPU, dtype) if rng is None else rng
    bound = problem.max_steps(problem.sample(DeviceRng(), 64, size)) if steps is None else steps
    state = parts_of(
        config, policy, {size: bound}, baseline=baseline, loss=make_loss(config), optimiser=optimiser,
        norm_average=torch.zeros((), dtype=dtype),
    )  # fmt: skip
    return Step(state, size, Meter(CPU), rng)


def parts_of(config: TrainConfig, policy: Any, rollout_steps: dict[int, int], **others: Any) -> Any:
    """What a step or a baseline reads of a run's state."""
    problem = viewed(policy, problems.get(config.problem))
    return SimpleNamespace(
        config=config, problem=problem, turns=(problem,), policy=policy, rollout_steps=rollout_steps,
        precision="float32", device=CPU, compile=False, lessons={}, **others,
    )  # fmt: skip


def run(config: TrainConfig, out: Path, **options: Any) -> TrainingResult:
    return loop.run(config, out, device=CPU, compile=False, **options)


def log_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def differences(a: Any, b: Any, where: str = "") -> list[str]:
    """The places where two nested states differ in a single bit."""
    if isinstance(a, torch.Tensor):
        same = isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
        return [] if same else [where]
    if isinstance(a, dict):
        if not isinstance(b, dict) or a.keys() != b.keys():
            return [where]
        return [place for key in a for place in differences(a[key], b[key], f"{where}/{key}")]
    if isinstance(a, list | tuple):
        if len(a) != len(b):
            return [where]
        return [place for i, (x, y) in enumerate(zip(a, b, strict=True)) for place in differences(x, y, f"{where}/{i}")]
    return [] if a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b)) else [where]


def final_state(out: Path) -> dict[str, Any]:
    """A run's last checkpoint without the clock and the configuration's own text."""
    state = checkpoint.load(out / "checkpoint.pt")
    state["best"].pop("elapsed", None)
    return {key: value for key, value in state.items() if key not in ("elapsed", "config")}
