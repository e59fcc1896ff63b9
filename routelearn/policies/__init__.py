"""Policies by name."""

from __future__ import annotations

from typing import Any

from torch import nn

from routelearn.errors import InputError
from routelearn.policies.attention import AttentionPolicy
from routelearn.policies.base import Shape
from routelearn.policies.pointer import PointerPolicy

POLICIES: dict[str, type[nn.Module]] = {"attention": AttentionPolicy, "pointer": PointerPolicy}


def build(kind: str, shape: Shape, options: dict[str, Any]) -> Any:
    """A freshly initialised policy; an unknown kind raises and lists the choices."""
    if kind not in POLICIES:
        raise InputError(f"unknown policy {kind!r}; the choices are {', '.join(POLICIES)}")
    return POLICIES[kind](shape, **options)
