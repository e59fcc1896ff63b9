"""The anytime search of one instance: it takes offers, improves in slices, and lends out destroyed solutions."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
import torch
from improve_cases import IMPROVABLE, random_tours

from routelearn.errors import InputError
from routelearn.problems import NumpyRng, get
from routelearn.problems.base import distance_matrix, map_instance, to_single
from routelearn.search import Search, plan, routes, selective_kernel, sisr_kernel
from routelearn.search.search import engine_for


def instance(name, n, seed=0):
    return get(name).sample(NumpyRng(seed), 1, n)


@pytest.mark.parametrize("name", IMPROVABLE)
def test_needs_no_first_solution(name):
    problem, x = get(name), instance(name, 15)
    search = Search(problem, x)
    assert search.run(iterations=50)
    problem.check(x, search.best_tour)
    assert float(problem.cost(x, search.best_tour)) == pytest.approx(search.best_cost)


@pytest.mark.parametrize("name", IMPROVABLE)
def test_better_offers_are_taken_and_worse_ones_are_not(name):
    problem, x = get(name), instance(name, 15)
    better = Search(problem, x, seed=1)
    better.run(iterations=2000)
    poor = random_tours(problem, x)
    search = Search(problem, x)
    assert search.offer(poor)
    assert search.offer(better.best_tour)
    assert not search.offer(poor)
    assert search.best_cost == better.best_cost
    search.run(iterations=10)
    assert search.best_cost <= better.best_cost


def test_a_restart_goes_on_from_the_tour_offered():
    problem, x = get("tsp"), instance("tsp", 30)
    search = Search(problem, x)
    search.run(iterations=500)
    best = search.best_cost
    assert not search.offer(torch.arange(30), restart=True)
    assert search.engine.best().tolist() == list(range(30))
    search.run()
    assert search.best_cost <= best


def test_slices_add_up():
    problem, x = get("cvrp"), instance("cvrp", 40)
    search = Search(problem, x, horizon=0.3)
    costs = [search.best_cost]
    for _ in range(6):
        search.run(0.05)
        costs.append(search.best_cost)
    assert costs == sorted(costs, reverse=True)
    assert search.spent == pytest.approx(0.3, abs=0.15)


@pytest.mark.parametrize("name", IMPROVABLE)
def test_destroyed_solutions_can_be_completed_step_by_step(name):
    problem, x = get(name), instance(name, 20)
    search = Search(problem, x)
    search.run(iterations=100)
    prefix = search.destroyed(count=4, share=0.4)
    assert prefix.shape[:2] == (1, 4)
    state, actions = problem.initial(x, 4), []
    for step in range(problem.max_steps(x)):
        allowed = problem.feasible(x, state)
        chosen = torch.where(allowed, torch.rand(allowed.shape), -1.0).argmax(-1)
        if step < prefix.shape[2]:
            forced = prefix[:, :, step]
            chosen = torch.where(forced < 0, chosen, forced)
            assert allowed.gather(-1, chosen[..., None]).all()  # a prefix never breaks a rule
        actions.append(chosen)
        state = problem.step(x, state, chosen)
    tours = torch.stack(actions, 2)
    problem.check(x, tours)
    before = search.best_cost
    search.offer(tours)
    assert search.best_cost <= before


def test_an_unknown_search_is_refused_by_name():
    class Strange:
        name, reveals_on_visit, search = "strange", False, "magic"

    with pytest.raises(InputError, match="strange: there is no search 'magic'; there are tour, routes"):
        engine_for(Strange(), None, 0)


def planned_cost(x, start, route, visited):
    """Length from start through the route to the depot, and the penalties of open nodes left out."""
    legs = distance_matrix(x)[0]
    stops = [start, *route, 0]
    length = sum(float(legs[a, b]) for a, b in pairwise(stops))
    return length + sum(float(x.penalty[0, n]) for n in range(1, x.xy.shape[1]) if n not in stops and not visited[n])


def test_plan_collects_what_is_required_from_expected_prizes_only():
    problem, x = get("spctsp"), instance("spctsp", 12)
    visited = torch.zeros(13, dtype=torch.bool)
    visited[[0, 3, 5]] = True
    route = plan(problem, x, 5, visited, 0.6, seconds=0.02)
    assert not {0, 3, 5}.intersection(route)
    assert len(set(route)) == len(route)
    assert float(x.prize[0, route].sum()) >= 0.6 - 1e-9
    hidden = x._replace(real_prize=torch.zeros_like(x.prize))
    other = plan(problem, hidden, 5, visited, 0.6, seconds=0.02)
    assert planned_cost(x, 5, route, visited) == pytest.approx(planned_cost(x, 5, other, visited), rel=0.05)


def test_plan_is_optimal_with_few_nodes_left():
    problem, x = get("spctsp"), instance("spctsp", 9, seed=2)
    visited = torch.zeros(10, dtype=torch.bool)
    visited[[0, 1, 2, 3, 4]] = True
    route = plan(problem, x, 4, visited, 0.2, seconds=0.05)
    open_nodes = [n for n in range(10) if not visited[n]]
    choices = (order for size in range(6) for order in permutations(open_nodes, size))
    best = min(planned_cost(x, 4, order, visited) for order in choices if float(x.prize[0, list(order)].sum()) >= 0.2)
    assert planned_cost(x, 4, route, visited) == pytest.approx(best)


def test_plan_with_nothing_left_goes_home():
    problem, x = get("pctsp"), instance("pctsp", 4)
    assert plan(problem, x, 2, torch.ones(5, dtype=torch.bool), 1.0) == []


@pytest.mark.parametrize("name", IMPROVABLE)
def test_odd_layouts_compile_nothing_anew(name):
    problem, x = get(name), instance(name, 8)
    tours = random_tours(problem, x)
    strided = torch.stack((tours, tours), -1)[..., 0]
    Search(problem, x).offer(tours)
    kernels = [*vars(sisr_kernel).values(), *vars(routes).values(), *vars(selective_kernel).values()]
    kernels = [kernel for kernel in kernels if hasattr(kernel, "signatures")]
    odd = to_single(map_instance(lambda field: torch.stack((field, field), -1)[..., 0], x))
    Search(problem, x).run(iterations=20)
    before = [len(kernel.signatures) for kernel in kernels]
    search = Search(problem, odd)
    search.offer(strided)
    search.run(iterations=20)
    assert [len(kernel.signatures) for kernel in kernels] == before
