"""Every shipped model still is what was measured: a broken or swapped file is noticed."""

import pytest
import torch

from routelearn import models
from routelearn.data.generate import generate
from routelearn.evaluate import evaluate
from routelearn.problems import get
from routelearn.problems.base import take

CASES = [
    pytest.param(name, int(n), row["first_200"], id=f"{name}-{n}")
    for name, entry in models.shipped().items()
    for n, row in entry["card"]["measured"].items()
]


@pytest.mark.parametrize(("name", "n", "recorded"), CASES)
def test_the_mean_of_200_instances_is_the_recorded_one(name, n, recorded):
    model = models.load_model(path=name)
    problem = get(model.problem)
    x = take(generate(problem, n), slice(0, 200))
    found = evaluate(problem, model.policy, x, "greedy", device=torch.device("cpu"))
    assert found.infeasible == 0
    assert found.mean == pytest.approx(recorded, rel=1e-3)


def test_a_model_ships_and_all_together_are_small():
    assert "tsp" in models.shipped()
    assert sum(entry["megabytes"] for entry in models.shipped().values()) < 40


@pytest.mark.parametrize("n", [7, 20, 60, 150])
def test_a_model_is_found_for_every_size(n):
    assert routes_of(n).shape == (1, 1, n)


def routes_of(n):
    problem = get("tsp")
    x = take(generate(problem, n, count=3), slice(0, 1))
    return evaluate(problem, models.load_model("tsp", n).policy, x, "greedy", device=torch.device("cpu")).tours
