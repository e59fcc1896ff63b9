"""Generated sets: the paper's recipe, draw for draw."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from routelearn.data.generate import generate
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS, get

GOLDEN = Path(os.environ.get("ROUTELEARN_REFERENCE_DATA", "reference_data")) / "reference" / "golden-n20.json"


def test_the_default_set_is_drawn_as_the_authors_draw_it():
    """Recomputed in plain numpy: one RandomState(1234), whole arrays, in their order."""
    state = np.random.RandomState(1234)
    x = generate("tsp", 20)
    assert np.array_equal(x.xy.numpy(), state.uniform(size=(10_000, 20, 2)).astype(np.float32))

    state = np.random.RandomState(4321)
    depot, loc = state.uniform(size=(10_000, 2)), state.uniform(size=(10_000, 50, 2))
    demand = state.randint(1, 10, (10_000, 50))
    x = generate("cvrp", 50, seed=4321)
    assert np.array_equal(x.xy.numpy(), np.concatenate((depot[:, None], loc), 1).astype(np.float32))
    assert np.array_equal(x.demand[:, 1:].numpy(), demand)
    assert x.capacity.unique().tolist() == [40]

    state = np.random.RandomState(1234)
    depot, loc = state.uniform(size=(10_000, 2)), state.uniform(size=(10_000, 20, 2))
    away = np.linalg.norm(depot[:, None] - loc, axis=-1)
    prize = (1 + (away / away.max(-1, keepdims=True) * 99).astype(int)) / 100
    x = generate("op-dist", 20)
    assert np.array_equal(x.prize[:, 1:].numpy(), prize.astype(np.float32))
    assert x.max_length.unique().tolist() == [2.0]

    state = np.random.RandomState(1234)
    state.uniform(size=(10_000, 2)), state.uniform(size=(10_000, 20, 2))
    penalty = state.uniform(size=(10_000, 20)) * 3 * 2 / 20
    expected = state.uniform(size=(10_000, 20)) * 4 / 20
    real = state.uniform(size=(10_000, 20)) * expected * 2
    x = generate("spctsp", 20)
    for ours, theirs in ((x.penalty, penalty), (x.prize, expected), (x.real_prize, real)):
        np.testing.assert_allclose(ours[:, 1:].numpy(), theirs, rtol=2e-7)


@pytest.mark.skipif(not GOLDEN.exists(), reason="no answers of the authors' code: ROUTELEARN_REFERENCE_DATA is not set")
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_authors_tours_cost_on_our_set_what_they_cost_on_theirs(name):
    key = {"pctsp": "pctsp_det", "spctsp": "pctsp_stoch"}.get(name, name.replace("-", "_"))
    answers = json.loads(GOLDEN.read_text())[f"{key}_20"]
    problem, x = get(name), generate(name, 20)
    for row, tour in enumerate(answers["tours_first_5"]):
        one = type(x)(*(None if field is None else field[row : row + 1] for field in x))
        cost = problem.cost(one, torch.tensor(tour)[None, None])
        assert float(cost) == pytest.approx(answers["cost_first_20"][row], abs=2e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tsp", 0), "at least 1"),
        (("tsp", 20, 0), "at least 1"),
        (("tsp", 20, 10, -1), "seed -1"),
        (("tsp", 10_000, 1_000_000), "too many"),
        (("salesman", 20), "the choices are tsp"),
    ],
)
def test_impossible_sets_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        generate(*arguments)
