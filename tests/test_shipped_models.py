"""Every shipped model still is what was measured: a broken or swapped file is noticed."""

import pytest
import torch

from routelearn import models
from routelearn.data.generate import generate
from routelearn.evaluate import evaluate
from routelearn.problems import PROBLEMS, get
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


def test_every_problem_has_a_model_and_all_together_are_small():
    assert {entry["problem"] for entry in models.shipped().values()} == set(PROBLEMS)
    assert sum(entry["megabytes"] for entry in models.shipped().values()) < 40


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("n", [7, 60, 150])
def test_a_model_is_found_for_every_size(name, n):
    problem = get(name)
    x = take(generate(problem, n, count=3), slice(0, 1))
    assert evaluate(problem, models.load_model(name, n).policy, x, "greedy", device=torch.device("cpu")).infeasible == 0
