"""The policy's plan of a round: what it is told, what of its plan the round allows, and when it is not asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_rounds import random_round
from round_cases import line, stop, van

from routelearn.models import load_model
from routelearn.models.model_file import Model
from routelearn.policies import AttentionPolicy
from routelearn.policies.base import shape_of
from routelearn.problems.vrp import VRP
from routelearn.rounds.learned import WHOLE, allowed, depots_of, instance_of, policy_plan, unknown
from routelearn.rounds.model import FOREVER, Round
from routelearn.rounds.plan import Drive
from routelearn.rounds.solving import solve_round
from routelearn.rounds.timing import plan_of, schedule

UNTRAINED = {"width": 16, "heads": 2, "layers": 1, "hidden": 16, "norm": "instance"}


@pytest.fixture(scope="module")
def untrained() -> Model:
    torch.manual_seed(0)
    policy = AttentionPolicy(shape_of(VRP()), **UNTRAINED).eval()
    return Model(policy, "vrp", "attention", UNTRAINED, {"sizes": [20]})


def placed(seed: int) -> Round:
    """A random round whose places have coordinates."""
    found = random_round(seed)
    return replace(found, xy=np.random.default_rng(seed).uniform(0, 100, (len(found.places), 2)), latlon=None)


def test_whatever_a_round_asks_for_the_drives_break_no_rule(untrained: Model) -> None:
    planned = stops = 0
    for seed in range(200):
        round_ = placed(seed)
        if unknown(round_):
            continue
        drives = policy_plan(round_, untrained)
        visited = [at for drive in drives for at in drive.order]
        assert len(visited) == len(set(visited))
        for drive in drives:
            assert schedule(round_, drive)[1] == ()
        used = [sum(drive.vehicle == k for drive in drives) for k in range(len(round_.vehicles))]
        assert all(v.number is None or n <= v.number for n, v in zip(used, round_.vehicles, strict=True))
        planned, stops = planned + len(visited), stops + len(round_.stops)
    assert stops > 300
    assert planned > 0.5 * stops


def test_the_policy_is_told_of_places_amounts_and_times() -> None:
    stops = [
        stop(0, delivery=(2.0, 9.0), windows=((3600.0, 7200.0), (9000.0, 9900.0)), service=60.0),
        stop(1, pickup=(4.0,), late_cost=1.0, windows=((4000.0, 5000.0),)),
    ]
    round_ = line(stops, van(capacity=(8.0, 100.0), shift=(3000.0, 20_000.0), end=None))
    round_ = replace(round_, xy=np.array([[0.0, 0], [10, 0], [20, 0]]))
    x = instance_of(round_, depots_of(round_), [0, 1])
    legs = round_.legs_of(round_.vehicles[0])
    speed = legs.distance.sum() / legs.duration.sum()
    assert x.depots.tolist() == [[1, 0, 0]]
    assert (x.delivery.tolist(), x.pickup.tolist()) == ([[0, 0, 0, WHOLE // 4, 0]], [[0, 0, 0, 0, WHOLE // 2]])
    assert x.window[0, 3].tolist() == pytest.approx([600 * speed, 6900 * speed])
    assert x.window[0, 4].tolist() == pytest.approx([1000 * speed, FOREVER])
    assert x.window[0, 0].tolist() == pytest.approx([0.0, 17_000 * speed])
    assert float(x.service[0, 3]) == pytest.approx(60 * speed)
    assert (int(x.open), int(x.mixed), float(x.max_length)) == (1, 1, FOREVER)
    assert x.distances is not None
    nodes = [0, 0, 0, stops[0].place, stops[1].place]
    assert np.allclose(x.distances[0], speed * legs.duration[np.ix_(nodes, nodes)])


def test_a_route_goes_to_the_vehicle_that_drives_it_at_the_least_cost_or_is_cut() -> None:
    stops = [stop(i, delivery=(1.0,)) for i in range(5)]
    dear, cheap = van(capacity=(6.0,), fixed_cost=9.0), replace(van(capacity=(4.0,)), id="cheap")
    round_ = line(stops, dear, cheap)
    start = dear.start
    assert start is not None
    assert list(allowed(round_, [(start, [0, 1, 2])])) == [Drive(1, (0, 1, 2))]
    assert list(allowed(round_, [(start, [*range(5)])])) == [Drive(0, (0, 1, 2, 3, 4))]
    assert list(allowed(replace(round_, vehicles=(cheap,)), [(start, [*range(5)])])) == [Drive(0, (0, 1, 2))]
    assert list(allowed(replace(round_, vehicles=(cheap,)), [(start, [0]), (start, [1, 2])])) == [Drive(0, (1, 2))]
    assert list(allowed(round_, [(start + 1, [0])])) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"xy": None}, "places without coordinates"),
        ({"shipments": ((0, 1),)}, "shipments"),
        ({"vehicles": (van(start=None),)}, "vehicles that begin at their first stop"),
        ({"vehicles": (van(kept=(1,)),)}, "stops that are kept"),
    ],
)
def test_what_the_policy_does_not_know_is_said(change: dict, words: str) -> None:
    round_ = replace(line([stop(0), stop(1)], van()), xy=np.zeros((3, 2)))
    assert unknown(round_) is None
    strange = replace(round_, **change)
    assert unknown(strange) == words
    if "shipments" not in change:
        assert any(words in note for note in solve_round(strange, seconds=0).notes)


def test_at_no_time_at_all_the_better_of_policy_and_insertion_counts() -> None:
    places = np.random.default_rng(4).uniform(0, 100, (41, 2))
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    round_ = line([stop(i, delivery=(1.0,)) for i in range(40)], van(capacity=(10.0,), number=None))
    legs = {name: replace(own, distance=apart, duration=apart) for name, own in round_.legs.items()}
    round_ = replace(round_, xy=places, legs=legs)
    alone, both = solve_round(round_, seconds=0, policy=False), solve_round(round_, seconds=0)
    theirs = plan_of(round_, policy_plan(round_, load_model("vrp")))
    assert theirs.cost < alone.cost
    assert both.cost <= theirs.cost * (1 + 1e-12)
    assert both.events[-1].by == "policy"
    assert solve_round(round_, seconds=0).plan.routes == both.plan.routes
