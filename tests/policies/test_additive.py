"""Additive attention a few queries at a time: the same numbers and the same gradient."""

from __future__ import annotations

import pytest
import torch

from routelearn.policies import additive


@pytest.mark.parametrize("gains", [0, 2])
def test_comparing_a_few_queries_at_a_time_gives_what_autograd_gives(monkeypatch, gains):
    monkeypatch.setattr(additive, "PIECE_CPU", 2 * 5 * 4 * 3)  # three queries

    def drawn(*shape, learned=True):
        return torch.randn(*shape, dtype=torch.float64, requires_grad=learned)

    reference, query, score = drawn(2, 5, 4), drawn(2, 7, 4), drawn(4)
    extra, step = (drawn(2, 7, 5, gains, learned=False), drawn(gains, 4)) if gains else (None, None)
    assert len(additive.pieces(reference, query)) == 3
    assert torch.autograd.gradcheck(additive.Compared.apply, (reference, query, score, extra, step))
    whole = additive.compared(reference, query, extra, step) @ score
    torch.testing.assert_close(additive.Compared.apply(reference, query, score, extra, step), whole)
