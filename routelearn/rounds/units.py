"""Times and amounts for people and for files: clock times where clock times came in, otherwise numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta

from routelearn.rounds.model import Round

DAY = 86_400
METRES = {"m": 1.0, "km": 1000.0}


def spoken(day: str | None, seconds: float) -> str:
    """A time as its round has them (`Round.day`): "10:15", "10:15:30", "10:15 on 2026-11-17", or a number.

    Parts of a second are left out; of a round without a date the next day is "10:15 (+1 day)".
    """
    if day is None or not math.isfinite(seconds):
        return f"{round(seconds, 3):.10g}"
    days, rest = divmod(round(seconds), DAY)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}" + (f":{rest % 60:02d}" if rest % 60 else "")
    if not days:
        return clock
    if day:
        return f"{clock} on {date.fromisoformat(day) + timedelta(days=days)}"
    return f"{clock} ({days:+d} day{'s' if abs(days) > 1 else ''})"


def length(day: str | None, seconds: float) -> str:
    """How long: "25 min", "2 h 05 min", "1 min 40 s" where clock times came in, otherwise a number."""
    if day is None or not math.isfinite(seconds):
        return f"{round(seconds, 3):.10g}"
    minutes, rest = divmod(round(seconds), 60)
    parts = [f"{minutes // 60} h"] if minutes >= 60 else []
    if minutes:
        parts.append(f"{minutes % 60:02d} min" if parts else f"{minutes} min")
    if rest or not minutes:
        parts.append(f"{rest} s")
    return " ".join(parts)


def told(round_: Round, seconds: float, *, between: str = "T") -> str | float | None:
    """A moment: `08:05:00`, with the date if one came in, or a number of seconds; None if it is without end.

    `between` stands between date and time; behind them comes the zone, if times came in with one. Without a date the
    hours go on after midnight: 25:10:00.
    """
    if not math.isfinite(seconds):
        return None
    if round_.day is None:
        return number(seconds)
    whole = math.floor(seconds + 0.5)
    if not round_.day:
        return ("-" if whole < 0 else "") + _clock(abs(whole))
    days, rest = divmod(whole, DAY)
    return f"{date.fromisoformat(round_.day) + timedelta(days=days)}{between}{_clock(rest)}{_zone(round_.zone)}"


def _zone(east: float | None) -> str:
    if not east:
        return "" if east is None else "Z"
    minutes = round(abs(east) / 60)
    return f"{'+' if east > 0 else '-'}{minutes // 60:02}:{minutes % 60:02}"


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


def told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """Names of which no two are the same: the second "Café" is "Café (2)"."""
    taken, often = set(names), Counter[str]()
    found = []
    for name in names:
        often[name] += 1
        new = name
        while often[name] > 1 and new in taken:
            new = f"{name} ({often[name]})"
            often[name] += new in taken
        taken.add(new)
        found.append(new)
    return tuple(found)
