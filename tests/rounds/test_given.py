"""A day that is planned again at a moment: what has begun stays as it was, the rest begins later."""

from __future__ import annotations

from dataclasses import replace

import pytest
from answer_cases import DRIVES, HOUR, city, planned, with_lunch

from routelearn.errors import InputError
from routelearn.rounds.given import driven_on, given_plan, kept_until, moment_of, without_cancelled
from routelearn.rounds.plan import Drive
from routelearn.rounds.timing import plan_of


def at_ten(document, *, marked=False):
    return kept_until(
        city(), given_plan(city(), document["routes"], "morning.json"), "morning.json", "10:00", marked=marked
    )


def test_kept_stops_begin_when_the_plan_says():
    document = planned().document()
    document["routes"][0]["visits"][1]["start"] = "08:40:00"
    round_, drives = at_ten(document)
    assert round_.vehicles[0].kept == (0, 1, 2)
    assert round_.stops[0].windows == ((HOUR * 8 + 2400, HOUR * 8 + 2400),)
    more = (Drive(drives[0].vehicle, (*drives[0].order, 3)), *drives[2:])
    visits = plan_of(round_, more).routes[0].visits
    assert visits[1].start == HOUR * 8 + 2400, "a stop more at the end delays no start"


def test_starts_are_the_same_whether_the_plan_says_them_or_not():
    """Or a plan that was written and read again would cost something else."""
    legs = {name: replace(legs, duration=legs.duration * 1.0007) for name, legs in city().legs.items()}
    base = city(legs=legs)
    said = planned(base).document()
    bare = {"routes": [{"vehicle": route["vehicle"], "stops": route["stops"]} for route in said["routes"]]}
    rounds = [kept_until(base, given_plan(base, one["routes"], "m.json"), "m.json", "10:00")[0] for one in (said, bare)]
    assert rounds[0].stops == rounds[1].stops
    assert all(start == int(start) for start, _ in (stop.windows[0] for stop in rounds[0].stops[:3]))


def test_nothing_else_begins_before_the_moment():
    round_, drives = at_ten({"routes": [{"vehicle": "van", "stops": ["Ana", "Bo"]}]})
    assert round_.vehicles[0].kept == (0, 1)
    assert [vehicle.shift for vehicle in round_.vehicles] == [(8 * HOUR, 16 * HOUR), (10 * HOUR, 16 * HOUR)]
    assert [stop.windows for stop in round_.stops[2:]] == [((10 * HOUR, end * HOUR),) for end in (12, 16, 16)]
    assert plan_of(round_, (*drives, Drive(1, (3,)))).routes[1].visits[0].departure >= 10 * HOUR


def test_windows_that_are_over_stay():
    round_, _ = at_ten({"routes": [{"vehicle": "van", "stops": ["Bo"]}]})
    assert round_.stops[0].windows == ((8 * HOUR, 9 * HOUR),)


def test_marks_count_beside_a_moment_where_they_are_asked_for():
    base, kept = city(), city().vehicles[0]
    marked = planned(replace(base, vehicles=(replace(kept, kept=(0,)), base.vehicles[1])), DRIVES).document()
    assert at_ten(marked, marked=True)[0].vehicles[0].kept == (0,)
    assert at_ten(marked)[0].vehicles[0].kept == (0, 1, 2)


def test_breaks_that_were_taken_stay_and_others_begin_later():
    base = with_lunch()
    said = planned(base, (Drive(0, (0, 1, 2)),)).document()["routes"]
    lunch = next(visit for visit in said[0]["visits"] if visit["kind"] == "break")
    found = kept_until(base, given_plan(base, said, "m.json"), "m.json", "10:00")[0]
    assert found.vehicles[0].breaks[0].windows == ((moment_of(base, lunch["start"], "lunch"), 9 * HOUR),)
    van = base.vehicles[0]
    missed = [{"kind": "stop", "id": "Ana"}, {"kind": "break", "id": "lunch", "start": "11:00:00"}]
    for windows, left in (((9.5, 11.0), (10.0, 11.0)), ((8.75, 9.0), (10.0, 10.0))):
        rest = replace(van.breaks[0], windows=((windows[0] * HOUR, windows[1] * HOUR),))
        round_ = replace(base, vehicles=(replace(van, breaks=(rest,)), base.vehicles[1]))
        given = given_plan(round_, [{"vehicle": "van", "stops": ["Ana"], "visits": missed}], "m.json")
        found = kept_until(round_, given, "m.json", "10:00")[0]
        assert found.vehicles[0].breaks[0].windows == ((left[0] * HOUR, left[1] * HOUR),)


def test_a_break_that_was_over_when_the_vehicle_left_is_not_due_later():
    base = with_lunch()
    rest = replace(base.vehicles[0].breaks[0], windows=((6 * HOUR, 7 * HOUR),))
    round_ = replace(base, vehicles=(replace(base.vehicles[0], breaks=(rest,)), base.vehicles[1]))
    kept, drives = kept_until(
        round_, given_plan(round_, [{"vehicle": "van", "stops": ["Ana"]}], "m.json"), "m.json", "10:00"
    )
    assert kept.vehicles[0].breaks == (rest,)
    visits = plan_of(kept, (Drive(0, (*drives[0].order, 3)),)).routes[0].visits
    assert not [visit for visit in visits if visit.kind == "break"]


def test_what_is_left_of_a_plan_is_driven_on_where_it_keeps_the_rules():
    base = with_lunch()
    round_ = replace(base, vehicles=(replace(base.vehicles[0], kept=(0, 1)), base.vehicles[1]))
    fine, bikes = (0, ~0, 1, 2), (Drive(1, (3,)), Drive(1, (4,)))
    assert driven_on(round_, [Drive(0, fine), *bikes]) == (Drive(0, fine), *bikes)
    assert driven_on(round_, [Drive(0, (0, ~0, 1, ~0, 2)), Drive(1, (3, 4))]) == (Drive(0, (0, ~0, 1)),)  # trips, load
    fewer = replace(round_, vehicles=(round_.vehicles[0], replace(base.vehicles[1], number=1)))
    assert driven_on(fewer, [Drive(0, fine), *bikes]) == (Drive(0, fine), bikes[0])


def test_starts_on_the_next_day_and_in_another_zone():
    base = city(day="2026-11-16", zone=3600.0)
    said = planned(base).document()
    assert said["routes"][0]["visits"][1]["start"] == "2026-11-16T09:00:00+01:00"
    said["routes"][0]["visits"][1]["start"] = "2026-11-17T00:30:00Z"
    given = given_plan(base, said["routes"], "m.json")
    assert kept_until(base, given, "m.json", "2026-11-18T12:00+01:00")[0].stops[0].windows == (
        (25.5 * HOUR, 25.5 * HOUR),
    )


def test_a_start_that_is_no_time_is_refused():
    document = planned().document()
    document["routes"][0]["visits"][1]["start"] = "soon"
    with pytest.raises(InputError, match=r"morning\.json: Ana: the round's times need a clock time"):
        at_ten(document)


def test_stops_that_were_cancelled_are_left_out_of_a_plan_unless_they_are_kept():
    routes = planned().document()["routes"]
    stops, visits = routes[0]["stops"], [one for one in routes[0]["visits"] if one["kind"] == "stop"]
    at = visits[1]["start"]  # when the second stop begins
    fewer = city(stops=city().stops[3:])  # none of the first route
    found, gone = without_cancelled(fewer, routes, at)
    assert (found[0]["stops"], gone) == (stops[:2], stops[2:])
    assert [one["id"] for one in found[0]["visits"] if one["kind"] == "stop"] == stops[:2]
    with pytest.raises(InputError, match=f"route 1 visits '{stops[0]}', which is not among the stops"):
        given_plan(fewer, found, "morning.json")
    assert without_cancelled(fewer, routes, "05:00")[0][0]["stops"] == []
    assert without_cancelled(fewer, routes, None)[1] == []
    assert without_cancelled(fewer, routes, None, marked=True)[1] == sorted(stops)
    visits[0]["kept"] = True
    assert without_cancelled(fewer, routes, None)[0][0]["stops"] == stops[:1]
    assert without_cancelled(fewer, [{"stops": stops}], at) == ([{"stops": stops}], [])


def test_goods_that_come_after_a_vehicle_has_left_for_good_go_with_another():
    base = city()
    late = replace(base, stops=(*base.stops[:3], replace(base.stops[3], release=11 * HOUR), *base.stops[4:]))
    routes = [{"vehicle": "van", "stops": ["Ana", "Bo"]}]

    def forbidden(round_, document=routes):
        kept, _ = kept_until(round_, given_plan(round_, document, "m.json"), "m.json", "10:00")
        return [stop.forbidden - before.forbidden for stop, before in zip(kept.stops, round_.stops, strict=True)]

    nothing: list[frozenset[str]] = [frozenset()] * 5
    assert forbidden(base) == nothing
    assert forbidden(late) == [*nothing[:3], frozenset({"van"}), *nothing[4:]]
    again = replace(late.vehicles[0], trips=2, reloads=(0,))
    assert forbidden(replace(late, vehicles=(again, late.vehicles[1]))) == nothing, "it may come back for them"
    two = replace(late.vehicles[0], number=2)
    assert forbidden(replace(late, vehicles=(two, late.vehicles[1]))) == nothing, "another van has not left"
    gone = [*routes, {"vehicle": "van", "stops": ["Cy"]}]
    assert forbidden(replace(late, vehicles=(two, late.vehicles[1])), gone)[3] == {"van"}


def test_a_time_without_a_date_is_of_a_rounds_only_day():
    base = city(day="2026-11-16", zone=3600.0)
    assert moment_of(base, "10:00", "--until 10:00") == moment_of(base, "2026-11-16T10:00+01:00", "") == 10 * HOUR
    night = replace(base, vehicles=(replace(base.vehicles[0], shift=(20 * HOUR, 28 * HOUR)), base.vehicles[1]))
    with pytest.raises(InputError, match="of no date, but other times are of several days; add it"):
        moment_of(night, "10:00", "--until 10:00")
