"""Training on a CPU by shares and pieces gives the values and gradients of the plain way."""

from __future__ import annotations

import copy
import os
import time

import pytest
import torch

from routelearn.policies.kernels.cpu import encoder as cpu_encoder
from routelearn.policies.kernels.cpu import shares as cpu_shares
from routelearn.policies.kernels.select import run_layer
from routelearn.policies.layers import AttentionLayer, initialise


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    assert torch.get_num_threads() == request.param  # the pool leaves the caller's number alone
    torch.set_num_threads(before)


def close(found: torch.Tensor, right: torch.Tensor, tolerance: float) -> None:
    assert (found.double() - right.double()).norm() <= tolerance * right.double().norm()


def some_layer(norm: str = "batch") -> AttentionLayer:
    torch.manual_seed(3)
    layer = AttentionLayer(32, 2, 48, norm)
    initialise(layer)
    with torch.no_grad():
        for part in (layer.norm_attention, layer.norm_feed_forward):
            part.weight.uniform_(0.5, 1.5)
            part.bias.uniform_(-0.5, 0.5)
    return layer


@pytest.mark.parametrize("nodes", [1, 7, 16, 37])
def test_a_layer_and_its_gradient_equal_the_generic_ones_in_double_precision(nodes, threads, monkeypatch):
    monkeypatch.setattr(cpu_encoder, "WORTH", 0)
    monkeypatch.setattr(cpu_encoder, "ROWS", 100)  # several pieces a thread, of unequal lengths
    layer = some_layer()
    exact = copy.deepcopy(layer).double()
    h = torch.randn(23, nodes, 32) + 3  # far from zero, as variances are computed from sums
    wanted = torch.randn(h.shape)
    mine, plain = h.clone().requires_grad_(), h.double().requires_grad_()
    assert cpu_encoder.usable(mine, layer)
    assert not cpu_encoder.usable(plain, exact)
    found, right = run_layer(layer, mine), exact(plain)
    (found * wanted).sum().backward()
    (right * wanted.double()).sum().backward()
    close(found, right, 2e-6)
    close(mine.grad, plain.grad, 1e-5)
    for (name, parameter), other in zip(layer.named_parameters(), exact.parameters(), strict=True):
        if name == "contract.bias":  # batch normalisation takes it off again
            assert parameter.grad.abs().max() == 0
            assert other.grad.abs().max() < 1e-10
        else:
            close(parameter.grad, other.grad, 1e-5)
    for buffer, other in zip(layer.buffers(), exact.buffers(), strict=True):
        close(buffer, other, 2e-6)


def test_the_same_step_twice_gives_the_same_bits(threads):
    layer = some_layer()
    h = torch.randn(64, 100, 32)

    def gradients() -> list[torch.Tensor]:
        layer.zero_grad()
        run_layer(layer, h).square().mean().backward()
        return [parameter.grad.clone() for parameter in layer.parameters()]

    assert cpu_encoder.usable(h, layer)
    assert all(torch.equal(a, b) for a, b in zip(gradients(), gradients(), strict=True))


def test_other_cases_take_the_generic_way():
    layer, h = some_layer(), torch.randn(4, 2048, 32)
    assert cpu_encoder.usable(h, layer)
    with torch.no_grad():
        assert not cpu_encoder.usable(h, layer)  # inference compiles nothing
    assert not cpu_encoder.usable(h[:1], layer)  # too few rows
    assert not cpu_encoder.usable(h.double(), layer)
    assert not cpu_encoder.usable(h, some_layer("instance"))
    assert not cpu_encoder.usable(h, some_layer().eval())


def test_a_forked_child_works_in_one_thread_and_ends():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert cpu_shares.in_threads(lambda low, high: (low, high), 5) == [(0, 2), (2, 5)]
        child = os.fork()
        if child == 0:
            os._exit(0 if cpu_shares.in_threads(lambda low, high: high - low, 4) == [4] else 1)
        deadline, ended = time.monotonic() + 20, (0, 0)
        while ended[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
            ended = os.waitpid(child, os.WNOHANG)
        if ended[0] == 0:
            os.kill(child, 9)
            os.waitpid(child, 0)
        assert ended == (child, 0)
    finally:
        torch.set_num_threads(before)
