"""Declared attributes: what is wrong with one is told in one line, and instances are held against them."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from routelearn.errors import InputError
from routelearn.problems import PROBLEMS, Attribute
from routelearn.problems.attributes import CAPACITY, DEMAND, PRIZE, check_attributes, declared, folded
from routelearn.problems.contract.checking import ContractError, check_problem
from routelearn.problems.cvrp import CVRP


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_declares_its_fields(name):
    attributes = declared(PROBLEMS[name])
    assert attributes is not None
    assert all(one.help for one in attributes)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ([DEMAND], "attributes must be a tuple of Attribute"),
        ((Attribute("window", "stop", "hours"),), "window has the unit 'hours'; the choices are length, time, money"),
        ((Attribute("window", "driver"),), "window is of 'driver'; the choices are stop, vehicle, instance, leg"),
        ((DEMAND, Attribute("demand", "stop")), "two attributes are both named 'demand'; rename one"),
        ((DEMAND, PRIZE._replace(also=("MENGE",))), "demand and prize are both named 'MENGE'; rename one"),
        ((DEMAND, PRIZE._replace(also=("De-mand",))), "demand and prize are both named 'De-mand'"),
        ((Attribute("xy", "stop"),), "an attribute cannot be named 'xy'"),
        ((Attribute("two words", "stop"),), "an attribute cannot be named 'two words'"),
        ((Attribute("seconds", "instance"),), "cannot be named 'seconds', which has a meaning of its own"),
        ((Attribute("window", "stop", sign="even"),), "window has the sign 'even'; the choices are any, not negative"),
        ((Attribute("window", "stop", shape=2),), "window has the shape 2; a tuple of sizes"),
        ((Attribute("window", "stop", also="tw"),), "the other names of window must be a tuple of words"),
        ((Attribute("window", "stop", also=None),), "the other names of window must be a tuple of words"),
        ((Attribute("window", "stop", title=3),), "title, help and library of window must be text"),
        ((Attribute("solution", "instance"),), "an attribute cannot be named 'solution'"),
        ((Attribute("json", "stop"),), "an attribute cannot be named 'json'"),
        ((Attribute("window", "stop", default="8"),), "window has the default '8'; a finite number is needed"),
        ((Attribute("window", "stop", default=float("nan")),), "window has the default nan; a finite number is needed"),
        ((CAPACITY._replace(default=0),), "capacity has the default 0; a whole number that is positive is needed"),
        ((Attribute("crew", "stop", whole=True, default=1.5),), "crew has the default 1.5; a whole number is needed"),
    ],
)
def test_a_wrong_declaration_is_told_in_one_line(attributes, message):
    with pytest.raises(InputError, match=message) as caught:
        check_attributes(attributes, "mine")
    assert str(caught.value).startswith("mine: ")
    assert "\n" not in str(caught.value)


def test_names_are_compared_without_case_accents_blanks_and_units():
    assert folded("Quantité") == folded("QUANTITE") == folded("quan_ti-te (kg)") == "quantite"
    assert folded("Straße") == folded("STRASSE") == "strasse"


class Limited(NamedTuple):
    xy: Tensor
    demand: Tensor
    capacity: Tensor
    reach: Tensor
    distances: Tensor | None = None

    def public(self):
        return self


class WithReach(CVRP):
    """A CVRP whose instances have one more field."""

    attributes = (*CVRP.attributes, Attribute("reach", "instance", "length", required=True))

    def sample(self, rng, batch, n):
        x = super().sample(rng, batch, n)
        return Limited(x.xy, x.demand, x.capacity, torch.full_like(x.xy[:, 0, 0], 3.0))

    def validate(self, x):
        super().validate(x)
        if not x.reach.isfinite().all():
            raise InputError("reach is not finite")


def test_declarations_that_agree_pass():
    check_problem(WithReach())


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (CVRP.attributes, "reach of the instance is not among the attributes"),
        ((*WithReach.attributes, Attribute("window", "stop")), "window is not a field of the instance"),
        ((*CVRP.attributes, Attribute("reach", "stop")), r"reach has shape \[16\]; declared is \[16, 9\]"),
        ((*CVRP.attributes, Attribute("reach", "instance", whole=True)), "reach is torch.float32; declared are whole"),
        ((*CVRP.attributes, Attribute("reach", "instance", revealed_on_visit=True)), "but public.. shows it"),
        ((Attribute("reach", "instance", "miles"),), "reach has the unit 'miles'"),
        (
            (*CVRP.attributes, Attribute("reach", "instance", "length")),
            "stops need not give reach; give the field of Limited a default: reach = None",
        ),
    ],
)
def test_the_contract_holds_instances_against_the_declarations(attributes, message):
    problem = WithReach()
    problem.attributes = attributes
    with pytest.raises(ContractError, match=message):
        check_problem(problem)
