"""Times are spoken as they came in."""

from __future__ import annotations

import math

import pytest

from routelearn.rounds.units import length, spoken


@pytest.mark.parametrize(
    ("day", "seconds", "words"),
    [
        (None, 36_900.0, "36900"),
        (None, 0.1 + 0.2, "0.3"),
        ("", 36_900.0, "10:15"),
        ("", 36_930.0, "10:15:30"),
        ("", 36_899.7, "10:15"),  # not 10:14:59
        ("", 86_400.0 + 300, "00:05 (+1 day)"),
        ("", 2 * 86_400.0, "00:00 (+2 days)"),
        ("", -300.0, "23:55 (-1 day)"),
        ("2026-11-16", 36_900.0, "10:15"),
        ("2026-12-31", 86_400.0 + 36_900, "10:15 on 2027-01-01"),
        ("2026-11-16", math.inf, "inf"),
    ],
)
def test_times(day: str | None, seconds: float, words: str) -> None:
    assert spoken(day, seconds) == words


@pytest.mark.parametrize(
    ("day", "seconds", "words"),
    [
        (None, 90.5, "90.5"), ("", 40.0, "40 s"), ("", 60.0, "1 min"), ("", 61.0, "1 min 1 s"),
        ("", 7500.0, "2 h 05 min"),
        ("", 3600.0, "1 h 00 min"), ("", 7531.0, "2 h 05 min 31 s"), ("", 0.0, "0 s"),
    ],
)  # fmt: skip
def test_lengths(day: str | None, seconds: float, words: str) -> None:
    assert length(day, seconds) == words
