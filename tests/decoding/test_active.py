"""Active search: its gradient against an unvectorised loop, what it promises, and that instances learn alone."""

from __future__ import annotations

import brute_force
import pytest
import torch
from decoding_cases import CHOOSING, OTHERS, judged, prepared, same

from routelearn.decoding import active
from routelearn.decoding.active import IMITATION, Embeddings, Weights, learning, own_fields, record
from routelearn.decoding.decode import augmented, cut, decode, parse
from routelearn.decoding.rollout import Live, begin, finish, look, rollout
from routelearn.errors import InputError
from routelearn.problems.base import distance_matrix, repeat, take

DRAWS = 5


def log_probability(problem, policy, cache, x, tour):
    """Of one tour of one instance, step by step under autograd."""
    live, total = begin(problem, policy, cache, x, 1), 0.0
    for node in tour:
        logits, carry = policy.step(cache, live.carry, look(problem, x, live))
        total = total + logits.log_softmax(-1)[0, 0, node]
        nodes = torch.tensor([[node]])
        live = Live(problem.step(x, live.state, nodes), carry, nodes)
    return total


def learned_from(problem, policy, x, versions):
    """(Embeddings after one step of the two passes, the draws, their costs, the best tours) in double precision."""
    many = repeat(x, versions)
    features = augmented(problem.features(x), versions, 0)
    with torch.no_grad():
        cache = policy.encode(features)
        embeddings = Embeddings(policy, features, cache)
        for added in embeddings.added:
            added.add_(0.1 * torch.randn(added.shape, dtype=added.dtype, generator=torch.Generator().manual_seed(1)))
        with torch.random.fork_rng():
            torch.manual_seed(2)
            plain = type(cache)(*(field.detach() for field in embeddings.moved()))
            steps = problem.max_steps(x)
            rolled = rollout(problem, policy, plain, many, solutions=DRAWS, steps=steps, temperature=1.0, record=True)
        best = finish(problem, policy, cache, many).tour[::versions]
        cost = problem.cost(many, rolled.tour)
    moved = embeddings.moved()
    imitated = policy.score(moved, record(problem, many, best, versions)).sum(2)
    learning(cost, policy.score(moved, rolled.trajectory).sum(2), imitated).backward()
    return embeddings, rolled.tour, cost, best


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "attention") for name in ("tsp", "cvrp", "sdvrp", "pctsp")), *OTHERS]
)
def test_the_gradient_is_that_of_a_plain_loop(name, kind):
    problem, policy, x = prepared(name, kind=kind, batch=2, n=5, double=True)
    versions = 2
    embeddings, tours, costs, best = learned_from(problem, policy, x, versions)
    many, loss = repeat(x, versions), 0.0
    leaves = [added.detach().clone().requires_grad_() for added in embeddings.added]
    for row in range(len(tours)):
        fields = list(embeddings.cache)
        for leaf, i in zip(leaves, embeddings.own, strict=True):
            size = float((fields[i][row] ** 2).mean()) ** 0.5
            fields[i] = fields[i][row : row + 1] + size * leaf[row : row + 1]
        cache, one = type(embeddings.cache)(*fields), take(many, slice(row, row + 1))
        cost = costs[row].tolist()
        mean = sum(cost) / DRAWS
        spread = (sum((c - mean) ** 2 for c in cost) / DRAWS) ** 0.5 + 1e-6 * (1 + max(map(abs, cost)))
        for c, tour in zip(cost, tours[row].tolist(), strict=True):
            loss = loss + (c - mean) / spread * log_probability(problem, policy, cache, one, tour) / DRAWS
        good = best[row // versions, 0].tolist()
        loss = loss - IMITATION * log_probability(problem, policy, cache, one, good)
    loss.backward()
    for added, leaf in zip(embeddings.added, leaves, strict=True):
        reference = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
        mine = torch.zeros_like(leaf) if added.grad is None else added.grad
        torch.testing.assert_close(mine, reference, rtol=1e-7, atol=1e-9)
    assert max(float(leaf.grad.abs().max()) for leaf in leaves if leaf.grad is not None) > 1e-6


def test_no_instance_hears_of_another():
    problem, policy, x = prepared("cvrp", batch=3, n=6, double=True)
    together, tours, costs, best = learned_from(problem, policy, x, 1)
    for row in range(3):
        one = take(x, slice(row, row + 1))
        alone = Embeddings(policy, problem.features(one), policy.encode(problem.features(one)))
        with torch.no_grad():
            for mine, all_of_them in zip(alone.added, together.added, strict=True):
                mine.copy_(all_of_them[row : row + 1])
        moved = alone.moved()
        rows = slice(row, row + 1)
        log_prob = policy.score(moved, record(problem, one, tours[rows].transpose(0, 1)[:1], 1)).sum(2)
        every = [policy.score(moved, record(problem, one, tours[rows, s : s + 1], 1)).sum(2) for s in range(DRAWS)]
        torch.testing.assert_close(log_prob, every[0])
        imitated = policy.score(moved, record(problem, one, best[rows], 1)).sum(2)
        learning(costs[rows], torch.cat(every, 1), imitated).backward()
        for mine, all_of_them in zip(alone.added, together.added, strict=True):
            torch.testing.assert_close(mine.grad[0], all_of_them.grad[row])


def test_unfinished_draws_teach_nothing():
    log_prob = torch.zeros(1, 3, requires_grad=True)
    learning(torch.tensor([[1.0, 3.0, torch.inf]]), log_prob, torch.zeros(1, 1)).backward()
    assert log_prob.grad[0].tolist() == pytest.approx([-0.5, 0.5, 0.0], abs=1e-4)
    log_prob.grad = None
    learning(torch.full((1, 3), torch.inf), log_prob, torch.zeros(1, 1)).backward()
    assert log_prob.grad[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize(("name", "kind"), [*((name, "attention") for name in CHOOSING), *OTHERS])
def test_it_is_never_worse_than_its_start_and_one_answer_a_seed(name, kind):
    problem, policy, x = prepared(name, kind=kind)
    text = "augment:2+active:2+sample:3"
    found = judged(problem, x, decode(problem, policy, x, text, seed=4))
    assert (found.cost <= decode(problem, policy, x, "augment:2").cost + 1e-6).all()
    assert torch.equal(found.tour, decode(problem, policy, x, text, seed=4).tour)


@pytest.mark.parametrize("kind", ["active", "retrain"])
def test_it_learns(kind, monkeypatch):
    problem, policy, x = prepared("tsp", batch=8 if kind == "active" else 1, n=12)
    means, hear = [], active.Best.hear

    def spy(best, x, rolled):
        costs = hear(best, x, rolled)
        means.append(float(costs.mean()))
        return costs

    monkeypatch.setattr(active.Best, "hear", spy)
    monkeypatch.setattr(active, "DISTANCE", 3.0)  # a policy that knows nothing has far to go
    monkeypatch.setattr(Weights, "rate", 0.01)
    decode(problem, policy, x, f"{kind}:60+sample:16")
    _, before, *steps, greedily, _ = means  # the last is what decode hears of it all
    assert len(steps) == 60
    assert steps[0] == pytest.approx(before, rel=0.2)
    assert sum(steps[-5:]) / 5 < 0.8 * before
    assert greedily < 0.8 * before


@pytest.mark.parametrize("name", ["tsp", "cvrp"])
def test_it_reaches_the_optimum_of_tiny_instances(name):
    problem, policy, x = prepared(name, batch=3, n=5)
    found = decode(problem, policy, x, "augment:2+active:20+sample:8").cost
    for row in range(3):
        one = take(x, slice(row, row + 1))
        legs = distance_matrix(one)[0].double().tolist()
        loads = () if name == "tsp" else (one.demand[0].tolist(), int(one.capacity))
        assert float(found[row]) == pytest.approx(getattr(brute_force, name)(legs, *loads), abs=1e-5)


def test_a_guided_beam_may_follow(monkeypatch):
    problem, policy, x = prepared("cvrp")
    plain = decode(problem, policy, x, "guided:3").cost
    monkeypatch.setattr(active, "DISTANCE", 0.0)  # nothing is learned, so the beam is the one without
    both = judged(problem, x, decode(problem, policy, x, "active:1+sample:2+guided:3"))
    assert (both.cost <= plain + 1e-6).all()


@pytest.mark.parametrize("kind", ["attention", "nazari"])
@pytest.mark.parametrize("text", ["active:2", "augment:2+retrain:2"])
def test_the_policy_is_left_as_it_was(text, kind):
    problem, policy, x = prepared("cvrp", kind=kind)
    before = {name: value.clone() for name, value in policy.state_dict().items()}
    greedy = decode(problem, policy, x).cost
    assert (judged(problem, x, decode(problem, policy, x, text)).cost <= greedy + 1e-6).all()
    assert all(torch.equal(before[name], value) for name, value in policy.state_dict().items())
    assert all(parameter.grad is None for parameter in policy.parameters())


@pytest.mark.parametrize(("name", "kind"), [("cvrp", "attention"), ("sdvrp", "attention"), *OTHERS])
def test_only_what_an_instance_has_of_its_own_is_changed(name, kind):
    problem, policy, x = prepared(name, kind=kind, batch=3)
    cache = policy.encode(problem.features(x))
    own = own_fields(policy, problem.features(x))
    assert own
    shared = {"scalars", "step"}
    assert {field for i, field in enumerate(cache._fields) if i not in own} == shared & set(cache._fields)


def test_an_instance_too_large_for_the_budget_goes_alone_with_all_its_draws():
    policy = prepared("tsp")[1]
    assert cut(policy, 50, parse("augment:8+active:10+sample:100"), 4, 10**6, 10) == (1, 1)
    assert cut(policy, 50, parse("retrain:10"), 4, 10**12, 10) == (1, 1)
    few, many = (cut(policy, 50, parse(text), 4, 10**8, 1000)[0] for text in ("active:10", "sample:16"))
    assert 1 <= few < many


def test_weights_learn_from_one_instance_alone():
    problem, policy, x = prepared("cvrp")
    text = "retrain:2+sample:3"
    alone = decode(problem, policy, take(x, slice(0, 1)), text)
    together = decode(problem, policy, x, text)
    assert same(problem, alone, together._replace(tour=together.tour[:1]))


def test_the_temperature_of_its_draws_is_one():
    with pytest.raises(InputError, match="temperature 1"):
        parse("active:3+sample:4@0.5")
