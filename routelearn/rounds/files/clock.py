"""Times as people write them: clock times, ISO times, stretches of them, and how long something takes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple

from routelearn.data.numbers import blank, real, shown
from routelearn.errors import InputError
from routelearn.rounds.model import ALWAYS, Window
from routelearn.rounds.units import DAY

HOUR, MINUTE = 3_600, 60
LONGEST = 200  # characters of a cell with windows
ANY_TIME = (
    *("any", "any time", "anytime", "all day", "ganztags", "ganztägig", "egal", "flexibel", "jederzeit", "-"),
    *("toute la journée", "flexible", "indifférent", "todo el día", "cualquier hora", "24/7"),
)
_DATE = r"(?:(?P<y>\d{4})-(?P<m>\d\d?)-(?P<d>\d\d?)|(?P<d2>\d\d?)\.(?P<m2>\d\d?)\.(?P<y2>\d{4}))"
_TIME = (
    r"(?P<hour>\d{1,2})(?:(?P<sep>[:.h])(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:\.\d{1,9})?))?)?"
    r"\s?(?P<after>uhr|h|a\.?m\.?|p\.?m\.?)?"
)
_ZONE = r"(?P<zone>z|[+-][01]\d(?::?[0-5]\d)?)?"  # databases leave out the minutes
_MOMENT = re.compile(rf"(?:{_DATE}(?:\s*,?\s+|(?P<iso>t)))?{_TIME}\s?{_ZONE}", re.IGNORECASE | re.ASCII)
_BARE = re.sub(r"\?P<\w+>", "?:", _MOMENT.pattern)
_NUMBER = r"\d+(?:[.,]\d+)?"
_TO = r"(?:\s*(?:-|\u2013|\u2014|/)\s*|\s+(?:to|till|until|bis|and|und|à|au|et|a|y|hasta)\s+)"
_FROM = r"(?:(?:from|between|von|zwischen|de|entre|desde)\s+)?"
_STRETCH = re.compile(rf"{_FROM}({_BARE}|{_NUMBER}){_TO}({_BARE}|{_NUMBER})", re.IGNORECASE | re.ASCII)
_HALF = re.compile(
    rf"(?P<word>from|after|since|ab|nach|von|dès|après|desde|until|till|before|by|bis|vor|jusqu'à|avant|hasta|antes de)"
    rf"\s+(?P<at>{_BARE}|{_NUMBER})",
    re.IGNORECASE,
)
_LATER = ("from", "after", "since", "ab", "nach", "von", "dès", "après", "desde")
_BETWEEN = re.compile(r"\s*[,;|\n]\s*")
_OR = re.compile(r"\s+(?:and|und|et|y|&|\+)\s+|\s*/\s*|(?<=\w)\s+(?=\d)")  # between stretches, not between their ends
_HOUR = re.compile(r"(\d{1,2})(?:\.([0-5]\d))?", re.ASCII)  # 8, 8.30
_HALF_DAY = re.compile(r"\s?([ap])\.?m\.?", re.IGNORECASE)
_TWELVE = re.compile(r"(?:1[0-2]|[1-9])(?:[:.][0-5]\d)?", re.ASCII)  # 1, 1:30, 1.30: perhaps in the afternoon
_DENSE = re.compile(r"(\d{1,2})\.?([0-5]\d)", re.ASCII)  # 0830, 08.30
_SURELY = re.compile(r"0\d\.?[0-5]\d", re.ASCII)  # no number is written like that
_OTHER_DATE = re.compile(r"\d{1,4}/\d\d?/\d{1,4}|\b\d\d?\.\d\d?\.\d\d\b(?!\d)", re.ASCII)
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
            day = date(*(int(part[unit] or part[f"{unit}2"]) for unit in "ymd"))
        except ValueError:
            return None
        if hour > 24:
            return None
    seconds = hour * HOUR + int(part["minute"] or 0) * MINUTE + float(part["second"] or 0)
    written = (part["zone"] or "").lower()
    if written in ("", "z"):
        return Moment(day, seconds, 0.0 if written else None)
    if not part["iso"] and not (dated and (written[0] == "+" or part["second"])):  # 08:00-10:00 is a stretch
        return None
    digits = written[1:].replace(":", "")
    east = float(int(digits[:2]) * HOUR + int(digits[2:] or 0) * MINUTE)
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
    parts: list[tuple[str, str] | None] = []
    for part in filter(None, _BETWEEN.split(raw.strip())):
        one = _stretch(part)
        parts += map(_stretch, _OR.split(part)) if one is None else [one]
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
    first, last = _of_half_days(match[1].strip(), match[2].strip())
    from_, to = moment(first), moment(last)
    if from_ is None and to is not None:  # 8-10 Uhr, 8-10:30
        first = _with_colon(first)
    if to is None and from_ is not None:
        last = _with_colon(last)
    from_, to = moment(first), moment(last)
    if any(at is None and not re.fullmatch(_NUMBER, end) for at, end in ((from_, first), (to, last))):
        return None  # two stretches, of which each looks like a time with its zone
    if from_ is not None and from_.day is not None and to is not None and to.day is None:
        last = f"{from_.day.isoformat()} {last}"
    return first, last


def _of_half_days(first: str, last: str) -> tuple[str, str]:
    """Both ends with am or pm where one has it: 1-3pm begins at 1 pm, 9-5pm at 9 am, 9am-5 ends at 5 pm."""
    marks = [_HALF_DAY.search(end) for end in (first, last)]
    bare, mark = (first, marks[1]) if marks[0] is None else (last, marks[0])
    if mark is None or all(marks) or not _TWELVE.fullmatch(bare):
        return first, last
    for half in ("am", "pm") if mark[1].lower() == "a" else ("pm", "am"):
        marked = f"{_with_colon(bare)} {half}"
        pair = (marked, last) if marks[0] is None else (first, marked)
        from_, to = map(moment, pair)
        if from_ is not None and to is not None and from_.seconds <= to.seconds:
            return pair
    return first, last


def _with_colon(end: str) -> str:
    """8 and 8.30 as 8:00 and 8:30; all else as it is."""
    match = _HOUR.fullmatch(end)
    return end if match is None else f"{match[1]}:{match[2] or '00'}"


def _hours(pair: tuple[Any, Any]) -> bool:
    """Whether the ends of a stretch may be hours of the day: 8-12, 8.30-12, from 8."""
    return all(
        end == "" or (isinstance(end, str) and (match := _HOUR.fullmatch(end)) is not None and int(match[1]) <= 24)
        for end in pair
    )


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
        self.clock = self.numbers = self.undated = False
        self.hours = self.dense = False  # whether 8-12, and 0830, are times of day
        self._perhaps = False  # whether there are numbers such as 1430, which are times of day beside 0830
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
            if isinstance(raw, str) and _DENSE.fullmatch(raw.strip()):
                self._perhaps = True
                self.dense = self.dense or _SURELY.fullmatch(raw.strip()) is not None
            else:
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
        """After all times have been looked at: 8-12 and 0830 are times of day unless other times are numbers."""
        self.numbers = self.numbers or (self._perhaps and not self.dense)
        self.hours, self.dense = self.hours and not self.numbers, self.dense and not self.numbers
        self.clock = self.clock or self.hours or self.dense

    @property
    def day(self) -> str | None:
        """As `Round.day`."""
        return None if not self.clock else "" if self.first is None else self.first.isoformat()

    def at(self, raw: Any, where: str, what: str) -> float:
        """Seconds after the midnight of the day, or the number itself where a file counts seconds."""
        found = moment(raw)
        if found is None:
            if (short := self._short(raw)) is not None:
                return short
            _check_date(raw, where, what)
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

    def _short(self, raw: Any) -> float | None:
        """What 8, 8.30 or 0830 says where these are times of day."""
        for holds, pattern in ((self.hours, _HOUR), (self.dense, _DENSE)):
            if holds and isinstance(raw, str) and (match := pattern.fullmatch(raw.strip())) is not None:
                return float(int(match[1]) * HOUR + int(match[2] or 0) * MINUTE)
        return None

    def windows(self, raw: Any, where: str, what: str) -> tuple[Window, ...]:
        """All stretches of a cell; in a file of numbers also one that is open to one side."""
        if isinstance(raw, str) and raw.strip().lower() in ANY_TIME:
            return (ALWAYS,)
        if (found := stretches(raw)) is None:
            _check_date(raw, where, what)
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


def _check_date(raw: Any, where: str, what: str) -> None:
    """Refuse dates of which nobody can tell the month and the day, or the century."""
    if isinstance(raw, str) and _OTHER_DATE.search(raw[:LONGEST]):
        raise InputError(f"{where}: {what} is {shown(raw)}; write its date as 2026-11-20 or 20.11.2026")


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
