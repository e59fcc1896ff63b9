"""Every shipped model still is what was measured: a broken or swapped file is noticed."""

import pytest
import torch
from paper_problems import PAPER

from routelearn import models
from routelearn.data.generate import VALIDATION_SEED, generate, set_size
from routelearn.evaluation.evaluate import evaluate
from routelearn.problems import get
from routelearn.problems.base import take
from routelearn.training.recipes import RECIPES

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


@pytest.mark.parametrize("name", models.shipped())
def test_a_card_tells_what_it_must(name):
    entry = models.shipped()[name]
    card, whole_set = entry["card"], set_size(get(entry["problem"]))
    assert set(card["measured"]) >= {str(n) for n in card["sizes"]}
    assert all(row["instances"] == whole_set and row["infeasible"] == 0 for row in card["measured"].values())
    assert card["recipe"] in RECIPES
    for field in ("config", "instances", "minutes", "hardware", "date", "seed"):
        assert card[field]
    start = card.get("warm_start")
    if start == name:  # trained on from what shipped under its name before
        assert card["minutes_before"] > 0
        assert card["instances_before"] > 0
    elif start in models.shipped():  # what it started from may have been replaced by better ones
        theirs = models.shipped()[start]["card"]
        before = theirs.get("instances_before", 0)  # it may have started from that model's own start
        assert card["instances_before"] in (before, theirs["instances"] + before)
        spent = theirs.get("minutes_before", 0) + (theirs["minutes"] if card["instances_before"] != before else 0)
        assert card["minutes_before"] == pytest.approx(spent)


@pytest.mark.parametrize("name", models.shipped())
def test_what_load_model_chooses_by_is_what_the_model_does(name):
    model = models.load_model(path=name)
    problem = get(model.problem)
    x = take(generate(problem, 10, seed=VALIDATION_SEED), slice(0, 2_000))
    found = evaluate(problem, model.policy, x, "greedy", device=torch.device("cpu"))
    assert found.mean == pytest.approx(model.card["validated"]["10"], rel=1e-3)
    assert {int(n) for n in model.card["validated"]} >= set(model.card["sizes"])


def test_every_problem_has_a_model_and_all_together_are_small():
    assert {entry["problem"] for entry in models.shipped().values()} == {*PAPER, "vrp"}
    assert sum(entry["megabytes"] for entry in models.shipped().values()) < 45


@pytest.mark.parametrize("name", [*PAPER, "vrp"])
@pytest.mark.parametrize("n", [7, 60, 150])
def test_a_model_is_found_for_every_size(name, n):
    problem = get(name)
    x = take(generate(problem, n, count=3), slice(0, 1))
    assert evaluate(problem, models.load_model(name, n).policy, x, "greedy", device=torch.device("cpu")).infeasible == 0
