"""Times, loads, breaks, cost and violations against numbers found by hand, rule by rule of docs/guides/rounds.md."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from round_cases import line, stop, van

from routelearn.rounds.model import ANY, Break, Legs, Round
from routelearn.rounds.plan import Drive, Plan, Unassigned
from routelearn.rounds.referee import judge
from routelearn.rounds.timing import RULES, plan_of, rank, schedule

DOC = Path(__file__).parents[2] / "docs" / "guides" / "rounds.md"


def planned(round: Round, *drives: Drive) -> Plan:
    """The plan, about whose rules the referee must agree."""
    plan = plan_of(round, drives)
    verdict = judge(round, plan)
    assert {v.rule for v in verdict.violations} == {v.rule for v in plan.violations}
    assert verdict.cost == pytest.approx(plan.cost)
    return plan


def times(plan: Plan, route: int = 0) -> list[tuple[str, float, float, float]]:
    return [(v.kind, v.arrival, v.start, v.departure) for v in plan.routes[route].visits]


def broken(plan: Plan) -> list[tuple[str, float]]:
    return [(violation.rule, violation.by) for violation in plan.violations]


def test_every_rule_of_the_page_has_a_name() -> None:
    numbers = {int(number) for number in re.findall(r"^(\d+)\. \*\*", DOC.read_text(), re.MULTILINE)}
    assert numbers == set(RULES.values()) - {0} == set(range(1, 15))


# 1. Start


def test_leaves_no_earlier_than_the_shift_begins() -> None:
    plan = planned(line(1, van(shift=(100, 200))), Drive(0, (0,)))
    assert times(plan) == [("start", 100, 100, 100), ("stop", 110, 110, 110), ("end", 120, 120, 120)]
    assert not plan.violations


def test_a_shift_without_a_beginning_begins_at_0() -> None:
    assert times(planned(line(1), Drive(0, (0,))))[0] == ("start", 0, 0, 0)


def test_each_trip_leaves_no_earlier_than_its_goods_are_there() -> None:
    round = line(
        [stop(0, release=50.0), stop(1, release=30.0), stop(2, release=200.0)],
        van(trips=2, reloads=(0,), reload_time=5.0),
    )
    plan = planned(round, Drive(0, (0, 1, ~0, 2)))
    # as early as possible: leaves at 50, back at 90, reloads until 200; it leaves 105 later instead of waiting
    assert times(plan) == [
        ("start", 155, 155, 155), ("stop", 165, 165, 165), ("stop", 175, 175, 175), ("reload", 195, 195, 200),
        ("stop", 230, 230, 230), ("end", 260, 260, 260),
    ]  # fmt: skip


def test_a_vehicle_without_a_start_begins_on_arrival_at_its_first_stop() -> None:
    plan = planned(line(2, van(start=None, shift=(7, 100))), Drive(0, (1, 0)))
    assert times(plan) == [("start", 7, 7, 7), ("stop", 7, 7, 7), ("stop", 17, 17, 17), ("end", 27, 27, 27)]
    assert plan.routes[0].distance == 20


# 2. Legs


def test_legs_are_those_of_the_profile() -> None:
    away = np.arange(36.0).reshape(6, 6)
    round = line(1, van(profile="lorry", driving_cost=3.0))
    round = line(1, *round.vehicles, legs={**round.legs, "lorry": Legs(away, 2 * away)})
    plan = planned(round, Drive(0, (0,)))
    assert [(v.distance, v.driving) for v in plan.routes[0].visits] == [(0, 0), (1, 2), (6, 12)]
    assert plan.cost == 7 + 3 * 14


# 3. Windows


def test_leaves_late_so_that_it_need_not_wait() -> None:
    plan = planned(line([stop(0, windows=((50.0, 60.0),), service=5.0), stop(1)]), Drive(0, (0, 1)))
    assert times(plan) == [("start", 40, 40, 40), ("stop", 50, 50, 55), ("stop", 65, 65, 65), ("end", 85, 85, 85)]


def test_leaves_no_later_than_an_earlier_window_allows() -> None:
    round = line([stop(0, windows=((0.0, 20.0),)), stop(1, windows=((100.0, 110.0),))])
    assert times(planned(round, Drive(0, (0, 1)))) == [
        ("start", 10, 10, 10), ("stop", 20, 20, 20), ("stop", 30, 100, 100), ("end", 120, 120, 120),
    ]  # fmt: skip


def test_waits_for_the_next_of_several_windows() -> None:
    round = line([stop(0, service=20.0), stop(1, windows=((0.0, 30.0), (70.0, 80.0)))])
    assert times(planned(round, Drive(0, (0, 1))))[2] == ("stop", 70, 70, 70)


@pytest.mark.parametrize(("price", "rules", "cost"), [(None, [("window", 15)], 40), (2.0, [], 40 + 2 * 15)])
def test_late_is_a_violation_or_has_its_price(price: float | None, rules: list, cost: float) -> None:
    round = line([stop(0, service=10.0), stop(1, windows=((0.0, 15.0),), late_cost=price)])
    plan = planned(round, Drive(0, (0, 1)))
    assert (broken(plan), plan.cost) == (rules, cost)


# 4. Service


def test_setup_only_where_the_vehicle_comes_from_another_place() -> None:
    stops = [stop(0, service=5.0, setup=3.0), stop(1, place=1, service=5.0, setup=3.0), stop(2, place=0, setup=9.0)]
    plan = planned(line(stops), Drive(0, (2, 0, 1)))  # the first is where the vehicle starts
    assert [v.departure - v.start for v in plan.routes[0].visits] == [0, 0, 8, 5, 0]
    apart = planned(line(stops, van(start=None)), Drive(0, (2, 0, 1)))
    assert [v.departure - v.start for v in apart.routes[0].visits] == [0, 9, 8, 5, 0]


# 5. Loads


def test_loads_of_deliveries_pickups_and_shipments() -> None:
    stops = [stop(0, delivery=(4.0,)), stop(1, pickup=(2.0,)), stop(2, pickup=(3.0,)), stop(3, delivery=(3.0,))]
    round = line(stops, van(capacity=(5.0,)), shipments=((2, 3),))
    plan = planned(round, Drive(0, (0, 1, 2, 3)))
    assert [v.load for v in plan.routes[0].visits] == [(4,), (0,), (2,), (5,), (2,), (2,)]
    assert not plan.violations
    assert broken(planned(round, Drive(0, (1, 2, 0, 3)))) == [("capacity", 1.0), ("capacity", 4.0)]


def test_every_dimension_is_held() -> None:
    stops = [stop(0, delivery=(1.0, 9.0)), stop(1, delivery=(1.0,))]
    plan = planned(line(stops, van(capacity=(5.0, 8.0))), Drive(0, (0, 1)))
    assert broken(plan) == [("capacity", 1.0)]
    assert plan.violations[0].words == "vehicle van has 9 aboard from the start; it holds 8"


@pytest.mark.parametrize("order", [(1, 0), (0, ~0, 1)])
def test_a_shipment_is_picked_up_first_on_the_same_trip(order: tuple[int, ...]) -> None:
    round = line([stop(0, pickup=(1.0,)), stop(1, delivery=(1.0,))], van(trips=2, reloads=(0,)), shipments=((0, 1),))
    assert broken(planned(round, Drive(0, order))) == [("shipment", 1.0)]
    assert not planned(round, Drive(0, (0, 1))).violations


def test_a_shipment_is_on_one_vehicle() -> None:
    round = line(2, van(number=2), shipments=((0, 1),))
    assert broken(planned(round, Drive(0, (0,)), Drive(0, (1,)))) == [("shipment", 1.0)]


# 6. Backhauls last


def test_no_delivery_after_a_pickup_on_a_trip() -> None:
    stops = [stop(0, delivery=(1.0,)), stop(1, pickup=(1.0,)), stop(2, pickup=(1.0,)), stop(3, delivery=(1.0,))]
    round = line(stops, van(trips=2, reloads=(0,)), backhauls="last", shipments=((2, 3),))
    assert not planned(round, Drive(0, (2, 3, 0, 1))).violations  # shipments are not meant
    assert broken(planned(round, Drive(0, (2, 3, 1, 0)))) == [("backhauls", 1.0)]
    assert not planned(round, Drive(0, (1, ~0, 2, 3, 0))).violations


def test_a_stop_may_have_a_delivery_and_a_pickup_between_the_others() -> None:
    stops = [stop(0, delivery=(1.0,)), stop(1, delivery=(1.0,), pickup=(1.0,)), stop(2, pickup=(1.0,))]
    round = line(stops, backhauls="last")
    assert not planned(round, Drive(0, (0, 1, 2))).violations
    assert broken(planned(round, Drive(0, (1, 0, 2)))) == [("backhauls", 1.0)]
    assert broken(planned(round, Drive(0, (0, 2, 1)))) == [("backhauls", 1.0)]


# 7. Reloading


def test_reloading_takes_its_time_and_unloads() -> None:
    stops = [stop(0, delivery=(4.0,), pickup=(3.0,)), stop(1, delivery=(5.0,))]
    plan = planned(line(stops, van(capacity=(5.0,), trips=2, reloads=(0,), reload_time=7.0)), Drive(0, (0, ~0, 1)))
    assert [v.load for v in plan.routes[0].visits] == [(4,), (3,), (5,), (0,), (0,)]
    assert times(plan)[2] == ("reload", 20, 20, 27)
    assert not plan.violations


@pytest.mark.parametrize(
    ("order", "rule"), [((0, ~0, 1, ~0, 2), "trips"), ((0, ~0), "trips"), ((0, ~1, 1), "reload"), ((~0, 0), "trips")]
)
def test_reloads_are_few_full_and_at_their_places(order: tuple[int, ...], rule: str) -> None:
    round = line(3, van(trips=2, reloads=(0,)), allow_unassigned=True)
    assert broken(planned(round, Drive(0, order))) == [(rule, 1.0)]


# 8. End


@pytest.mark.parametrize(
    ("overtime", "rules", "cost"), [(0.0, [("end", 15)], 40 + 30), (10.0, [("end", 5)], 40 + 30), (15.0, [], 40 + 30)]
)
def test_the_end_of_the_shift_and_overtime_at_its_price(overtime: float, rules: list, cost: float) -> None:
    plan = planned(line(2, van(shift=(0, 25), overtime=overtime, overtime_cost=2.0)), Drive(0, (0, 1)))
    assert (broken(plan), plan.cost) == (rules, cost)


def test_a_vehicle_without_an_end_ends_when_it_leaves_its_last_stop() -> None:
    plan = planned(line([stop(0, service=8.0)], van(end=None, shift=(0, 15))), Drive(0, (0,)))
    assert times(plan)[-1] == ("end", 18, 18, 18)
    assert broken(plan) == [("end", 3.0)]


# 9. Limits


@pytest.mark.parametrize(
    ("limit", "by"), [("max_duration", 6.0), ("max_distance", 1.0), ("max_driving", 1.0), ("max_stops", 1.0)]
)
def test_limits_from_leaving_to_the_end(limit: str, by: float) -> None:
    stops = [stop(0, windows=((100.0, 200.0),)), stop(1, service=5.0)]
    most = {"max_duration": 39, "max_distance": 39, "max_driving": 39, "max_stops": 1}[limit]
    plan = planned(line(stops, van(**{limit: most})), Drive(0, (0, 1)))
    assert broken(plan) == [(limit, by)]
    least = {"max_duration": 45, "max_distance": 40, "max_driving": 40, "max_stops": 2}[limit]
    assert not planned(line(stops, van(**{limit: least})), Drive(0, (0, 1))).violations


# 10. Breaks


def with_break(*windows: tuple[float, float], service: float = 7.0, **attributes: object) -> Round:
    stops = [stop(0, service=5.0), stop(1, service=5.0)]
    return line(stops, van(breaks=(Break(id="tea", windows=windows, service=service),), **attributes))


def test_a_break_on_arrival_carries_the_leg() -> None:
    plan = planned(with_break((8.0, 12.0)), Drive(0, (0, 1)))
    assert times(plan)[1:3] == [("break", 10, 10, 17), ("stop", 17, 17, 22)]
    assert [v.distance for v in plan.routes[0].visits] == [0, 10, 0, 10, 20]
    assert not plan.violations


def test_a_break_before_a_leg_that_would_carry_past_its_window() -> None:
    plan = planned(with_break((18.0, 20.0)), Drive(0, (0, 1)))  # leaves s0 at 15, would arrive at 25: waits for it
    assert times(plan) == [
        ("start", 3, 3, 3), ("stop", 13, 13, 18), ("break", 18, 18, 25), ("stop", 35, 35, 40), ("end", 60, 60, 60),
    ]  # fmt: skip


def test_a_break_while_waiting_costs_nothing() -> None:
    round = line(
        [stop(0, windows=((0.0, 10.0),)), stop(1, windows=((50.0, 60.0),))],
        van(breaks=(Break(id="tea", windows=((30.0, 35.0),), service=10.0),)),
    )
    plan = planned(round, Drive(0, (0, 1)))
    assert times(plan)[2:4] == [("break", 20, 30, 40), ("stop", 40, 50, 50)]


def test_a_break_before_service_that_would_carry_past_its_window() -> None:
    round = line([stop(0, service=50.0)], van(breaks=(Break(id="tea", windows=((15.0, 30.0),), service=7.0),)))
    plan = planned(round, Drive(0, (0,)))  # arrives at 10, and would leave at 60
    assert times(plan)[1:3] == [("break", 15, 15, 22), ("stop", 22, 22, 72)]


def test_a_break_that_would_make_the_next_stop_late_is_taken_after_it() -> None:
    rest = Break(id="tea", windows=((5.0, 40.0),), service=20.0)
    stops = [stop(0, windows=((10.0, 12.0),), service=3.0), stop(1, windows=((20.0, 24.0),), service=3.0)]
    plan = planned(line(stops, van(breaks=(rest,))), Drive(0, (0, 1)))
    assert times(plan)[1:4] == [("stop", 10, 10, 13), ("stop", 23, 23, 26), ("break", 26, 26, 46)]
    assert not plan.violations
    paid = planned(
        line([stops[0], stop(1, windows=((20.0, 24.0),), late_cost=1.0)], van(breaks=(rest,))), Drive(0, (0, 1))
    )
    assert [v.kind for v in paid.routes[0].visits] == ["start", "stop", "break", "stop", "end"]


def test_a_break_is_due_only_if_the_vehicle_is_out_after_it() -> None:
    kinds = [v.kind for v in planned(with_break((8.0, 50.0)), Drive(0, (0, 1))).routes[0].visits]
    assert "break" not in kinds  # back at 50
    kinds = [v.kind for v in planned(with_break((8.0, 49.0)), Drive(0, (0, 1))).routes[0].visits]
    assert "break" in kinds
    late = line(
        [stop(0, windows=((500.0, 600.0),))], van(breaks=(Break(id="tea", windows=((8.0, 49.0),), service=7.0),))
    )
    assert [v.kind for v in planned(late, Drive(0, (0,))).routes[0].visits] == ["start", "stop", "end"]


def test_a_break_without_an_end_is_due_once_it_may_begin() -> None:
    for begin, taken in [(60.0, False), (45.0, True), (-np.inf, True)]:
        plan = planned(with_break((begin, np.inf)), Drive(0, (0, 1)))
        assert any(v.kind == "break" for v in plan.routes[0].visits) == taken
        assert not plan.violations


def test_a_break_that_cannot_be_taken_is_missed() -> None:
    round = with_break((1.0, 9.0), start=None, shift=(0, 100))
    round = line([stop(0, service=60.0), stop(1)], *round.vehicles)
    assert not planned(round, Drive(0, (0, 1))).violations  # taken before the service
    round = line([stop(0, windows=((0.0, 0.0),), service=60.0), stop(1)], *round.vehicles)
    assert [v.rule for v in planned(round, Drive(0, (0, 1))).violations] == ["window"]
    two = (Break(id="a", windows=((2.0, 5.0),), service=30.0), Break(id="b", windows=((6.0, 9.0),), service=5.0))
    assert broken(planned(line(1, van(breaks=two)), Drive(0, (0,)))) == [("break", 43.0)]  # a until 32; back at 52


# 11. Who


def test_skills_and_named_vehicles() -> None:
    stops = [stop(0, skills=frozenset({"crane", "cold"})), stop(1, only=frozenset({"other"})), stop(2)]
    stops.append(stop(3, forbidden=frozenset({"van"})))
    plan = planned(line(stops, van(skills=frozenset({"cold"}))), Drive(0, (0, 1, 2, 3)))
    assert [v.words for v in plan.violations] == [
        "stop s0 needs skill crane, which vehicle van does not have",
        "vehicle van may not serve stop s1",
        "vehicle van may not serve stop s3",
    ]


def test_no_more_vehicles_than_there_are() -> None:
    drives = [Drive(0, (0,)), Drive(0, (1,)), Drive(0, ())]
    assert broken(planned(line(2), *drives)) == [("number", 1)]
    assert not planned(line(2, van(number=2)), *drives).violations
    assert not planned(line(2, van(number=None)), *drives).violations


# 12. Kept


def test_begins_with_what_is_kept() -> None:
    round = line(3, van(kept=(2, 0)))
    assert not planned(round, Drive(0, (2, 0, 1))).violations
    assert broken(planned(round, Drive(0, (2, 1, 0)))) == [("kept", 1.0)]
    two = line(3, van(kept=(2, 0), number=2))
    assert not planned(two, Drive(0, (1,)), Drive(0, (2, 0))).violations
    assert broken(planned(two, Drive(0, (1, 2, 0)))) == [("kept", 1.0)]
    other = line(3, van(kept=(2, 0)), van(id="other"))
    assert broken(planned(other, Drive(1, (0, 1, 2)))) == [("kept", 1.0)]


def test_windows_of_kept_stops_are_not_held_against_the_plan() -> None:
    stops = [stop(0, windows=((0.0, 5.0),), late_cost=9.0), stop(1, windows=((0.0, 5.0),))]
    plan = planned(line(stops, van(kept=(0, 1))), Drive(0, (0, 1)))
    assert (broken(plan), plan.cost) == ([], 40)
    assert broken(planned(line(stops, van(kept=(0,))), Drive(0, (0, 1)))) == [("window", 15.0)]


# 13. Apart


def test_routes_may_not_differ_by_more_than_allowed() -> None:
    drives = Drive(0, (0, 1, 2)), Drive(0, (3,))  # 3 stops in 60 seconds, 1 in 80
    assert broken(planned(line(4, van(number=2), most_stops_apart=1), *drives)) == [("stops_apart", 1)]
    assert broken(planned(line(4, van(number=2), most_time_apart=15), *drives)) == [("time_apart", 5)]
    assert not planned(line(4, van(number=2), most_stops_apart=2, most_time_apart=20), *drives).violations


# 14. All stops


def test_every_stop_is_visited_once_unless_it_may_be_left_out() -> None:
    round = line([stop(0), stop(1, penalty=5.0), stop(2)])
    assert broken(planned(round, Drive(0, (0, 0)))) == [("once", 1), ("unassigned", 1.0)]
    plan = planned(round, Drive(0, (0, 2)))
    assert (broken(plan), plan.cost) == ([], 60 + 5)
    assert plan.unassigned == (Unassigned(1, "left out at its penalty of 5"),)


def test_unassigned_stops_are_allowed_if_the_round_says_so_and_keep_their_reason() -> None:
    round = line(2, allow_unassigned=True)
    plan = plan_of(round, [Drive(0, (0,))], [Unassigned(1, "too far")])
    assert plan.unassigned == (Unassigned(1, "too far"),)
    assert not plan.violations
    assert not judge(round, plan).violations


def test_half_a_shipment_is_none() -> None:
    round = line(2, shipments=((0, 1),), allow_unassigned=True)
    assert [rule for rule, _ in broken(planned(round, Drive(0, (0,))))] == ["shipment"]


# Cost and rank


def test_cost_is_fixed_distance_driving_and_duration() -> None:
    legs = {ANY: Legs(line(1).legs[ANY].distance, 2 * line(1).legs[ANY].duration)}
    vehicle = van(fixed_cost=100.0, distance_cost=2.0, driving_cost=0.5, time_cost=0.25)
    plan = planned(line([stop(0, service=8.0)], vehicle, legs=legs), Drive(0, (0,)))
    assert plan.cost == 100 + 2 * 20 + 0.5 * 40 + 0.25 * 48


def test_rank_serves_high_priorities_first_then_counts_vehicles() -> None:
    stops = [stop(0, priority=2), stop(1), stop(2)]
    round = line(stops, van(number=3), allow_unassigned=True, objective="vehicles")
    ranks = [
        rank(round, plan_of(round, drives))
        for drives in (
            [Drive(0, (0, 1, 2))], [Drive(0, (0, 1)), Drive(0, (2,))], [Drive(0, (0, 1))], [Drive(0, (0,))],
            [Drive(0, (1, 2))],
        )
    ]  # fmt: skip
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == 5


def test_times_are_spoken_as_they_came_in() -> None:
    late = line([stop(0, windows=((0.0, 5.0),))], van(shift=(36_900, 40_000)), day="2026-11-16")
    _, violations = schedule(late, Drive(0, (0,)))
    assert violations[0].words == "stop s0 is served at 10:15:10; its window ends at 00:00:05"
