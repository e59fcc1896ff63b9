"""Losses by name: what a training step minimises."""

from routelearn.registry import Registry
from routelearn.training.losses.base import Loss, Scored
from routelearn.training.losses.best_of import BestOf
from routelearn.training.losses.policy_gradient import EntropyBonus, LeaderReward, PolicyGradient
from routelearn.training.losses.preference import Preference
from routelearn.training.losses.q_learning import QLearning
from routelearn.training.losses.supervised import Supervised

LOSSES: Registry[type[Loss]] = Registry(
    "loss",
    {
        "reinforce": PolicyGradient,
        "preference": Preference,
        "entropy": EntropyBonus,
        "leader": LeaderReward,
        "best-of": BestOf,
        "supervised": Supervised,
        "q-learning": QLearning,
    },
)

__all__ = [
    "LOSSES",
    "BestOf",
    "EntropyBonus",
    "LeaderReward",
    "Loss",
    "PolicyGradient",
    "Preference",
    "QLearning",
    "Scored",
    "Supervised",
]
