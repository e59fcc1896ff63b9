"""The training configuration: one frozen dataclass that checks itself; the command line is made from it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from routelearn import plugins, problems
from routelearn.errors import InputError
from routelearn.policies import POLICIES
from routelearn.policies.base import shape_of
from routelearn.policies.layers import NORMS
from routelearn.problems.base import Problem, Varies
from routelearn.registry import OTHERS, Registry
from routelearn.settings import KINDS, check_value, fits, shown
from routelearn.training.baselines import BASELINES, Baseline
from routelearn.training.losses import LOSSES, Loss
from routelearn.training.making import PARTS, arguments, settings_of
from routelearn.training.optimiser import OPTIMISERS

SCHEDULES = ("constant", "decay", "linear", "cosine")
PRECISIONS = ("auto", "float32", "bfloat16")
REGISTRIES: dict[str, Registry[Any]] = {
    "problem": problems.PROBLEMS, "policy": POLICIES, "loss": LOSSES, "baseline": BASELINES,
}  # fmt: skip


BASES: dict[str, type] = {"policy": nn.Module, "loss": Loss, "baseline": Baseline}


def option(default: Any, help: str, choices: Collection[str] = ()) -> Any:
    """A field whose help text (and choices, which plugins may add to later) the command line shows."""
    metadata = {"help": help, "choices": choices, "default": default}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, hash=False, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def name_of(part: str, thing: Any) -> str:
    """What a configuration calls a problem, policy, loss or baseline that was given as an object or a class."""
    registry, kind = REGISTRIES[part], thing if isinstance(thing, type) else type(thing)
    if part in BASES and not issubclass(kind, BASES[part]):
        base = f"{BASES[part].__module__}.{BASES[part].__name__}"
        raise InputError(f"the {part} is a {kind.__name__}; give a name, or a class or an object derived from {base}")
    if part == "problem" and not isinstance(thing, Problem):
        raise InputError(f"the problem is a {kind.__name__}; give a name, or what routelearn.check_problem accepts")
    for name, known in registry.items():
        if known is thing or known is kind:
            return name
    name = getattr(thing, "name", None) or kind.__name__
    if name in registry and type(registry[name]) is not kind:
        raise InputError(f"the {part} name {name!r} belongs to another {part}; give yours a name of its own")
    return name


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a run, apart from where it is written. Defaults are the paper's."""

    problem: str = option(next(iter(problems.PROBLEMS)), "problem to train on")
    sizes: tuple[int, ...] = option(
        (20,), "instance sizes; training steps alternate between them (name a size twice to train on it twice as often)"
    )
    variants: str = option("", "of a problem that has variants, those to draw: all, or names joined by commas")

    policy: str = option("attention", "the network", POLICIES)
    width: int = option(128, "embedding dimension d_h")
    heads: int = option(8, "attention heads M")
    layers: int = option(3, "attention layers N of the encoder")
    hidden: int = option(512, "width of the feed-forward sublayer")
    norm: str = option("batch", "normalisation in the encoder; batch statistics do not mix sizes well", NORMS)
    clip: float = option(10.0, "logits are clipped to [-clip, clip] by tanh")
    neighbours: int = option(0, "messages in the encoder only from this many nearest nodes (0: from all)")

    baseline: str = option("rollout", "what a solution's cost is compared with", BASELINES)
    solutions: int = option(1, "solutions S sampled per instance")
    multistart: bool = option(False, "force a different first node on each of the S solutions")
    loss: str = option(
        "reinforce",
        "policy gradient (plain, with entropy bonus, or for the best of the S solutions) or preferences between them",
        LOSSES,
    )
    relative: bool = option(
        False, "the loss sees costs as shares of their mean for the instance, so that costly variants do not weigh more"
    )
    tours: str = option(
        "", "files of tours for the loss `supervised`, which `routelearn tours` makes: one for each size, by commas"
    )
    preference_scale: float = option(0.05, "sharpness of the preference loss")
    entropy_weight: float = option(0.01, "weight of the entropy in the loss `entropy`")
    beta: float = option(0.8, "decay of the exponential baseline")
    warmup_epochs: int = option(1, "epochs with the exponential baseline before the rollout baseline")
    significance: float = option(0.05, "level of the t-test that replaces the rollout baseline's policy")
    evaluation_instances: int = option(10_000, "instances of that test")

    batch: tuple[int, ...] = option((512,), "instances a step; one number, or one for each size")
    epochs: int = option(100, "epochs")
    epoch_steps: int = option(2_500, "steps an epoch")
    minutes: float = option(0.0, "stop, and end the schedule, after so many minutes (0: only by epochs)")
    optimiser: str = option("adam", "Adam, or Muon for the matrices between layers and Adam for the rest", OPTIMISERS)
    rate: float = option(1e-4, "learning rate")
    schedule: str = option("constant", "how the rate falls: by `decay` an epoch, along a line or a cosine", SCHEDULES)
    decay: float = option(0.96, "factor on the rate after each epoch, for the schedule `decay`")
    hold: float = option(0.0, "share of the run at the full rate before `linear` or `cosine` begin to fall")
    ramp_steps: int = option(0, "steps over which the rate rises linearly from 0")
    ramp: float = option(0.0, "share of the run over which the rate rises linearly from 0, beside `ramp_steps`")
    gradient_norm: float = option(1.0, "gradients are clipped to this norm")
    explosion: float = option(30.0, "a step whose gradient norm exceeds its running mean by this factor is skipped")
    precision: str = option("auto", "of matrix products; auto is bfloat16 on a GPU, float32 on a CPU", PRECISIONS)
    seed: int = option(1234, "seed of weights, instances and samples")

    validation_instances: int = option(10_000, "instances of the validation set (the first of the paper's, per size)")
    validation_seed: int = option(4321, "seed of the validation set")
    rollback: float = option(0.1, "go back to the best checkpoint when validation is worse by this share")

    settings: Mapping[str, Any] = option({}, "settings of a plugin's policy, loss or baseline, by name")
    # Problem, policy, loss and baseline may be given as objects or classes: these are here, their names in the fields.
    objects: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        objects = {part: thing for part, thing in self.objects.items() if getattr(self, part) == name_of(part, thing)}
        for part in PARTS:
            if hasattr(thing := getattr(self, part), "__dict__"):  # an object or a class
                object.__setattr__(self, part, name_of(part, thing))
                objects |= {part: thing}
        object.__setattr__(self, "objects", objects)
        for field in self.fields():
            value, default = getattr(self, field.name), field.metadata["default"]
            if isinstance(value, list):
                value = tuple(value)
                object.__setattr__(self, field.name, value)
            check_value(field.name, value, default)
            choices = field.metadata["choices"]
            if isinstance(choices, Registry) and value not in choices:
                plugins.available()  # an installed one may have it
            if choices and value not in choices and field.name not in self.objects:
                more = OTHERS if isinstance(choices, Registry) else ""
                raise InputError(f"{field.name} is {value!r}; the choices are {', '.join(choices)}{more}")
        problem = self.chosen("problem")  # raises for an unknown one, or for a variant that is none
        object.__setattr__(self, "variants", problem.variants if isinstance(problem, Varies) else "")
        self.check_policy(problem)
        if not self.sizes or min(self.sizes) < 2:
            raise InputError(f"sizes are {self.sizes}; give at least one, each 2 or more")
        if len(self.batch) not in (1, len(self.sizes)) or min(self.batch) < 1:
            raise InputError(f"batch is {self.batch}; give one number, or one for each of the {len(self.sizes)} sizes")
        for size, batch in zip(self.sizes, self.batch, strict=False):
            if len(self.batch) > 1 and batch != self.batch_of(size):
                raise InputError(f"batch is {self.batch}; size {size} stands twice, give it the same number each time")
        if self.width % self.heads:
            raise InputError(f"width {self.width} is not a multiple of {self.heads} heads")
        for part in ("baseline", "loss"):
            if self.solutions < (least := self.chosen(part).least_solutions):
                name = getattr(self, part)
                raise InputError(f"{part} {name!r} compares an instance's solutions; set solutions to {least} or more")
        if (known := self.chosen("loss").baselines) and self.baseline not in known:
            raise InputError(
                f"the loss {self.loss!r} has no use for baseline {self.baseline!r}; use {' or '.join(known)}"
            )
        self.check_loss()
        self.check_tours()
        self.check_settings()
        if self.multistart and self.solutions > min(self.sizes):
            raise InputError(f"{self.solutions} forced starts, but the smallest size has {min(self.sizes)} nodes")

    def batch_of(self, size: int) -> int:
        return self.batch[0] if len(self.batch) == 1 else self.batch[self.sizes.index(size)]

    def check_policy(self, problem: Problem) -> None:
        """Refuse a policy that cannot be built for the problem, and list those that it can be built for."""
        takes = getattr(self.class_of("policy"), "takes", None)
        if takes is not None and not takes(shape_of(problem)):
            able = [name for name, known in problems.PROBLEMS.items() if takes(shape_of(known))]
            raise InputError(f"policy {self.policy!r} cannot take {self.problem}; it can take {', '.join(able)}")

    def check_loss(self) -> None:
        """Refuse a loss that the policy's choices cannot teach."""
        inserts, loss = getattr(self.class_of("policy"), "inserts", False), self.chosen("loss")
        if loss.needs_values and not inserts:
            able = ", ".join(name for name, known in POLICIES.items() if getattr(known, "inserts", False))
            raise InputError(f"loss {self.loss!r} asks what each step adds, which only these policies tell: {able}")
        if loss.needs_tours and inserts:
            raise InputError(f"policy {self.policy!r} does not choose nodes in a tour's order; it cannot follow tours")

    def check_tours(self) -> None:
        """Refuse a loss that learns from tours without any, and tours that nobody follows."""
        files, sizes = self.tour_files(), len(set(self.sizes))
        if not self.chosen("loss").needs_tours:
            if files:
                able = ", ".join(name for name, loss in LOSSES.items() if loss.needs_tours)
                raise InputError(f"tours are given, but loss {self.loss!r} draws its own; set loss to {able}")
            return
        if len(files) != sizes:
            told = f"{len(files)} files of tours for {sizes} sizes" if files else "it has none"
            raise InputError(f"loss {self.loss!r} learns from tours, but {told}; name them: --tours FILE.npz")
        if self.solutions != 1 or self.multistart:
            raise InputError(f"loss {self.loss!r} follows one tour of each instance; set solutions to 1, no multistart")

    def tour_files(self) -> list[str]:
        return [name for name in self.tours.split(",") if name]

    def check_settings(self) -> None:
        """Refuse a setting that neither policy nor loss nor baseline has."""
        known: dict[str, Any] = {}
        for part in ("policy", "loss", "baseline"):
            known |= settings_of(self.class_of(part), set(self.names()))
        for name, value in self.settings.items():
            if name not in known:
                could = f"those that could be given are {', '.join(known)}" if known else "these have none"
                which = f"policy {self.policy!r}, loss {self.loss!r} and baseline {self.baseline!r}"
                hint = f" ({name} is an option of its own)" if name in self.names() else ""
                raise InputError(f"settings name {name!r}, which is none of {which}; {could}{hint}")
            if not fits(value, known[name]):
                raise InputError(f"setting {name} is {shown(value)}; it must be {KINDS[type(known[name])]}")

    def chosen(self, part: str) -> Any:
        """The problem, policy, loss or baseline: the object that was given, or what is registered under its name."""
        found = self.objects[part] if part in self.objects else REGISTRIES[part].find(getattr(self, part))
        if part != "problem" or not self.variants:
            return found
        if not isinstance(found, Varies):
            raise InputError(f"{self.problem} has no variants; leave them out")
        return found.with_variants(self.variants)

    def class_of(self, part: str) -> type:
        """The class that a policy, loss or baseline is made from, or of which it was given."""
        found = self.chosen(part)
        return found if isinstance(found, type) else type(found)

    def policy_options(self) -> dict[str, Any]:
        """What the policy is built from, apart from the problem's shape."""
        return arguments(self.class_of("policy"), self)

    @classmethod
    def fields(cls) -> list[dataclasses.Field[Any]]:
        """What is saved, and can be given on the command line."""
        return [field for field in dataclasses.fields(cls) if field.metadata]

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in cls.fields()]

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.names()}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_dict(cls, values: dict[str, Any], objects: Mapping[str, Any] | None = None) -> TrainConfig:
        """A config from its saved form; an unknown key raises and is named."""
        refuse_unknown(values)
        return cls(**values, objects=objects or {})


def refuse_unknown(values: Mapping[str, Any]) -> None:
    if unknown := set(values) - set(TrainConfig.names()):
        known = ", ".join(sorted(TrainConfig.names()))
        named = ", ".join(repr(name)[1:-1][:40] for name in sorted(unknown)[:5])
        raise InputError(f"unknown setting {named}; known are {known}")
