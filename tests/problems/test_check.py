"""The referee refuses every kind of broken tour, and names the instance, the solution and the reason."""

from __future__ import annotations

import pytest
import torch

from routelearn.errors import Infeasible, InputError
from routelearn.problems import cvrp as vrp
from routelearn.problems import get
from routelearn.problems.op import Instance as Orienteering
from routelearn.problems.pctsp import Instance as Collecting
from routelearn.problems.tsp import Instance as Salesman

# The depot, and four customers at the other corners and in the middle of a unit square; the same twice.
SQUARE = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.5, 0.5]]).expand(2, 5, 2)


def twice(values):
    return torch.tensor([values, values])


LOADS = vrp.Instance(SQUARE, twice([0, 3, 4, 5, 6]), torch.tensor([9, 9]))
PRIZES = torch.tensor([[0.0, 0.25, 0.25, 0.5, 0.25]]).expand(2, 5)
TOUR = Orienteering(SQUARE, PRIZES, torch.tensor([3.5, 3.5]))
ENOUGH = Collecting(SQUARE, PRIZES, PRIZES, torch.tensor([0.7, 0.7]))
HIDDEN = ENOUGH._replace(real_prize=PRIZES / 2)

GOOD = {
    "tsp": (Salesman(SQUARE), [0, 1, 2, 3, 4]),
    "cvrp": (LOADS, [1, 2, 0, 3, 0, 4]),
    "sdvrp": (LOADS, [1, 4, 0, 2, 3]),
    "op-const": (TOUR, [4, 3, 0, 0]),
    "pctsp": (ENOUGH, [3, 2, 0, 0]),
    "spctsp": (HIDDEN, [1, 2, 3, 4]),
}


def tours(name, bad):
    """Two instances of two solutions, all good but the last one."""
    _, good = GOOD[name]
    size = max(len(good), len(bad))
    fill = good[-1] if name == "tsp" else 0
    padded = good + [fill] * (size - len(good))
    wrong = bad + [fill] * (size - len(bad))
    return torch.tensor([[padded, padded], [padded, wrong]])


@pytest.mark.parametrize("name", GOOD)
def test_good_tours_pass_with_and_without_padding(name):
    x, good = GOOD[name]
    problem = get(name)
    problem.validate(x)
    problem.check(x, tours(name, good))
    problem.check(x, tours(name, [*good, good[-1] if name == "tsp" else 0]))


@pytest.mark.parametrize(
    ("name", "bad", "reason"),
    [
        ("tsp", [0, 1, 2, 3, 5], "node 5 does not exist; nodes are 0 to 4"),
        ("tsp", [0, 1, 2, 3, -1], "node -1 does not exist"),
        ("tsp", [0, 1, 2, 3, 3], "node 4 is never visited"),
        ("tsp", [0, 1, 1, 2, 3, 4], "node 4 is never visited"),
        ("tsp", [0, 1, 2, 3, 4, 0], "node 0 is visited again after the tour"),
        ("cvrp", [1, 2, 0, 3, 0, 7], "node 7 does not exist"),
        ("cvrp", [1, 2, 0, 3, 0, 4, 1], "node 1 is visited more than once"),
        ("cvrp", [1, 2, 0, 3, 0, 0], "node 4 is never visited"),
        ("cvrp", [1, 2, 3, 0, 4], "route 1 loads 12; the capacity is 9"),
        ("sdvrp", [1, 4, 0, 2, 9], "node 9 does not exist"),
        ("sdvrp", [1, 4, 0, 2], "node 3 is still owed 5 of its demand"),
        ("sdvrp", [1, 2, 3, 0, 4, 0], "node 3 is still owed 3 of its demand"),
        ("sdvrp", [1, 1, 2, 3, 0, 3, 4], r"nothing is delivered at step 1 \(node 1\)"),
        ("sdvrp", [1, 2, 3, 4, 0, 3, 4], r"nothing is delivered at step 3 \(node 4\)"),
        ("op-const", [5, 0], "node 5 does not exist"),
        ("op-const", [3, 3, 0], "node 3 is visited more than once"),
        ("op-const", [1, 2, 3, 0], "the tour is 4 long; 3.5 is allowed"),
        ("op-const", [3, 0, 1], "node 1 comes after the return to the depot"),
        ("pctsp", [-2, 0], "node -2 does not exist"),
        ("pctsp", [3, 3, 0], "node 3 is visited more than once"),
        ("pctsp", [3, 0, 2], "node 2 comes after the return to the depot"),
        ("pctsp", [1, 2, 0], "the tour collects 0.5 prize; 0.7 is required"),
        ("pctsp", [0, 0, 0], "the tour collects 0 prize; 0.7 is required"),
        ("spctsp", [1, 2, 3, 0], "the tour collects 0.5 prize; 0.7 is required"),
    ],
)
def test_a_broken_tour_is_refused_by_row_and_reason(name, bad, reason):
    with pytest.raises(Infeasible, match=reason) as caught:
        get(name).check(GOOD[name][0], tours(name, bad))
    assert (caught.value.row, caught.value.solution) == (1, 1)
    assert str(caught.value).startswith("instance 1, solution 1: ")


@pytest.mark.parametrize("name", GOOD)
def test_a_tour_of_the_wrong_form_is_bad_input(name):
    x, good = GOOD[name]
    right = tours(name, good)
    for wrong, words in (
        (right[:1], r"2 instances need \[2, S, T\]"),
        (right[:, 0], "shape"),
        (right.float(), "whole"),
    ):
        with pytest.raises(InputError, match=words):
            get(name).check(x, wrong)


def test_too_little_prize_is_enough_once_every_node_is_visited():
    poor = ENOUGH._replace(min_prize=torch.tensor([9.0, 9.0]))
    get("pctsp").check(poor, torch.tensor([[[1, 2, 3, 4]]]).expand(2, 1, 4))


def test_an_empty_tour_costs_what_it_leaves_out():
    empty = torch.zeros(2, 1, 0, dtype=torch.long)
    assert get("op-const").cost(TOUR, empty).eq(0).all()
    assert get("pctsp").cost(ENOUGH, empty).allclose(PRIZES.sum(1, keepdim=True))
    get("op-const").check(TOUR, empty)


def test_the_costs_of_hand_made_tours():
    diagonal = 0.5**0.5
    expected = {"tsp": 3 + 2 * diagonal, "cvrp": 2 + 2**0.5 + 2 + 2 * diagonal}
    expected |= {"sdvrp": 1 + diagonal * 2 + 2**0.5 + 2, "op-const": -0.75}
    expected |= {"pctsp": 1 + 1 + 2**0.5 + 0.5, "spctsp": 3 + 2 * diagonal}
    for name, (x, good) in GOOD.items():
        cost = get(name).cost(x, tours(name, good))
        assert cost.shape == (2, 2)
        assert cost.flatten().tolist() == pytest.approx([expected[name]] * 4, rel=1e-6), name
