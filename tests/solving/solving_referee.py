"""A referee that shares nothing with the package: plain numpy on the user's own numbers, rules from the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TOLERANCE = 1.1e-9  # relative, on lengths and prizes
SINGLE = 1.1e-5  # for what a policy built in single precision, and on prizes that are only known after the visit


@dataclass
class Case:
    """One instance in the user's units; the depot, where there is one, is row 0."""

    problem: str
    coords: np.ndarray | None = None  # [N, 2]
    latlon: np.ndarray | None = None
    matrix: np.ndarray | None = None
    demand: np.ndarray | None = None
    capacity: float | None = None
    prize: np.ndarray | None = None
    penalty: np.ndarray | None = None
    real_prize: np.ndarray | None = None
    max_length: float | None = None
    min_prize: float | None = None

    def arguments(self) -> dict:
        return {name: value for name, value in vars(self).items() if value is not None}

    def legs(self) -> np.ndarray:
        """[N, N] lengths from row to column."""
        if self.matrix is not None:
            legs = np.array(self.matrix, dtype=float)
            np.fill_diagonal(legs, 0)
            return legs
        if self.coords is not None:
            return np.hypot(*(self.coords[:, None, axis] - self.coords[None, :, axis] for axis in (0, 1)))
        assert self.latlon is not None
        lat, lon = np.radians(self.latlon).T
        unit = np.stack((np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)), 1)
        chord = np.linalg.norm(unit[:, None] - unit[None], axis=-1)
        return 2 * 6371.0088 * np.arcsin(np.clip(chord / 2, 0, 1))


def judge(case: Case, routes: list[list[int]], tolerance: float = TOLERANCE) -> float:
    """The cost of the routes (rows; the depot left out); AssertionError if they break a rule."""
    legs = case.legs()
    count = len(legs)
    visits = [stop for route in routes for stop in route]
    assert all(isinstance(stop, int) and 0 <= stop < count for stop in visits)
    if case.problem == "tsp":
        assert len(routes) == 1
        assert sorted(visits) == list(range(count)), "every stop exactly once"
        return float(sum(legs[a, b] for a, b in zip(visits, visits[1:] + visits[:1], strict=True)))
    assert 0 not in visits, "the depot is no stop"
    length = sum(legs[a, b] for route in routes for a, b in zip([0, *route], [*route, 0], strict=True))
    if case.problem == "cvrp":
        assert sorted(visits) == list(range(1, count)), "every customer exactly once"
        for route in routes:
            assert sum(case.demand[stop] for stop in route) <= case.capacity * (1 + 1e-12), "capacity"
        return float(length)
    if case.problem == "sdvrp":
        owed = np.array(case.demand, dtype=float)
        for route in routes:
            room = case.capacity
            for stop in route:
                given = min(owed[stop], room)
                owed[stop], room = owed[stop] - given, room - given
        assert owed.max() <= 1e-9, "every demand is delivered"
        return float(length)
    assert len(routes) <= 1
    assert len(set(visits)) == len(visits), "no stop twice"
    if case.problem.startswith("op-"):
        prize = np.append(0, np.ones(count - 1)) if case.prize is None else case.prize
        assert length <= case.max_length * (1 + tolerance), "the length limit"
        return -float(sum(prize[stop] for stop in visits))
    earned = case.prize if case.real_prize is None else case.real_prize
    tolerance = tolerance if case.real_prize is None else SINGLE
    enough = sum(earned[stop] for stop in visits) >= case.min_prize * (1 - tolerance)
    assert enough or len(visits) == count - 1, "the least prize, or every stop"
    left_out = set(range(1, count)) - set(visits)
    return float(length + sum(case.penalty[stop] for stop in left_out))


def random_case(problem: str, customers: int, rng: np.random.Generator, places: str = "coords") -> Case:
    """An instance of about the paper's difficulty, in odd units; `places`: coords, latlon, matrix or both."""
    count = customers + (problem != "tsp")
    case = Case(problem)
    scale = 10 ** rng.uniform(-2, 3)
    xy = rng.random((count, 2)) * scale + rng.normal(size=2) * scale
    if places == "latlon":
        case.latlon = np.stack((rng.uniform(40, 55, count), rng.uniform(-5, 25, count)), 1)
    else:
        case.coords = xy
    if places in ("matrix", "both"):
        case.matrix = case.legs() * rng.uniform(0.7, 1.5, (count, count))
        if places == "matrix":
            case.coords = None
    legs = case.legs()
    typical = float(legs.mean()) or 1.0
    if problem in ("cvrp", "sdvrp"):
        case.demand = np.append(0, rng.integers(0, 10, customers)).astype(float)
        case.capacity = float(max(12, rng.integers(12, 40)) if problem == "cvrp" else rng.integers(4, 30))
    if problem.startswith("op-"):
        case.prize = None if problem == "op-const" else np.append(0, rng.integers(1, 100, customers) / 10)
        case.max_length = typical * rng.uniform(1, 8)
    if problem in ("pctsp", "spctsp"):
        case.prize = np.append(0, rng.random(customers))
        case.penalty = np.append(0, rng.random(customers) * typical)
        case.min_prize = float(case.prize.sum() * rng.uniform(0.1, 0.9))
        if problem == "spctsp":
            case.real_prize = case.prize * np.append(0, 2 * rng.random(customers))
    return case
