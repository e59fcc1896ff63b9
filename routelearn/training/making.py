"""Policies, losses and baselines from a configuration: what their constructors ask for by name."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from routelearn.errors import InputError
from routelearn.settings import PLAIN, parameters_of

if TYPE_CHECKING:
    from routelearn.training.config import TrainConfig

PARTS = ("problem", "policy", "loss", "baseline")  # parameters of these names mean objects, never settings


def settings_of(kind: type, fields: set[str]) -> dict[str, Any]:
    """The settings of a class that are no fields of the configuration, with their defaults."""
    known = parameters_of(kind).items()
    return {name: default for name, default in known if name not in fields and isinstance(default, PLAIN)}


def arguments(kind: type, config: TrainConfig) -> dict[str, Any]:
    """What the configuration gives to a constructor: fields, and `settings` of the same name."""
    values = {name: getattr(config, name) for name in config.names() if name not in PARTS} | dict(config.settings)
    return {name: values[name] for name in parameters_of(kind) if name in values}


def made_from(kind: type, config: TrainConfig) -> dict[str, Any]:
    """All settings of a class as they will be: its defaults, and what the configuration gives."""
    return settings_of(kind, set(config.names())) | arguments(kind, config)


def made(kind: type, config: TrainConfig, **known: Any) -> Any:
    """An object of this class from the configuration and from what else is known."""
    given = known | arguments(kind, config)
    missing = [n for n, default in parameters_of(kind).items() if default is inspect.Parameter.empty and n not in given]
    if missing:
        raise InputError(f"{kind.__name__} needs {', '.join(missing)}; give each a default value in its constructor")
    return kind(**given)
