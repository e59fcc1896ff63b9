"""Numbers as people write them: finite, of sane size, and exact where a fraction matters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from routelearn.errors import InputError
from routelearn.problems.attributes import Attribute

LARGEST = 1e15  # sums and squares of such numbers stay exact enough in double precision
SMALLEST = 1e-30  # below it a number is 0
DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LONGEST = 80  # characters
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)", re.ASCII)
_BETWEEN = re.compile(r"\s*[;/|\u2013]\s*|(?<=[\d.])\s*-\s*|\s+(?:to|bis|a|à)\s+|\s+")


def blank(raw: Any) -> bool:
    """Nothing was written: an empty cell, or null."""
    return raw is None or (isinstance(raw, str) and not raw.strip())


def shown(raw: Any) -> str:
    """A value for a message: short, on one line."""
    text = repr(raw) if isinstance(raw, str | int | float | bool | None) else f"a {type(raw).__name__}"
    return text if len(text) <= 40 else text[:37] + "..."


def _hint(text: str) -> str:
    """A hint for a number in another country's notation."""
    grouped = re.fullmatch(r"[+-]?\d[\d.,' _\u00a0\u2009\u202f]*", text)
    return "; write it with a decimal point and nothing between thousands, as 1000.5" if grouped else ""


def from_torch(values: Any) -> Any:
    """A tensor as a numpy array, in the same precision if numpy has it; anything else unchanged."""
    if not hasattr(values, "detach"):
        return values
    tensor = values.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:
        return tensor.double().numpy()


def plain(raw: Any) -> Any:
    """A number of numpy, or an array or tensor without axes, as Python's own; anything else as it is.

    One of less than double precision is the decimal that was meant: a single 0.3 is 0.3, not 0.30000001192.
    """
    if getattr(raw, "shape", None) == ():
        raw = np.asarray(from_torch(raw))[()]
    if isinstance(raw, np.integer):
        return int(raw)
    if not isinstance(raw, np.floating):
        return raw
    value, kind = float(raw), np.finfo(raw.dtype)
    if kind.bits >= 64 or not np.isfinite(value) or value.is_integer():
        return value
    short = float(f"{value:.{kind.precision}g}")
    return short if abs(short - value) <= float(kind.eps) * abs(value) else float(str(raw))


def real(raw: Any, where: str, what: str) -> float:
    """`raw` (text or a number) as a float; `where` and `what` begin the message if it is none."""
    raw = plain(raw)
    if isinstance(raw, str):
        text = raw.strip()
        if not DECIMAL.fullmatch(text) or len(text) > _LONGEST:
            kind = "a finite number" if text.lower().lstrip("+-") in ("nan", "inf", "infinity") else "a number"
            raise InputError(f"{where}: {what} is {shown(raw)}, not {kind}{_hint(text)}")
        value = float(text)
    elif isinstance(raw, int | float | Fraction) and not isinstance(raw, bool):
        huge = raw > LARGEST or raw < -LARGEST  # such an int may not have a float
        value = float("inf") if huge else float(raw)
    else:
        raise InputError(f"{where}: {what} is {shown(raw)}, not a number")
    if value != value:
        raise InputError(f"{where}: {what} is not a finite number")
    if abs(value) > LARGEST:
        raise InputError(f"{where}: {what} is larger than {LARGEST:.0e}; use a larger unit")
    return value if abs(value) >= SMALLEST else 0.0


def exact(raw: Any, where: str, what: str) -> int | Fraction:
    """As `real`, but exactly the decimal that was written (a float: the decimal it prints as).

    A whole number, as nearly all are, is an int: fractions are slow.
    """
    raw = plain(raw)
    value = real(raw, where, what)
    if value == 0.0 or isinstance(raw, int):
        return 0 if value == 0.0 else raw
    decimal = Fraction(raw if isinstance(raw, Fraction) else str(raw).strip())
    return decimal.numerator if decimal.denominator == 1 else decimal


def value_of(one: Attribute, raw: Any, where: str, what: str) -> Any:
    """What was written for an attribute: a float, exactly that decimal where whole numbers are counted, or a tuple.

    Several numbers are a list, or text with something between them (8-10). A time of day is in minutes (08:30: 510).
    """
    if one.shape:
        parts = _BETWEEN.split(raw.strip()) if isinstance(raw, str) else raw
        parts = from_torch(parts).tolist() if hasattr(parts, "shape") and parts.shape else parts
        if not isinstance(parts, list | tuple) or len(parts) != one.shape[0]:
            raise InputError(f"{where}: {what} is {shown(raw)}; {one.shape[0]} numbers are needed")
        inner = one._replace(shape=one.shape[1:])
        return tuple(value_of(inner, part, where, what) for part in parts)
    if one.unit == "time" and isinstance(raw, str) and (match := _TIME_OF_DAY.fullmatch(raw.strip())):
        raw = 60 * int(match[1]) + int(match[2])
    return exact(raw, where, what) if one.whole else real(raw, where, what)


def filled(one: Attribute, value: float) -> Any:
    """One number for all that an attribute holds."""
    if one.shape:
        return (filled(one._replace(shape=one.shape[1:]), value),) * one.shape[0]
    return Fraction(str(value)) if one.whole else float(value)


def stand_in(one: Attribute, depot: bool) -> Any:
    """What an attribute is where a stop (the depot?) gives none; None where it must. A depot needs no demand."""
    if one.default is None:
        return filled(one, 0) if depot else None
    return filled(one, 0 if depot and not one.at_depot else one.default)


def column_of(one: Attribute, values: Sequence[Any]) -> Any:
    """The values of an attribute for all stops: a tuple where they are exact, otherwise an array of doubles."""
    return tuple(values) if one.whole else np.array(values, dtype=np.float64)
