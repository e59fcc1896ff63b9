"""Losses by name: what a training step minimises."""

from routelearn.registry import Registry
from routelearn.training.losses.base import Loss, Scored
from routelearn.training.losses.entropy_bonus import EntropyBonus
from routelearn.training.losses.policy_gradient import PolicyGradient
from routelearn.training.losses.preference import Preference

LOSSES: Registry[type[Loss]] = Registry(
    "loss", {"reinforce": PolicyGradient, "preference": Preference, "entropy": EntropyBonus}
)

__all__ = ["LOSSES", "EntropyBonus", "Loss", "PolicyGradient", "Preference", "Scored"]
