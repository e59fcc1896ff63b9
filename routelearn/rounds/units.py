"""Times and amounts as files have them: clock times where clock times came in, otherwise seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, timedelta

from routelearn.rounds.clock import DAY
from routelearn.rounds.model import Round


def told(round_: Round, seconds: float, *, between: str = "T") -> str | float | None:
    """A moment: `08:05:00`, with the date if one came in, or a number of seconds; None if it is without end.

    `between` stands between date and time. Without a date the hours go on after midnight: 25:10:00.
    """
    if not math.isfinite(seconds):
        return None
    if round_.day is None:
        return number(seconds)
    whole = math.floor(seconds + 0.5)
    if not round_.day:
        return ("-" if whole < 0 else "") + _clock(abs(whole))
    days, rest = divmod(whole, DAY)
    return f"{date.fromisoformat(round_.day) + timedelta(days=days)}{between}{_clock(rest)}"


def _clock(whole: int) -> str:
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def number(value: float) -> float:
    """A whole number without its `.0`, and without the noise of adding decimals up."""
    value = round(value, 9)
    return int(value) if value == int(value) else value


def amount(load: Sequence[float]) -> float | list[float] | None:
    """One number, or a list where there are several dimensions; None where nothing is counted."""
    if len(load) < 2:
        return number(load[0]) if load else None
    return [number(part) for part in load]


def amount_words(load: Sequence[float]) -> str:
    return " / ".join(f"{number(part):g}" for part in load)
