"""The optimum of tiny instances in plain Python, sharing no code with the problems it judges.

Every function takes `legs`, a list of lists of leg lengths, with the depot as node 0 where there is one.
"""

from __future__ import annotations

from functools import cache
from itertools import chain, combinations, permutations
from math import inf

Legs = list[list[float]]


def length(legs: Legs, stops: tuple[int, ...]) -> float:
    """From the first stop through all others and back to it."""
    return sum(legs[a][b] for a, b in zip(stops, stops[1:] + stops[:1], strict=True))


def ordered_subsets(customers: range) -> chain[tuple[int, ...]]:
    """Every choice of customers, in every order, the empty one too."""
    return chain.from_iterable(permutations(customers, size) for size in range(len(customers) + 1))


def tsp(legs: Legs) -> float:
    return min(length(legs, (0, *rest)) for rest in permutations(range(1, len(legs))))


def cvrp(legs: Legs, demand: list[int], capacity: int) -> float:
    """The best split of the customers into loads that fit, each driven in its best order."""

    def best(customers: frozenset[int]) -> float:
        if not customers:
            return 0.0
        pivot = min(customers)  # some route serves it: try them all
        others = customers - {pivot}
        total = inf
        for size in range(len(others) + 1):
            for company in combinations(sorted(others), size):
                if demand[pivot] + sum(demand[c] for c in company) <= capacity:
                    route = min(length(legs, (0, *order)) for order in permutations((pivot, *company)))
                    total = min(total, route + best(others - set(company)))
        return total

    return best(frozenset(range(1, len(legs))))


def sdvrp(legs: Legs, demand: list[int], capacity: int) -> float:
    """The shortest sequence of visits, where each delivers all that it can."""

    @cache
    def best(here: int, load: int, owed: tuple[int, ...]) -> float:
        if not any(owed):
            return legs[here][0]
        total = inf if here == 0 else legs[here][0] + best(0, capacity, owed)
        for customer, amount in enumerate(owed):
            given = min(load, amount)
            if given:
                left = (*owed[:customer], amount - given, *owed[customer + 1 :])
                total = min(total, legs[here][customer] + best(customer, load - given, left))
        return total

    return best(0, capacity, tuple(demand))


def op(legs: Legs, prize: list[float], limit: float) -> float:
    """Minus the most prize within the limit."""
    customers = range(1, len(legs))
    return -max(
        sum(prize[c] for c in order) for order in ordered_subsets(customers) if length(legs, (0, *order)) <= limit
    )


def pctsp(legs: Legs, prize: list[float], penalty: list[float], least: float) -> float:
    """Length and penalties with at least the prize `least`, or with everything visited."""
    customers = range(1, len(legs))
    return min(
        length(legs, (0, *order)) + sum(penalty[c] for c in customers if c not in order)
        for order in ordered_subsets(customers)
        if sum(prize[c] for c in order) >= least or len(order) == len(customers)
    )
