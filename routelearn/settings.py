"""What a class can be told when it is made: its settings by name, and which values each may have."""

from __future__ import annotations

import inspect
import math
from typing import Any

from routelearn.errors import InputError

KINDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a word",
         tuple: "whole numbers, such as (20, 50)", dict: "numbers, words or true and false by name"}  # fmt: skip
PLAIN = (bool, int, float, str)
# Settings that mean the same wherever they are read.
LEAST = {
    **dict.fromkeys(("solutions", "epochs", "epoch_steps", "width", "heads", "hidden", "validation_instances"), 1),
    **dict.fromkeys(("layers", "minutes", "warmup_epochs", "ramp_steps", "neighbours"), 0),
    "evaluation_instances": 2,  # one instance has no variance to test by
}
MOST = {"layers": 1_000, "width": 2**20, "hidden": 2**24, "seed": 2**32 - 1, "validation_seed": 2**32 - 1}
ABOVE_0 = ("rate", "gradient_norm", "clip", "explosion", "rollback", "preference_scale", "entropy_weight")
SHARES = ("hold", "ramp", "beta", "decay", "significance")


def parameters_of(kind: type) -> dict[str, Any]:
    """The parameters of a constructor, by name, with their defaults.

    Where it takes **options, as one does that passes them on, those of the class it derives from are among them.
    """
    found: dict[str, Any] = {}
    for cls in kind.__mro__[:-1]:
        if "__init__" not in vars(cls):
            continue
        _, *own = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
        named = {p.name: p.default for p in own if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        found = named | found
        if not any(p.kind is p.VAR_KEYWORD for p in own):
            break
    return found


def fits(value: Any, default: Any) -> bool:
    """Whether a value is of its default's kind; saved configurations are written by hand, too."""
    if isinstance(default, tuple):
        return isinstance(value, tuple) and all(type(part) is int for part in value)
    if isinstance(default, dict):
        return isinstance(value, dict) and all(isinstance(part, int | float | str) for part in value.values())
    if isinstance(default, float):
        try:
            return type(value) in (int, float) and math.isfinite(value)
        except OverflowError:  # a whole number beyond all that are finite
            return False
    return type(value) is type(default)


def check_value(name: str, value: Any, default: Any) -> None:
    """Refuse a value of another kind than the default's, or outside of what the setting may be."""
    if not fits(value, default):
        raise InputError(f"{name} is {shown(value)}; it must be {KINDS[type(default)]}")
    if name in ("seed", "validation_seed") and not 0 <= value <= MOST[name]:
        raise InputError(f"{name} is {shown(value)}; it must lie between 0 and 2^32 - 1")
    if name in LEAST and value < LEAST[name]:
        raise InputError(f"{name} is {shown(value)}; it must be {LEAST[name]} or more")
    if name in MOST and value > MOST[name]:
        raise InputError(f"{name} is {shown(value)}; it must be {MOST[name]:,} or less")
    if name in ABOVE_0 and not value > 0:
        raise InputError(f"{name} is {shown(value)}; it must be above 0")
    if name in SHARES and not 0 <= value <= 1:
        raise InputError(f"{name} is {shown(value)}; it must lie between 0 and 1")


def check_values(kind: type, values: dict[str, Any]) -> None:
    """Refuse settings that an object of this class cannot be made with; names that it does not know are left to it."""
    for name, default in parameters_of(kind).items():
        if name in values and isinstance(default, PLAIN):
            check_value(name, values[name], default)


def shown(value: Any) -> str:
    """A value in a message of one line."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deep, or a number of too many digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:80]}..."
