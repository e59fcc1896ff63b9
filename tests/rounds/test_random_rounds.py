"""Random rounds are the same for the same seed, hold every pair of attributes, and their attributes bind."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from brute_force_rounds import optimum
from random_rounds import ATTRIBUTES, MOST_STOPS, attributes_in, drawn, random_round, without
from round_cases import line, stop, van

from routelearn.rounds.model import Round, Stop, Vehicle, attributes_of
from routelearn.rounds.referee import judge
from routelearn.rounds.timing import plan_of, rank

OTHER_NAMES = {  # what the tests call by another name
    "objective": "vehicles first"
}


def same(a: Round, b: Round) -> bool:
    return (a.stops, a.vehicles, a.shipments) == (b.stops, b.vehicles, b.shipments) and all(
        np.array_equal(a.legs[name].distance, b.legs[name].distance)
        and np.array_equal(a.legs[name].duration, b.legs[name].duration)
        for name in {*a.legs, *b.legs}
    )


def test_the_same_seed_gives_the_same_round() -> None:
    assert same(random_round(7), random_round(7))
    assert not same(random_round(7), random_round(8))
    assert {len(random_round(seed).stops) for seed in range(100)} == set(range(1, MOST_STOPS + 1))


def test_every_declared_attribute_is_drawn() -> None:
    declared = {OTHER_NAMES.get(a.name, a.name) for kind in (Stop, Vehicle, Round) for a in attributes_of(kind)}
    assert declared <= set(ATTRIBUTES)


def test_every_pair_of_attributes_occurs() -> None:
    pairs: Counter[frozenset[str]] = Counter()
    for seed in range(600):
        pairs.update(frozenset(pair) for pair in combinations(sorted(attributes_in(random_round(seed))), 2))
    missing = [set(pair) for pair in map(frozenset, combinations(ATTRIBUTES, 2)) if not pairs[pair]]
    assert not missing


def test_without_takes_an_attribute_away() -> None:
    for seed in range(100):
        round = random_round(seed)
        for name in attributes_in(round):
            assert name not in attributes_in(without(round, name))


def test_enumeration_finds_the_optimum_by_hand() -> None:
    stops = [stop(0, delivery=(2.0,)), stop(1, delivery=(2.0,)), stop(2, delivery=(2.0,), penalty=61.0)]
    best = optimum(line(stops, van(capacity=(4.0,), number=2)))
    assert best is not None
    assert best.cost == 60 + 20  # the two far ones together
    again = optimum(line(stops, van(capacity=(4.0,), trips=2, reloads=(0, 1))))
    assert again is not None
    assert again.cost == 60  # it reloads at the first stop, on its way
    assert optimum(line(stops, van(capacity=(4.0,)))).cost == 40 + 61  # type: ignore[union-attr]
    assert optimum(line(stops, van(capacity=(1.0,)))) is None


def test_enumeration_is_never_behind_the_drawn_plan_and_keeps_the_rules() -> None:
    better = 0
    for seed in range(60):
        round, drives = drawn(seed, most_stops=4)
        best = optimum(round)
        assert best is not None
        assert not judge(round, best).violations
        plan = plan_of(round, drives)
        assert rank(round, best) <= tuple(x + 1e-9 for x in rank(round, plan))
        better += rank(round, best) < rank(round, plan)
    assert better > 20


def changes(round: Round, name: str) -> bool:
    """Whether the best plan of a round is another without an attribute."""
    best, free = optimum(round), optimum(without(round, name))
    assert best is not None
    if free is None:
        return True
    now = plan_of(without(round, name), best.drives)
    kept = [route.visits for route in now.routes] == [route.visits for route in best.routes]
    return (
        not kept
        or bool(now.violations)
        or free.cost < best.cost - 1e-6
        or rank(round, best)[:-1] != rank(round, free)[:-1]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_every_attribute_binds_in_a_tenth_of_its_rounds(name: str) -> None:
    """Of rounds with 4 stops: fewer leave little to decide, more take long to enumerate."""
    rounds = (random_round(seed, most_stops=4) for seed in range(20_000))
    having = (round for round in rounds if len(round.stops) > 3 and name in attributes_in(round))
    bound = 0
    for _ in range(40):
        bound += changes(next(having), name)
        if bound == 4:
            return
    pytest.fail(f"without {name} only {bound} of 40 best plans would be others")
