"""What a search must know of a problem's rules: resources, which a vehicle uses up on its way.

A problem that names a shape in `search` gives its resources by `resources(x)`, for one instance (batch axis 1). On
routes ("routes") any class of the form below will do: a NamedTuple of numpy arrays and numbers, with methods in plain
arithmetic, which numba compiles into the search. Node 0 is the depot, where every route starts and ends. A label, a
tuple of floats, tells what the way so far has used up; what fits must still fit with a stop left out. Where some stops
may be left out ("selective") the search knows Length, Prize and Penalty.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Protocol

import numpy as np

from routelearn.errors import InputError
from routelearn.problems.base import EXACT

Label = tuple[float, ...]


class Resource(Protocol):
    """One rule. Beside these methods it has one or more of the following.

    - `single(i)`, the label of node i alone, and `add(a, b)`: if only which stops a route has counts, not their order
    - `single(i)` and `join(a, b, leg)`: the label of stretch a, a drive of `leg` and stretch b
    - `extend(label, i, j, leg)`: after driving from i to j, `leg` far, and serving j; enough alone, but then the test
      of a place walks the rest of the route
    """

    def start(self) -> Label:
        """Leaving the depot."""
        ...

    def fits(self, label: Label) -> bool: ...


def order_free(resource: Any) -> bool:
    """Whether a resource (or its class) asks only which stops a route has."""
    return hasattr(resource, "add") and hasattr(resource, "single")


def joinable(resource: Any) -> bool:
    """Whether it has labels of stretches that can be joined."""
    return order_free(resource) or (hasattr(resource, "single") and hasattr(resource, "join"))


def check_resource(resource: Any) -> None:
    """Raise InputError, in one line, for one that cannot be used."""
    name = type(resource).__name__
    if not hasattr(resource, "_fields"):
        raise InputError(f"the resource {name} is no NamedTuple; make it one of numpy arrays and numbers")
    for field, value in zip(resource._fields, resource, strict=True):
        if not isinstance(value, np.ndarray | np.generic | float | int | tuple):
            given = type(value).__name__
            raise InputError(
                f"the resource {name}: {field} is a {given}; give a numpy array (see `numbers`) or a number"
            )
    for method in ("start", "fits"):
        if not hasattr(resource, method):
            raise InputError(f"the resource {name} has no {method}")
    if not joinable(resource) and not hasattr(resource, "extend"):
        raise InputError(f"the resource {name} has no extend, and no single with add or join")
    labels = {"start": resource.start()} | ({"single": resource.single(0)} if joinable(resource) else {})
    for method, label in labels.items():
        if not isinstance(label, tuple) or not label or not all(isinstance(value, float) for value in label):
            raise InputError(f"the resource {name}: {method} gives {label!r}; a label is a tuple of floats (float64)")
        if len(label) != len(labels["start"]):
            raise InputError(f"the resource {name}: start gives {len(labels['start'])} floats, {method} {len(label)}")


def uncompiled(resource: Any) -> str | None:
    """Why numba cannot make code of a method, or code that gives other labels than tuples of floats; None if it can."""
    from numba import njit, typeof
    from numba.core.errors import NumbaError

    kind, label = type(resource), resource.start()
    calls = {"start": (), "fits": (label,), "single": (0,), "add": (label, label), "join": (label, label, 0.0)}
    calls |= {"extend": (label, 0, 0, 0.0)}
    as_searched: dict[str, Any] = {"_nrt": False}
    for method in (name for name in calls if hasattr(kind, name)):
        compiled, arguments = njit(**as_searched)(getattr(kind, method)), (resource, *calls[method])
        try:
            compiled.compile(tuple(map(typeof, arguments)))
        except NumbaError as error:
            usual = re.compile(r"Failed in|During|File |\W*$|raised from")
            reasons = [line.strip() for line in str(error).splitlines() if line[:1].strip() and not usual.match(line)]
            where = re.findall(r'File "[^"]*?([^"/\\]+)", line (\d+)', str(error))
            line = f" ({where[-1][0]}, line {where[-1][1]})" if where else ""
            return f"the resource {kind.__name__}: numba cannot compile {method}: {(reasons or [''])[0]}{line}"
        given = compiled.nopython_signatures[0].return_type
        if method != "fits" and given != typeof(label):
            return f"the resource {kind.__name__}: {method} gives {given} when compiled, not {typeof(label)}"
    return None


class Load(NamedTuple):
    """What the stops of a route add up to, within what a vehicle holds."""

    amount: Any  # [N], float64
    capacity: float

    def start(self) -> Label:
        return (0.0,)

    def fits(self, label: Label) -> bool:
        return label[0] <= self.capacity

    def single(self, i: int) -> Label:
        return (self.amount[i],)

    def add(self, a: Label, b: Label) -> Label:
        return (a[0] + b[0],)


class Length(NamedTuple):
    """How long a route is, within a limit."""

    limit: float

    def start(self) -> Label:
        return (0.0,)

    def fits(self, label: Label) -> bool:
        return label[0] <= self.limit

    def single(self, i: int) -> Label:
        return (0.0,)

    def join(self, a: Label, b: Label, leg: float) -> Label:
        return (a[0] + leg + b[0],)


class Prize(NamedTuple):
    """What visits bring, and what all of them must bring together at least."""

    amount: Any  # [N]
    least: float = 0.0


class Penalty(NamedTuple):
    """What it costs to leave a stop out."""

    amount: Any  # [N]


def numbers(values: Any) -> Any:
    """One instance's row of a tensor as float64."""
    return values[0].detach().cpu().double().numpy().copy()


def at_most(limit: Any) -> float:
    """A bound on a sum of fractions, with room for rounding."""
    return float(limit[0]) * (1 + EXACT)


def at_least(limit: Any) -> float:
    """The same from below."""
    return float(limit[0]) * (1 - EXACT)
