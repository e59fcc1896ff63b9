"""Plans put together from routes that were met: the cheapest of all, by enumeration; and what is remembered."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from numba import njit

from routelearn.search import recombining
from routelearn.search.recombining import Recombining, forget, meet

STOPS = 6
PLENTY = 60.0  # seconds


@njit
def note(met, ids, kind, cost):
    name, end = met.word[STOPS + kind], met.size[1]
    for i in ids:
        met.ids[end] = i
        end += 1
        if i >= 0:
            name ^= met.word[i]
    return meet(met, name, kind, cost, end)


def ids_of(met, j):
    return met.ids[slice(*met.span[j])].tolist()


def drawn(seed, routes=40):
    """Random routes of 1 to 3 stops by two kinds of vehicles, in a memory; one of each kind costs next to nothing."""
    rng = np.random.default_rng(seed)
    memory = Recombining(rng.uniform(2.0, 6.0, STOPS), np.array([2.0, 1.0]))
    for _ in range(routes):
        stops = rng.permutation(STOPS)[: rng.integers(1, 4)]
        note(memory.met, stops.astype(np.int64), int(rng.integers(2)), rng.uniform(0.5, 3.0) * len(stops))
    return memory


def cheapest(memory):
    """By trying all sets of up to three routes."""
    met, best = memory.met, memory.unserved.sum()
    count = int(met.size[0])
    for size in (1, 2, 3):
        for chosen in combinations(range(count), size):
            stops = [i for j in chosen for i in ids_of(met, j)]
            kinds = np.bincount(met.kind[list(chosen)], minlength=2)
            if len(set(stops)) == len(stops) and (kinds <= memory.vehicles).all():
                out = np.setdiff1d(np.arange(STOPS), stops)
                best = min(best, met.cost[list(chosen)].sum() + memory.unserved[out].sum())
    return best


@pytest.mark.parametrize("seed", range(25))
def test_the_cheapest_plan_of_routes_that_were_met_is_found(seed):
    memory = drawn(seed)
    nothing, worst = np.zeros(0, np.int64), memory.unserved.sum()
    found = memory.cheaper(nothing, worst, PLENTY)
    stops = [i for j in found for i in ids_of(memory.met, j)]
    out = np.setdiff1d(np.arange(STOPS), stops)
    assert len(set(stops)) == len(stops)
    assert memory.met.cost[found].sum() + memory.unserved[out].sum() == pytest.approx(cheapest(memory))
    assert memory.cheaper(found, cheapest(memory), PLENTY) is None  # there is none below


def test_no_plan_is_looked_for_without_time():
    memory = drawn(1)
    assert memory.cheaper(np.zeros(0, np.int64), memory.unserved.sum(), 0.0) is None


def test_of_routes_with_the_same_stops_the_cheapest_is_kept():
    met = Recombining(np.ones(STOPS), np.ones(2)).met
    first = note(met, np.array([0, 1, 2]), 0, 3.0)
    assert note(met, np.array([2, -7, 0, 1]), 0, 2.0) == first
    assert note(met, np.array([1, 0, 2]), 0, 2.5) == first
    other = note(met, np.array([1, 0, 2]), 1, 9.0)
    assert ids_of(met, first) == [2, -7, 0, 1]
    assert (met.cost[first], met.cost[other]) == (2.0, 9.0)
    assert met.size[0] == 2


def test_the_routes_met_last_are_not_forgotten(monkeypatch):
    monkeypatch.setattr(recombining, "MOST", 64)
    memory = Recombining(np.ones(STOPS), np.ones(2))
    last = {}
    for k, (size, kind) in enumerate(product((1, 2, 3), (0, 1))):
        for chosen in combinations(range(STOPS), size):
            memory.make_room(1, 3)
            cost = 10.0 * size + k
            note(memory.met, np.array(chosen), kind, cost)
            last.pop((chosen, kind), None)
            last[chosen, kind] = cost
    met = memory.met
    kept = {(tuple(ids_of(met, j)), int(met.kind[j])): met.cost[j] for j in range(int(met.size[0]))}
    assert 32 <= len(kept) <= 64
    assert kept == dict(list(last.items())[-len(kept) :])
    before = int(met.size[0])
    for (chosen, kind), cost in kept.items():  # each is found again
        note(met, np.array(chosen), kind, cost + 1.0)
    assert met.size[0] == before
    forget(met)
    assert met.size[0] == before - before // 2
