"""The state of a run: all that changes while it trains, saved and loaded in one piece."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from routelearn import policies
from routelearn.decoding.insertion import viewed
from routelearn.errors import InputError
from routelearn.models.model_file import refuse_unfinite
from routelearn.policies.base import shape_of
from routelearn.problems.base import NumpyRng, Varies
from routelearn.training import checkpoint, distributed, tours
from routelearn.training.baselines import Baseline
from routelearn.training.config import TrainConfig
from routelearn.training.losses import Loss
from routelearn.training.making import made, made_from
from routelearn.training.optimiser import make_optimiser
from routelearn.training.trial import try_policy
from routelearn.training.warm_start import ancestry, start_from

COUNTERS = ("step", "epoch", "instances", "rate_scale", "skipped", "rollbacks")
MODULES = ("policy", "baseline", "optimiser")
# What parts of a checkpoint raise that are not what a run saves.
UNFIT = (KeyError, TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError, IndexError)
# A run goes on only as what it was, apart from the settings of its parts; how long, how fast and where it is
# validated may change.
FIXED = ("problem", "variants", "sizes", "policy", "baseline", "loss", "solutions", "multistart", "optimiser",
         "epoch_steps", "seed")  # fmt: skip


class RunState:
    """A fresh run of this configuration; `load_state_dict` makes it one that was stopped."""

    def __init__(
        self,
        config: TrainConfig,
        *,
        device: torch.device,
        precision: str,
        compile: bool,
        recipe: str | None = None,
        warm_start: Path | None = None,
    ):
        self.config, self.device, self.precision, self.compile = config, device, precision, compile
        self.started, self.elapsed_before = time.monotonic(), 0.0
        self.limit = 60 * config.minutes if config.minutes else math.inf  # seconds
        self.step, self.epoch, self.instances, self.skipped, self.rollbacks, self.rate_scale = 0, 0, 0, 0, 0, 1.0
        self.origin: dict[str, Any] = {
            "recipe": recipe, "warm_start": None, "instances_before": 0, "minutes_before": 0.0
        }  # fmt: skip
        self.notes: list[str | None] = []  # what the user should hear of
        self.seed(0)
        self.policy = make_policy(config).to(device)
        self.problem = viewed(self.policy, config.chosen("problem"))
        try_policy(config.policy, self.policy, self.problem, min(config.sizes), device)
        self.turns = self.problem.turns() if isinstance(self.problem, Varies) else (self.problem,)
        if warm_start is not None:
            card, self.notes = start_from(self.policy, config, warm_start)
            self.origin |= ancestry(warm_start, card)
        sizes = dict.fromkeys(config.sizes)
        files = zip(sizes, config.tour_files(), strict=False)
        self.lessons = {n: tours.read(Path(file), self.problem, n, device) for n, file in files}
        bounds = {n: self.problem.max_steps(self.problem.sample(NumpyRng(config.seed), 64, n)) for n in sizes}
        self.rollout_steps, self.most_steps = bounds, {n: 4 * bound for n, bound in bounds.items()}
        self.longest = dict.fromkeys(sizes, 0)  # steps that rollouts needed since their bound was last looked at
        distributed.broadcast(self.policy)
        self.baseline = make_baseline(self).to(device)
        distributed.broadcast(self.baseline)
        self.loss = make_loss(config)
        if self.loss.needs_entropy and not hasattr(self.policy, "recorded_logits"):
            lacking = f"policy {config.policy!r} has no recorded_logits"
            raise InputError(f"loss {config.loss!r} asks for entropies, but {lacking} (see docs/guides/extend.md)")
        self.optimiser = make_optimiser(config.optimiser, self.policy, self.baseline, config.rate, device)
        self.norm_average = torch.zeros((), device=device)
        # The best validated so far (at first: where the run began) and its costs by size.
        self.best: dict[str, Any] = {}

    def seed(self, offset: int) -> None:
        """Every rank draws from a stream of its own."""
        torch.manual_seed(self.config.seed + 1_000_003 * distributed.rank() + offset)

    @property
    def elapsed(self) -> float:
        """Seconds of training so far, those before a resume included."""
        return self.elapsed_before + time.monotonic() - self.started

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self.epoch >= self.config.epochs or self.elapsed_before >= self.limit

    def progress(self, seconds: float) -> float:
        """From 0 to 1 over the whole run, by steps or by time, whichever is further."""
        return max(self.step / (self.config.epochs * self.config.epoch_steps), seconds / self.limit)

    def keep_best(self, costs: dict[int, float]) -> None:
        """Remember the run as it is now, with its validation costs by size."""
        self.best = clone({name: getattr(self, name).state_dict() for name in MODULES})
        self.best |= {"instances": self.instances, "elapsed": self.elapsed, "costs": costs}

    def go_back(self) -> None:
        """To the best, at half the rate."""
        self.policy.load_state_dict(self.best["policy"])
        restore_optimiser(self.optimiser, self.best["optimiser"])
        self.baseline.load_state_dict(self.best["baseline"])
        self.rate_scale, self.rollbacks = self.rate_scale / 2, self.rollbacks + 1
        self.norm_average.zero_()

    def state_dict(self) -> dict[str, Any]:
        """Tensors and plain values by name. All ranks must ask together: each has random numbers of its own."""
        return {
            "config": self.config.to_json(),
            **{name: getattr(self, name).state_dict() for name in MODULES},
            "norm_average": self.norm_average,
            **{name: getattr(self, name) for name in COUNTERS},
            "elapsed": self.elapsed,
            "best": self.best,
            "rollout_steps": self.rollout_steps,
            "longest": self.longest,
            "origin": self.origin,
            "random": {kind: distributed.gathered(part) for kind, part in checkpoint.random_state().items()},
        }

    def load_state_dict(self, state: checkpoint.State) -> None:
        """Go on from there. A state of another run is refused, and one that lacks something or is of another kind."""
        try:
            self.take(state)
        except InputError:
            raise
        except UNFIT as error:
            raise state.unusable(" ".join(str(error).split())[:200] or type(error).__name__) from error

    def take(self, state: checkpoint.State) -> None:
        before = TrainConfig.from_dict(json.loads(state["config"]), self.config.objects)
        refuse_other_run(state.path, before, self.config)
        for name, own in self.state_dict().items():
            check_alike(own, state.get(name, own) if name == "origin" else state[name], name)
        for name in MODULES if state["best"] else ():
            check_alike(state[name], state["best"][name], f"best/{name}")
        refuse_unfinite(state["policy"])
        self.policy.load_state_dict(state["policy"])
        self.baseline.load_state_dict(state["baseline"])
        # Only what it remembers: its settings, the rate's tensor among them, are this run's and on this device.
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": state["optimiser"]["state"]})
        for weight, remembered in self.optimiser.state.items():
            for name, value in remembered.items():
                check_alike(value if value.dim() == 0 else weight, value, f"optimiser/{name}")
        self.norm_average.copy_(state["norm_average"])
        for name in COUNTERS:
            setattr(self, name, state[name])
        self.elapsed_before, self.best = state["elapsed"], state["best"]
        self.origin = state.get("origin", self.origin)
        self.rollout_steps.update(state["rollout_steps"])  # in place: the baseline holds it, too
        self.longest.update(state["longest"])
        judged = ("validation_instances", "validation_seed")
        if any(getattr(before, name) != getattr(self.config, name) for name in judged) and self.best.get("costs"):
            del self.best["costs"]  # of other instances; the loop takes them anew
        if (rank := distributed.rank()) < len(state["random"]["cpu"]):
            checkpoint.restore_random_state({kind: ranks[rank] for kind, ranks in state["random"].items()})
        else:  # more ranks than before: the new ones need a stream of their own
            self.seed(self.step)


def make_policy(config: TrainConfig) -> Any:
    """A freshly initialised policy, or the one that the configuration was given, if its settings describe it."""
    given, shape, options = config.chosen("policy"), shape_of(config.chosen("problem")), config.policy_options()
    if "policy" not in config.objects:
        return policies.build(config.policy, shape, options)
    if isinstance(given, type):
        return policies.make(given, shape, options)
    for name, value in options.items():
        if type(own := getattr(given, name, value)) is type(value) and own != value:
            raise InputError(f"the policy given has {name} {own!r}, not {value!r}; say {name}={own!r}")
    with torch.device("meta"):
        described = type(given)(shape, **options).state_dict()
    if {k: v.shape for k, v in described.items()} != {k: v.shape for k, v in given.state_dict().items()}:
        words = ", ".join(f"{name}={value!r}" for name, value in options.items())
        raise InputError(f"the policy given was not built with {words}; name the settings that it was built with")
    return given


def make_loss(config: TrainConfig) -> Loss:
    found = config.chosen("loss")
    return made(found, config) if isinstance(found, type) else found


def make_baseline(run: RunState) -> Baseline:
    found = run.config.chosen("baseline")
    return found if isinstance(found, Baseline) else found.make(run)


def refuse_other_run(path: Path, theirs: TrainConfig, ours: TrainConfig) -> None:
    for name in FIXED:
        if getattr(theirs, name) != getattr(ours, name):
            raise InputError(f"{path}: was trained with {name} {getattr(theirs, name)}, not {getattr(ours, name)}")
    for part in ("policy", "loss", "baseline"):
        then, now = (made_from(config.class_of(part), config) for config in (theirs, ours))
        for name, value in then.items():
            if now[name] != value:
                raise InputError(f"{path}: was trained with {name} {value}, not {now[name]}")


def check_alike(own: Any, given: Any, where: str) -> None:
    """Refuse a part of another kind than ours, as far as ours goes: a fresh run remembers less than a saved one."""
    kind: type = next((one for one in (Tensor, dict) if isinstance(own, one)), type(own))
    if own is not None and not (isinstance(given, kind) and isinstance(own, bool) == isinstance(given, bool)):
        raise ValueError(f"{where} is of another kind: {type(given).__name__}, not {kind.__name__}")
    if isinstance(own, Tensor) and (given.shape, given.dtype) != (own.shape, own.dtype):
        raise ValueError(f"{where} is {given.dtype} {tuple(given.shape)}, not {own.dtype} {tuple(own.shape)}")
    if isinstance(own, int | float) and not 0 <= given < math.inf:
        raise ValueError(f"{where} is {given}")
    if isinstance(own, dict):
        for name in own.keys() & given.keys():
            check_alike(own[name], given[name], f"{where}/{name}")


def restore_optimiser(optimiser: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """Copy a state into the optimiser's own tensors; loading it would put others in their place."""
    for index, own in optimiser.state_dict()["state"].items():
        for name, value in own.items():
            value.copy_(saved["state"].get(index, {}).get(name, torch.zeros_like(value)))


def clone(state: Any) -> Any:
    """A deep copy of nested state with its tensors detached."""
    if isinstance(state, Tensor):
        return state.detach().clone()
    if isinstance(state, dict):
        return {key: clone(value) for key, value in state.items()}
    return [clone(value) for value in state] if isinstance(state, list | tuple) else state
