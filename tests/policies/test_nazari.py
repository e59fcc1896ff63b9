"""The model of Nazari et al. beside its formulas written out, and what having no encoder promises."""

from __future__ import annotations

import math

import pytest
import torch

from routelearn import policies
from routelearn.decoding.rollout import Live, begin, look, rollout
from routelearn.policies.base import shape_of
from routelearn.policies.nazari import Recurrence
from routelearn.problems import DeviceRng, get

KINDS = ("weight", "bias")


def made(name, n=5):
    problem = get(name)
    policy = policies.build("nazari", shape_of(problem), {"width": 12}).double().eval()
    return problem, policy, problem.sample(DeviceRng(dtype=torch.float64), 3, n)


@pytest.mark.parametrize("name", ["cvrp", "sdvrp", "tsp", "vrp"])
@torch.no_grad()
def test_every_step_is_what_the_formulas_say(name):
    """x embeds what an element is now; c = sum of softmax(v . tanh(W x + U h)) x; u = v' . tanh(W' x + U' c)."""
    problem, policy, x = made(name)
    features = problem.features(x)
    cache = policy.encode(features)
    tour = rollout(problem, policy, cache, x, solutions=2, steps=8, temperature=1.0).tour
    fixed = [embed(node) for embed, group in zip(policy.embed, features, strict=True) for node in group.unbind(1)]
    places = torch.cat([group[..., :2] for group in features], 1)
    decoder, live = policy.decoder, begin(problem, policy, cache, x, 2)
    reading = torch.nn.LSTMCell(12, 12).double()
    parts = {"ih": decoder.read, "hh": decoder.recall}
    reading.load_state_dict({f"{kind}_{name}": getattr(part, kind) for name, part in parts.items() for kind in KINDS})
    state = None
    for t in range(8):
        seen = look(problem, x, live)
        logits, carry = policy.step(cache, live.carry, seen)
        rows = [
            policy.start if t == 0 else policy.place(places[b, tour[b, s, t - 1]]) for b in range(3) for s in (0, 1)
        ]
        state = reading(torch.stack(rows), state)
        hidden = state[0].view(3, 2, 12)
        for b in range(3):
            for s in range(2):
                elements = []
                for node in range(places.shape[1]):
                    now = seen.scalars[b, s]
                    if seen.step_features is not None:
                        now = torch.cat((now, seen.step_features[b, s, node]))
                    changing = policy.changing(now) if len(now) else 0.0
                    elements.append(fixed[node][b] + changing)

                def compared(part, query, elements=elements):
                    inside = [part.reference(element) + part.query(query) for element in elements]
                    return torch.stack([part.score(torch.tanh(row))[0] for row in inside])

                weights = compared(policy.glimpse, hidden[b, s]).softmax(0)
                found = sum(weight * element for weight, element in zip(weights, elements, strict=True))
                expected = 10 * torch.tanh(compared(policy.pointer, found))
                able = seen.feasible[b, s]
                torch.testing.assert_close(logits[b, s, able], expected[able])
                assert (logits[b, s].isneginf() == ~seen.feasible[b, s]).all()
        live = Live(problem.step(x, live.state, tour[..., t]), carry, tour[..., t])


def test_one_step_of_the_recurrence_is_the_librarys():
    decoder, read = Recurrence(4).double(), torch.randn(3, 6, 4).double()
    hidden, cell = torch.zeros(3, 4).double(), torch.zeros(3, 4).double()
    whole = decoder.over(read)
    for t in range(6):
        hidden, cell = decoder(read[:, t], hidden, cell)
        torch.testing.assert_close(hidden, whole[:, t])


def test_the_order_of_customers_means_nothing():
    problem, policy, x = made("cvrp", n=6)
    order = torch.tensor([0, 4, 2, 6, 1, 5, 3])
    turned = x._replace(xy=x.xy[:, order], demand=x.demand[:, order])
    one, other = (
        policy.step(
            cache := policy.encode(problem.features(y)), policy.begin(cache, 1),
            look(problem, y, begin(problem, policy, cache, y, 1)),
        )[0]
        for y in (x, turned)
    )  # fmt: skip
    torch.testing.assert_close(one[..., order], other)
    assert one[0, 0, 0] == -math.inf
