"""`solve_round` and `check_round`: what they ask of the search, what they refuse, what they answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from answer_cases import DRIVES, HOUR, city

from routelearn.errors import Infeasible, InputError
from routelearn.rounds import search, solving
from routelearn.rounds.plan import Drive
from routelearn.rounds.solving import check_round, solve_round
from routelearn.rounds.timing import plan_of


def too_many(**changes):
    """Ed has more than any vehicle holds."""
    base = city(**changes)
    return replace(base, stops=(*base.stops[:4], replace(base.stops[4], delivery=(40.0,))))


def test_an_answer_is_a_plan_that_keeps_all_rules(inserting):
    answer = solve_round(city(), seconds=0.1, seed=3)
    assert sorted(stop for route in answer.plan.routes for stop in route.stops) == [0, 1, 2, 3, 4]
    assert answer.plan.violations == ()
    assert answer.cost == pytest.approx(sum(route.cost for route in answer.plan.routes))
    assert inserting[0]["seed"] == 3
    assert 0.05 < inserting[0]["seconds"] < 0.1  # the rest is for timing and checking
    assert inserting[0]["iterations"] is None


def test_iterations_end_by_count_on_one_thread(inserting):
    solve_round(city(), seconds=0.1, iterations=50)
    assert inserting[0]["iterations"] == 50
    assert inserting[0]["seconds"] > 1000
    assert inserting[0]["threads"] is None  # one, then, by the search
    solve_round(city(), iterations=np.int64(50), threads=2)
    assert (inserting[1]["iterations"], inserting[1]["threads"]) == (50, 2)


def test_a_plan_to_check_is_drives_ids_or_what_its_json_has():
    answer = check_round(city(), (Drive(0, (0, 1)), Drive(1, (3,))))
    for routes in ([["Ana", "Bo"], {"vehicle": "bike", "stops": ["Di"]}], answer.document()["routes"]):
        assert check_round(city(), routes).plan.drives == answer.plan.drives
    with pytest.raises(InputError, match="the plan: route 1 visits 'Zoe', which is not among the stops"):
        check_round(city(), [["Zoe"]])


def test_a_plan_in_any_container_is_checked_and_improved(inserting):
    answer = check_round(city(), (Drive(0, (0, 1)), Drive(1, (3,))))
    ids = (("Ana", "Bo"), ("Di",))
    for routes in (ids, iter(ids), [np.array(one) for one in ids], answer, answer.plan, answer.document()):
        assert check_round(city(), routes).routes == [list(one) for one in ids]
    solve_round(city(allow_unassigned=True), seconds=0.1, start=ids)
    assert inserting[0]["start"] == (Drive(0, (0, 1)), Drive(1, (3,)))


@pytest.mark.parametrize("routes", [None, "Ana", 3])
def test_what_is_no_plan_is_refused(routes):
    with pytest.raises(InputError, match=r"the plan is .*; a list of routes is needed, each a list of ids of stops"):
        check_round(city(), routes)


def test_what_is_no_round_is_refused():
    for ask in (solve_round, lambda it: check_round(it, [])):
        with pytest.raises(InputError, match=r"'city\.csv' is no round; read one with routelearn\.read_round"):
            ask("city.csv")


def test_rounds_and_their_answers_are_shown_in_a_line():
    assert repr(city()) == "Round(city.csv: 5 stops, 2 kinds of vehicles)"
    assert repr(check_round(city(), [])).startswith("RoundSolution(vrp: cost 0, ")


@pytest.mark.parametrize("iterations", [-1, 2.5, True])
def test_iterations_that_are_none_are_refused(inserting, iterations):
    with pytest.raises(InputError, match="iterations is"):
        solve_round(city(), iterations=iterations)


def test_better_plans_are_heard_of_and_remembered(inserting):
    heard = []
    answer = solve_round(city(), seconds=0.1, watch=heard.append)
    assert [(event.cost, event.by) for event in heard] == [(20.0, "search"), (19.0, "search")]
    assert answer.document()["history"] == [[0.01, 20.0, "search"], [0.02, 19.0, "search"]]


def test_stops_that_cannot_be_served_are_an_error_that_names_them(inserting, plain_reasons):
    with pytest.raises(InputError) as error:
        solve_round(too_many(), seconds=0.1)
    assert str(error.value).startswith("city.csv: 1 stop of 5 cannot be served: 'Ed': has no van (Ed); allow")


def tight(**changes):
    """Four loads of 6 and four of 4 for four vans of 10: inserted one after the other, some find no place."""
    base = city(**changes)
    loads = (4.0, 4.0, 4.0, 4.0, 6.0, 6.0, 6.0, 6.0)
    stops = tuple(
        replace(base.stops[1], id=f"S{k}", place=base.stops[k % 5].place, delivery=(load,), windows=((0.0, 24 * HOUR),))
        for k, load in enumerate(loads)
    )
    van = replace(base.vehicles[0], number=4, capacity=(10.0,))
    return replace(base, stops=stops, vehicles=(van,))


@pytest.mark.slow
def test_where_vehicles_are_just_enough_0_seconds_find_a_place_for_all(monkeypatch):
    inserted = search.search_round(tight(), seconds=0.0, threads=1)
    assert plan_of(tight(), inserted).unassigned, "an easier round would show nothing"
    answer = solve_round(tight(), seconds=0, policy=False)
    assert sorted(stop for route in answer.plan.routes for stop in route.stops) == list(range(8))


def test_the_search_for_a_place_that_there_is_not_ends(inserting, plain_reasons):
    solve_round(too_many(allow_unassigned=True), seconds=0, policy=False)
    assert len(inserting) == 1 + solving.FRUITLESS  # what is inserted, and what looks for a place


def test_many_such_stops_are_counted(inserting, plain_reasons):
    base = city()
    stops = tuple(replace(stop, id=f"S{i}", delivery=(40.0,)) for i in range(9) for stop in base.stops[:1])
    with pytest.raises(InputError, match=r"city\.csv: 9 stops of 9 .* and 4 more; allow"):
        solve_round(replace(base, stops=stops), seconds=0.1)


def test_they_are_listed_with_a_reason_if_the_user_allows_it(inserting, plain_reasons):
    answer = solve_round(too_many(allow_unassigned=True), seconds=0.1)
    assert answer.unassigned == [("Ed", "has no van (Ed)")]
    assert answer.document()["unvisited"] == ["Ed"]


def test_a_stop_with_a_penalty_may_be_left_out_and_is_paid_for(inserting, plain_reasons):
    base = too_many()
    paid = replace(base, stops=(*base.stops[:4], replace(base.stops[4], penalty=7.0)))
    answer = solve_round(paid, seconds=0.1)
    assert answer.unassigned == [("Ed", "has no van (Ed)")]
    assert answer.cost == pytest.approx(7 + sum(route.cost for route in answer.plan.routes))


def test_a_plan_that_the_referee_rejects_is_never_an_answer(monkeypatch):
    monkeypatch.setattr(search, "search_round", lambda round_, **_: (Drive(0, (2, 0, 1)), *DRIVES[1:]))  # Ana is late
    with pytest.raises(InputError, match=r"no plan was found that keeps all rules \(.*Ana.*\); relax that one"):
        solve_round(city(), seconds=0.1)
    monkeypatch.setattr(solving, "plan_of", lambda *given: replace(plan_of(*given), violations=()))
    with pytest.raises(Infeasible, match="Ana"):  # the referee knows better
        solve_round(city(), seconds=0.1)


def test_routes_that_are_not_alike_are_refused_with_a_remedy(monkeypatch):
    monkeypatch.setattr(search, "search_round", lambda round_, **_: DRIVES)
    with pytest.raises(InputError, match=r"no plan was found that keeps all rules \(routes"):
        solve_round(replace(city(), most_stops_apart=0), seconds=0.1)


def test_a_given_plan_is_never_made_worse(monkeypatch):
    drives = (Drive(0, (0, 2)), Drive(1, (1,)), Drive(1, (3,)), Drive(0, (4,)))
    monkeypatch.setattr(search, "search_round", lambda round_, **_: drives)
    base = city()
    two_vans = replace(base, vehicles=(replace(base.vehicles[0], number=2), base.vehicles[1]))
    answer = solve_round(two_vans, seconds=0.1, start=DRIVES)
    assert answer.plan.drives == DRIVES


def test_what_is_kept_stays_at_the_beginning(inserting):
    base = city()
    kept = replace(base, vehicles=(replace(base.vehicles[0], kept=(1, 0)), base.vehicles[1]))
    answer = solve_round(kept, seconds=0.1)
    first = next(route for route in answer.plan.routes if route.vehicle == 0)
    assert first.stops[:2] == (1, 0)


def test_a_check_tells_every_violation_with_times_and_cost():
    late = (Drive(0, (2, 0, 1, 4)), Drive(1, (3,)))  # Ana and more than the van holds
    answer = check_round(city(), late)
    rules = {one.rule for one in answer.plan.violations}
    assert {"window", "capacity"} <= rules
    assert answer.plan.routes[0].visits[1].start == 10 * HOUR
    assert answer.cost == pytest.approx((3 + 2 + 1 + 3 + 5) + 8 / 2)


def test_a_check_tells_stops_that_nobody_visits(plain_reasons):
    answer = check_round(city(), DRIVES[:2])
    assert {one.rule for one in answer.plan.violations} == {"unassigned"}
    assert answer.unassigned == [("Ed", "has no van (Ed)")]
    assert not check_round(city(allow_unassigned=True), DRIVES[:2]).plan.violations


def test_a_good_plan_breaks_nothing():
    assert check_round(city(), DRIVES).plan.violations == ()
