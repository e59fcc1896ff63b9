"""Muon: which parameters it moves, where to, and that Adam moves the rest as ever."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from train_cases import CPU, make_step, run, tiny

from routelearn.training import optimiser as muon
from routelearn.training.baselines import NoBaseline
from routelearn.training.optimiser import between_layers, make_optimiser, squares, whole


def after_bending(matrix):
    """The matrix with each singular value bent as the iteration bends it: what it computes, by another way."""
    u, s, v = np.linalg.svd(matrix)
    s = s / np.linalg.norm(s)
    a, b, c = muon.QUINTIC
    for _ in range(muon.ROUNDS):
        s = a * s + b * s**3 + c * s**5
    return u @ np.diag(s) @ v


def both(policy, rate=0.01):
    """Optimisers of two copies of a policy: Adam's and Muon's, and the copies."""
    copies = [copy.deepcopy(policy) for _ in range(2)]
    kinds = ("adam", "muon")
    return copies, [make_optimiser(kind, one, NoBaseline(), rate, CPU) for kind, one in zip(kinds, copies, strict=True)]


@pytest.mark.parametrize("shape", [(64, 64), (192, 64), (64, 256)])
def test_squares_make_the_matrix_again(shape):
    matrix = torch.randn(shape)
    parts = squares(matrix)
    assert parts.shape[1] == parts.shape[2] == 64
    assert torch.equal(whole([parts], [matrix])[0], matrix)


def test_queries_keys_and_values_are_squares_of_their_own():
    q, k, v = torch.randn(3, 64, 64)
    for part, square in zip((q, k, v), squares(torch.cat((q, k, v))), strict=True):
        assert torch.equal(part, square)


@pytest.mark.parametrize(
    ("shape", "moved"),
    [((128, 128), True), ((384, 128), True), ((128, 512), True), ((128, 260), False), ((128, 2), False),
     ((2, 128), False), ((128,), False), ((16, 16), False)],
)  # fmt: skip
def test_matrices_between_layers_are_told_by_their_shape(shape, moved):
    assert between_layers(torch.zeros(shape)) == moved


@pytest.mark.parametrize("shape", [(64, 64), (128, 64), (64, 192)])
def test_steps_agree_with_singular_values(shape):
    """Two steps: Nesterov's momentum, each square's singular values bent, the same pace for all shapes."""
    rng = np.random.default_rng(1)
    layer = torch.nn.Linear(shape[1], shape[0], bias=False, dtype=torch.float64)
    expected, momentum = layer.weight.detach().numpy().copy(), np.zeros(shape)
    optimiser = make_optimiser("muon", layer, NoBaseline(), 0.01, CPU)
    for _ in range(2):
        gradient = rng.normal(size=shape)
        layer.weight.grad = torch.from_numpy(gradient)
        optimiser.step()
        momentum = muon.MOMENTUM * momentum + (1 - muon.MOMENTUM) * gradient
        sought = (1 - muon.MOMENTUM) * gradient + muon.MOMENTUM * momentum
        tall = sought if shape[0] >= shape[1] else sought.T
        moved = np.concatenate([after_bending(part) for part in np.split(tall, len(tall) // 64)])
        expected -= 0.01 * muon.PACE * 64**0.5 * (moved if shape[0] >= shape[1] else moved.T)
    np.testing.assert_allclose(layer.weight.detach().numpy(), expected, atol=1e-9)


def test_adam_moves_the_rest_and_muon_every_direction_alike():
    (plain, turned), optimisers = both(make_step(tiny()).policy)
    before = copy.deepcopy(plain)
    for policy, optimiser in zip((plain, turned), optimisers, strict=True):
        for number, parameter in enumerate(policy.parameters()):
            parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
        optimiser.step()
    moved = 0
    for start, one, other in zip(before.parameters(), plain.parameters(), turned.parameters(), strict=True):
        if between_layers(start):
            moved += 1
            for square in squares((other - start).detach()):
                values = torch.linalg.svdvals(square)
                assert values.median() / values.max() > 0.5  # of a random matrix it is about 0.4
        else:
            assert torch.equal(one, other)
    assert moved > 5


def test_a_part_without_a_gradient_stays_as_it_is():
    (_, policy), (_, optimiser) = both(make_step(tiny()).policy)
    before = copy.deepcopy(policy.state_dict())
    policy.pointer.weight.grad = torch.randn_like(policy.pointer.weight)
    optimiser.step()
    changed = [name for name, value in policy.state_dict().items() if not torch.equal(value, before[name])]
    assert changed == ["pointer.weight"]


def test_a_run_learns_by_it(tmp_path):
    config = tiny(optimiser="muon", epochs=2, epoch_steps=40, batch=(32,), solutions=4, validation_instances=200)
    first, *_, last = [row["validation"]["6"] for row in run(config, tmp_path).history if row.get("validation")]
    assert last < first
