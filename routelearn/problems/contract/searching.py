"""The two halves of a problem held against each other: what its search is told, and its own check and cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from routelearn.errors import Infeasible, InputError, is_own
from routelearn.problems.base import MeasuresLegs, distance_matrix, routes_of, take
from routelearn.problems.resources import Length, Penalty, Prize, check_resource, joinable, order_free, uncompiled

SHAPES = ("tour", "routes", "split routes", "selective")
WAYS = 20  # random solutions of each instance
CLOSE = 1e-6


def breaches(problem: Any, x: Any, tours: list[list[int]]) -> Iterator[str]:
    """What is wrong with `search`, `resources` and `legs` of a problem, on one instance with feasible tours of it."""
    legs = (problem.legs(x) if isinstance(problem, MeasuresLegs) else distance_matrix(x))[0].double().numpy()
    nodes = len(legs)
    resources = tuple(problem.resources(x)) if hasattr(problem, "resources") else ()
    random = np.random.default_rng(0)
    if problem.search not in SHAPES:
        yield f"search is {problem.search!r}; the choices are {', '.join(SHAPES)}"
    elif problem.search == "selective":
        yield from _selective(problem, x, resources, legs, [random.permutation(nodes - 1) + 1 for _ in range(WAYS)])
    elif problem.search == "tour":
        made = [random.permutation(nodes).tolist() for _ in range(WAYS)]
        for tour in made:
            yield from _accepted(problem, x, tour, "names every node once, as the search does")
        for tour in (*made, *(tour[:nodes] for tour in tours)):
            yield from _priced(problem, x, tour, _long([*tour, tour[0]], legs))
    else:
        for resource in resources:
            yield from _labels(resource, legs, random)
        if problem.search == "routes":
            made = [_constructed(resources, legs, random) for _ in range(WAYS)]
            for tour in made:
                yield from _accepted(problem, x, tour)
            for tour in (*made, *tours):
                yield from _priced(problem, x, tour, _long([0, *tour, 0], legs))
        for tour in tours if problem.search == "routes" else ():
            for route in routes_of(tour):
                for resource in resources:
                    if not resource.fits(_label(resource, route, legs)):
                        yield f"{_name(resource)} does not fit the route {route}, which check accepts"


def _long(way: list[int], legs: Any) -> float:
    return float(sum(legs[i, j] for i, j in pairwise(way)))


def _name(resource: Any) -> str:
    return f"the resource {type(resource).__name__}"


def _extended(resource: Any, label: Any, i: int, j: int, leg: float) -> Any:
    if hasattr(resource, "extend"):
        return resource.extend(label, i, j, leg)
    return _join(resource, label, resource.single(j), leg)


def _join(resource: Any, a: Any, b: Any, leg: float) -> Any:
    return resource.add(a, b) if order_free(resource) else resource.join(a, b, leg)


def _label(resource: Any, route: list[int], legs: Any) -> Any:
    """Of a whole route, step by step."""
    label = resource.start()
    for i, j in pairwise((0, *route, 0)):
        label = _extended(resource, label, i, j, legs[i, j])
    return label


def _accepted(problem: Any, x: Any, tour: list[int], lawful: str = "keeps all that resources ask for") -> Iterator[str]:
    try:
        problem.check(x, torch.tensor(tour).view(1, 1, -1))
    except Infeasible as error:
        yield f"the tour {tour} {lawful}, but check says: {error.reason}"


def _priced(problem: Any, x: Any, tour: list[int], expected: float) -> Iterator[str]:
    cost = float(problem.cost(x, torch.tensor(tour).view(1, 1, -1)))
    if not math.isclose(cost, expected, rel_tol=CLOSE, abs_tol=CLOSE):
        yield f"the tour {tour} costs {cost:g}, and {expected:g} by what the search adds up (see `legs`)"


def _labels(resource: Any, legs: Any, random: np.random.Generator) -> Iterator[str]:
    """A resource has its methods; stretches joined give what a walk gives; what fits does so with a stop left out."""
    try:
        check_resource(resource)
    except InputError as error:
        yield str(error)
        return
    for _ in range(WAYS):
        route = (random.permutation(len(legs) - 1)[: random.integers(2, 6)] + 1).tolist()
        whole = _label(resource, route, legs)
        if joinable(resource):
            cut = int(random.integers(0, len(route) + 1))
            head, tail = (_joined(resource, way, legs) for way in ([0, *route[:cut]], [*route[cut:], 0]))
            leg = legs[([0, *route])[cut], ([*route, 0])[cut]]
            joined = _join(resource, head, tail, leg)
            if not _alike(resource, joined, whole):
                yield (
                    f"{_name(resource)}: join of {[0, *route[:cut]]} and {[*route[cut:], 0]} gives {_told(joined)}, "
                    f"extend along them {_told(whole)}"
                )
                return
            other = random.permutation(route).tolist()
            if order_free(resource) and not _alike(resource, _label(resource, other, legs), whole):
                yield f"{_name(resource)} adds what stops need, but has other labels for {route} and {other}"
                return
        for k in range(len(route)):
            less = route[:k] + route[k + 1 :]
            if resource.fits(whole) and not resource.fits(_label(resource, less, legs)):
                yield f"{_name(resource)} fits the route {route}, but not without stop {route[k]}"
                return


def _joined(resource: Any, way: list[int], legs: Any) -> Any:
    label = resource.start() if way[0] == 0 else resource.single(way[0])
    for i, j in pairwise(way):
        label = _join(resource, label, resource.single(j), legs[i, j])
    return label


def _alike(resource: Any, a: Any, b: Any) -> bool:
    near = np.allclose(np.nan_to_num(a), np.nan_to_num(b), rtol=CLOSE, atol=CLOSE)
    return near and bool(resource.fits(a)) == bool(resource.fits(b))


def _told(label: Any) -> str:
    return f"({', '.join(f'{value:g}' for value in label)})"


def _constructed(resources: tuple[Any, ...], legs: Any, random: np.random.Generator) -> list[int]:
    """A random tour that keeps the rules by the resources alone."""
    tour: list[int] = []
    route: list[int] = []
    for c in (random.permutation(len(legs) - 1) + 1).tolist():
        if route and not all(one.fits(_label(one, [*route, c], legs)) for one in resources):
            tour += [*route, 0]
            route = []
        route.append(c)
    return [*tour, *route, 0]


def _selective(problem: Any, x: Any, resources: tuple[Any, ...], legs: Any, orders: list[Any]) -> Iterator[str]:
    """Random selections: lawful by the resources just where check accepts them, with the cost that they say."""
    given = {type(one): one for one in resources}
    if strange := [kind.__name__ for kind in given if kind not in (Length, Prize, Penalty)]:
        yield f"resources has a {strange[0]}; a search that leaves stops out knows Length, Prize and Penalty"
        return
    nothing = np.zeros(len(legs))
    prize, penalty = given.get(Prize, Prize(nothing)), given.get(Penalty, Penalty(nothing))
    limit = given[Length].limit if Length in given else math.inf
    for size, order in enumerate(orders):
        tour = [*order[: 1 + size % len(order)].tolist(), 0]
        long, won = _long([0, *tour], legs), prize.amount[tour].sum()
        if long <= limit and (won >= prize.least or len(tour) == len(legs)):
            yield from _accepted(problem, x, tour)
            missed = penalty.amount.sum() - penalty.amount[tour].sum()
            yield from _priced(problem, x, tour, -won if problem.maximise else long + missed)


def check_search(problem: Any, x: Any, tours: Any, demand: Any) -> None:
    """Hold the search's half of the problem against the other, on instances x with feasible tours [B, S, T]."""
    for row in range(min(4, len(x.xy))):
        ways = [tour.tolist() for tour in tours[row]]
        for wrong in breaches(problem, take(x, slice(row, row + 1)), ways):
            demand(False, f"{wrong} (row {row})")
    resources = problem.resources(take(x, slice(0, 1))) if problem.search == "routes" else ()
    for one in resources:
        reason = None if is_own(type(one)) else uncompiled(one)
        demand(reason is None, reason)
