"""Layers on a CPU without gradients: the compiled way is the library's, for every normalisation, size and shape."""

from __future__ import annotations

import pytest
import torch

from routelearn.policies.kernels.cpu import inference as cpu_inference
from routelearn.policies.kernels.select import run_layer
from routelearn.policies.layers import NORMS, AttentionLayer


def layer_of(norm, heads=2, hidden=48):
    torch.manual_seed(0)
    layer = AttentionLayer(16 * heads, heads, hidden, norm)
    for parameter in layer.parameters():
        torch.nn.init.uniform_(parameter, -0.5, 0.5)
    if norm == "batch":
        for part in (layer.norm_attention, layer.norm_feed_forward):
            part.running_mean.uniform_(-1, 1)
            part.running_var.uniform_(0.5, 2)
    return layer.eval()


@pytest.mark.parametrize("norm", ["batch", "instance"])
@pytest.mark.parametrize(("batch", "nodes"), [(16, 2), (17, 5), (40, 16), (33, 101), (16, 1700)])
def test_the_compiled_layer_is_the_librarys(norm, batch, nodes):
    layer = layer_of(norm)
    h = torch.randn(batch, nodes, 32)
    with torch.no_grad():
        assert cpu_inference.usable(h, layer)
        compiled, plain = run_layer(layer, h), layer(h)
        double = layer.double()(h.double())
    torch.testing.assert_close(compiled, plain, rtol=2e-4, atol=2e-5)
    assert (compiled - double).norm() < 1e-5 * double.norm()


def test_a_layer_does_not_write_into_what_it_is_given():
    layer = layer_of("instance")
    h = torch.randn(32, 7, 32)
    before = h.clone()
    with torch.no_grad():
        run_layer(layer, h)
    assert torch.equal(h, before)


def test_every_number_of_threads_gives_the_same_bits():
    layer, h, own = layer_of("instance"), torch.randn(50, 20, 32), torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            with torch.no_grad():
                found.append(run_layer(layer, h))
    finally:
        torch.set_num_threads(own)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_where_it_does_not_apply_the_library_does_it():
    h = torch.randn(32, 6, 32)
    with torch.no_grad():
        assert cpu_inference.usable(h, layer_of("instance"))
        for norm in set(NORMS) - {"batch", "instance"}:
            assert not cpu_inference.usable(h, layer_of(norm))
        assert not cpu_inference.usable(h, layer_of("batch").train())
        assert not cpu_inference.usable(h, layer_of("instance", heads=1))
        assert not cpu_inference.usable(h.double(), layer_of("instance"))
        assert not cpu_inference.usable(h[:15], layer_of("instance")), "too few to load anything for"
    assert not cpu_inference.usable(h, layer_of("instance")), "gradients are wanted"
