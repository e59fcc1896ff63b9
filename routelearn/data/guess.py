"""Which problem a file of stops is, by what the problems declare; where two fit alike nobody guesses."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from routelearn.data.fields import unfilled
from routelearn.data.names import table
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS
from routelearn.problems.attributes import Attribute, declared

REMEMBERED = 256  # sets of attributes: the service asks twice for each request, and comparing all problems takes long


class Fit(NamedTuple):
    """How well what is given fits a problem."""

    name: str
    attributes: dict[str, Attribute]
    claimed: frozenset[str]  # of what is given
    required: frozenset[str]  # of what is given
    missing: frozenset[str]  # required, and not given
    preference: int


def guess(source: str, given: Set[str]) -> str:
    """The problem that claims most of the attributes `given`, and whose required ones are there.

    Of those that claim as many, the one that requires most of them, then the one of the lowest `preference`.
    """
    known, names = table().guessed, frozenset(given)  # the table is another once a problem is registered
    if names not in known:
        if len(known) >= REMEMBERED:
            known.clear()
        known[names] = _guess(source, names)
    return known[names]


def _guess(source: str, given: Set[str]) -> str:
    fits = [_fit(problem, given) for problem in PROBLEMS.values() if declared(problem) is not None]
    fits = [fit for fit in fits if not unfilled(PROBLEMS[fit.name])]
    known = {name: one for fit in fits for name, one in fit.attributes.items()}
    columns = [
        name for name in known if name in given and known[name].of == "stop" and not known[name].revealed_on_visit
    ]
    able = [fit for fit in fits if fit.claimed >= set(columns)]
    if not able:
        raise InputError(f"{source}: both {' and '.join(map(plural, columns))}; name the problem")
    most = max(len(fit.claimed) for fit in able)
    able = [fit for fit in able if len(fit.claimed) == most]
    if whole := [fit for fit in able if not fit.missing]:
        return _preferred(source, [fit for fit in whole if len(fit.required) == max(len(f.required) for f in whole)])
    fewest = min(len(fit.missing) for fit in able)
    able = [fit for fit in able if len(fit.missing) == fewest]
    if len({fit.missing for fit in able}) > 1:
        raise InputError(_alternatives(source, able, given, known))
    lacks = [name for name in able[0].missing if known[name].of == "stop"]
    if lacks and not columns:
        limit = next(name for name in known if name in able[0].claimed)
        raise InputError(
            f"{source}: {with_article(known[limit].called)}, but no {lacks[0]}; give every stop its {lacks[0]}"
        )
    return _preferred(source, able)


def _fit(problem: object, given: Set[str]) -> Fit:
    attributes = {one.name: one for one in declared(problem) or ()}
    required = {name for name, one in attributes.items() if one.required}
    preference = getattr(problem, "preference", 1)
    claimed = frozenset(attributes) & given
    return Fit(problem.name, attributes, claimed, frozenset(required & given), frozenset(required - given), preference)  # type: ignore[attr-defined]


def _preferred(source: str, fits: Sequence[Fit]) -> str:
    first = min(fit.preference for fit in fits)
    names = [fit.name for fit in fits if fit.preference == first]
    if len(names) > 1:
        raise InputError(f"{source}: this could be {' or '.join(names)}; name the problem")
    return names[0]


def _alternatives(source: str, fits: Sequence[Fit], given: Set[str], known: dict[str, Attribute]) -> str:
    """What would decide between the problems that are nearest."""
    ways: dict[frozenset[str], Fit] = {}
    for fit in sorted(fits, key=lambda fit: (fit.preference, -len(fit.required))):
        ways.setdefault(fit.missing, fit)
    words = [
        f"{' and '.join(_words(known[name]) for name in known if name in missing)} ({fit.name})"
        for missing, fit in ways.items()
    ]
    there = " and ".join(_words(known[name]) for name in known if name in given)
    return f"{source}: {there}, but neither {' nor '.join(words)}; add one, or name the problem"


def _words(one: Attribute) -> str:
    return with_article(one.called) if one.of_file else plural(one.called)


def with_article(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def plural(word: str) -> str:
    return f"{word.removesuffix('y')}ies" if word.endswith("y") else f"{word}s"
