"""Values at the edge of what is allowed: exact fills, diagonals, shapes of limits, other number types.

Tests marked `gap` show a fault that is still open; the mark is strict, so whoever mends it must take it off.
"""

from __future__ import annotations

import contextlib
import math

import pytest
import torch

from routelearn.errors import InputError
from routelearn.problems import PROBLEMS, NumpyRng, get
from routelearn.problems.base import distance_matrix, to_single
from routelearn.problems.contract.walks import walk
from routelearn.problems.op import Instance as Orienteering
from routelearn.problems.pctsp import Instance as Collecting


def drawn(name, n=4):
    return to_single(get(name).sample(NumpyRng(3), 3, n))


def test_an_exact_fill_of_the_vehicle_is_allowed():
    x = drawn("cvrp")._replace(demand=torch.tensor([[0, 3, 7, 5, 5]] * 3), capacity=torch.tensor([10] * 3))
    problem = get("cvrp")
    state = problem.step(x, problem.initial(x, 1), torch.full((3, 1), 1))
    assert problem.feasible(x, state)[:, 0, 2].all()
    state = problem.step(x, state, torch.full((3, 1), 2))
    assert problem.context(x, state).scalars.eq(0).all()


def test_a_tour_of_exactly_the_maximum_length_can_be_built():
    corners = torch.tensor([[[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]])
    x = Orienteering(corners, torch.tensor([[0.0, 1.0, 1.0, 1.0]]), torch.tensor([4.0]))
    problem = get("op-const")
    problem.check(x, torch.tensor([[[1, 2, 3, 0]]]))
    state = problem.initial(x, 1)
    for node in (1, 2, 3):
        assert problem.feasible(x, state)[0, 0, node], f"node {node}"
        state = problem.step(x, state, torch.tensor([[node]]))


@pytest.mark.parametrize(
    "parts",
    [3, 5],
)
def test_the_depot_opens_once_the_parts_of_the_prize_add_up(parts):
    prize = torch.full((1, parts + 2), 1 / parts)
    prize[:, 0] = 0
    x = Collecting(torch.rand(1, parts + 2, 2), prize, torch.zeros_like(prize), torch.ones(1))
    problem = get("pctsp")
    problem.check(x, torch.arange(1, parts + 1).view(1, 1, -1))
    state = problem.initial(x, 1)
    for node in range(1, parts + 1):
        state = problem.step(x, state, torch.tensor([[node]]))
    assert problem.feasible(x, state)[0, 0, 0]


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_diagonal_of_a_matrix_is_refused_or_ignored(name):
    problem, x = get(name), drawn(name)
    legs = distance_matrix(x).clone()
    legs.diagonal(dim1=1, dim2=2).fill_(9999.0)
    odd = x._replace(distances=legs)
    tour = walk(problem, x, 2, problem.max_steps(x) + 3).tour
    try:
        problem.validate(odd)
    except InputError:
        return
    assert torch.allclose(problem.cost(odd, tour), problem.cost(x, tour))
    problem.check(odd, tour)
    assert name.startswith("op") is False or torch.equal(
        *(walk(problem, y, 2, 5, given=tour).masks[5] for y in (x, odd))
    )


@pytest.mark.parametrize(
    ("name", "field"), [("cvrp", "capacity"), ("sdvrp", "capacity"), ("op-unif", "max_length"), ("pctsp", "min_prize")]
)
@pytest.mark.parametrize("shape", [(3, 1), (2,)])
def test_one_value_per_instance_has_the_shape_of_the_batch(name, field, shape):
    x = drawn(name)
    value = getattr(x, field)[0].expand(shape).clone()
    with pytest.raises(InputError, match=field.split("_")[-1]):
        get(name).validate(x._replace(**{field: value}))


@pytest.mark.parametrize(("name", "field"), [("op-unif", "max_length"), ("pctsp", "min_prize")])
def test_a_limit_is_finite(name, field):
    x = drawn(name)
    with pytest.raises(InputError, match=r"instance 0"):
        get(name).validate(x._replace(**{field: torch.full((3,), math.inf)}))


@pytest.mark.parametrize("name", PROBLEMS)
def test_coordinates_are_floats(name):
    x = drawn(name)
    with pytest.raises(InputError, match="coordinates"):
        get(name).validate(x._replace(xy=(x.xy * 100).long()))


@pytest.mark.parametrize("name", PROBLEMS)
def test_distances_are_floats(name):
    x = drawn(name)
    with pytest.raises(InputError, match="distance"):
        get(name).validate(x._replace(distances=(distance_matrix(x) * 100).long()))


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "sdvrp"])
def test_a_tour_of_32_bit_numbers_is_judged_or_refused_in_words(name):
    problem, x = get(name), drawn(name)
    tour = walk(problem, x, 2, problem.max_steps(x)).tour.int()
    with contextlib.suppress(InputError):
        problem.check(x, tour)
