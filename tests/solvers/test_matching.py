"""The blossom algorithm against enumeration, and against networkx on larger graphs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from routelearn.solvers.own.matching import perfect_matching


def least_weight(d: np.ndarray) -> float:
    @cache
    def best(left: tuple[int, ...]) -> float:
        if not left:
            return 0.0
        return min(
            d[left[0], other] + best(tuple(v for v in left[1:] if v != other)) for other in left[1:]
        )  # the first vertex has some partner

    return best(tuple(range(len(d))))


def graph(vertices: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    if kind == "plane":
        xy = rng.random((vertices, 2))
        return np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))
    d = rng.random((vertices, vertices)) if kind == "random" else rng.integers(0, 6, (vertices, vertices)).astype(float)
    return d + d.T


def weight(d: np.ndarray, mate: np.ndarray) -> float:
    vertices = np.arange(len(d))
    assert (mate[mate] == vertices).all()
    assert (mate != vertices).all()
    return float(d[vertices, mate].sum() / 2)


@pytest.mark.parametrize("kind", ["plane", "random", "ties"])
def test_matching_has_the_least_weight(kind):
    rng = np.random.default_rng(8)
    for trial in range(60):
        d = graph(2 * (1 + trial % 5), kind, rng)
        assert weight(d, perfect_matching(d)) == pytest.approx(least_weight(d), abs=1e-9)


@pytest.mark.parametrize("kind", ["plane", "random", "ties"])
def test_larger_matchings_agree_with_networkx(kind):
    networkx = pytest.importorskip("networkx", reason="networkx gives the matching to compare with")
    rng = np.random.default_rng(9)
    for vertices in (20, 32, 44):
        for _ in range(4):
            d = graph(vertices, kind, rng)
            edges = ((i, j, d[i, j]) for i in range(vertices) for j in range(i))
            complete = networkx.Graph()
            complete.add_weighted_edges_from(edges)
            best = sum(d[i, j] for i, j in networkx.min_weight_matching(complete))
            assert weight(d, perfect_matching(d)) == pytest.approx(best, abs=1e-9)


def test_nested_blossoms_are_opened_again():
    """Tight odd clusters force blossoms within blossoms: pairs of far triangles of triangles."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        centres = np.repeat(rng.random((2, 2)) * 100, 9, 0)
        triangles = np.repeat(rng.random((6, 2)) * 5, 3, 0)
        xy = centres + triangles + rng.random((18, 2)) * 0.1
        d = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))[:12, :12]
        assert weight(d, perfect_matching(d)) == pytest.approx(least_weight(d), abs=1e-9)
