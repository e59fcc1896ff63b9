"""What a search must know of a problem's rules: resources, which a vehicle uses up on its way.

A problem that names a shape in `search` gives its resources by `resources(x)`, for one instance (batch axis 1). On
routes ("routes") any class of the form below will do: a NamedTuple of numpy arrays and numbers, with methods in plain
arithmetic, which numba compiles into the search. Node 0 is the depot, where every route starts and ends. A label, a
tuple of `values` floats, tells what the way so far has used up; what fits must still fit with a stop left out. Where
some stops may be left out ("selective") the search knows Length, Prize and Penalty.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from routelearn.problems.base import EXACT

Label = tuple[float, ...]
METHODS = ("values", "order_free", "start", "fits")  # what every resource has


class Resource(Protocol):
    """One rule: `extend`, or `single` and `join`, which make the test of a place constant in time, or all three."""

    values: int  # floats in a label
    order_free: bool  # a route's label depends on which stops it has alone; needs `single` and `join`

    def start(self) -> Label:
        """Leaving the depot."""
        ...

    def extend(self, label: Label, i: int, j: int, leg: float) -> Label:
        """After driving from i to j, `leg` far, and serving j."""
        ...

    def fits(self, label: Label) -> bool: ...

    def single(self, i: int) -> Label:
        """Of the stretch that is node i alone."""
        ...

    def join(self, a: Label, b: Label, leg: float) -> Label:
        """Of stretch a, a drive of `leg`, and stretch b."""
        ...


class Load(NamedTuple):
    """What the stops of a route add up to, within what a vehicle holds."""

    amount: Any  # [N], float64
    capacity: float

    values = 1
    order_free = True

    def start(self) -> Any:
        return (0.0,)

    def fits(self, label: Any) -> Any:
        return label[0] <= self.capacity

    def single(self, i: int) -> Any:
        return (self.amount[i],)

    def join(self, a: Any, b: Any, leg: float) -> Any:
        return (a[0] + b[0],)


class Length(NamedTuple):
    """How long a route is, within a limit."""

    limit: float

    values = 1
    order_free = False

    def start(self) -> Any:
        return (0.0,)

    def fits(self, label: Any) -> Any:
        return label[0] <= self.limit

    def single(self, i: int) -> Any:
        return (0.0,)

    def join(self, a: Any, b: Any, leg: float) -> Any:
        return (a[0] + leg + b[0],)


class Prize(NamedTuple):
    """What visits bring, and what all of them must bring together at least."""

    amount: Any  # [N]
    least: float = 0.0


class Penalty(NamedTuple):
    """What it costs to leave a stop out."""

    amount: Any  # [N]


def joinable(resource: Any) -> bool:
    """Whether a resource (or its class) has labels of stretches that can be joined."""
    return hasattr(resource, "single") and hasattr(resource, "join")


def numbers(values: Any) -> Any:
    """One instance's row of a tensor as float64."""
    return values[0].detach().cpu().double().numpy().copy()


def at_most(limit: Any) -> float:
    """A bound on a sum of fractions, with room for rounding."""
    return float(limit[0]) * (1 + EXACT)


def at_least(limit: Any) -> float:
    """The same from below."""
    return float(limit[0]) * (1 - EXACT)
