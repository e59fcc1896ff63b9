"""Rules as the search sees them: resources beside brute force, with and without `join`, alone and together."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from routelearn.errors import InputError
from routelearn.problems import Length, Load, NumpyRng, get
from routelearn.problems.base import distance_matrix
from routelearn.problems.cvrp import CVRP
from routelearn.search.engines import RoutesEngine
from routelearn.search.search import Search


class Windows(NamedTuple):
    """Arrive early and wait, or in time; by Vidal's labels: duration, earliest and latest start, lateness."""

    early: Any
    late: Any
    service: float

    def start(self):
        return (0.0, 0.0, np.inf, 0.0)

    def single(self, i):
        return (self.service if i > 0 else 0.0, self.early[i], self.late[i], 0.0)

    def join(self, a, b, leg):
        shift = a[0] - a[3] + leg
        wait = max(b[1] - shift - a[2], 0.0)
        late = max(a[1] + shift - b[2], 0.0)
        return (
            a[0] + b[0] + leg + wait,
            max(b[1] - shift, a[1]) - wait,
            min(b[2] - shift, a[2]) + late,
            a[3] + b[3] + late,
        )

    def fits(self, label):
        return label[3] <= 1e-9


class Clock(NamedTuple):
    """The same rule, told step by step alone: the time, and whether someone had to wait too long."""

    early: Any
    late: Any
    service: float

    def start(self):
        return (0.0, 0.0)

    def extend(self, label, i, j, leg):
        arrival = max(label[0] + leg, self.early[j])
        return (arrival + (self.service if j > 0 else 0.0), max(label[1], arrival - self.late[j]))

    def fits(self, label):
        return label[1] <= 1e-9


def windows_of(x, seed: int):
    """Windows that a vehicle of its own always meets."""
    rng = np.random.default_rng(seed)
    away = distance_matrix(x)[0, 0].numpy()
    early = away + rng.uniform(0, 2.0, len(away))
    late = early + rng.uniform(0.2, 0.8, len(away))
    early[0], late[0] = 0.0, 100.0
    return early, late


class Timed(CVRP):
    """CVRP with windows, for the search alone; `kind` tells it of them."""

    name = "cvrp"  # kernels are compiled by type, not by name

    def __init__(self, kinds: tuple[Any, ...], seed: int = 0):
        self.kinds, self.seed = kinds, seed

    def resources(self, x):
        early, late = windows_of(x, self.seed)
        made = {Windows: lambda: Windows(early, late, 0.05), Clock: lambda: Clock(early, late, 0.05)}
        made |= {Load: lambda: CVRP.resources(self, x)[0], Length: lambda: Length(2.9)}
        return tuple(made[kind]() for kind in self.kinds)


def lawful(route, x, kinds, seed=0) -> bool:
    """Whether a route keeps the rules, told once more in plain numbers."""
    legs, (early, late) = distance_matrix(x)[0].numpy(), windows_of(x, seed)
    way = [0, *route, 0]
    time = 0.0
    for i, j in pairwise(way):
        time = max(time + legs[i, j], early[j])
        if {Windows, Clock} & set(kinds) and time > late[j] + 1e-9:
            return False
        time += 0.05
    long = sum(legs[i, j] for i, j in pairwise(way))
    load = int(x.demand[0, list(route)].sum())
    return (Load not in kinds or load <= int(x.capacity[0])) and (Length not in kinds or long <= 2.9)


def split(tour) -> list[list[int]]:
    routes: list[list[int]] = [[]]
    for node in tour:
        if node:
            routes[-1].append(int(node))
        elif routes[-1]:
            routes.append([])
    return [route for route in routes if route]


def cheapest(x, kinds, n: int) -> float:
    """The least length of lawful routes over all customers, by trying every order of every subset."""
    legs = distance_matrix(x)[0].numpy()
    best = np.full(1 << n, np.inf)
    best[0] = 0.0
    one = {}
    for members in range(1, 1 << n):
        stops = [i + 1 for i in range(n) if members >> i & 1]
        ways = (way for way in permutations(stops) if lawful(way, x, kinds))
        one[members] = min((sum(legs[i, j] for i, j in pairwise((0, *way, 0))) for way in ways), default=np.inf)
    for members in range(1, 1 << n):
        part = members
        while part:
            best[members] = min(best[members], one[part] + best[members ^ part])
            part = (part - 1) & members
    return float(best[-1])


def case(*kinds: Any):
    return pytest.param(kinds, id="+".join(kind.__name__ for kind in kinds))


# Each is compiled for itself, which takes a while.
KINDS = [case(Load), case(Load, Length), case(Load, Length, Windows)]


@pytest.mark.parametrize("kinds", KINDS)
def test_the_search_keeps_the_rules_and_finds_the_optimum(kinds) -> None:
    finds_the_optimum(kinds)
    every_phase_keeps_the_rules(kinds)


def finds_the_optimum(kinds) -> None:
    for seed in range(2):
        x = get("cvrp").sample(NumpyRng(seed), 1, 6)
        engine = RoutesEngine(Timed(kinds), x, seed)
        engine.construct()
        while not engine.descend(50):
            pass
        engine.explore(0.3, 3000)
        tour = engine.best()
        assert sorted(node for node in tour if node) == list(range(1, 7))
        assert all(lawful(route, x, kinds) for route in split(tour))
        legs = distance_matrix(x)[0].numpy()
        long = sum(legs[i, j] for route in split(tour) for i, j in pairwise((0, *route, 0)))
        assert long == pytest.approx(engine.real[1])
        assert long == pytest.approx(cheapest(x, kinds, 6))


def every_phase_keeps_the_rules(kinds) -> None:
    """Of a larger search."""
    x = get("cvrp").sample(NumpyRng(7), 1, 60)
    engine = RoutesEngine(Timed(kinds), x, 1)
    engine.construct()
    lengths = []

    def checked() -> None:
        tour = engine.best()
        assert sorted(node for node in tour if node) == list(range(1, 61))
        assert all(lawful(route, x, kinds) for route in split(tour))
        lengths.append(engine.real[1])

    checked()
    while not engine.descend(40):
        checked()
    checked()
    for cooled in (0.0, 0.3, 0.6, 1.0):
        engine.explore(cooled, 400)
        checked()
    assert lengths[-1] < lengths[0]  # by more than savings gives


@pytest.mark.slow
def test_labels_joined_and_step_by_step_lead_to_the_same_search() -> None:
    found = []
    for kind in (Windows, Clock):
        finds_the_optimum((kind,))
        every_phase_keeps_the_rules((kind,))
        x = get("cvrp").sample(NumpyRng(3), 1, 40)
        engine = RoutesEngine(Timed((kind,)), x, 5)
        engine.construct()
        engine.explore(0.5, 500)
        found.append(engine.best().tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("turnable", [True, False])
def test_lengths_are_true_where_the_way_back_is_free(turnable: bool) -> None:
    """Legs of the depot differ by direction: what local search counts must be what the routes are long."""

    class Open(Timed):
        def legs(self, x):
            legs = distance_matrix(x).clone()
            if not turnable:
                legs = legs * torch.rand(legs.shape, generator=torch.Generator().manual_seed(0), dtype=legs.dtype)
            legs[:, :, 0] = 0
            return legs

    for seed in range(20):
        x = get("cvrp").sample(NumpyRng(seed), 1, 25)
        engine = RoutesEngine(Open((Load, Length)), x, seed)
        engine.construct()
        for _ in range(200):
            before = engine.real[0]
            if engine.descend(20):
                break
            assert engine.real[0] <= before + 1e-9
        else:
            raise AssertionError("the local search comes to no end")
        assert engine.graph.turnable is turnable
        assert not engine.graph.symmetric


def test_a_resource_without_a_method_is_refused() -> None:
    class Lame(NamedTuple):
        limit: float

        def start(self):
            return (0.0,)

        def fits(self, label):
            return True

    class Odd(CVRP):
        def resources(self, x):
            return (Lame(1.0),)

    class Unclear(Lame):
        def extend(self, label, i, j, leg):
            return (label[0] + self.nothing,)

    class Unknown(CVRP):
        def resources(self, x):
            return (Unclear(1.0),)

    x = get("cvrp").sample(NumpyRng(0), 1, 5)
    with pytest.raises(InputError, match=r"^cvrp: the resource Unclear: numba cannot compile extend: .+$") as raised:
        RoutesEngine(Unknown(), x, 0)
    assert "\n" not in str(raised.value)
    with pytest.raises(InputError, match="Lame has no extend, and no single with add or join"):
        RoutesEngine(Odd(), x, 0)
    with pytest.raises(InputError, match="one resource, a Load"):
        RoutesEngine(Odd(), x, 0, split=True)


def test_routes_without_any_rule_become_one() -> None:
    class Free(CVRP):
        def resources(self, x):
            return ()

    x = get("cvrp").sample(NumpyRng(0), 1, 30)
    engine = RoutesEngine(Free(), x, 0)
    engine.construct()
    engine.explore(0.9, 2000)
    tsp = get("tsp")
    search = Search(tsp, tsp.sample(NumpyRng(0), 1, 31)._replace(xy=x.xy), 0)
    search.run(iterations=2000)
    assert engine.real[1] <= search.best_cost * 1.02


def test_a_prize_that_is_owed_within_a_limit_is_collected() -> None:
    """Both rules of the selective search at once, which none of the paper's problems has."""
    from routelearn.problems import Penalty, Prize
    from routelearn.search.engines import SelectiveEngine
    from routelearn.search.graph import euclidean, graph_from

    rng = np.random.default_rng(0)
    legs = euclidean(rng.random((30, 2)))
    prize, penalty = np.append(0, rng.random(29)), np.append(0, 0.2 * rng.random(29))
    engine = SelectiveEngine((Prize(prize, 6.0), Penalty(penalty), Length(4.0)), False, 0, graph_from(legs, 20))
    engine.construct()
    engine.descend(10_000)
    engine.explore(0.5, 2000)
    tour = [0, *engine.best()]
    assert prize[tour].sum() >= 6.0
    assert sum(legs[i, j] for i, j in pairwise(tour)) <= 4.0
    assert len(set(tour)) == len(tour) - 1
    cost = sum(legs[i, j] for i, j in pairwise(tour)) + penalty.sum() - penalty[tour].sum()
    assert cost == pytest.approx(engine.route.real[4] + penalty.sum())
