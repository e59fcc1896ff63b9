"""Edges scored by a graph network: what their scores promise, beside the formulas written out."""

from __future__ import annotations

import pytest
import torch

from routelearn import policies
from routelearn.errors import InputError
from routelearn.policies.base import shape_of
from routelearn.problems import DeviceRng, get


@pytest.fixture
def parts():
    problem = get("tsp")
    policy = policies.build("nowak", shape_of(problem), {"width": 12, "layers": 2, "norm": "layer"}).double().eval()
    return policy, problem.sample(DeviceRng(dtype=torch.float64), 3, 7).xy


@torch.no_grad()
def test_edges_are_what_the_formulas_say(parts):
    policy, xy = parts
    for b in range(3):
        h = [policy.embed(place) for place in xy[b]]
        graphs = []
        for sharpness in policy.sharpness.exp():
            away = torch.stack([torch.stack([-sharpness * (u - v).norm() for v in xy[b]]) for u in xy[b]])
            graphs.append(away.exp() / away.exp().sum(1, keepdim=True))
        for layer in policy.layers:
            everyone = sum(h) / 7
            near = [[sum(graph[u, v] * h[v] for v in range(7)) for graph in graphs] for u in range(7)]
            z = [layer.send(torch.cat([h[u], *near[u], everyone])) for u in range(7)]
            h = [layer.norm(torch.cat([part[:6].relu(), part[6:]])) for part in z]
        one, other = policy.ends.weight.split(12)
        for u in range(7):
            for v in range(7):
                fit = (one @ h[u]) @ (other @ h[v]) + (one @ h[v]) @ (other @ h[u])
                edge = policy.encode((xy,)).edges[b, u, v]
                torch.testing.assert_close(edge, 10 * torch.tanh(fit / 12**0.5))


def test_an_edge_is_worth_the_same_both_ways_and_in_any_order_of_nodes(parts):
    policy, xy = parts
    edges, order = policy.encode((xy,)).edges, torch.randperm(7)
    torch.testing.assert_close(edges, edges.transpose(1, 2))
    torch.testing.assert_close(policy.encode((xy[:, order],)).edges, edges[:, order][:, :, order])


def test_it_is_not_built_for_problems_with_a_state():
    with pytest.raises(InputError, match="nodes of one kind without a state"):
        policies.build("nowak", shape_of(get("op-dist")), {})
