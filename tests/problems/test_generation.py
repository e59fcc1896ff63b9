"""The paper's published test sets, number for number, and the instances drawn on a device for training."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
import torch
from paper_problems import PAPER

from routelearn.errors import InputError
from routelearn.problems import DeviceRng, NumpyRng, get
from routelearn.problems.base import interpolated, to_single
from routelearn.problems.cvrp import CAPACITY
from routelearn.problems.op import MAX_LENGTH, OP
from routelearn.problems.pctsp import HALF_LENGTH

SIZES = (20, 50, 100)

# sha256 (16 digits) of the first ten instances of `recipe` below at n = 20, 50, 100, field after field.
FINGERPRINTS = {
    "tsp": ("4c533083b177bad6", "d2a573a67ca51d42", "c3ca2460f5d018b2"),
    "cvrp": ("14436371a92fe7a7", "d6be5b2e1546c6ef", "db49b68c9940830d"),
    "sdvrp": ("14436371a92fe7a7", "d6be5b2e1546c6ef", "db49b68c9940830d"),
    "op-const": ("5daf1d379fdf1172", "5aa73a4f4b9175e6", "fd4f3a074178ca87"),
    "op-unif": ("a5f425348928cc63", "8ce88d486aced895", "0d43c4cb3bf65c4c"),
    "op-dist": ("59c40928dc987770", "982c71963740c1a0", "74415fdb45933dc1"),
    "pctsp": ("de5f5b0bc050e48b", "0867716dde87a203", "5e8af3649cc3d18c"),
    "spctsp": ("163ee368b0cb57bc", "8c9d5b3c5c933170", "17290f85dbaa0ee1"),
}


def recipe(name, n, count=10_000, seed=1234):
    """The published sets in plain numpy: every draw for the whole set at once, single precision afterwards."""
    draw = np.random.RandomState(seed)
    scale = {20: 2.0, 50: 3.0, 100: 4.0}[n]

    def whole(customers):
        return np.concatenate((np.zeros_like(customers[:, :1]), customers), 1)

    if name == "tsp":
        return {"xy": draw.uniform(size=(count, n, 2)).astype(np.float32)}
    depot = draw.uniform(size=(count, 2))
    places = draw.uniform(size=(count, n, 2))
    fields = {"xy": np.concatenate((depot[:, None], places), 1).astype(np.float32)}
    if name in ("cvrp", "sdvrp"):
        fields["demand"] = whole(draw.randint(1, 10, (count, n)).astype(np.int64))
        fields["capacity"] = np.full(count, {20: 30, 50: 40, 100: 50}[n], dtype=np.int64)
    elif name.startswith("op"):
        away = np.sqrt(((places - depot[:, None]) ** 2).sum(-1))
        prize = {
            "op-const": lambda: np.ones((count, n)),
            "op-unif": lambda: (1 + draw.randint(0, 100, size=(count, n))) / 100.0,
            "op-dist": lambda: (1 + np.floor(99 * (away / away.max(-1, keepdims=True)))) / 100.0,
        }[name]()
        fields["prize"] = whole(prize).astype(np.float32)
        fields["max_length"] = np.full(count, scale, dtype=np.float32)
    else:
        penalty = draw.uniform(size=(count, n)) * (3 * scale / n)
        prize = draw.uniform(size=(count, n)) * 4 / n
        fields["prize"], fields["penalty"] = whole(prize).astype(np.float32), whole(penalty).astype(np.float32)
        fields["min_prize"] = np.ones(count, dtype=np.float32)
        if name == "spctsp":
            fields["real_prize"] = whole(draw.uniform(size=(count, n)) * prize * 2).astype(np.float32)
    return fields


def fingerprint(fields):
    digest = hashlib.sha256()
    for values in fields.values():
        digest.update(np.ascontiguousarray(values[:10]).tobytes())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", PAPER)
def test_the_published_test_sets_come_out_exactly(name, n):
    expected = recipe(name, n)
    x = to_single(get(name).sample(NumpyRng(1234), 10_000, n))
    ours = {field: value.numpy() for field, value in zip(x._fields, x, strict=True) if value is not None}
    assert ours.keys() == expected.keys()
    for field, values in expected.items():
        assert ours[field].dtype == values.dtype, field
        np.testing.assert_array_equal(ours[field], values, err_msg=field)
    assert fingerprint(expected) == fingerprint(ours) == FINGERPRINTS[name][SIZES.index(n)]


@pytest.mark.parametrize("name", PAPER)
def test_another_seed_draws_other_instances(name):
    first, second = (get(name).sample(NumpyRng(seed), 4, 20) for seed in (1234, 4321))
    assert not torch.equal(first.xy, second.xy)


def test_the_sets_share_draws_where_the_recipe_says_so():
    """CVRP and SDVRP are one set, and so are the known parts of PCTSP and SPCTSP."""
    for a, b in (("cvrp", "sdvrp"), ("pctsp", "spctsp")):
        ours, theirs = (get(name).sample(NumpyRng(1234), 50, 20).public() for name in (a, b))
        for mine, other in zip(ours, theirs, strict=True):
            assert (mine is None and other is None) or torch.equal(mine, other)


@pytest.mark.parametrize(
    ("name", "field", "anchors"),
    [("cvrp", "capacity", CAPACITY), ("op-dist", "max_length", MAX_LENGTH)],
)
def test_limits_are_the_papers_and_grow_with_the_size(name, field, anchors):
    limits = {n: getattr(get(name).sample(NumpyRng(0), 2, n), field) for n in range(1, 161)}
    for n, value in anchors.items():
        assert limits[n].tolist() == [value, value]
    values = [float(limit[0]) for limit in limits.values()]
    assert all(a <= b for a, b in itertools.pairwise(values))
    assert values[-1] > values[99]


def test_penalties_grow_as_the_paper_sets_them():
    assert [interpolated(n, HALF_LENGTH) for n in SIZES] == [2.0, 3.0, 4.0]
    for n in SIZES:
        ceiling = 3 * {20: 2.0, 50: 3.0, 100: 4.0}[n] / n
        penalty = get("pctsp").sample(NumpyRng(0), 500, n).penalty[:, 1:]
        assert 0.98 * ceiling < float(penalty.max()) <= ceiling
    values = [interpolated(n, HALF_LENGTH) for n in range(1, 400)]
    assert all(0 < a < b for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("name", PAPER)
def test_instances_drawn_on_the_device_have_the_same_distribution(name):
    """2,000 instances of 20: the mean of every field within five standard errors of the published recipe's."""
    drawn = get(name).sample(DeviceRng(), 2000, 20)
    published = to_single(get(name).sample(NumpyRng(1234), 3000, 20))
    for field, ours, theirs in zip(drawn._fields, drawn, published, strict=True):
        if ours is None:
            assert theirs is None
            continue
        assert ours.dtype == theirs.dtype
        ours, theirs = ours.double(), theirs.double()
        assert theirs.amin() * 0.99 - 1e-3 <= ours.amin(), field
        assert ours.amax() <= theirs.amax() * 1.01, field
        error = float(theirs.flatten(1).mean(1).std()) if theirs.dim() > 1 else 0.0
        assert abs(float(ours.mean() - theirs.mean())) <= 5 * error * (1 / 2000 + 1 / 3000) ** 0.5, field


def test_demands_are_one_to_nine_equally_often():
    demand = get("cvrp").sample(DeviceRng(), 5000, 18).demand[:, 1:].flatten()
    counts = demand.bincount(minlength=10)
    assert counts[0] == 0
    assert len(counts) == 10
    expected = len(demand) / 9
    assert float(((counts[1:] - expected) ** 2 / expected).sum()) < 26.1  # chi-square, 8 degrees, p = 0.001


def test_uniform_prizes_are_the_hundredths_up_to_one():
    prize = get("op-unif").sample(NumpyRng(0), 2000, 20).prize[:, 1:]
    assert torch.equal((prize * 100).round().unique(), torch.arange(1.0, 101.0, dtype=torch.float64))


def test_distance_prizes_grow_with_the_distance_to_the_depot():
    x = get("op-dist").sample(NumpyRng(0), 200, 20)
    away = (x.xy[:, 1:] - x.xy[:, :1]).norm(dim=-1)
    order = away.argsort(-1)
    assert (x.prize[:, 1:].gather(1, order).diff(dim=-1) >= 0).all()
    assert x.prize[:, 1:].amax(-1).eq(1).all()


def test_real_prizes_stay_hidden_and_average_the_expected_ones():
    x = get("spctsp").sample(NumpyRng(0), 5000, 20)
    assert x.public().real_prize is None
    assert (x.real_prize <= 2 * x.prize).all()
    assert float(x.real_prize.mean() / x.prize.mean()) == pytest.approx(1, abs=0.02)


def test_draws_on_the_device_follow_the_seed_and_the_dtype():
    draws = []
    for _ in range(2):
        torch.manual_seed(7)
        draws.append(get("spctsp").sample(DeviceRng(dtype=torch.float64), 3, 5))
    assert draws[0].xy.dtype == torch.float64
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(*draws, strict=True))


def test_unknown_prizes_are_refused():
    with pytest.raises(InputError, match="prizes 'constant'; the choices are const, unif, dist"):
        OP("constant")
