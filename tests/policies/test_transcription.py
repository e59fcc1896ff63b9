"""The attention policy against the paper's equations, written out in double precision.

The transcription reads the policy's parameters and nothing else of it: no cache, no folded projection,
every key and value of every step written out. Section 3, appendix A and equation 23 (step features).
"""

from __future__ import annotations

import pytest
import torch

from routelearn.decoding.rollout import Live, begin, look, rollout
from routelearn.policies.attention import AttentionPolicy
from routelearn.policies.base import shape_of
from routelearn.problems import PROBLEMS, NumpyRng, get
from routelearn.problems.base import take

WIDTH, HEADS, HIDDEN, LAYERS, CLIP = 16, 4, 24, 2, 10.0
BATCH, CITIES, SOLUTIONS = 3, 6, 2
TIGHT = 1e-10


def policy_for(problem, norm="batch", neighbours=0, train=False):
    """A policy in double precision whose every parameter and statistic is away from its initial value."""
    policy = AttentionPolicy(
        shape_of(problem), WIDTH, HEADS, LAYERS, HIDDEN, norm=norm, clip=CLIP, neighbours=neighbours
    ).double()
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            if "norm" in name:
                parameter.add_(torch.randn_like(parameter) * 0.3)
        for name, statistic in policy.named_buffers():
            if name.endswith("running_mean"):
                statistic.normal_()
            elif name.endswith("running_var"):
                statistic.uniform_(0.5, 2.0)
    return policy.train(train)


# ------------------------------------------------------------------------------- the paper's equations


def softmax(u):
    """Eq. 8 and 12 over the last axis, -inf where nothing may be received."""
    e = (u - u.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def attention(query, keys, values, allowed, heads, out):
    """Eq. 11 to 14 for Q receiving nodes: query [B, Q, D], keys and values [B, Q, N, D], allowed [B, Q, N].

    Head m owns rows m d to (m + 1) d of W^Q, W^K, W^V and the same columns of W^O.
    """
    d = query.shape[-1] // heads
    result = 0.0
    for m in range(heads):
        part = slice(m * d, (m + 1) * d)
        u = torch.einsum("bqd,bqnd->bqn", query[..., part], keys[..., part]) / d**0.5
        a = softmax(u.masked_fill(~allowed, -torch.inf))
        received = torch.einsum("bqn,bqnd->bqd", a, values[..., part])
        result = result + torch.einsum("od,bqd->bqo", out[:, part], received)
    return result


def projected(weight, h):
    """W h for every node."""
    return torch.einsum("oi,...i->...o", weight, h)


def normalised(h, layer, kind, train):
    """h [B, N, D] through the normalisation of that kind, feature by feature."""
    if kind == "batch":  # eq. 16; statistics over all nodes of all instances, or the running ones
        if train:
            mean = h.mean((0, 1))
            variance = ((h - mean) ** 2).mean((0, 1))
        else:
            mean, variance = layer.running_mean, layer.running_var
        return layer.weight * (h - mean) / (variance + 1e-5).sqrt() + layer.bias
    if kind == "instance":
        mean = h.mean(1, keepdim=True)
        variance = ((h - mean) ** 2).mean(1, keepdim=True)
        return layer.weight * (h - mean) / (variance + 1e-5).sqrt() + layer.bias
    if kind == "layer":
        mean = h.mean(-1, keepdim=True)
        variance = ((h - mean) ** 2).mean(-1, keepdim=True)
        return layer.weight * (h - mean) / (variance + 1e-5).sqrt() + layer.bias
    return layer.weight * h / ((h**2).mean(-1, keepdim=True) + torch.finfo(h.dtype).eps).sqrt()


def adjacency(xy, k):
    """[N, N]: the k nearest of each node, itself among them; k = 0 is the full graph."""
    count = len(xy)
    adjacent = torch.ones(count, count, dtype=torch.bool)
    for i in range(count):
        order = sorted(range(count), key=lambda j: float((xy[i] - xy[j]).norm()))
        for j in order[k:] if k else []:
            adjacent[i, j] = False
    return adjacent


def encoded(policy, features, xy, kind, neighbours, train):
    """Section 3.1: node embeddings [B, N, D]."""
    encoder = policy.encoder
    groups = zip(encoder.embed, features, strict=True)
    h = torch.cat([projected(part.weight, group) + part.bias for part, group in groups], 1)
    adjacent = torch.stack([adjacency(nodes, neighbours) for nodes in xy])
    for layer in encoder.layers:
        query, key, value = (projected(weight, h) for weight in layer.qkv.weight.chunk(3))  # eq. 10
        keys, values = (each[:, None].expand(-1, h.shape[1], -1, -1) for each in (key, value))
        received = attention(query, keys, values, adjacent, policy.heads, layer.out.weight)
        h = normalised(h + received, layer.norm_attention, kind, train)  # eq. 2
        inner = (projected(layer.expand.weight, h) + layer.expand.bias).clamp(min=0)
        forward = projected(layer.contract.weight, inner) + layer.contract.bias  # eq. 15
        h = normalised(h + forward, layer.norm_feed_forward, kind, train)  # eq. 3
    return h


def decoded(policy, h, seen):
    """Section 3.2: logits [B, S, N] from embeddings h [B, N, D] and what is seen of the partial solutions."""
    batch, solutions, slots = seen.nodes.shape
    width = h.shape[-1]
    context = torch.empty(batch, solutions, slots * width, dtype=h.dtype)  # eq. 4
    for b in range(batch):
        for s in range(solutions):
            nodes = seen.nodes[b, s].tolist()
            rows = [policy.placeholder[k] if node < 0 else h[b, node] for k, node in enumerate(nodes)]
            context[b, s] = torch.cat(rows)
    context = torch.cat((context, seen.scalars), -1)
    # Eq. 5; the graph embedding's columns of W^Q are a matrix of their own.
    query = projected(policy.graph.weight, h.mean(1))[:, None] + projected(policy.context.weight, context)
    keys, values, pointers = (
        projected(part.weight, h)[:, None].expand(-1, solutions, -1, -1)
        for part in (policy.key, policy.value, policy.pointer)
    )
    if seen.step_features is not None:  # eq. 23, in the glimpse and in the output layer
        into_key, into_value, into_pointer = policy.step_features.weight.chunk(3)
        keys = keys + projected(into_key, seen.step_features)
        values = values + projected(into_value, seen.step_features)
        pointers = pointers + projected(into_pointer, seen.step_features)
    glimpse = attention(query, keys, values, seen.feasible, policy.heads, policy.out.weight)  # eq. 6
    u = CLIP * torch.tanh(torch.einsum("bsd,bsnd->bsn", glimpse, pointers) / width**0.5)  # eq. 7
    return u.masked_fill(~seen.feasible, -torch.inf)


# -------------------------------------------------------------------------------------------- the tests


def compare(problem, norm, neighbours, train):
    """Every step of a random rollout, and the scores of the whole record, against the transcription."""
    x = problem.sample(NumpyRng(11), BATCH, CITIES)
    policy = policy_for(problem, norm, neighbours, train)
    features = problem.features(x)
    with torch.no_grad():
        h = encoded(policy, features, x.xy, norm, neighbours, train)
        cache = policy.encode(features)
        rolled = rollout(
            problem, policy, cache, x, solutions=SOLUTIONS, steps=problem.max_steps(x), temperature=1.0, record=True
        )
        scored = policy.score(cache, rolled.trajectory)
        live = begin(problem, policy, cache, x, SOLUTIONS)
        for t in range(rolled.tour.shape[2]):
            seen = look(problem, x, live)
            logits, carry = policy.step(cache, live.carry, seen)
            last = rolled.tour[:, :, t]
            expected = decoded(policy, h, seen)
            torch.testing.assert_close(logits, expected, rtol=0, atol=TIGHT)
            chosen = softmax(expected).gather(-1, last[..., None])[..., 0].log()  # eq. 8
            torch.testing.assert_close(scored[..., t], chosen, rtol=0, atol=TIGHT)
            live = Live(problem.step(x, live.state, last), carry, last)
        torch.testing.assert_close(rolled.log_prob, scored.sum(-1), rtol=0, atol=TIGHT)  # eq. 1


@pytest.mark.parametrize("neighbours", [0, 3])
@pytest.mark.parametrize(
    ("norm", "train"), [("batch", False), ("batch", True), ("instance", False), ("layer", False), ("rms", False)]
)
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_step_follows_the_paper(name, norm, train, neighbours):
    compare(get(name), norm, neighbours, train)


def test_logits_stay_within_the_clip_and_are_minus_infinity_where_masked():
    problem = get("cvrp")
    x = problem.sample(NumpyRng(2), 4, 10)
    policy = policy_for(problem)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.mul_(5)
    cache = policy.encode(problem.features(x))
    seen = look(problem, x, begin(problem, policy, cache, x, 3))
    logits = policy.logits(cache, seen)
    assert torch.equal(logits.isfinite(), seen.feasible)
    assert logits[seen.feasible].abs().max() <= CLIP
    assert logits[seen.feasible].abs().max() > 0.9 * CLIP


def test_the_order_of_the_nodes_does_not_matter():
    """Section 3.1: no positional encoding, so permuted nodes get permuted logits."""
    problem = get("tsp")
    x = problem.sample(NumpyRng(4), 2, 8)
    policy = policy_for(problem)
    order = torch.randperm(8)
    shuffled = x._replace(xy=x.xy[:, order])
    caches = (policy.encode(problem.features(y)) for y in (x, shuffled))
    plain, moved = (policy.logits(cache, look(problem, x, begin(problem, policy, cache, x, 1))) for cache in caches)
    torch.testing.assert_close(plain[..., order], moved, rtol=0, atol=TIGHT)


@pytest.mark.parametrize("norm", ["batch", "instance", "layer", "rms"])
def test_in_evaluation_an_instance_is_encoded_as_if_alone(norm):
    problem = get("pctsp")
    x = problem.sample(NumpyRng(6), 4, 7)
    policy = policy_for(problem, norm)
    company = policy.encode(problem.features(x))
    alone = policy.encode(problem.features(take(x, slice(2, 3))))
    torch.testing.assert_close(company.pointer[2:3], alone.pointer, rtol=0, atol=TIGHT)


def test_initial_weights_are_uniform_within_the_input_dimension():
    """Section 5: within 1 / sqrt(d), d the input dimension."""
    policy = AttentionPolicy(shape_of(get("cvrp")))
    for part in policy.modules():
        if isinstance(part, torch.nn.Linear):
            bound = part.in_features**-0.5
            assert part.weight.abs().max() <= bound
            assert float(part.weight.std().detach()) == pytest.approx(bound / 3**0.5, rel=0.15)


def test_a_node_is_its_own_neighbour_even_among_coinciding_ones():
    from routelearn.policies.layers import nearest

    assert nearest(torch.zeros(1, 6, 2), 2).diagonal(dim1=1, dim2=2).all()
