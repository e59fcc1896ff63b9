"""`check_problem` on what a problem tells its search: each fault is reported, with its example."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from routelearn import check_problem
from routelearn.problems import Length, Load, Prize
from routelearn.problems.contract.checking import ContractError
from routelearn.problems.cvrp import CVRP
from routelearn.problems.op import OP
from routelearn.problems.pctsp import PCTSP
from routelearn.problems.tsp import TSP


class Weary(NamedTuple):
    """A rule that binds nowhere; each subclass below has one fault."""

    limit: float = 1e9

    def start(self) -> Any:
        return (0.0,)

    def extend(self, label: Any, i: int, j: int, leg: float) -> Any:
        return (label[0] + leg,)

    def fits(self, label: Any) -> Any:
        return label[0] <= self.limit

    def single(self, i: int) -> Any:
        return (0.0,)

    def join(self, a: Any, b: Any, leg: float) -> Any:
        return (a[0] + leg + b[0],)


def fault(**changes: Any) -> Any:
    return type("Faulty", (Weary,), changes)()


class Told(CVRP):
    search = "routes"

    def __init__(self, *more: Any, instead: bool = False):
        self.more, self.instead = more, instead

    def resources(self, x: Any) -> Any:
        return self.more if self.instead else (*super().resources(x), *self.more)


def test_a_rule_that_agrees_with_itself_passes() -> None:
    check_problem(Told(Weary()))


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        (fault(join=lambda self, a, b, leg: (a[0] + b[0],)), r"join of \[0.*\] and \[.*0\] gives \(.*\), extend along"),
        (
            fault(add=lambda self, a, b: (a[0] + 2 * b[0],), single=lambda self, i: (float(i),)),
            "join of|adds what stops",
        ),
        (fault(fits=lambda self, label: label[0] > 1.0), "but not without stop"),
        (fault(start=lambda self: 0.0), "start gives 0.0; a label is a tuple of floats"),
        (fault(single=lambda self, i: (0,)), r"single gives \(0,\); a label is a tuple of floats"),
        (fault(single=lambda self, i: (0.0, 1.0)), "start gives 1 floats, single 2"),
        (Weary(0.2), "does not fit the route .* which check accepts"),
    ],
)
def test_a_faulty_rule_is_reported_with_the_example(resource: Any, words: str) -> None:
    with pytest.raises(ContractError, match=words) as raised:
        check_problem(Told(resource))
    assert "\n" not in str(raised.value)


def test_a_rule_without_a_method_is_reported() -> None:
    class Empty(NamedTuple):
        limit: float = 1.0

    with pytest.raises(ContractError, match="the resource Empty has no start"):
        check_problem(Told(Empty()))


def test_a_search_that_does_not_know_the_rules_is_reported() -> None:
    with pytest.raises(ContractError, match="keeps all that resources ask for, but check says: route"):
        check_problem(Told(instead=True))

    class Greedy(OP):
        search = "selective"

        def resources(self, x: Any) -> Any:
            return Length(1e9), super().resources(x)[1]

    with pytest.raises(ContractError, match="keeps all that resources ask for, but check says"):
        check_problem(Greedy("unif"))

    class Poor(PCTSP):
        search = "selective"

        def resources(self, x: Any) -> Any:
            return Prize(super().resources(x)[0].amount), super().resources(x)[1]

    with pytest.raises(ContractError, match="keeps all that resources ask for, but check says"):
        check_problem(Poor())


def test_costs_that_the_search_does_not_add_up_are_reported() -> None:
    class Free(CVRP):
        search = "routes"

        def legs(self, x: Any) -> Any:
            from routelearn.problems.base import distance_matrix

            legs = distance_matrix(x).clone()
            legs[:, :, 0] = 0
            return legs

    with pytest.raises(ContractError, match="by what the search adds up"):
        check_problem(Free())

    class Strange(TSP):
        search = "circle"

    with pytest.raises(ContractError, match="search is 'circle'; the choices are tour, routes"):
        check_problem(Strange())

    class Unknown(OP):
        search = "selective"

        def resources(self, x: Any) -> Any:
            return (Load(x.prize[0].numpy(), 3.0),)

    with pytest.raises(ContractError, match="knows Length, Prize and Penalty"):
        check_problem(Unknown("const"))
