"""Times for people: seconds as a clock shows them, where clock times came in."""

from __future__ import annotations

import datetime
import math

DAY = 86_400


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
        return f"{clock} on {datetime.date.fromisoformat(day) + datetime.timedelta(days=days)}"
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
