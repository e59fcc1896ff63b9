"""`check_problem` on what a problem tells its search: each fault is reported, with its example."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch

from routelearn import check_problem
from routelearn.problems import Length, Load, Prize
from routelearn.problems.base import refuse
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


def told(label: Any) -> bool:
    return bool(label[0] <= 1e9)


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
        (
            fault(fits=lambda self, label: told(label)),
            r"cannot compile fits: Untyped global name 'told': .* \(test_search_contract.py, line \d+\)",
        ),
        (
            fault(join=lambda self, a, b, leg: (0 if leg < 0.0 else int(leg) // 10**9,), extend=lambda *given: (0.0,)),
            "Faulty: join gives .*int64.* when compiled, not",
        ),
        (fault(fits=lambda self, label: len([label[0]]) > 0), "Faulty: numba cannot compile fits: "),
        (Weary(torch.ones(1)), "Weary: limit is a Tensor; give a numpy array"),
        (type("Loose", (), {})(), "Loose is no NamedTuple; make it one of numpy arrays and numbers"),
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


def test_a_rule_that_only_mask_and_search_know_is_reported() -> None:
    class Kinds(NamedTuple):
        def start(self) -> Any:
            return (0.0, 0.0)

        def single(self, i: int) -> Any:
            return (float(i % 2 == 1), float(i > 0 and i % 2 == 0))

        def add(self, a: Any, b: Any) -> Any:
            return (a[0] + b[0], a[1] + b[1])

        def fits(self, label: Any) -> Any:
            return min(label) == 0.0

    class Apart(Told):
        """A vehicle that has been at an odd node visits no even one."""

        search = "routes"

        def feasible(self, x: Any, s: Any) -> Any:
            mask = super().feasible(x, s)
            even = torch.arange(mask.shape[-1]) % 2 == 0
            clash = (even != even[s.last][..., None]) & (s.last != 0)[..., None]
            mask[..., 1:] &= ~clash[..., 1:]
            return mask

    with pytest.raises(ContractError, match=r"search: the resource Kinds does not fit the route .* check accepts"):
        check_problem(Apart(Kinds()))


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


def test_a_rule_of_a_tour_that_its_search_does_not_know_is_reported() -> None:
    class Ordered(TSP):
        """Node 1 comes after node 0."""

        search = "tour"

        def feasible(self, x: Any, s: Any) -> Any:
            mask = super().feasible(x, s)
            mask[..., 1] &= s.visited[..., 0]
            return mask

        def starts(self, x: Any) -> Any:
            starts = super().starts(x)
            starts[:, 1] = False
            return starts

        def check(self, x: Any, tour: Any, tolerance: float = 0.0) -> None:
            super().check(x, tour, tolerance)
            refuse((tour == 1).int().argmax(-1) < (tour == 0).int().argmax(-1), lambda b, s: "node 1 is too early")

    with pytest.raises(ContractError, match="names every node once, as the search does, but check says: node 1 is too"):
        check_problem(Ordered())


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
