"""Clock times, ISO times, stretches and lengths as people write them."""

from __future__ import annotations

import pytest

from routelearn.errors import InputError
from routelearn.rounds.files.clock import Times, length, moment, stretches

H, M = 3600, 60


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("08:00", 8 * H),
        ("8:05", 8 * H + 5 * M),
        ("08:00:30", 8 * H + 30),
        ("8h", 8 * H),
        ("8h30", 8 * H + 30 * M),
        ("8 Uhr", 8 * H),
        ("8.30 Uhr", 8 * H + 30 * M),
        ("8 am", 8 * H),
        ("8:30 PM", 20 * H + 30 * M),
        ("12:00 a.m.", 0),
        ("24:00", 24 * H),
        ("30:00", 30 * H),
        ("2026-11-16T08:00", 8 * H),
        ("2026-11-16 08:00:00", 8 * H),
        ("16.11.2026 8:00", 8 * H),
        ("2026-11-16 08:00:00+01:00", 8 * H),
        ("2026-11-16 08:00:00-05:00", 8 * H),
        ("2026-11-16 08:00:00-05", 8 * H),
        ("2026-11-16 08:00:00.5+01", 8 * H + 0.5),
        ("2026-11-16T08:00:00Z", 8 * H),
        ("2026-11-16T08:00+01:00", 8 * H),
    ],
)
def test_moments(text, seconds):
    found = moment(text)
    assert found is not None
    assert found.seconds == seconds


@pytest.mark.parametrize(
    "text", ["8", "8.30", "0800", "8:61", "13 pm", "2026-02-30 08:00", "08:00-10:00", "", "noon", 8]
)
def test_what_is_no_clock_time(text):
    assert moment(text) is None


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ("08:00-10:00", ((8 * H, 10 * H),)),
        ("08:00 \u2013 10:00", ((8 * H, 10 * H),)),
        ("8-10 Uhr", ((8 * H, 10 * H),)),
        ("8:00 bis 10:00", ((8 * H, 10 * H),)),
        ("8h à 10h30", ((8 * H, 10.5 * H),)),
        ("08:00-10:00; 14:00-15:00", ((8 * H, 10 * H), (14 * H, 15 * H))),
        ("08:00-10:00, 14:00-15:00", ((8 * H, 10 * H), (14 * H, 15 * H))),
        ("ab 9:00", ((9 * H, float("inf")),)),
        ("before 10:00", ((float("-inf"), 10 * H),)),
        (["08:00", "10:00"], ((8 * H, 10 * H),)),
        ([["08:00", "10:00"], ["11:00", "12:00"]], ((8 * H, 10 * H), (11 * H, 12 * H))),
        (["08:00-09:00", "10:00-11:00"], ((8 * H, 9 * H), (10 * H, 11 * H))),
        ("2026-11-16T08:00/2026-11-17T02:00", ((8 * H, 26 * H),)),
        ("2026-11-16 08:00-10:00", ((8 * H, 10 * H),)),
        ("2026-11-16 08:00-10", ((8 * H, 10 * H),)),
        ("2026-11-16 08:00:00-05:00/2026-11-16 10:00:00-05:00", ((8 * H, 10 * H),)),
        ("2026-11-16 08:00:00-05 - 2026-11-16 10:00:00-05", ((8 * H, 10 * H),)),
        ("8:00-10", ((8 * H, 10 * H),)),
        ("von 8:00 bis 10:00", ((8 * H, 10 * H),)),
        ("zwischen 8 und 10 Uhr", ((8 * H, 10 * H),)),
        ("entre 14h et 16h", ((14 * H, 16 * H),)),
        ("8.30 - 10 Uhr", ((8.5 * H, 10 * H),)),
        ("08:00-10:00 und 14:00-15:00", ((8 * H, 10 * H), (14 * H, 15 * H))),
        ("08:00-10:00/14:00-15:00", ((8 * H, 10 * H), (14 * H, 15 * H))),
        ("8-12 / 13-17", ((8 * H, 12 * H), (13 * H, 17 * H))),
        ("8.30-12", ((8.5 * H, 12 * H),)),
        ("ab 8", ((8 * H, float("inf")),)),
        ("0830-1215", ((8.5 * H, 12.25 * H),)),
        ("08.00-10.00", ((8 * H, 10 * H),)),
        ("1-3pm", ((13 * H, 15 * H),)),
        ("between 1.30 and 3 p.m.", ((13.5 * H, 15 * H),)),
        ("9-5pm", ((9 * H, 17 * H),)),
        ("9am-5", ((9 * H, 17 * H),)),
        ("1pm-3:30", ((13 * H, 15.5 * H),)),
        ("12-1pm", ((12 * H, 13 * H),)),
        ("08:00-3pm", ((8 * H, 15 * H),)),
        ("1-3 PM and 5-7 PM", ((13 * H, 15 * H), (17 * H, 19 * H))),
        ("24/7", ((float("-inf"), float("inf")),)),
        ("480-600", ((480, 600),)),
        ("1.5-3", ((1.5, 3),)),
        ([[0, 10.5]], ((0, 10.5),)),
    ],
)
def test_windows(raw, found):
    times = Times("a.csv")
    times.look([raw])
    times.settle()
    assert times.windows(raw, "a.csv, line 2", "window") == found


@pytest.mark.parametrize(
    ("texts", "seconds"),
    [
        (("0830", "1200", "945"), (8.5 * H, 12 * H, 9.75 * H)),
        (("08.30", "12.00"), (8.5 * H, 12 * H)),
        (("0830", "12:00"), (8.5 * H, 12 * H)),
        (("830", "1200"), (830, 1200)),
        (("0830", "5"), (830, 5)),
        (("8.30", "12.00"), (8.3, 12)),
    ],
)
def test_numbers_are_times_of_day_where_one_begins_with_a_zero_and_all_could_be(texts, seconds):
    times = Times("a.csv")
    times.look(texts)
    times.settle()
    assert tuple(times.at(text, "a.csv, line 2", "from") for text in texts) == seconds


def test_an_open_stretch_of_hours_leaves_the_others_hours():
    times = Times("a.csv")
    times.look(["8-12", "ab 9"])
    times.settle()
    assert times.windows("8-12", "a", "b") == ((8 * H, 12 * H),)


def test_the_earliest_date_is_the_day():
    times = Times("a.csv")
    times.look(["2026-11-17T01:00", "2026-11-16T22:00"])
    assert times.day == "2026-11-16"
    assert times.at("2026-11-17T01:00", "w", "t") == 25 * H
    assert times.at("2026-11-16T22:00", "w", "t") == 22 * H


def test_zones_are_those_of_the_first_time():
    times = Times("a.csv")
    times.look(["2026-11-16T08:00+01:00", "2026-11-16T08:00Z"])
    assert times.at("2026-11-16T08:00+01:00", "w", "t") == 8 * H
    assert times.at("2026-11-16T08:00Z", "w", "t") == 9 * H


@pytest.mark.parametrize(
    ("look", "raw", "words"),
    [
        (["08:00"], "480", "'480', but other times are clock times"),
        (["08:00"], "25:99", "not a time of day; write it as 08:30"),
        (["2026-11-16 08:00", "2026-11-17 08:00"], "08:00", "of no date, but other times are of several days"),
        (["2026-11-16T08:00Z"], "2026-11-16T08:00", "without a time zone"),
        (["20/11/2026 08:00"], "20/11/2026 08:00", "write its date as 2026-11-20 or 20.11.2026"),
        (["20.11.26 08:00"], "20.11.26 08:00", "write its date as 2026-11-20 or 20.11.2026"),
    ],
)
def test_times_that_do_not_fit(look, raw, words):
    times = Times("a.csv")
    times.look(look)
    with pytest.raises(InputError, match=words):
        times.at(raw, "a.csv, line 3", "window")


def test_clock_times_that_go_backwards():
    times = Times("a.csv")
    times.look(["22:00-06:00"])
    with pytest.raises(
        InputError, match="Nacht runs backwards, from 22:00 to 06:00; swap them, or write 30:00 for 06:00 of the next"
    ):
        times.windows("22:00-06:00", "a.csv, line 3", "Nacht")
    assert times.windows("22:00-30:00", "a.csv, line 3", "Nacht") == ((22 * H, 30 * H),)


@pytest.mark.parametrize(
    ("raw", "seconds"),
    [
        *(("5", 300), (5, 300), ("2.5", 150), ("5 min", 300), ("1h30", 5400), ("0:05", 300), ("PT5M", 300)),
        *(("90 s", 90), ("1 h 30 min", 5400), ("0,5 h", 1800), ("0:00:45", 45)),
    ],
)
def test_lengths(raw, seconds):
    assert length(raw, 60, "a", "b") == seconds


@pytest.mark.parametrize("raw", ["", "xx", "5 apples", "PT", None, [], "nan"])
def test_what_is_no_length(raw):
    with pytest.raises(InputError):
        length(raw, 60, "a", "b")


@pytest.mark.parametrize("raw", [None, 5, "x", "08:00", [], [[]], [[1]], {}, "08:00-", "-"])
def test_what_is_no_stretch(raw):
    assert stretches(raw) is None
