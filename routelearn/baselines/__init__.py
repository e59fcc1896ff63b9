"""Baselines: what REINFORCE measures a solution's cost against."""

from routelearn.baselines.base import Baseline
from routelearn.baselines.critic import CriticBaseline
from routelearn.baselines.exponential import ExponentialBaseline
from routelearn.baselines.none import NoBaseline
from routelearn.baselines.rollout import RolloutBaseline
from routelearn.baselines.shared import SharedBaseline

__all__ = [
    "Baseline",
    "CriticBaseline",
    "ExponentialBaseline",
    "NoBaseline",
    "RolloutBaseline",
    "SharedBaseline",
]
