"""Instances too large for a matrix: legs measured as the search goes, by TSPLIB's rounding where the file says so."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch

from routelearn.data.edge_weights import FROM_COORDINATES
from routelearn.data.reading import read_stops
from routelearn.errors import InputError
from routelearn.problems import base, get
from routelearn.search.graph import Places, graph_of_places, lengths, nearest_places
from routelearn.search.plan import plan
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


def test_a_way_that_ends_elsewhere_has_the_legs_of_its_matrix() -> None:
    xy, end = np.random.default_rng(1).random((30, 2)), np.array([2.0, 2.0])
    graph = graph_of_places(xy, 0, 5, end=end)
    matrix = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))
    matrix[1:, 0] = np.hypot(*(xy[1:] - end).T)
    i, j = (one.ravel() for one in np.indices(matrix.shape))
    keep = i != j
    np.testing.assert_allclose(lengths(graph.legs, i, j)[keep], matrix[i, j][keep], rtol=1e-15)
    np.testing.assert_allclose(lengths(graph.back, i, j)[keep], matrix.T[i, j][keep], rtol=1e-15)
    assert not graph.symmetric
    assert graph_of_places(xy, 0, 5, end=xy[0]).symmetric


@pytest.mark.slow
def test_a_plan_without_a_matrix_is_as_good_as_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a place that is not the depot, where the way back ends."""
    problem = get("spctsp")
    x = problem.sample(base.NumpyRng(0), 1, 40)
    visited = torch.zeros(41, dtype=torch.bool)
    visited[[0, 7]] = True
    costs = []
    for large in (10**6, 10):
        monkeypatch.setattr(base, "LARGE", large)
        plan(problem, x, 7, visited, 0.5, seconds=0.01)  # loads the kernels, which counts
        way = plan(problem, x, 7, visited, 0.5, seconds=0.2)
        assert len(set(way)) == len(way)
        assert not set(way) & {0, 7}
        left = set(range(1, 41)) - set(way) - {7}
        places = x.xy[0, [7, *way, 0]]
        costs.append(float((places[1:] - places[:-1]).norm(dim=-1).sum() + x.penalty[0, sorted(left)].sum()))
    assert costs[1] == pytest.approx(costs[0], rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["op-unif", "pctsp", "spctsp"])
def test_ten_thousand_prizes_are_chosen_from_without_looking_at_all_of_them_each_time(name: str) -> None:
    """By the processor, since other tests run beside: 0.2 to 0.3 s; looking at all of them took more than a second."""
    x = get(name).sample(base.NumpyRng(1), 1, 10_000)
    given = {field: value[0].numpy() for field, value in zip(x._fields, x, strict=True) if value is not None}
    given |= {"coords": given.pop("xy"), "problem": name}
    if "min_prize" in given:
        given["min_prize"] = 0.9 * given["prize"].sum()
    solve(**given, seconds=0)  # loads the kernels
    began = time.process_time()
    found = solve(**given, seconds=0)
    assert time.process_time() - began < 1.0
    assert len(found.routes[0]) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_ten_thousand_deliveries_in_their_time(seconds: float) -> None:
    rng = np.random.default_rng(0)
    demand = [0, *rng.integers(1, 10, 9999).tolist()]
    found = solve(rng.random((10_000, 2)), demand=demand, capacity=50, seconds=seconds)
    assert sum(map(len, found.routes)) == 9999
    assert found.seconds < (1.5 if seconds else 3)
