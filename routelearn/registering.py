"""`routelearn.register`: it finds out what a thing is, says what it lacks, and adds it to the registry of its kind."""

from __future__ import annotations

import re
import sys
from pkgutil import resolve_name
from typing import Any, NamedTuple

from routelearn.errors import InputError
from routelearn.plugins import Plugin, is_loading, plugin_of_caller
from routelearn.problems.attributes import declared
from routelearn.problems.base import Problem
from routelearn.solvers.base import Solver

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


class Kind(NamedTuple):
    """What can be registered."""

    word: str
    needs: tuple[str, ...]  # attributes and methods
    registry: str  # where it is; imported when it is needed
    base: str = ""  # what its classes derive from, likewise
    page: str = "docs/guides/extend.md"


def members(protocol: type) -> tuple[str, ...]:
    """The names that a protocol asks for, `name` apart."""
    methods = [name for name, value in vars(protocol).items() if callable(value) and not name.startswith("_")]
    return tuple(name for name in (*protocol.__annotations__, *methods) if name != "name")


PROBLEM = Kind("problem", members(Problem), "routelearn.problems:PROBLEMS", page="docs/guides/add_a_problem.md")
# What every use of a policy asks for; one of a loss's own choosing may ask for more.
POLICY_NEEDS = ("compiles", "encode", "begin", "step", "choose", "score")
POLICY = Kind("policy", POLICY_NEEDS, "routelearn.policies:POLICIES", "torch.nn:Module")
SOLVER = Kind("solver", members(Solver), "routelearn.solvers:SOLVERS")
LOSS = Kind("loss", ("__call__",), "routelearn.training.losses:LOSSES", "routelearn.training.losses:Loss")
BASELINE = Kind(
    "baseline", ("value",), "routelearn.training.baselines:BASELINES", "routelearn.training.baselines:Baseline"
)


def register(thing: Any = None, name: str | None = None) -> Any:
    """Make a problem, a policy, a loss, a baseline or a solver known by its name; gives the thing back.

    A problem is an object with the methods of `routelearn.problems.Problem`, a solver one with those of
    `routelearn.solvers.Solver`; of both a class will do that is made without arguments. A policy is a class (a
    `torch.nn.Module` with the methods of `Policy`), a loss a class derived from `Loss`, a baseline one derived from
    `Baseline`. The name is `name`, or the thing's own `name`. Also a decorator: `@routelearn.register` or
    `@routelearn.register(name="mine")`.
    """
    caller = sys._getframe(1)
    plugin, line = plugin_of_caller(caller.f_globals), caller.f_lineno
    if thing is None:
        return lambda decorated: _register(decorated, name, plugin, line)
    return _register(thing, name, plugin, line)


def _register(thing: Any, name: str | None, plugin: Plugin, line: int) -> Any:
    try:
        kind = kind_of(thing)
        entry = _object(thing) if kind in (PROBLEM, SOLVER) else thing
        name = _name(entry, kind, name)
        lacking(entry, kind)
        if kind is PROBLEM:
            declared(entry)
        resolve_name(kind.registry).add(name, entry, plugin)
    except InputError as error:
        if is_loading():  # whoever loads the plugin says where
            raise
        raise InputError(f"{plugin}, line {line}: {error}") from None
    return thing


def kind_of(thing: Any) -> Kind:
    """What a thing is, or is meant to be: the kind whose methods it has most of."""
    cls = thing if isinstance(thing, type) else type(thing)
    for kind in (LOSS, BASELINE, POLICY):
        if issubclass(cls, resolve_name(kind.base)):
            if cls is not thing:
                raise InputError(f"an object of class {cls.__name__}; register the class itself")
            return kind
    has = {kind: sum(hasattr(thing, name) for name in kind.needs) for kind in (PROBLEM, POLICY, SOLVER)}
    best = max(has, key=lambda kind: has[kind])
    if not has[best]:
        raise InputError(
            f"{_called(thing)} is not a problem, policy, loss, baseline or solver "
            "(docs/guides/extend.md says what each needs)"
        )
    if best is POLICY:
        raise InputError(f"{_called(thing)} has a policy's methods but is not a torch.nn.Module; derive it from that")
    return best


def lacking(thing: Any, kind: Kind) -> None:
    """Raise InputError with the names of all that a thing should have and has not."""
    missing = [name for name in kind.needs if not _has(thing, name, kind)]
    if missing:
        words = ", ".join(f"`{name}`" for name in missing)
        them = "it" if len(missing) == 1 else "them"
        raise InputError(f"{_called(thing)} lacks {words}; a {kind.word} needs {them} (see {kind.page})")


def _has(thing: Any, name: str, kind: Kind) -> bool:
    """Losses and baselines inherit a method that only raises: there it counts when it is their own."""
    if kind not in (LOSS, BASELINE):
        return hasattr(thing, name)
    own = thing.__mro__[: thing.__mro__.index(resolve_name(kind.base))]
    return any(name in vars(part) for part in own)


def _object(thing: Any) -> Any:
    if not isinstance(thing, type):
        return thing
    try:
        return thing()
    except TypeError as error:
        raise InputError(
            f"class {thing.__name__} is not made without arguments ({error}); "
            f"register an object: routelearn.register({thing.__name__}(...))"
        ) from None


def _name(thing: Any, kind: Kind, given: str | None) -> str:
    own = getattr(thing, "name", None)
    if given is None and own is None:
        raise InputError(f'{_called(thing)} has no name; say routelearn.register(..., name="mine")')
    name = own if given is None else given
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(f"the name {name!r} does not fit; use up to 40 letters, digits, dots, - and _")
    if kind in (PROBLEM, SOLVER) and own != name:  # everybody calls it by its own name
        if own is not None:
            raise InputError(f"{_called(thing)} is called {own!r} already, not {name!r}; leave one of the names out")
        thing.name = name
    return name


def _called(thing: Any) -> str:
    """`class Foo`, whether the class or an object of it was given; other values as they are."""
    if isinstance(thing, type):
        return f"class {thing.__name__}"
    return repr(thing) if type(thing).__module__ == "builtins" else f"class {type(thing).__name__}"
