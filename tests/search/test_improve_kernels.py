"""The compiled moves: a journal undoes them, their gains are true, and routes survive a round trip."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from improve_cases import asymmetric, random_tours

from routelearn.problems import NumpyRng, get
from routelearn.search.engines import RoutesEngine, TourEngine
from routelearn.search.graph import below, draw, graph_of, nearest, random_state
from routelearn.search.routes import empty_routes, read_split_tour, read_tour, write_tour
from routelearn.search.segments import exchange, turn
from routelearn.search.three_opt import swap_stretches, undo


def test_nearest_are_the_nearest_in_order():
    lengths = np.random.default_rng(0).random((30, 30))
    masked = lengths + np.diag(np.full(30, np.inf))
    assert (nearest(lengths, 7) == np.argsort(masked, axis=1)[:, :7]).all()


def test_draws_are_even_and_repeatable():
    state = random_state(5)
    values = np.array([draw(state) for _ in range(4000)])
    again = random_state(5)
    assert values[0] == draw(again)
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 0.02
    assert {below(state, 3) for _ in range(100)} == {0, 1, 2}


@pytest.mark.parametrize("at", [0, 4, 9])
def test_a_journal_undoes_a_kick(at):
    tour, pos = np.arange(12, dtype=np.int32), np.arange(12, dtype=np.int32)
    journal = np.zeros((8, 4), np.int32)
    t1, t2, t5, t6, t3, t4 = ((at + k) % 12 for k in (0, 1, 3, 4, 6, 7))
    count = swap_stretches(tour, pos, 12, t1, t2, t3, t4, t5, t6, journal, 0)
    legs = {frozenset(pair) for pair in zip(tour.tolist(), np.roll(tour, -1).tolist(), strict=True)}
    assert {frozenset((t1, t6)), frozenset((t3, t2)), frozenset((t5, t4))} <= legs
    undo(tour, pos, 12, journal, count)
    legs = {frozenset(pair) for pair in zip(tour.tolist(), np.roll(tour, -1).tolist(), strict=True)}
    assert legs == {frozenset((k, (k + 1) % 12)) for k in range(12)}
    assert (pos[tour] == np.arange(12)).all()


@pytest.mark.parametrize("start", [0, 5, 8])
def test_exchange_keeps_directions(start):
    tour, pos = np.arange(9, dtype=np.int32), np.arange(9, dtype=np.int32)
    exchange(tour, pos, 9, start, 2, 3)
    nodes = [(start + k) % 9 for k in range(9)]
    assert np.roll(tour, -start).tolist() == [nodes[k] for k in (2, 3, 4, 0, 1, 5, 6, 7, 8)]
    assert (pos[tour] == np.arange(9)).all()
    turn(tour, pos, 9, start, 5)
    assert np.roll(tour, -start).tolist() == [nodes[k] for k in (1, 0, 4, 3, 2, 5, 6, 7, 8)]


@pytest.mark.parametrize("directed", [False, True])
def test_the_length_kept_is_the_true_length(directed):
    x = get("tsp").sample(NumpyRng(3), 1, 60)
    engine = TourEngine(get("tsp"), asymmetric(x) if directed else x, 0)
    assert engine.graph.symmetric is not directed
    engine.construct()
    while not engine.descend(10):
        pass
    engine.explore(0.2, 2000)
    legs = engine.graph.legs
    for tour, length in ((engine.tour, engine.real[0]), (engine.shortest, engine.real[1])):
        assert sorted(tour) == list(range(60))
        assert legs[tour, np.roll(tour, -1)].sum() == pytest.approx(length)


@pytest.mark.parametrize("name", ["cvrp", "sdvrp"])
def test_routes_survive_reading_and_writing(name):
    problem = get(name)
    x = problem.sample(NumpyRng(2), 1, 25)
    for _ in range(10):
        tour = random_tours(problem, x)
        routes = empty_routes(26, split=name == "sdvrp")
        if name == "sdvrp":
            assert read_split_tour(tour[0, 0].numpy(), x.demand[0].double().numpy(), float(x.capacity[0]), routes)
        else:
            read_tour(tour[0, 0].numpy(), routes)
        written = torch.from_numpy(write_tour(routes)).view(1, 1, -1)
        problem.check(x, written)
        assert float(problem.cost(x, written)) == pytest.approx(float(problem.cost(x, tour)))


@pytest.mark.parametrize("split", [False, True])
def test_annealing_keeps_loads_lengths_and_links(split):
    problem = get("sdvrp" if split else "cvrp")
    x = problem.sample(NumpyRng(9), 1, 30)
    x = x._replace(capacity=torch.tensor([12]))
    engine = RoutesEngine(problem, x, 0, split=split)
    engine.construct()
    tails = 0
    for _ in range(40):
        engine.explore(0.3, 25)
        routes, tour = engine.now, torch.from_numpy(write_tour(engine.now)).view(1, 1, -1)
        problem.check(x, tour)
        assert float(problem.cost(x, tour)) == pytest.approx(engine.real[0])
        load = engine.rules[0].total
        assert load.max() <= 12
        assert (load[routes.end > 0] == 12).all()
        assert load.sum() == x.demand.sum()
        tails += int(routes.tails.sum())
    assert (tails > 0) is split


def test_a_tour_that_the_routes_cannot_hold_leaves_the_search_as_it_was():
    x = get("sdvrp").sample(NumpyRng(1), 1, 4)
    x = x._replace(demand=torch.tensor([[0, 5, 5, 12, 5]]), capacity=torch.tensor([10]))
    engine = RoutesEngine(get("sdvrp"), x, 0, split=True)
    assert engine.load(np.array([3, 0, 3, 1, 0, 2, 4, 0]))
    # Three visits to node 3, none of them a full load: more than one split and one straight trip.
    before = engine.best().tolist()
    assert not engine.load(np.array([1, 3, 0, 2, 3, 0, 3, 4, 0]))
    assert engine.best().tolist() == before
    engine.explore(0.5, 50)
    get("sdvrp").check(x, torch.from_numpy(engine.best()).view(1, 1, -1))


def test_asymmetry_is_seen():
    x = get("tsp").sample(NumpyRng(0), 1, 6)
    assert graph_of(get("tsp"), x, 3).symmetric
    assert not graph_of(get("tsp"), asymmetric(x), 3).symmetric
