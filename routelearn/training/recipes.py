"""Recipes: functions that return a training configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from routelearn.errors import InputError
from routelearn.problems import NumpyRng, Problem
from routelearn.problems.base import Varies
from routelearn.training.config import TrainConfig


def paper(problem: str | Problem, n: int, *, decaying: bool = False) -> TrainConfig:
    """Exactly the paper (section 5): 100 epochs of 2,500 batches of 512, Adam at 1e-4, or 1e-3 x 0.96^epoch.

    The vehicle routing problems at n = 100 take 256 instances a batch.
    """
    config = TrainConfig(problem=problem, sizes=(n,))  # type: ignore[arg-type]  # an object, too
    routing = config.chosen("problem")
    if n >= 100 and routing.max_steps(routing.sample(NumpyRng(0), 1, n)) > n + 1:  # several routes
        config = replace(config, batch=(256,))
    return replace(config, rate=1e-3, schedule="decay", decay=0.96) if decaying else config


def fast(problem: str | Problem, sizes: tuple[int, ...], *, minutes: float = 10.0) -> TrainConfig:
    """The best quality per GPU minute found so far; docs/notes/losses.md has the comparisons behind it."""
    return TrainConfig(
        problem=problem,  # type: ignore[arg-type]  # an object, too
        sizes=sizes,
        norm="instance",
        baseline="shared",
        solutions=16,
        batch=tuple(512 if n > 30 else 1024 for n in sizes),
        epochs=1_000_000,
        epoch_steps=999,
        minutes=minutes,
        optimiser="muon",
        rate=1e-3,
        schedule="cosine",
        ramp_steps=100,
        validation_instances=2_000,
    )


def cpu(problem: str | Problem, sizes: tuple[int, ...], *, minutes: float = 10.0) -> TrainConfig:
    """For minutes on a laptop: a narrow policy and small batches, so that they hold many steps.

    docs/guides/training.md compares some sizes; a run of hours is better off with --width 128 --heads 8 --hidden 512.
    """
    config = fast(problem, sizes, minutes=minutes)
    alike = len(set(sizes)) == 1 and not isinstance(config.chosen("problem"), Varies)
    return replace(
        config,
        width=64,
        heads=4,
        hidden=256,
        norm="batch" if alike else "instance",  # the former is compiled, but mixes neither sizes nor variants well
        batch=(32,),
        ramp_steps=0,
        ramp=0.05,
        validation_instances=500,
    )


def one_size(problem: str | Problem, sizes: tuple[int, ...]) -> TrainConfig:
    if len(sizes) != 1:
        raise InputError(f"the paper trains one size at a time; {len(sizes)} were given")
    return paper(problem, sizes[0])


RECIPES: dict[str, Callable[[str | Problem, tuple[int, ...]], TrainConfig]] = {
    "paper": one_size, "fast": fast, "cpu": cpu,
}  # fmt: skip


def make(recipe: str, problem: str | Problem, sizes: tuple[int, ...]) -> TrainConfig:
    """The recipe of that name; an unknown one raises and lists the choices."""
    if recipe not in RECIPES:
        raise InputError(f"unknown recipe {recipe!r}; the choices are {', '.join(RECIPES)}")
    return RECIPES[recipe](problem, sizes)
