"""Recipes: functions that return a training configuration."""

from __future__ import annotations

from dataclasses import replace

from routelearn.errors import InputError
from routelearn.problems import NumpyRng, get
from routelearn.training.config import TrainConfig


def paper(problem: str, n: int, *, decaying: bool = False) -> TrainConfig:
    """Exactly the paper (section 5): 100 epochs of 2,500 batches of 512, Adam at 1e-4, or 1e-3 x 0.96^epoch.

    The vehicle routing problems at n = 100 take 256 instances a batch.
    """
    several_routes = get(problem).max_steps(get(problem).sample(NumpyRng(0), 1, n)) > n + 1
    config = TrainConfig(problem=problem, sizes=(n,), batch=(256,) if several_routes and n >= 100 else (512,))
    return replace(config, rate=1e-3, schedule="decay", decay=0.96) if decaying else config


def fast(problem: str, sizes: tuple[int, ...], *, minutes: float = 10.0) -> TrainConfig:
    """The best quality per GPU minute found so far; docs/training.md has the comparisons behind it."""
    return TrainConfig(
        problem=problem,
        sizes=sizes,
        norm="instance",
        baseline="shared",
        solutions=16,
        batch=tuple(512 if n > 30 else 1024 for n in sizes),
        epochs=1_000_000,
        epoch_steps=999,
        minutes=minutes,
        rate=1e-3,
        schedule="cosine",
        ramp_steps=100,
        validation_instances=2_000,
    )


RECIPES = ("paper", "fast")


def make(recipe: str, problem: str, sizes: tuple[int, ...]) -> TrainConfig:
    """The recipe of that name; an unknown one raises and lists the choices."""
    if recipe == "fast":
        return fast(problem, sizes)
    if recipe == "paper":
        if len(sizes) != 1:
            raise InputError(f"the paper trains one size at a time; {len(sizes)} were given")
        return paper(problem, sizes[0])
    raise InputError(f"unknown recipe {recipe!r}; the choices are {', '.join(RECIPES)}")
