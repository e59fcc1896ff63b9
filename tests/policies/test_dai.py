"""Structure2vec over partial tours: its estimates beside the formulas written out, and the tours that come of them."""

from __future__ import annotations

import pytest
import torch

import routelearn
from routelearn import policies
from routelearn.decoding.decode import decode
from routelearn.decoding.insertion import ByInsertion, viewed
from routelearn.decoding.rollout import rollout
from routelearn.errors import InputError
from routelearn.models import model_file
from routelearn.policies.base import shape_of
from routelearn.problems import DeviceRng, get
from routelearn.serve.limits import Limits
from routelearn.serve.think import think


def parts(**options):
    problem = get("tsp")
    policy = policies.build("dai", shape_of(problem), {"width": 8, "layers": 2, "neighbours": 3, **options})
    return problem, policy.double().eval(), problem.sample(DeviceRng(dtype=torch.float64), 3, 7)


@torch.no_grad()
def test_logits_are_what_the_formulas_say():
    problem, policy, x = parts()
    cache = policy.encode(problem.features(x))
    order = torch.tensor([4, 1, 6])
    carry = policy.begin(cache, 1)
    for node in order:
        carry = policy.joined(cache, carry, node.expand(3, 1))
    feasible = torch.ones(7, dtype=torch.bool).scatter(0, order, False)
    logits = policy.logits(cache, carry[2], feasible.expand(3, 1, 7))[:, 0]
    for b in range(3):
        xy, tour = x.xy[b], carry[0][b, 0, :3].tolist()
        legs = (xy[:, None] - xy).norm(dim=-1)
        near = [legs[v].argsort()[1:4].tolist() for v in range(7)]
        first = []
        for v in range(7):
            ways = [(tour[i], tour[(i + 1) % 3]) for i in range(3)]
            added = min(legs[u, v] + legs[v, w] - legs[u, w] for u, w in ways)
            state = torch.stack((torch.full_like(added, v in tour), 3 * added, 3 * legs[v, tour].min()))
            edges = sum(policy.edge(3 * legs[v, u, None]).relu() for u in near[v]) / 3
            first.append(policy.state(state) + policy.edges(edges) + policy.place(xy[v] - xy.mean(0)))
        h = [part.relu() for part in first]
        for layer in policy.rounds:
            everyone = layer.all(sum(h) / 7)
            beside = [layer.neighbours(sum(h[u] for u in near[v]) / 3) for v in range(7)]
            h = [(first[v] + layer.own(h[v]) + beside[v] + everyone).relu() for v in range(7)]
        mean = sum(h) / 7
        for v in range(7):
            q = policy.advantage((policy.node(h[v]) + policy.pool(mean)).relu()) + policy.value(mean)
            expected = 30 * q[0] if v not in tour else torch.full_like(q[0], -torch.inf)
            torch.testing.assert_close(logits[b, v], expected)


@torch.no_grad()
def test_chosen_nodes_are_an_order_of_insertion_and_answers_are_tours():
    problem, policy, x = parts()
    view = viewed(policy, problem)
    assert isinstance(view, ByInsertion)
    rolled = rollout(view, policy, policy.encode(problem.features(x)), x, steps=7)
    found = decode(problem, policy, x)
    assert torch.equal(found.tour, view.tours(x, rolled.tour))
    assert not torch.equal(found.tour, rolled.tour)
    torch.testing.assert_close(found.cost, view.added(x, rolled.tour).sum(-1)[:, 0])


@torch.no_grad()
def test_the_order_of_nodes_means_nothing():
    problem, policy, x = parts()
    order = torch.randperm(7)
    here, there = (decode(problem, policy, x._replace(xy=xy)).cost for xy in (x.xy, x.xy[:, order]))
    torch.testing.assert_close(here, there)


@torch.no_grad()
def test_without_a_number_of_neighbours_all_are():
    problem, policy, x = parts(neighbours=0)
    near = policy.encode(problem.features(x)).near
    torch.testing.assert_close(near, (1 - torch.eye(7, dtype=torch.float64)).expand(3, 7, 7) / 6)


def test_it_is_not_built_for_problems_that_insertion_does_not_solve():
    with pytest.raises(InputError, match="only closed tours through all nodes are built by insertion"):
        policies.build("dai", shape_of(get("cvrp")), {})


def test_solve_takes_its_model_and_thoughts_are_refused_in_a_line(tmp_path):
    _, policy, x = parts()
    path = tmp_path / "dai.safetensors"
    options = {"width": 8, "layers": 2, "neighbours": 3, "sharpness": 30.0}
    model_file.save(path, model_file.Model(policy.float(), "tsp", "dai", options, {"sizes": [7]}))
    coords = x.xy[0].tolist()
    found = routelearn.solve(coords=coords, seconds=0, model=path)
    assert sorted(found.routes[0]) == list(range(7))
    fields = {"coords": coords, "problem": "tsp", "sample": False, "seed": 0}
    with pytest.raises(InputError, match="policy 'dai' inserts stops into a tour; only one that travels can be"):
        think(fields, Limits(), models={"tsp": str(path)})
