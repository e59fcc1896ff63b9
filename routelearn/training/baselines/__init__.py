"""Baselines by name: what REINFORCE measures a solution's cost against."""

from routelearn.registry import Registry
from routelearn.training.baselines.base import Baseline
from routelearn.training.baselines.critic import CriticBaseline
from routelearn.training.baselines.exponential import ExponentialBaseline
from routelearn.training.baselines.none import NoBaseline
from routelearn.training.baselines.rollout import RolloutBaseline
from routelearn.training.baselines.shared import SharedBaseline

BASELINES: Registry[type[Baseline]] = Registry(
    "baseline",
    {
        "none": NoBaseline,
        "exponential": ExponentialBaseline,
        "critic": CriticBaseline,
        "rollout": RolloutBaseline,
        "shared": SharedBaseline,
    },
)

__all__ = [
    "BASELINES",
    "Baseline",
    "CriticBaseline",
    "ExponentialBaseline",
    "NoBaseline",
    "RolloutBaseline",
    "SharedBaseline",
]
