"""Tours by insertion, beside the rule written out node by node, and a problem that is told by orders of insertion."""

from __future__ import annotations

import copy

import pytest
import torch

from routelearn.decoding.insertion import ByInsertion, tours_of, viewed
from routelearn.policies.insertion import empty, inserted, offers
from routelearn.problems import NumpyRng, get
from routelearn.problems.base import distance_matrix


@pytest.fixture(params=["places", "asymmetric matrix"])
def x(request):
    instances = get("tsp").sample(NumpyRng(3), 4, 7)
    if request.param == "places":
        return instances
    uneven = 1 + torch.rand((4, 7, 7), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return instances._replace(distances=distance_matrix(instances) * uneven)


def plain(legs, order):
    """(tour, what each insertion added), by trying every place."""
    tour, added = [order[0]], [0.0]
    for node in order[1:]:
        extra = []
        for place, here in enumerate(tour):
            following = tour[(place + 1) % len(tour)]
            extra.append(legs[here][node] + legs[node][following] - legs[here][following])
        place = min(range(len(tour)), key=extra.__getitem__)
        tour.insert(place + 1, node)
        added.append(extra[place])
    return tour, added


def orders_of(x, solutions=3):
    generator = torch.Generator().manual_seed(5)
    return torch.rand((len(x.xy), solutions, x.xy.shape[1]), generator=generator).argsort(-1)


def test_nodes_join_where_they_add_least(x):
    view, orders = ByInsertion(get("tsp")), orders_of(x)
    tours, added, legs = view.tours(x, orders), view.added(x, orders), distance_matrix(x).tolist()
    for b in range(4):
        for s in range(3):
            tour, extra = plain(legs[b], orders[b, s].tolist())
            assert tours[b, s].tolist() == tour
            assert added[b, s].tolist() == pytest.approx(extra)


def test_what_insertions_add_is_the_cost_of_the_tour(x):
    tsp = get("tsp")
    view, orders = ByInsertion(tsp), orders_of(x)
    tsp.check(x, view.tours(x, orders))
    torch.testing.assert_close(view.cost(x, orders), tsp.cost(x, view.tours(x, orders)))
    torch.testing.assert_close(view.cost(x, orders), view.added(x, orders).sum(-1))


def test_a_node_that_comes_again_adds_nothing_and_the_last_one_stays(x):
    tsp = get("tsp")
    view, orders = ByInsertion(tsp), orders_of(x)
    longer = torch.cat((orders, orders[..., -1:], orders[..., :1]), -1)
    assert torch.equal(view.tours(x, longer)[..., :7], view.tours(x, orders))
    tsp.check(x, view.tours(x, longer))
    assert (view.added(x, longer)[..., 7:] == 0).all()
    torch.testing.assert_close(view.cost(x, longer), view.cost(x, orders))


def test_a_tour_cut_short_has_the_length_of_what_there_is(x):
    tsp = get("tsp")
    view, few = ByInsertion(tsp), orders_of(x)[..., :3]
    torch.testing.assert_close(view.cost(x, few), view.added(x, few).sum(-1))


def test_offers_say_how_far_a_node_is_from_the_tour(x):
    legs = distance_matrix(x)
    tour = empty(legs, 1)
    assert (offers(legs, tour).away == 0).all()
    for node in (2, 5):
        tour = inserted(tour, torch.full((4, 1), node), offers(legs, tour).place[..., node])
    torch.testing.assert_close(offers(legs, tour).away[:, 0], torch.minimum(legs[:, 2], legs[:, 5]))


def test_a_view_is_the_problem_in_all_else_and_is_not_taken_twice():
    class Inserts:
        inserts = True

    tsp = get("tsp")
    seen = viewed(Inserts(), tsp)
    assert (seen.name, seen.max_steps(tsp.sample(NumpyRng(0), 1, 5))) == ("tsp", 5)
    assert viewed(Inserts(), seen) is seen
    assert viewed(object(), tsp) is tsp
    assert copy.deepcopy(seen).name == "tsp"
    x = tsp.sample(NumpyRng(0), 2, 5)
    order = torch.tensor([[[0, 1, 2, 3, 4]]]).expand(2, 1, 5)
    assert tours_of(tsp, x, order) is order
    assert torch.equal(tours_of(seen, x, order), seen.tours(x, order))
