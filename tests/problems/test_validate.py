"""Instances that break a problem's assumptions are refused in one line that names the instance."""

from __future__ import annotations

import math

import pytest
import torch

from routelearn.errors import InputError
from routelearn.problems import PROBLEMS, NumpyRng, get
from routelearn.problems.base import distance_matrix, to_single


def drawn(name, n=4):
    return to_single(get(name).sample(NumpyRng(3), 3, n))


def changed(name, field, value, *index):
    """Three instances, with one entry of the last one changed."""
    x = drawn(name)
    values = (distance_matrix(x) if field == "distances" else getattr(x, field)).clone()
    values[(2, *index)] = value
    return x._replace(**{field: values})


@pytest.mark.parametrize("name", PROBLEMS)
def test_sampled_instances_are_valid_with_and_without_a_matrix(name):
    x = drawn(name)
    get(name).validate(x)
    get(name).validate(x._replace(distances=distance_matrix(x)))


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("name", PROBLEMS)
def test_coordinates_are_finite(name, value):
    with pytest.raises(InputError, match=rf"{name}: a coordinate is not a finite number \(instance 2\)"):
        get(name).validate(changed(name, "xy", value, 1, 0))


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("name", PROBLEMS)
def test_distances_are_finite_and_not_negative(name, value):
    with pytest.raises(InputError, match=rf"{name}: a distance is negative or not a finite number \(instance 2\)"):
        get(name).validate(changed(name, "distances", value, 1, 0))


@pytest.mark.parametrize("name", PROBLEMS)
def test_coordinates_and_matrix_have_the_right_shape(name):
    x = drawn(name)
    with pytest.raises(InputError, match=r"must be \[instances, nodes, 2\]"):
        get(name).validate(x._replace(xy=x.xy[0]))
    with pytest.raises(InputError, match=r"must be \[instances, nodes, 2\]"):
        get(name).validate(x._replace(xy=torch.cat((x.xy, x.xy), -1)))
    nodes = x.xy.shape[1]
    with pytest.raises(InputError, match=rf"{nodes} nodes need \[3, {nodes}, {nodes}\]"):
        get(name).validate(x._replace(distances=distance_matrix(x)[:, 1:]))


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_instance_without_stops_is_refused(name):
    x = drawn(name, n=2)
    one = type(x)(*(field[:, :1] if field is not None and field.dim() > 1 else field for field in x))
    with pytest.raises(InputError, match=r"at least (one|2)"):
        get(name).validate(one)


@pytest.mark.parametrize(
    ("name", "x", "words"),
    [
        ("cvrp", changed("cvrp", "demand", -1, 1), r"cvrp: a demand is negative \(instance 2\)"),
        ("sdvrp", changed("sdvrp", "demand", -1, 1), r"sdvrp: a demand is negative \(instance 2\)"),
        (
            "cvrp",
            changed("cvrp", "demand", 99, 3),
            r"node 3 demands 99, more than the capacity \d+ \(instance 2\); sdvrp",
        ),
        ("cvrp", changed("cvrp", "demand", 1, 0), r"cvrp: the depot \(node 0\) has a demand; .* \(instance 2\)"),
        ("sdvrp", changed("sdvrp", "demand", 1, 0), r"sdvrp: the depot \(node 0\) has a demand"),
        ("cvrp", changed("cvrp", "capacity", 0), r"cvrp: the capacity is below 1 \(instance 2\)"),
        ("op-unif", changed("op-unif", "prize", -0.1, 1), r"op-unif: a prize is negative \(instance 2\)"),
        (
            "op-unif",
            changed("op-unif", "prize", math.nan, 1),
            r"op-unif: a prize is not a finite number \(instance 2\)",
        ),
        ("op-unif", changed("op-unif", "prize", 0.1, 0), r"op-unif: the depot \(node 0\) has a prize"),
        ("op-unif", changed("op-unif", "max_length", 0.0), r"the maximum length is not above 0 \(instance 2\)"),
        (
            "op-unif",
            changed("op-unif", "max_length", math.nan),
            r"max.*length is not (above 0|a finite number) \(instance 2\)",
        ),
        ("pctsp", changed("pctsp", "prize", -0.1, 1), r"pctsp: a prize is negative \(instance 2\)"),
        ("pctsp", changed("pctsp", "penalty", -0.1, 1), r"pctsp: a penalty is negative \(instance 2\)"),
        ("pctsp", changed("pctsp", "penalty", math.inf, 1), r"pctsp: a penalty is not a finite number \(instance 2\)"),
        ("pctsp", changed("pctsp", "penalty", 0.1, 0), r"pctsp: the depot \(node 0\) has a penalty"),
        ("pctsp", changed("pctsp", "min_prize", -0.1), r"pctsp: the minimum prize is negative \(instance 2\)"),
        ("spctsp", changed("spctsp", "real_prize", -1.0, 1), r"spctsp: a real_prize is negative \(instance 2\)"),
        ("spctsp", changed("spctsp", "real_prize", 1.0, 0), r"spctsp: the depot \(node 0\) has a real_prize"),
    ],
)
def test_a_value_out_of_range_is_refused(name, x, words):
    with pytest.raises(InputError, match=words) as caught:
        get(name).validate(x)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["cvrp", "sdvrp"])
def test_demand_and_capacity_are_whole_numbers(name):
    x = drawn(name)
    for field in ("demand", "capacity"):
        with pytest.raises(InputError, match=f"{name}: demand and capacity must be whole numbers"):
            get(name).validate(x._replace(**{field: getattr(x, field).float()}))


@pytest.mark.parametrize(
    ("name", "field"),
    [("cvrp", "demand"), ("sdvrp", "demand"), ("op-dist", "prize"), ("pctsp", "prize"), ("pctsp", "penalty")],
)
def test_a_column_has_one_value_for_every_node(name, field):
    x = drawn(name)
    with pytest.raises(InputError, match=rf"{name}: {field} has shape \(3, 4\); \(3, 5\) is \[instances, nodes\]"):
        get(name).validate(x._replace(**{field: getattr(x, field)[:, 1:]}))


def test_a_demand_above_the_capacity_is_fine_where_it_may_be_split():
    get("sdvrp").validate(changed("sdvrp", "demand", 99, 3))


def test_an_unknown_problem_lists_the_choices():
    with pytest.raises(InputError, match="unknown problem 'atsp'; the choices are tsp, cvrp, sdvrp, op-const"):
        get("atsp")
