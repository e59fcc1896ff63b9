"""Times as people write them: clock times, ISO times, stretches of them, and how long something takes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple

from routelearn.data.numbers import blank, real, shown
from routelearn.errors import InputError
from routelearn.rounds.clock import DAY
from routelearn.rounds.model import ALWAYS, Window

HOUR, MINUTE = 3_600, 60
LONGEST = 200  # characters of a cell with windows
ANY_TIME = (
    *("any", "any time", "anytime", "all day", "ganztags", "ganztägig", "egal", "flexibel", "jederzeit", "-"),
    *("toute la journée", "flexible", "indifférent", "todo el día", "cualquier hora"),
)
_DATE = r"(?:(?P<y>\d{4})-(?P<m>\d\d?)-(?P<d>\d\d?)|(?P<d2>\d\d?)\.(?P<m2>\d\d?)\.(?P<y2>\d{4}))"
_TIME = (
    r"(?P<hour>\d{1,2})(?:(?P<sep>[:.h])(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:\.\d{1,9})?))?)?"
    r"\s?(?P<after>uhr|h|a\.?m\.?|p\.?m\.?)?"
)
_ZONE = r"(?P<zone>z|[+-][01]\d:?[0-5]\d)?"
_MOMENT = re.compile(rf"(?:{_DATE}(?:\s*,?\s+|(?P<iso>t)))?{_TIME}\s?{_ZONE}", re.IGNORECASE | re.ASCII)
_BARE = re.sub(r"\?P<\w+>", "?:", _MOMENT.pattern)
_NUMBER = r"\d+(?:[.,]\d+)?"
_TO = r"(?:\s*(?:-|\u2013|\u2014|/)\s*|\s+(?:to|till|until|bis|and|und|à|au|a|hasta)\s+)"
_STRETCH = re.compile(rf"({_BARE}|{_NUMBER}){_TO}({_BARE}|{_NUMBER})", re.IGNORECASE | re.ASCII)
_HALF = re.compile(
    rf"(?P<word>from|after|since|ab|nach|von|dès|après|desde|until|till|before|by|bis|vor|jusqu'à|avant|hasta|antes de)"
    rf"\s+(?P<at>{_BARE}|{_NUMBER})",
    re.IGNORECASE,
)
_LATER = ("from", "after", "since", "ab", "nach", "von", "dès", "après", "desde")
_BETWEEN = re.compile(r"\s*[,;|\n]\s*")
_LENGTH = re.compile(
    r"(?:(?P<h>\d+(?:[.,]\d+)?)\s?(?:h|hours?|std|stunden?|heures?|horas?))?\s*"
    r"(?:(?P<m>\d+(?:[.,]\d+)?)\s?(?:m|min|mins|minutes?|minuten?|minutos?|'))?\s*"
    r"(?:(?P<s>\d+(?:[.,]\d+)?)\s?(?:s|secs?|seconds?|sek|sekunden?|secondes?|segundos?))?",
    re.IGNORECASE | re.ASCII,
)
_SHORT = re.compile(r"(?P<h>\d{1,2})h(?P<m>[0-5]\d)", re.IGNORECASE | re.ASCII)
_COLONS = re.compile(r"(\d{1,3}):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
_ISO = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?", re.ASCII)


class Moment(NamedTuple):
    """A time of day, perhaps of a date and in a zone."""

    day: date | None
    seconds: float  # after midnight
    zone: float | None  # seconds east of Greenwich


def moment(raw: Any) -> Moment | None:
    """What a clock time says; None for anything else, numbers among it."""
    if isinstance(raw, datetime):
        offset = raw.utcoffset()
        zone = None if offset is None else offset.total_seconds()
        return Moment(raw.date(), _of_day(raw.time()), zone)
    if isinstance(raw, time):
        return Moment(None, _of_day(raw), None)
    if not isinstance(raw, str) or len(raw) > LONGEST:
        return None
    match = _MOMENT.fullmatch(raw.strip())
    if match is None:
        return None
    part = match.groupdict()
    after = (part["after"] or "").lower().replace(".", "")
    dated = bool(part["y"] or part["y2"])
    if part["minute"] is None and not after:  # a number
        return None
    if part["sep"] == "." and after != "uhr":  # 8.30 is a number, 8.30 Uhr a time
        return None
    hour = int(part["hour"])
    if after in ("am", "pm"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if after == "pm" else 0)
    day = None
    if dated:
        try:
            day = date(
                int(part["y"] or part["y2"]), int(part["m"] or part["m2"]), int(part["d"] or part["d2"])
            )  # fmt: skip
        except ValueError:
            return None
        if hour > 24:
            return None
    seconds = hour * HOUR + int(part["minute"] or 0) * MINUTE + float(part["second"] or 0)
    written = (part["zone"] or "").lower()
    if written in ("", "z"):
        return Moment(day, seconds, 0.0 if written else None)
    if not part["iso"]:  # 08:00-10:00 is a stretch
        return None
    digits = written[1:].replace(":", "")
    east = float(int(digits[:2]) * HOUR + int(digits[2:]) * MINUTE)
    return Moment(day, seconds, east if written[0] == "+" else -east)


def _of_day(at: time) -> float:
    return at.hour * HOUR + at.minute * MINUTE + at.second + at.microsecond / 1e6


def stretches(raw: Any) -> list[tuple[Any, Any]] | None:
    """The ends of each stretch, as they are written, "" for an open end; None for what is none."""
    if isinstance(raw, list | tuple):
        if len(raw) == 2 and not any(isinstance(one, list | tuple) for one in raw) and not any(map(_stretch, raw)):
            return [(raw[0], raw[1])]
        found = [stretches(one) for one in raw]
        if not raw or any(one is None or len(one) != 1 for one in found):
            return None
        return [one[0] for one in found if one is not None]
    if not isinstance(raw, str) or len(raw) > LONGEST:
        return None
    parts = [_stretch(part) for part in _BETWEEN.split(raw.strip()) if part]
    return None if not parts or None in parts else [part for part in parts if part is not None]


def _stretch(text: Any) -> tuple[str, str] | None:
    if not isinstance(text, str):
        return None
    text = text.strip()
    if half := _HALF.fullmatch(text):
        return (half["at"], "") if half["word"].lower() in _LATER else ("", half["at"])
    match = _STRETCH.fullmatch(text)
    if match is None:
        return None
    first, last = match[1].strip(), match[2].strip()
    from_, to = moment(first), moment(last)
    if from_ is None and to is not None and re.fullmatch(r"\d{1,2}", first):  # 8-10 Uhr, 8-10:30
        first = f"{first}:00"
    if to is None and from_ is not None and re.fullmatch(r"\d{1,2}", last):
        last = f"{last}:00"
    from_, to = moment(first), moment(last)
    if from_ is not None and from_.day is not None and to is not None and to.day is None:
        last = f"{from_.day.isoformat()} {last}"
    return first, last


def _hours(pair: tuple[Any, Any]) -> bool:
    """Whether the ends of a stretch may be hours of the day: 8-12."""
    return all(isinstance(end, str) and re.fullmatch(r"\d{1,2}", end) and int(end) <= 24 for end in pair)


def clock_like(raw: Any) -> bool:
    """Whether a value is a clock time or holds stretches of them."""
    if moment(raw) is not None:
        return True
    found = stretches(raw)
    return found is not None and any(moment(end) is not None for pair in found for end in pair)


class Times:
    """The times of one file: `look` at all of them first, since the earliest date is the day they count from."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.clock = self.numbers = self.undated = self.hours = False
        self.zone: float | None = None
        self.first: date | None = None
        self.last: date | None = None

    def look(self, values: Iterable[Any]) -> None:
        for raw in values:
            if blank(raw) or (isinstance(raw, str) and raw.strip().lower() in ANY_TIME):
                continue
            if moment(raw) is not None:
                self._see(raw)
            elif (found := stretches(raw)) is not None:
                if isinstance(raw, str) and all(map(_hours, found)):
                    self.hours = True
                    continue
                for pair in found:
                    for end in pair:
                        self._see(end)
            else:
                self._see(raw)

    def _see(self, raw: Any) -> None:
        if blank(raw):
            return
        found = moment(raw)
        if found is None:
            self.numbers = True
            return
        self.clock = True
        if found.zone is not None and self.zone is None:
            self.zone = found.zone
        if found.day is None:
            self.undated = True
            return
        self.first = found.day if self.first is None else min(self.first, found.day)
        self.last = found.day if self.last is None else max(self.last, found.day)

    def settle(self) -> None:
        """After all times have been looked at: 8-12 is a stretch of the day unless other times are numbers."""
        self.hours = self.hours and not self.numbers
        self.clock = self.clock or self.hours

    @property
    def day(self) -> str | None:
        """As `Round.day`."""
        return None if not self.clock else "" if self.first is None else self.first.isoformat()

    def at(self, raw: Any, where: str, what: str) -> float:
        """Seconds after the midnight of the day, or the number itself where a file counts seconds."""
        found = moment(raw)
        if found is None:
            if self.hours and isinstance(raw, str) and raw.isdigit() and int(raw) <= 24:
                return float(int(raw) * HOUR)
            if isinstance(raw, str) and re.fullmatch(r"\s*\d[\d:.h ]*\s*(uhr|h|[ap]m)?\s*", raw, re.I) and ":" in raw:
                raise InputError(f"{where}: {what} is {shown(raw)}, not a time of day; write it as 08:30")
            if self.clock:
                raise InputError(f"{where}: {what} is {shown(raw)}, but other times are clock times; write it as 08:30")
            return real(raw, where, what)
        if found.day is None and self.first != self.last:
            raise InputError(f"{where}: {what} is {shown(raw)} of no date, but other times are of several days; add it")
        if self.zone is not None and found.zone is None and found.day is not None:
            raise InputError(f"{where}: {what} is {shown(raw)} without a time zone, which other times have; add it")
        seconds = found.seconds
        if found.zone is not None and self.zone is not None:
            seconds += self.zone - found.zone
        if found.day is not None and self.first is not None:
            seconds += (found.day - self.first).days * DAY
        return float(seconds)

    def windows(self, raw: Any, where: str, what: str) -> tuple[Window, ...]:
        """All stretches of a cell; in a file of numbers also one that is open to one side."""
        found = stretches(raw)
        if found is None and isinstance(raw, str) and raw.strip().lower() in ANY_TIME:
            return (ALWAYS,)
        if found is None:
            raise InputError(
                f"{where}: {what} is {shown(raw)}; a stretch as 08:00-10:00 is needed, or one end of it (from 08:00, "
                "until 10:00); write ; between several"
            )
        return tuple(self.window(first, last, where, what) for first, last in found)

    def window(self, first: Any, last: Any, where: str, what: str, what_last: str | None = None) -> Window:
        """From one time to another; a blank end is open. `what_last` names the column of the other, if it has one."""
        low = ALWAYS[0] if blank(first) else self.at(first, where, what)
        high = ALWAYS[1] if blank(last) else self.at(last, where, what_last or what)
        if high < low and self.clock:
            hours, minutes = divmod(int(high) // MINUTE, 60)
            next_day = f", or write {hours + 24}:{minutes:02d} for {_text(last)} of the next day"
            night = f"; swap them{next_day if self.first is None else ''}"
            raise InputError(f"{where}: {what} runs backwards, from {_text(first)} to {_text(last)}{night}")
        return (low, high)


def _text(raw: Any) -> str:
    return str(raw).strip()[:30]


def length(raw: Any, unit: float, where: str, what: str) -> float:
    """Seconds that something takes; a bare number counts `unit` seconds."""
    if isinstance(raw, timedelta):
        return raw.total_seconds()
    if isinstance(raw, datetime):
        raw = raw.time()
    if isinstance(raw, time):
        return _of_day(raw)
    if isinstance(raw, str) and len(raw) <= LONGEST:
        text = raw.strip()
        if (match := _SHORT.fullmatch(text)) is not None:
            return int(match["h"]) * HOUR + int(match["m"]) * MINUTE
        if (match := _COLONS.fullmatch(text)) is not None:
            return float(int(match[1]) * HOUR + int(match[2]) * MINUTE + int(match[3] or 0))
        if text and text != "PT" and (match := _ISO.fullmatch(text)) is not None:
            return float(sum(int(n or 0) * size for n, size in zip(match.groups(), (HOUR, MINUTE, 1), strict=True)))
        match = _LENGTH.fullmatch(text)
        if match is not None and any(match.groups()):
            parts = ((match["h"], HOUR), (match["m"], MINUTE), (match["s"], 1))
            return sum(real(n.replace(",", "."), where, what) * size for n, size in parts if n is not None)
    return real(raw, where, what) * unit
