"""Policies by name."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from routelearn.errors import InputError
from routelearn.policies.attention import AttentionPolicy
from routelearn.policies.base import Shape
from routelearn.policies.dai import DaiPolicy
from routelearn.policies.ean import EANPolicy
from routelearn.policies.nazari import NazariPolicy
from routelearn.policies.nowak import NowakPolicy
from routelearn.policies.pointer import PointerPolicy
from routelearn.registry import Registry

POLICIES: Registry[type[nn.Module]] = Registry(
    "policy",
    {
        "attention": AttentionPolicy,
        "pointer": PointerPolicy,
        "ean": EANPolicy,
        "nazari": NazariPolicy,
        "nowak": NowakPolicy,
        "dai": DaiPolicy,
    },
)


def build(kind: str, shape: Shape, options: dict[str, Any]) -> Any:
    """A freshly initialised policy; an unknown kind raises and lists the choices."""
    return make(POLICIES.find(kind), shape, options)


def make(cls: type[nn.Module], shape: Shape, options: dict[str, Any]) -> Any:
    """A freshly initialised policy of this class."""
    try:
        inspect.signature(cls).bind(shape, **options)
    except TypeError as error:
        raise InputError(f"policy {cls.__name__} is made of a Shape and its settings by name, but: {error}") from None
    return cls(shape, **options)
