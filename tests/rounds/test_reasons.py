"""Reasons are true: without the rule that is named, and with all others, the stop can be inserted."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import replace

import pytest
from reason_cases import crowded, fits, one_more, scarce
from round_cases import line, stop, van

from routelearn.rounds import reasons
from routelearn.rounds.model import Break, Round
from routelearn.rounds.plan import Drive, Plan
from routelearn.rounds.reasons import explain, filled, with_reasons
from routelearn.rounds.referee import judge
from routelearn.rounds.survey import Survey
from routelearn.rounds.timing import RULES, plan_of, schedule

FIELDS = {  # what may differ in a round without a rule
    "skills": {"skills"}, "vehicle": {"only", "forbidden"}, "capacity": {"capacity"}, "window": {"windows"},
    "end": {"shift"}, "max_stops": {"max_stops"}, "max_duration": {"max_duration"}, "max_driving": {"max_driving"},
    "max_distance": {"max_distance"}, "break": {"breaks"}, "backhauls": {"backhauls"}, "number": {"number"},
    "stops_apart": {"most_stops_apart"}, "time_apart": {"most_time_apart"}, "penalty": set(), "": set(),
}  # fmt: skip


def differing(a: Round, b: Round) -> set[str]:
    """The fields of rounds, stops and vehicles in which two rounds differ."""
    found = {f.name for f in dataclasses.fields(Round) if f.name not in ("stops", "vehicles", "legs", "xy", "latlon")
             and getattr(a, f.name) != getattr(b, f.name)}  # fmt: skip
    for one, other in zip((*a.stops, *a.vehicles), (*b.stops, *b.vehicles), strict=True):
        found |= {f.name for f in dataclasses.fields(one) if getattr(one, f.name) != getattr(other, f.name)}
    return found


def test_without_the_named_rule_alone_the_stop_fits() -> None:
    named: Counter[str] = Counter()
    for seed in range(220):
        round, plan = scarce(seed)
        assert not plan.violations
        for entry in plan.unassigned:
            found = explain(round, plan, entry.stop)
            rules = found.rule.split(" and ")
            assert set(rules) <= {*RULES, "penalty", ""}
            possible = fits(round, plan, entry.stop)
            assert possible == (found.rule in ("", "penalty")), (seed, entry.stop, found.words)
            assert fits(found.relaxed, plan, entry.stop), (seed, entry.stop, found.words)
            assert differing(round, found.relaxed) <= set().union(*(FIELDS[rule] for rule in rules))
            for rule in rules if len(rules) > 1 else ():  # each of several is needed
                assert FIELDS[rule] & differing(round, found.relaxed), (seed, found.words)
            named.update([found.rule])
    assert sum(named.values()) > 250
    assert {"skills", "vehicle", "capacity", "window", "end", "max_stops", "number"} <= set(named)
    single = sum(number for rule, number in named.items() if " and " not in rule)
    assert single > 0.5 * sum(named.values())


FULL = [stop(0, delivery=(5.0,)), stop(1, delivery=(5.0,))]


@pytest.mark.parametrize(
    ("round", "drives", "words"),
    [
        (
            line([stop(0), stop(1, skills=frozenset({"3"}))], van()),
            [Drive(0, (0,))],
            "needs skill 3, which no vehicle has",
        ),
        (
            line(
                [stop(0), stop(1, skills=frozenset({"3"}))], van(), van(id="lift", skills=frozenset({"3"}), max_stops=0)
            ),
            [Drive(0, (0,))],
            "needs skill 3, which no free vehicle has",
        ),
        (
            line([stop(0), stop(1, windows=((0.0, 36_000.0),))], van(shift=(36_880, 50_000)), day=""),
            [Drive(0, (0,))],
            "cannot be reached before 10:15 (its window ends 10:00)",
        ),
        (
            line([*FULL, stop(2, delivery=(120.0,))], van(capacity=(10.0,)), dimensions=("kg",)),
            [Drive(0, (0, 1))],
            "no vehicle holds 120 kg",
        ),
        (line([*FULL], van(capacity=(8.0,))), [Drive(0, (0,))], "every vehicle that could take it is full"),
        (
            line(2, van(shift=(0.0, 30.0))),
            [Drive(0, (0,))],
            "the shift of every free vehicle ends before: vehicle van would end at 40, its shift ends 30",
        ),
        (
            line(2, van(id="vehicle", max_stops=1)),
            [Drive(0, (0,))],
            "with it, a vehicle makes 2 stops; at most 1 is allowed",
        ),
        (line(2, van(max_stops=1)), [Drive(0, (0,))], "with it, vehicle van makes 2 stops; at most 1 is allowed"),
        (
            line([stop(0), stop(1, only=frozenset({"other"}))], van(), van(id="other", max_distance=1)),
            [Drive(0, (0,))],
            "may be served by other only, which is not free for it",
        ),
        (
            line([stop(0, windows=((10.0, 10.0),)), stop(1, service=9.0)], van(shift=(0, 48))),
            [Drive(0, (0,))],
            "the shift of every free vehicle ends before: vehicle van would end at 49, its shift ends 48",
        ),
        (
            line([stop(i, windows=((0.0, 10.0 * (i + 1)),), service=9.0 if i == 1 else 0.0) for i in range(3)]),
            [Drive(0, (0, 2))],
            "would make vehicle van late at s2",
        ),
    ],
)
def test_words(round: Round, drives: list[Drive], words: str) -> None:
    plan = plan_of(replace(round, allow_unassigned=True), drives)
    assert not plan.violations
    assert explain(round, plan, plan.unassigned[0].stop).words == words


def test_reasons_of_a_large_round_are_true() -> None:
    """Where many stops are left out, few places are tried for each."""
    round, plan = crowded(1, 150)
    assert len(plan.unassigned) > 40
    told = with_reasons(round, plan)
    for entry in told.unassigned[::4]:
        assert one_more(round, plan, entry.stop) is None, entry.reason
        found = explain(round, plan, entry.stop, survey=Survey(round, plan), most=1)
        assert found.words == entry.reason
        more = one_more(found.relaxed, plan, entry.stop)
        assert more is not None, entry.reason
        assert not judge(found.relaxed, more).violations


def test_several_rules_are_all_named() -> None:
    round = line([stop(0, skills=frozenset({"3"}), delivery=(9.0,))], van(capacity=(5.0,)), allow_unassigned=True)
    found = explain(round, plan_of(round, []), 0)
    assert (found.words, found.rule) == (
        "needs skill 3, which no vehicle has and no vehicle holds 9",
        "capacity and skills",
    )


def test_a_trip_of_its_own_is_tried() -> None:
    round = line(FULL, van(capacity=(8.0,), trips=2, reloads=(0,), shift=(0.0, 60.0)))
    plan = plan_of(replace(round, allow_unassigned=True), [Drive(0, (0,))])
    assert explain(round, plan, 1).words == "was not assigned, though vehicle van could serve it"
    short = replace(round, vehicles=(replace(round.vehicles[0], shift=(0.0, 50.0)),))
    assert explain(short, plan, 1).rule == "capacity"


def test_a_stop_that_fits_is_filled_in_where_it_is_cheapest() -> None:
    round = line([stop(0), stop(1), stop(2, penalty=5.0), stop(3, skills=frozenset({"9"}))], allow_unassigned=True)
    plan = filled(round, plan_of(round, [Drive(0, (0,))]))
    assert len(plan.routes) == 1
    assert set(plan.routes[0].stops) == {0, 1}
    assert plan.cost == 45, "there and back, and the penalty"
    assert not plan.violations
    assert [one.stop for one in plan.unassigned] == [2, 3], "one for its penalty, one for its skill"


def test_a_stop_that_is_left_out_for_its_penalty() -> None:
    round = line([stop(0), stop(1, penalty=5.0)])
    found = explain(round, plan_of(round, [Drive(0, (0,))]), 1)
    assert found.words == "would cost 20 more to serve; leaving it out costs 5"


def test_a_stop_that_would_leave_no_time_for_a_break() -> None:
    two = (Break(id="a", windows=((2.0, 5.0),), service=30.0), Break(id="b", windows=((6.0, 9.0),), service=5.0))
    round = line(1, van(breaks=two), allow_unassigned=True)
    found = explain(round, plan_of(round, []), 0)
    assert found.words == "with it, vehicle van is still out at 9 without its break b"
    assert fits(found.relaxed, plan_of(round, []), 0)


def test_every_stop_left_out_gets_its_reason() -> None:
    round = line([stop(0), stop(1, skills=frozenset({"3"})), stop(2, penalty=1.0)], allow_unassigned=True)
    plan = with_reasons(round, plan_of(round, [Drive(0, (0,))]))
    assert [entry.reason for entry in plan.unassigned] == [
        "needs skill 3, which no vehicle has", "would cost 40 more to serve; leaving it out costs 1",
    ]  # fmt: skip
    assert not judge(round, plan).violations


def full_line(count: int) -> tuple[Round, Plan]:
    """So many stops at one place, of which a van takes 30."""
    stops = [replace(stop(1, delivery=(1.0,)), id=f"s{i}") for i in range(count)]
    round = line(stops, van(capacity=(30.0,)), allow_unassigned=True)
    return round, plan_of(round, [Drive(0, tuple(range(30)))])


def test_reasons_of_many_stops_take_few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    round, plan = full_line(430)
    asked: list[Drive] = []

    def counted(round: Round, drive: Drive) -> object:
        asked.append(drive)
        return schedule(round, drive)

    monkeypatch.setattr(reasons, "schedule", counted)
    told = with_reasons(round, plan).unassigned
    assert {entry.reason for entry in told} == {"every vehicle that could take it is full"}
    assert len(told) == 400
    assert len(asked) <= 4 * len(told)  # all 31 places of each would be 12,400


def test_without_time_the_words_say_so() -> None:
    round, plan = full_line(32)
    assert [entry.reason for entry in with_reasons(round, plan, until=0.0).unassigned] == 2 * [reasons.NO_TIME]
