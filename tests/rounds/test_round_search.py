"""The search on rounds: what it finds keeps all rules, costs what it says, and is near the best there is."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from itertools import count, islice

import numpy as np
import pytest
from brute_force_rounds import optimum
from numba import njit
from random_rounds import attributes_in, drawn, random_round
from round_cases import line, stop, van

from routelearn.rounds.files import round_from_document
from routelearn.rounds.model import ANY, Legs, Round, Stop, Vehicle
from routelearn.rounds.plan import Drive
from routelearn.rounds.referee import judge
from routelearn.rounds.search import AMPLE, Engine, annealing, cooling, load_kernels, search_round
from routelearn.rounds.search.crossing import cross
from routelearn.rounds.timing import plan_of, rank
from routelearn.search.graph import random_state

FEW, MANY = 150, 3000  # iterations


@njit
def crossed(d, x, desk, most, state):
    return cross(d, x, desk, most, state)


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    load_kernels()


def found(x: Round, iterations: int, seed: int = 0) -> tuple[Engine, tuple]:
    engine = Engine(x, seed)
    engine.construct()
    for k in range(10):
        engine.explore(k / 10, iterations // 10)
    return engine, engine.drives()


def plain(count: int, seed: int = 0, **vehicle) -> Round:
    """Stops with a window of two hours each, within a day, and a fleet without number."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0, 100, (count + 1, 2))
    legs = np.sqrt(((xy[:, None] - xy[None]) ** 2).sum(-1))
    opens = rng.uniform(100, 600, count)
    stops = tuple(
        Stop(id=str(i), place=i, delivery=(float(rng.integers(1, 9)),), windows=((opens[i - 1], opens[i - 1] + 120),),
             service=5.0)
        for i in range(1, count + 1)
    )  # fmt: skip
    van = Vehicle(id="van", capacity=(30.0,), start=0, end=0, shift=(0.0, 1000.0), **{"number": None, **vehicle})
    return Round(
        source="plain",
        stops=stops,
        vehicles=(van,),
        legs={ANY: Legs(legs, legs)},
        places=tuple(map(str, range(count + 1))),
    )


def test_plans_of_random_rounds_keep_all_rules_and_cost_what_the_search_says():
    """All attributes in random combinations: stops may be left out, but no rule is broken on the way."""
    missing = 0
    for seed in range(400):
        x = drawn(seed)[0]
        engine, plan = found(x, FEW, seed)
        timed = plan_of(x, plan)
        if timed.violations:  # some rules the search may still be on its way to
            rules = {one.rule for one in timed.violations}
            assert rules <= {"unassigned", "stops_apart", "time_apart", "shipment"}, f"seed {seed}: {rules}"
            missing += 1
            continue
        assert judge(x, timed).violations == (), seed
        if x.objective == "cost":
            out = [one.stop for one in timed.unassigned if x.stops[one.stop].penalty is None]
            said = engine.cost - engine.data.stop["unserved"][out].sum()
            assert said == pytest.approx(timed.cost, rel=1e-9, abs=1e-6), seed
    assert missing <= 20


def test_small_rounds_are_solved_as_well_as_by_enumeration():
    worse = 0
    for seed in range(60):
        x = random_round(seed, most_stops=5)
        best = optimum(x)
        if best is None:
            continue
        plan = plan_of(x, found(x, MANY, seed)[1])
        assert not {one.rule for one in plan.violations} - {"stops_apart", "time_apart", "unassigned", "shipment"}, seed
        better = rank(x, plan)
        assert better >= tuple(np.subtract(rank(x, best), 1e-6)) or plan.violations, f"seed {seed}: below the optimum"
        worse += bool(plan.violations) or better > tuple(np.add(rank(x, best), 1e-6))
    assert worse <= 6


def test_several_trips_with_goods_that_come_late_are_as_good_as_by_enumeration():
    rounds = (random_round(seed, most_stops=5) for seed in range(3000))
    several = (x for x in rounds if {"trips", "release"} <= attributes_in(x) and len(x.stops) > 2)
    for x in islice(several, 15):
        best, plan = optimum(x), plan_of(x, search_round(x, iterations=MANY))
        assert best is not None
        assert plan.violations == ()
        assert rank(x, plan) <= tuple(np.add(rank(x, best), 1e-6)), x.source


def test_routes_are_made_alike_before_all_stops_are_served():
    x = line(3, van(number=2, max_stops=2), most_stops_apart=0.0, allow_unassigned=True)
    plan = plan_of(x, search_round(x, iterations=500))
    assert plan.violations == ()
    assert len(plan.unassigned) == 1


def test_windows_are_kept_and_improved():
    x = plain(60)
    first = Engine(x, 1)
    first.construct()
    before, after = plan_of(x, first.drives()), plan_of(x, search_round(x, iterations=20_000, seed=1))
    assert (before.violations, after.violations) == ((), ())
    assert after.cost < 0.9 * before.cost


def test_iterations_repeat_exactly_on_one_thread_and_on_two():
    x = plain(40, 2)
    for threads in (1, 2):
        one, two = (search_round(x, iterations=2000, seed=5, threads=threads) for _ in range(2))
        assert one == two
    assert search_round(x, iterations=2000, seed=6) != one


def test_with_ample_time_a_search_begins_three_times_and_goes_on_from_the_best():
    assert [cooling(share, 3)[0] for share in (0.0, 0.19, 0.21, 0.41, 0.59, 0.6, 0.99)] == [0, 0, 1, 2, 2, 3, 3]
    assert [cooling(share, 3)[1] for share in (0.1, 0.3, 0.5, 0.8)] == pytest.approx([0.5, 0.5, 0.5, 0.8])
    assert [cooling(share, 1) for share in (0.3, 0.7)] == [(0, 0.3), (1, 0.7)]
    x = plain(6, 4)
    engine = Engine(x, 1)
    engine.construct()
    engine.explore(0.5, 500)
    best, plan = engine.cost, engine.drives()
    engine.construct()  # anew: what was found is still known
    assert (engine.cost, engine.drives()) == (best, plan)
    for threads in (1, 2):
        one, two = (search_round(x, iterations=AMPLE * 6, seed=5, threads=threads) for _ in range(2))
        assert one == two
    least = optimum(x)
    assert least is not None
    assert plan_of(x, one).cost == pytest.approx(least.cost)


@pytest.mark.parametrize("pickup", [(), (1.0,)])
def test_ends_of_routes_are_exchanged(pickup):
    """Two rows of stops, and a plan that changes rows half way: one exchange of ends mends it, all else is in order."""
    xy = np.array([(0, 0), *((10 * i, 5) for i in range(1, 9)), *((10 * i, -5) for i in range(1, 9))], dtype=float)
    legs = np.sqrt(((xy[:, None] - xy[None]) ** 2).sum(-1))
    stops = tuple(Stop(id=str(i), place=i, delivery=(1.0,), pickup=pickup) for i in range(1, 17))
    vehicle = Vehicle(id="van", capacity=(8.0,), start=0, end=0, number=2)
    places = tuple(map(str, range(17)))
    x = Round(source="rows", stops=stops, vehicles=(vehicle,), legs={ANY: Legs(legs, legs)}, places=places)
    first, second = tuple(range(8)), tuple(range(8, 16))
    best, found = plan_of(x, (Drive(0, first), Drive(0, second))).cost, set()
    for seed in range(100):
        engine = Engine(x, 1)
        engine.construct((Drive(0, first[:4] + second[4:]), Drive(0, second[:4] + first[4:])))
        if crossed(engine.data, engine.routes, engine.desk, 0.0, random_state(seed)):
            cost = engine.routes.route["cost"][engine.routes.route["used"][:2]].sum()
            found.add(round(float(cost), 6))
    # an exchange elsewhere is too much for a van: not made where loads are sums, otherwise made and told so
    assert found == {round(best, 6)} | ({float("inf")} if pickup else set())


@pytest.mark.parametrize("longest", [np.inf, 600.0])
def test_labels_after_a_search_are_those_of_a_plan_taken_up_anew(longest):
    """Insertions refresh only what they change; legs stand a second time where insertions read them."""
    x = plain(100, 9, max_duration=longest)
    engine, _ = found(x, 1000)
    routes, n = engine.routes, len(x.stops)
    plan: list[int] = []
    for r in routes.route["used"][: routes.size[0]].tolist():
        plan.append(r)
        at = int(routes.at["succ"][n + r])
        while at < n:
            plan.append(at)
            at = int(routes.at["succ"][at])
        plan.append(-1)
    names = {"at": ("ready", "latest", "before", "after", "slot"), "beside": ("pred", "succ", "to", "onward")}
    served = routes.at["slot"][:n] >= 0
    before = {(one, name): getattr(routes, one)[name][:n][served].copy() for one in names for name in names[one]}
    annealing.load(engine.data, routes, engine.desk, np.array([*plan, -1], dtype=np.int64))
    assert served.all()
    for (one, name), labels in before.items():
        np.testing.assert_array_equal(labels, getattr(routes, one)[name][:n], err_msg=name)


def test_few_vehicles_are_filled_before_stops_are_left_out():
    x = plain(50, 3)
    used = len(
        plan_of(
            replace(x, objective="vehicles"), search_round(replace(x, objective="vehicles"), iterations=30_000)
        ).routes
    )
    just_enough = replace(x, vehicles=(replace(x.vehicles[0], number=used),))
    assert plan_of(just_enough, search_round(just_enough, iterations=30_000, seed=1)).violations == ()
    too_few = replace(x, vehicles=(replace(x.vehicles[0], number=2),), allow_unassigned=True)
    plan = plan_of(too_few, search_round(too_few, iterations=5000))
    assert plan.violations == ()
    assert 0 < len(plan.unassigned) < 50


def test_behind_a_kept_stop_that_is_late_there_is_room():
    x = line([stop(0, windows=((0.0, 1.0),)), stop(1), stop(2)], van(kept=(0,)))
    assert plan_of(x, search_round(x, iterations=50)).violations == ()


def test_a_given_plan_is_the_start():
    x = plain(40, 4)
    given = search_round(x, iterations=20_000)
    cost = plan_of(x, given).cost
    assert plan_of(x, search_round(x, iterations=0, start=given)).cost == pytest.approx(cost)
    assert plan_of(x, search_round(x, iterations=500, start=given)).cost <= cost + 1e-9


def test_the_time_is_kept_and_a_stop_ends_it():
    x, began = plain(300, 5), time.perf_counter()
    search_round(x, seconds=0.5)
    assert time.perf_counter() - began < 1.5
    ticks = count(0.0, 0.01)
    search_round(x, seconds=1.0, threads=1, clock=lambda: next(ticks))  # another clock counts as well
    assert 1.0 < next(ticks) < 1.1
    stop, heard = threading.Event(), []

    def hear(after: float, cost: float) -> None:
        heard.append(cost)
        stop.set()

    began = time.perf_counter()
    drives = search_round(x, seconds=60, watch=hear, stop=stop)
    assert time.perf_counter() - began < 10
    assert plan_of(x, drives).violations == ()
    assert heard == sorted(heard, reverse=True)


def test_of_stops_that_may_be_left_out_the_number_counts_not_what_they_carry():
    stops = [stop(0, delivery=(9.0,), priority=1), stop(1, delivery=(1.0,), priority=1), stop(2, delivery=(2.0,))]
    x = line(stops, van(capacity=(9.0,)), allow_unassigned=True)
    assert [one.stop for one in plan_of(x, search_round(x, iterations=500)).unassigned] == [0]


def test_a_route_that_pays_only_with_several_stops_is_found():
    stops = [{"id": str(i), "x": 100, "y": i, "delivery": 1, "penalty": 50} for i in range(8)]
    document = {"depot": {"x": 0, "y": 0}, "stops": stops, "vehicles": [{"id": "v", "capacity": 8}]}
    found = round_from_document(document)
    plan = plan_of(found, search_round(found, iterations=2000, seed=1))
    assert plan.cost == pytest.approx(207, abs=1)  # leaving all out costs 400


def short(count: int, seed: int) -> Round:
    """Stops of which a vehicle takes a few; one kind of vehicle in three is not enough."""
    x = plain(count, seed)
    small = replace(x.vehicles[0], id="small", capacity=(12.0,), number=count // 5, distance_cost=0.6)
    return replace(x, vehicles=(replace(x.vehicles[0], fixed_cost=20.0), small))


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_put_together_anew_keeps_the_rules_and_costs_less(seed):
    x = short(60, seed)
    engine, better = Engine(x, seed), 0
    engine.construct()
    for k in range(200):
        engine.explore(0.5 + k / 400, 40)
        if k % 40 == 39:
            before = engine.cost
            better += engine.recombine(np.inf)
            plan = plan_of(x, engine.drives())
            assert judge(x, plan).violations == ()
            assert plan.cost == pytest.approx(engine.told)
            assert engine.cost <= before
            assert engine.desk.real[annealing.COST] >= engine.desk.real[annealing.BEST] - 1e-9
    assert better > 0


def test_routes_that_must_be_alike_are_not_put_together_anew():
    x = replace(short(30, 1), most_stops_apart=2)
    engine = Engine(x)
    engine.construct()
    engine.explore(0.9, 500)
    assert not engine.recombine(np.inf)
    assert engine.recombining.recombining.met.size[0] == 0
