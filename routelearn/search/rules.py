"""Resources in compiled code: labels of routes, and tests of changed ones.

A kernel takes `rules`, a tuple of one `Held` for each resource, and is compiled for just these: what stands under
`@by_resource` is chosen by the resource's class, and a call holds for all rules. Labels are indexed by node, with those
of the depot alone at 0. String removal walks linked routes; local search an array with the nodes of all routes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from routelearn.problems.resources import check_resource, joinable, order_free
from routelearn.search.graph import Floats


class Held(NamedTuple):
    """A resource with the labels of the present routes, K values each."""

    of: Any  # the resource
    total: Floats  # [R * K]: of whole routes
    saved: Floats  # [R * K]: `total` of the solution to fall back to
    ahead: Floats  # [N * K]: from the depot up to a node
    behind: Floats  # [N * K]: from a node to the depot, where the resource can join


_values: dict[type, int] = {}  # floats in a label, by class


def hold(resources: Sequence[Any], nodes: int) -> tuple[Held, ...]:
    """Rules for so many nodes and as many routes."""
    for one in resources:
        check_resource(one)
        _values[type(one)] = len(one.start())
    return tuple(Held(one, *(np.zeros(nodes * _values[type(one)]) for _ in range(4))) for one in resources)


def by_resource(arguments: str) -> Callable[[Callable[[Any], Any]], Any]:
    """A compiled function of rules and `arguments`: true if it is so for every rule.

    What it does for one of them is what the decorated function gives for the resource's class, a function of `held`,
    one rule, and the arguments (of `need`, a tuple, that of its rule).
    """

    def decorate(choose: Callable[[Any], Any]) -> Any:
        scope: dict[str, Any] = {"choose": choose}
        exec(f"def one(held, {arguments}): ...\ndef every(rules, {arguments}): ...", scope)
        exec(f"def chosen(held, {arguments}): return choose(held.types[0].instance_class)", scope)
        overload(scope["one"])(scope["chosen"])

        def unrolled(count: int) -> Any:
            # By position and joined with &: slices of the tuple, or `and`, would count references in inner loops.
            terms = " & ".join(f"one(rules[{k}], {arguments.replace('need', f'need[{k}]')})" for k in range(count))
            exec(f"def all_of_them(rules, {arguments}): return {terms}", scope)
            return scope["all_of_them"]

        scope["unrolled"] = unrolled
        exec(f"def chosen_for_all(rules, {arguments}): return unrolled(len(rules))", scope)
        overload(scope["every"])(scope["chosen_for_all"])
        return scope["every"]

    return decorate


# ------------------------------------------------------------------------- a resource's own methods, and its labels


def start(self): ...
def extend(self, label, i, j, leg): ...
def fits(self, label): ...
def single(self, i): ...
def join(self, a, b, leg): ...
def add(self, a, b): ...
def label(held, array, i): ...


overload(start, strict=False)(lambda self: self.instance_class.start)
overload(fits, strict=False)(lambda self, label: self.instance_class.fits)
overload(single, strict=False)(lambda self, i: self.instance_class.single)
overload(add, strict=False)(lambda self, a, b: self.instance_class.add)


def put(held, array, i, label): ...


@overload(join, strict=False)
def _join(self, a, b, leg):
    return (lambda self, a, b, leg: add(self, a, b)) if order_free(self.instance_class) else self.instance_class.join


@overload(extend, strict=False)
def _extend(self, label, i, j, leg):
    if hasattr(self.instance_class, "extend"):
        return self.instance_class.extend
    return lambda self, label, i, j, leg: join(self, label, single(self, j), leg)


@overload(label)
def _label(held, array, i):
    values = range(count := _values[held.types[0].instance_class])
    return eval(f"lambda held, array, i: ({''.join(f'array[i * {count} + {k}], ' for k in values)})")


@overload(put)
def _put(held, array, i, label):
    count = _values[held.types[0].instance_class]

    def written(held, array, i, label):
        for k in range(count):
            array[i * count + k] = label[k]
        return True

    return written


def needs(rules, c): ...


@overload(needs)
def _needs(rules, c):
    """The labels of customer c alone, for `has_room`: read once, not beside every route."""
    scope = {"one": njit(lambda held, c: single(held.of, c)), "none": njit(lambda held, c: start(held.of))}
    named = ("one" if joinable(rules[k].types[0].instance_class) else "none" for k in range(len(rules)))
    exec(f"def of_all(rules, c): return ({''.join(f'{name}(rules[{k}], c), ' for k, name in enumerate(named))})", scope)
    return scope["of_all"]


# ---------------------------------------------------------------------------------------------- linked routes


@by_resource("need, r")
def has_room(resource):
    """Whether route r may take a customer that needs so much, wherever it goes."""
    if order_free(resource):
        return lambda held, need, r: fits(held.of, join(held.of, label(held, held.total, r), need, 0.0))
    return lambda held, need, r: True


@by_resource("routes, legs, p, c, s")
def fits_between(resource):
    """Whether customer c, for which there is room, may be visited between its new neighbours p and s."""
    if order_free(resource):
        return lambda held, routes, legs, p, c, s: True

    def joined(held, routes, legs, p, c, s):
        so_far = join(held.of, label(held, held.ahead, p), single(held.of, c), legs[p, c])
        return fits(held.of, join(held.of, so_far, label(held, held.behind, s), legs[c, s]))

    def walked(held, routes, legs, p, c, s):
        so_far = extend(held.of, label(held, held.ahead, p), p, c, legs[p, c])
        at = c
        while at != 0 and fits(held.of, so_far):
            so_far = extend(held.of, so_far, at, s, legs[at, s])
            at, s = s, routes.succ[s]
        return fits(held.of, so_far)

    return joined if joinable(resource) else walked


@by_resource("routes, legs, r")
def refresh(resource):
    """Compute the labels of route r anew."""

    def summed(held, routes, legs, r):
        so_far = start(held.of)
        c = routes.first[r]
        while c != 0:
            so_far = join(held.of, so_far, single(held.of, c), 0.0)
            c = routes.succ[c]
        return put(held, held.total, r, so_far)

    def forward(held, routes, legs, r):
        so_far = start(held.of)
        put(held, held.ahead, 0, so_far)
        p, c = 0, routes.first[r]
        while c != 0:
            so_far = extend(held.of, so_far, p, c, legs[p, c])
            put(held, held.ahead, c, so_far)
            p, c = c, routes.succ[c]
        return put(held, held.total, r, extend(held.of, so_far, p, 0, legs[p, 0]))

    forward_compiled = njit(forward)

    def both(held, routes, legs, r):
        forward_compiled(held, routes, legs, r)
        rest = single(held.of, 0)
        put(held, held.behind, 0, rest)
        s, c = 0, routes.last[r]
        while c != 0:
            rest = join(held.of, single(held.of, c), rest, legs[c, s])
            put(held, held.behind, c, rest)
            s, c = c, routes.pred[c]
        return True

    return summed if order_free(resource) else both if joinable(resource) else forward


@by_resource("routes, legs, r, c")
def grow(resource):
    """Bring the labels of route r up to date after c was put into it."""
    if order_free(resource):
        return lambda held, routes, legs, r, c: put(
            held, held.total, r, join(held.of, label(held, held.total, r), single(held.of, c), 0.0)
        )
    return lambda held, routes, legs, r, c: refresh((held,), routes, legs, r)


@by_resource("r")
def keeps(resource):
    """Whether route r, whose labels are up to date, keeps a rule on the order of its stops.

    Where lengths break the triangle inequality, a stop left out may break it.
    """
    if order_free(resource):
        return lambda held, r: True
    return lambda held, r: fits(held.of, label(held, held.total, r))


@by_resource("r")
def save(resource):
    """Route r is as it shall be again after `restore`."""
    if order_free(resource):
        return lambda held, r: put(held, held.saved, r, label(held, held.total, r))
    return lambda held, r: True


@by_resource("routes, legs, r")
def restore(resource):
    """Labels of route r, which is as it was when saved."""
    if order_free(resource):
        return lambda held, routes, legs, r: put(held, held.total, r, label(held, held.saved, r))
    return lambda held, routes, legs, r: refresh((held,), routes, legs, r)


@by_resource("routes, legs, a, b")
def fits_merged(resource):
    """Whether route b may be driven right after route a, by one vehicle."""
    if order_free(resource):
        return lambda held, routes, legs, a, b: fits(
            held.of, join(held.of, label(held, held.total, a), label(held, held.total, b), 0.0)
        )

    def walked(held, routes, legs, a, b):
        at, c = routes.last[a], routes.first[b]
        so_far = label(held, held.ahead, at)
        while at != 0 and fits(held.of, so_far):
            so_far = extend(held.of, so_far, at, c, legs[at, c])
            at, c = c, routes.succ[c]
        return fits(held.of, so_far)

    return walked


@by_resource("r, value")
def fill_up(resource):
    """The first value of route r's label is `value`: a vehicle that a split delivery leaves empty."""

    count = _values[resource]

    def filled(held, r, value):
        held.total[r * count] = value
        return True

    return filled


# ---------------------------------------------------------------------------------------- routes in an array


@by_resource("nothing")
def free_of_order(resource):
    """Whether no rule asks in which order the stops of a route are visited."""
    answer = order_free(resource)
    return lambda held, nothing: answer


@by_resource("seq, legs, begin, r")
def survey(resource):
    """Compute the labels of route r, which is behind the depot at place `begin`."""

    def forward(held, seq, legs, begin, r):
        so_far = start(held.of)
        put(held, held.ahead, 0, so_far)
        i = begin + 1
        while seq[i] != 0:
            so_far = extend(held.of, so_far, seq[i - 1], seq[i], legs[seq[i - 1], seq[i]])
            put(held, held.ahead, seq[i], so_far)
            i += 1
        put(held, held.total, r, so_far)
        return True

    forward_compiled = njit(forward)

    def both(held, seq, legs, begin, r):
        forward_compiled(held, seq, legs, begin, r)
        i = begin + 1
        while seq[i] != 0:
            i += 1
        rest = single(held.of, 0)
        put(held, held.behind, 0, rest)
        for k in range(i - 1, begin, -1):
            rest = join(held.of, single(held.of, seq[k]), rest, legs[seq[k], seq[k + 1]])
            put(held, held.behind, seq[k], rest)
        return True

    return both if joinable(resource) else forward


@njit(nogil=True)
def walk(held, so_far, seq, legs, at, low, high, turned):
    """The label after places low to high, in this order or the other, and the last node."""
    for k in range(low, high + 1):
        c = seq[low + high - k] if turned else seq[k]
        so_far = extend(held.of, so_far, at, c, legs[at, c])
        at = c
    return so_far, at


@by_resource("seq, legs, a, low, high, turned, low2, high2, turned2, low3, high3, b")
def fits_pieces(resource):
    """Whether a route may go up to place a, on over three stretches (low > high: none), and from place b to its end."""

    def joined(held, seq, legs, a, low, high, turned, low2, high2, turned2, low3, high3, b):
        so_far, at = walk(held, label(held, held.ahead, seq[a]), seq, legs, seq[a], low, high, turned)
        so_far, at = walk(held, so_far, seq, legs, at, low2, high2, turned2)
        so_far, at = walk(held, so_far, seq, legs, at, low3, high3, False)
        return fits(held.of, join(held.of, so_far, label(held, held.behind, seq[b]), legs[at, seq[b]]))

    def walked(held, seq, legs, a, low, high, turned, low2, high2, turned2, low3, high3, b):
        so_far, at = walk(held, label(held, held.ahead, seq[a]), seq, legs, seq[a], low, high, turned)
        so_far, at = walk(held, so_far, seq, legs, at, low2, high2, turned2)
        so_far, at = walk(held, so_far, seq, legs, at, low3, high3, False)
        while True:
            c = seq[b]
            so_far = extend(held.of, so_far, at, c, legs[at, c])
            if c == 0 or not fits(held.of, so_far):
                return fits(held.of, so_far)
            at = c
            b += 1

    return joined if joinable(resource) else walked


@by_resource("seq, i, other")
def has_room_instead(resource):
    """Whether `other` may replace the stop at place i at all."""
    if not order_free(resource):
        return lambda held, seq, i, other: True

    def replaced(held, seq, i, other):
        rest = join(held.of, label(held, held.ahead, seq[i - 1]), label(held, held.behind, seq[i + 1]), 0.0)
        return fits(held.of, join(held.of, rest, single(held.of, other), 0.0))

    return replaced


@by_resource("seq, i, j")
def fits_turned(resource):
    """Whether what lies up to places i and j makes one route, and what lies behind them another (one part turned)."""
    if not order_free(resource):
        return lambda held, seq, i, j: False

    def both(held, seq, i, j):
        heads = join(held.of, label(held, held.ahead, seq[i]), label(held, held.ahead, seq[j]), 0.0)
        tails = join(held.of, label(held, held.behind, seq[i + 1]), label(held, held.behind, seq[j + 1]), 0.0)
        return fits(held.of, heads) & fits(held.of, tails)

    return both
