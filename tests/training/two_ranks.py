"""What each of two ranks does in test_distributed_training.py: `torchrun two_ranks.py FOLDER updates|runs`.

Every rank leaves what it ended with in FOLDER; the tests compare.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from train_cases import CPU, make_step, run, tiny

from routelearn.policies import base as policy_base
from routelearn.problems import get
from routelearn.training import distributed
from routelearn.training import loop as loop_module
from routelearn.training.baselines import Baseline, CriticBaseline, ExponentialBaseline, SharedBaseline
from routelearn.training.state import RunState

BATCH, STEPS = 8, 4  # instances a step over all ranks; steps
BASELINES: dict[str, Callable[[], Baseline]] = {
    "exponential": ExponentialBaseline,
    "shared": SharedBaseline,
    "critic": lambda: CriticBaseline(get("tsp").feature_dims, 32, 2, 32, "layer"),
}
RUNS = {
    "rollout": tiny(baseline="rollout", solutions=1, norm="batch", epochs=3, epoch_steps=4, rate=3e-3),
    "critic": tiny(problem="cvrp", baseline="critic", solutions=1, norm="batch", epochs=2, epoch_steps=2),
}
STOPPED_AT = 6


class Slices:
    """Random numbers for all instances of a step, of which a rank takes its own rows.

    Serves as the source of instances (an Rng) and, called with logits, as the sampler of nodes: so two ranks
    see exactly what one process with twice the batch sees.
    """

    def __init__(self, rank: int, world: int):
        self.rank, self.world = rank, world
        self.generator = torch.Generator().manual_seed(7)

    def rows(self, draw: Callable[[tuple[int, ...]], Tensor], shape: tuple[int, ...]) -> Tensor:
        everyone = draw((shape[0] * self.world, *shape[1:]))
        return everyone[self.rank * shape[0] : (self.rank + 1) * shape[0]]

    def uniform(self, *shape: int) -> Tensor:
        return self.rows(lambda s: torch.rand(s, generator=self.generator, dtype=torch.float64), shape)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        return self.rows(lambda s: torch.randint(low, high, s, generator=self.generator), shape)

    def __call__(self, logits: Tensor) -> Tensor:
        noise = self.rows(
            lambda s: torch.empty(s, dtype=torch.float64).exponential_(generator=self.generator), tuple(logits.shape)
        )
        return (logits - noise.log()).argmax(-1)


def take_steps(name: str, norm: str, rank: int, world: int) -> dict[str, Any]:
    """A few updates of a policy that every process builds alike; what they end with."""
    torch.manual_seed(3)
    config = tiny(batch=(BATCH // world,), norm=norm, baseline=name, solutions=2)
    source = Slices(rank, world)
    step = make_step(config, BASELINES[name](), dtype=torch.float64, rng=source)
    with mock.patch.object(policy_base, "drawn", lambda logits, temperature: source(logits)):
        for _ in range(STEPS):
            step()
    read = step.meter.read()
    return {"policy": step.policy.state_dict(), "baseline": step.baseline.state_dict(), "skipped": read["skipped"]}


def unfinished_on_one_rank(rank: int) -> dict[str, Any]:
    """Rank 1 alone allows too few steps for its rollouts."""
    torch.manual_seed(3)
    step = make_step(tiny(problem="cvrp", sizes=(8,)), steps=8 if rank == 1 else 16)
    before = {key: value.clone() for key, value in step.policy.state_dict().items()}
    step()
    return {"before": before, "after": step.policy.state_dict(), "read": step.meter.read()}


def whole_run(name: str, folder: Path, rank: int) -> dict[str, Any]:
    """`train` as it is, with a look at what it built."""
    built: dict[str, Any] = {}

    class Kept(RunState):
        def __init__(self, *given: Any, **options: Any):
            super().__init__(*given, **options)
            built.update(policy=self.policy, baseline=self.baseline)

    def stop_rank_one(row: dict[str, Any]) -> None:
        if rank == 1 and row["step"] == STOPPED_AT and "validation" not in row:
            signal.raise_signal(signal.SIGTERM)

    loop_module.RunState = Kept
    report = run(RUNS[name], folder / name)
    state = {part: built[part].state_dict() for part in ("policy", "baseline")}
    stopped = run(RUNS[name], folder / f"{name}-parts", report=stop_rank_one, look_seconds=0.0)
    run(RUNS[name], folder / f"{name}-parts", resume=True)
    loop_module.RunState = RunState
    return {**state, "instances": report.instances, "stopped": (stopped.stopped, stopped.step)}


def main() -> None:
    folder, what = Path(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    distributed.start(CPU)
    rank, world = distributed.rank(), distributed.world()
    result: dict[str, Any] = {"world": world}
    if what == "updates":
        result |= {name: take_steps(name, "layer", rank, world) for name in BASELINES}
        result["batch norm"] = take_steps("shared", "batch", rank, world)
        result["unfinished"] = unfinished_on_one_rank(rank)
    else:
        result |= {name: whole_run(name, folder, rank) for name in RUNS}
    torch.save(result, folder / f"{what}-{rank}.pt")
    distributed.stop()


if __name__ == "__main__":
    main()
