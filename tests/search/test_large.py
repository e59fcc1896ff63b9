"""Instances too large for a matrix: legs measured as the search goes, by TSPLIB's rounding where the file says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from routelearn.data.edge_weights import FROM_COORDINATES
from routelearn.data.reading import read_stops
from routelearn.errors import InputError
from routelearn.problems import base, get
from routelearn.search.graph import Places, lengths, nearest_places
from routelearn.search.search import Search
from routelearn.solving import solve, solve_stops


@pytest.mark.parametrize("places", ["spread", "clustered", "on a line", "identical"])
def test_neighbours_are_the_nearest(places: str) -> None:
    rng = np.random.default_rng(0)
    xy = rng.random((400, 2)) * {"spread": 1, "clustered": 1, "on a line": (1, 0), "identical": 0}[places]
    if places == "clustered":
        xy[:390] *= 1e-6
    near = nearest_places(xy, 8)
    apart = ((xy[:, None] - xy[None]) ** 2).sum(-1)
    np.fill_diagonal(apart, np.inf)
    assert not (near == np.arange(400)[:, None]).any()
    assert all(len(set(row)) == 8 for row in near.tolist())
    np.testing.assert_array_equal(np.take_along_axis(apart, near.astype(int), 1), np.sort(apart, 1)[:, :8])


@pytest.mark.parametrize("rule", base.ROUNDINGS)
def test_measured_legs_are_those_of_the_matrix(rule: str) -> None:
    """By the referee's tensors and by the search's kernels."""
    xy = np.random.default_rng(0).integers(0, 50, (40, 2)).astype(float)
    matrix = FROM_COORDINATES[rule](xy) if rule else np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))
    number = base.ROUNDINGS.index(rule)
    i, j = (one.ravel() for one in np.indices(matrix.shape))
    np.testing.assert_allclose(lengths(Places(xy, number, matrix.shape), i, j), matrix[i, j], rtol=1e-15)
    plain = get("tsp").sample(base.NumpyRng(0), 2, 40)._replace(xy=torch.tensor(xy).expand(2, -1, -1))
    rounded = plain._replace(distances=base.Rounded(torch.tensor([number] * 2)) if number else None)
    given = plain._replace(distances=torch.tensor(matrix).expand(2, -1, -1))
    origin = torch.randint(40, (2, 3))
    for of in (base.legs_to_depot, base.distance_matrix, lambda x: base.legs_from(x, origin)):
        torch.testing.assert_close(of(rounded), of(given))
    tours = torch.stack([torch.stack([torch.randperm(40)])] * 2)
    torch.testing.assert_close(base.closed_length(rounded, tours), base.closed_length(given, tours))
    torch.testing.assert_close(
        base.closed_length(base.take(rounded, slice(1, 2)), tours[1:]), base.closed_length(given, tours)[1:]
    )


def tsplib(folder: Path, nodes: int, metric: str) -> Path:
    xy = np.random.default_rng(nodes).integers(0, 9999, (nodes, 2)).tolist()
    lines = [f"{i} {x} {y}" for i, (x, y) in enumerate(xy, 1)]
    head = ["NAME : many", "TYPE : TSP", f"DIMENSION : {nodes}", f"EDGE_WEIGHT_TYPE : {metric}", "NODE_COORD_SECTION"]
    file = folder / "many.tsp"
    file.write_text("\n".join([*head, *lines, "EOF", ""]))
    return file


def test_a_file_larger_than_a_matrix_keeps_its_rounding(tmp_path: Path) -> None:
    [stops] = read_stops(tsplib(tmp_path, 8001, "EUC_2D"))
    assert stops.matrix is None
    found = solve_stops(stops, seconds=0)
    tour = np.array(found.node_routes[0])
    assert sorted(tour) == list(range(8001))
    legs = stops.xy[tour] - stops.xy[np.roll(tour, -1)]
    assert found.cost == np.floor(np.hypot(*legs.T) + 0.5).sum()


def test_a_rule_without_a_measure_still_needs_a_matrix(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ATT needs a matrix, at most 8000 are allowed"):
        read_stops(tsplib(tmp_path, 8001, "ATT"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tsp", "cvrp", "sdvrp", "op-unif", "pctsp"])
def test_a_search_without_a_matrix_finds_what_it_finds_with_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = get(name)
    x = base.map_instance(lambda f: f.double() if f.is_floating_point() else f, problem.sample(base.NumpyRng(0), 1, 60))
    costs = []
    for large in (10**6, 10):
        monkeypatch.setattr(base, "LARGE", large)
        search = Search(problem, x, 0)
        search.run(iterations=2000)
        problem.check(x, search.best_tour)
        costs.append(search.best_cost)
    assert isinstance(search.graph.legs, Places)
    assert costs[1] == pytest.approx(costs[0], rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_ten_thousand_deliveries_in_their_time(seconds: float) -> None:
    rng = np.random.default_rng(0)
    demand = [0, *rng.integers(1, 10, 9999).tolist()]
    found = solve(rng.random((10_000, 2)), demand=demand, capacity=50, seconds=seconds)
    assert sum(map(len, found.routes)) == 9999
    assert found.seconds < (1.5 if seconds else 3)
