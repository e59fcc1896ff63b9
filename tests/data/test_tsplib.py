"""TSPLIB and CVRPLIB: the libraries' own lengths, to the last unit, against published optima."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from routelearn.data import read_stops, to_instance
from routelearn.data.edge_weights import FROM_COORDINATES, explicit
from routelearn.data.tsplib import parse, parse_vrp
from routelearn.errors import InputError
from routelearn.solving import make_solution
from routelearn.solving.writing import to_sol

LIBRARY = Path(os.environ.get("ROUTELEARN_REFERENCE_DATA", "reference_data")) / "instances"
needs_library = pytest.mark.skipif(
    not LIBRARY.is_dir(), reason="no benchmark instances: ROUTELEARN_REFERENCE_DATA names no folder with instances/"
)


def tsp(lengths, *sections):
    return "\n".join(("NAME : tiny", "TYPE : TSP", f"EDGE_WEIGHT_TYPE : {lengths}", *sections, "EOF", "after the end"))


COORDINATES = "NODE_COORD_SECTION\n1 0 0\n2 3.5 0\n3 0 4.0e0"


def test_each_edge_weight_type_rounds_in_its_own_way():
    """The straight line from (3.5, 0) to (0, 4) is 5.3151 long."""
    distance = {name: parse(tsp(name, COORDINATES), "t.tsp").matrix[1, 2] for name in FROM_COORDINATES}
    assert distance.pop("GEO") > 0
    assert distance == {
        "EUC_2D": 5,
        "CEIL_2D": 6,
        "FLOOR_2D": 5,
        "EXACT_2D": 5315,
        "MAN_2D": 8,
        "MAX_2D": 4,
        "ATT": 2,
    }


def test_halves_round_up_and_att_rounds_up():
    xy = np.array([[0, 0], [2.5, 0], [0, 10]])
    assert FROM_COORDINATES["EUC_2D"](xy)[0, 1] == 3
    assert FROM_COORDINATES["ATT"](xy)[0].tolist() == [0, 1, 4]  # 0.79 and 3.16


def test_geo_reads_degrees_and_minutes():
    """ulysses16, nodes 1 and 2: 509 kilometres in the library."""
    stops = parse(tsp("GEO", "NODE_COORD_SECTION\n1 38.24 20.42\n2 39.57 26.15"), "u.tsp")
    assert stops.matrix.tolist() == [[0, 509], [509, 0]]
    assert stops.latlon[0].tolist() == pytest.approx([38.4, 20.7])


def test_plain_lengths_on_request():
    stops = parse(tsp("EUC_2D", COORDINATES), "t.tsp", rounded=False)
    assert stops.matrix is None
    assert stops.metric == "euclidean"


@pytest.mark.parametrize(
    "layout",
    ["FULL_MATRIX", *(f"{t}{d}_{o}" for t in ("LOWER", "UPPER") for d in ("", "_DIAG") for o in ("ROW", "COL"))],
)
def test_every_way_to_write_a_matrix_gives_the_same_one(layout):
    matrix = np.array([[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]])
    rows, columns = np.indices(matrix.shape)
    if layout.endswith("COL"):
        rows, columns = columns, rows
    inside = np.ones_like(matrix, bool)
    if "LOWER" in layout or "UPPER" in layout:
        i, j = np.indices(matrix.shape)
        inside = (i >= j if "LOWER" in layout else i <= j) & (("DIAG" in layout) | (i != j))
        values = matrix[inside] if layout.endswith("ROW") else matrix.T[inside.T]
    else:
        values = matrix.ravel()
    assert explicit(values.astype(float), layout, 4, "m").tolist() == matrix.tolist()
    text = tsp(
        "EXPLICIT", "DIMENSION : 4", f"EDGE_WEIGHT_FORMAT : {layout}", "EDGE_WEIGHT_SECTION", *(str(v) for v in values)
    )
    assert parse(text, "m.tsp").matrix.tolist() == matrix.tolist()


def test_an_asymmetric_matrix_keeps_its_directions():
    text = "TYPE: ATSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\n"
    stops = parse(text + "EDGE_WEIGHT_SECTION\n99 1 2\n3 99 4 5 6 99\nEOF\n", "m.atsp")
    assert stops.matrix.tolist() == [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
    converted = to_instance(stops)
    assert float(converted.problem.cost(converted.referee, torch.tensor([[[0, 1, 2]]]))) == 1 + 4 + 5
    assert float(converted.problem.cost(converted.referee, torch.tensor([[[0, 2, 1]]]))) == 2 + 6 + 3


VRP = (
    "NAME: t\nTYPE : CVRP\nCAPACITY : 10\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : EUC_2D\n"
    "NODE_COORD_SECTION\n1 0 0\n2 0 3.4\n3 4 0\nDEMAND_SECTION\n3 0\n1 7\n2 10\nDEPOT_SECTION\n 3\n -1\nEOF\n"
)


def test_a_vrp_whose_depot_is_not_first_and_whose_demands_are_in_disorder():
    stops = parse_vrp(VRP, "t.vrp")
    assert (stops.depot, stops.columns["demand"], stops.limits["capacity"]) == (2, (7, 10, 0), 10)
    converted = to_instance(stops)
    assert converted.problem.name == "cvrp"
    assert converted.scale.ids == (3, 1, 2)
    solution = make_solution(converted, torch.tensor([1, 0, 2]))
    assert solution.routes == [[1], [2]]
    assert solution.lengths == [8, 10]  # 4 and nint(5.2) = 5, there and back
    assert to_sol(solution) == "Route #1: 1\nRoute #2: 2\nCost 18\n"


@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("limit", ["DISTANCE : 999999", "SERVICE_TIME : 0", "DISTANCE: 1e6\nSERVICE_TIME : 0.0"])
def test_a_limit_that_no_route_can_reach_is_none(limit, rounded):
    stops = parse_vrp(VRP.replace("CAPACITY", f"{limit}\nCAPACITY"), "t.vrp", rounded)
    assert to_instance(stops).problem.name == "cvrp"
    with pytest.raises(InputError, match="line 3: DISTANCE 12 limits routes"):
        parse_vrp(VRP.replace("CAPACITY", "DISTANCE : 12\nCAPACITY"), "t.vrp", rounded)


def test_the_orienteering_extension():
    text = tsp("EUC_2D", "COST_LIMIT : 12", COORDINATES, "NODE_SCORE_SECTION\n1 0\n2 5\n3 7", "DEPOT_SECTION\n1\n-1")
    converted = to_instance(parse(text.replace("TYPE : TSP", "TYPE : OP"), "t.oplib"))
    assert converted.problem.name == "op-unif"
    assert float(converted.referee.max_length) == 12
    assert converted.referee.prize.tolist() == [[0, 5, 7]]
    torch.testing.assert_close(converted.policy.prize, torch.tensor([[0, 5 / 7, 1]]))


BROKEN = {
    "no section": ("NAME : a\n", "no section"),
    "loose text": ("hello world\n", "line 1: 'hello world'; a KEYWORD"),
    "no value": ("TYPE\nNODE_COORD_SECTION\n1 2 3\n", "line 1: 'TYPE'; a value after a colon"),
    "other type": ("TYPE : HCP\nNODE_COORD_SECTION\n1 2 3\n", "TYPE 'HCP'"),
    "other lengths": (tsp("EUC_3D", COORDINATES), "EDGE_WEIGHT_TYPE 'EUC_3D'"),
    "route limit": (tsp("EUC_2D", "DISTANCE : 14.9", COORDINATES), "line 4: DISTANCE 14.9 limits routes"),
    "service time": (tsp("EUC_2D", "SERVICE_TIME : 10", COORDINATES), "line 4: SERVICE_TIME 10 limits routes"),
    "odd limit": (tsp("EUC_2D", "DISTANCE : far", COORDINATES), "line 4: DISTANCE is 'far', not a number"),
    "time windows": (
        tsp("EUC_2D", COORDINATES, "TIME_WINDOW_SECTION\n1 0 9"),
        "line 8: 'TIME_WINDOW_SECTION' is not supported; the choices are NODE_COORD",
    ),
    "fixed edges": (tsp("EUC_2D", COORDINATES, "FIXED_EDGES_SECTION\n1 2\n-1"), "'FIXED_EDGES_SECTION' is not supp"),
    "demands": (tsp("EUC_2D", COORDINATES, "DEMAND_SECTION\n1 0\n2 1\n3 1"), "a file with demands must end in .vrp"),
    "words": (tsp("EUC_2D", "NODE_COORD_SECTION\n1 0 0\n2 0"), "line 6: 2 words; NODE_COORD_SECTION has 3"),
    "not a number": (tsp("EUC_2D", "NODE_COORD_SECTION\n1 0 0\n2 0 zero"), "line 6: a coordinate is 'zero'"),
    "not a node": (tsp("EUC_2D", "NODE_COORD_SECTION\n-1 0 0"), "line 5: '-1' is not the number of a node"),
    "node twice": (tsp("EUC_2D", "NODE_COORD_SECTION\n1 0 0\n1 0 0"), "line 6: node 1 is given twice"),
    "dimension": (tsp("EUC_2D", "DIMENSION : 4", COORDINATES), "DIMENSION is 4, but 3 nodes"),
    "no coordinates": (tsp("EUC_2D", "DIMENSION : 4", "DEPOT_SECTION\n1\n-1"), "EUC_2D needs a NODE_COORD_SECTION"),
    "no dimension": (tsp("EXPLICIT", "EDGE_WEIGHT_SECTION\n1"), "how many nodes"),
    "no format": (tsp("EXPLICIT", "DIMENSION: 2", "EDGE_WEIGHT_SECTION\n1"), "needs an EDGE_WEIGHT_FORMAT"),
    "no weights": (tsp("EXPLICIT", COORDINATES), "needs an EDGE_WEIGHT_SECTION"),
    "few weights": (
        tsp("EXPLICIT", "DIMENSION: 3", "EDGE_WEIGHT_FORMAT: UPPER_ROW", "EDGE_WEIGHT_SECTION\n1 2"),
        "2 edge weights; UPPER_ROW of 3 nodes has 3",
    ),
    "odd format": (
        tsp("EXPLICIT", "DIMENSION: 3", "EDGE_WEIGHT_FORMAT: SPIRAL", "EDGE_WEIGHT_SECTION\n1 2"),
        "EDGE_WEIGHT_FORMAT 'SPIRAL'",
    ),
    "negative weight": (
        tsp("EXPLICIT", "DIMENSION: 2", "EDGE_WEIGHT_FORMAT: UPPER_ROW", "EDGE_WEIGHT_SECTION\n-5"),
        "row 1, column 2 of the matrix is negative",
    ),
    "huge dimension": (
        tsp("EXPLICIT", "DIMENSION: 900000000", "EDGE_WEIGHT_FORMAT: UPPER_ROW", "EDGE_WEIGHT_SECTION\n5"),
        "at most 8000 are allowed",
    ),
    "section twice": (tsp("EUC_2D", COORDINATES, COORDINATES), "a second NODE_COORD_SECTION"),
    "two depots": (tsp("EUC_2D", COORDINATES, "DEPOT_SECTION\n1\n2\n-1"), "line 10: a second depot"),
    "foreign depot": (tsp("EUC_2D", COORDINATES, "DEPOT_SECTION\n9\n-1"), "the depot 9 is not a node"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_mistake_is_named_with_its_line(case):
    text, message = BROKEN[case]
    with pytest.raises(InputError, match=message) as caught:
        parse(text, "t.tsp")
    assert str(caught.value).startswith("t.tsp")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("CAPACITY : 10\n", "", "no CAPACITY"),
        ("CAPACITY : 10", "CAPACITY : much", "line 3: CAPACITY is 'much'"),
        ("3 0\n1 7", "3 0", "no line for node 1"),
        ("1 7", "4 7", "line 12: node 4 has no coordinates"),
        ("1 7", "1 seven", "line 12: the demand is 'seven'"),
        ("1 7", "3 7", "line 12: node 3 is given twice, first in line 11"),
        ("DEMAND_SECTION\n3 0\n1 7\n2 10\n", "", "no DEMAND_SECTION"),
    ],
)
def test_a_mistake_in_a_vrp_is_named(old, new, message):
    with pytest.raises(InputError, match=message):
        parse_vrp(VRP.replace(old, new), "t.vrp")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2 10", "2 11", "t.vrp, line 13: stop '2' demands 11, more than the capacity 10"),
        ("3 0\n", "3 1\n", "line 11: the depot has"),
    ],
)
def test_demands_that_no_vehicle_can_serve_are_refused(old, new, message):
    with pytest.raises(InputError, match=message):
        to_instance(parse_vrp(VRP.replace(old, new), "t.vrp"))


@needs_library
@pytest.mark.parametrize(("name", "cost"), [("X-n101-k25", 27591), ("X-n200-k36", 58578)])
def test_published_routes_cost_what_is_published(name, cost, tmp_path):
    vrplib = pytest.importorskip("vrplib")
    published = vrplib.read_solution(LIBRARY / f"{name}.sol")
    [stops] = read_stops(LIBRARY / f"{name}.vrp")
    converted = to_instance(stops)
    tour = torch.tensor([node for route in published["routes"] for node in (*route, 0)])
    solution = make_solution(converted, tour)
    assert solution.cost == cost == published["cost"]
    (tmp_path / "ours.sol").write_text(to_sol(solution))
    assert vrplib.read_solution(tmp_path / "ours.sol") == published
    theirs = vrplib.read_instance(LIBRARY / f"{name}.vrp")
    assert np.array_equal(stops.matrix, np.floor(theirs["edge_weight"] + 0.5))
    assert [int(d) for d in stops.columns["demand"]] == theirs["demand"].tolist()


def best_tour(matrix, seed=0, kicks=400):
    """The best of many 2-opt descents from double bridges (Martin, Otto and Felten 1991)."""
    rng = np.random.RandomState(seed)
    n = len(matrix)

    def length(tour):
        return matrix[tour, np.roll(tour, -1)].sum()

    def descend(tour):
        best = length(tour)
        improved = True
        while improved:
            improved = False
            for i, j in itertools.combinations(range(n), 2):
                a, b, c, d = tour[i - 1], tour[i], tour[j], tour[(j + 1) % n]
                if a != c and matrix[a, c] + matrix[b, d] < matrix[a, b] + matrix[c, d] and b != d:
                    tour[i : j + 1] = tour[i : j + 1][::-1].copy()
                    improved = True
        return tour, min(best, length(tour))

    tour, best = descend(rng.permutation(n))
    for _ in range(kicks):
        cuts = np.sort(rng.choice(np.arange(1, n), 3, replace=False))
        a, b, c, d = np.split(tour, cuts)
        trial, value = descend(np.concatenate((a, c, b, d)))
        if value <= best:
            tour, best = trial, value
    return tour


@pytest.mark.slow
@needs_library
@pytest.mark.parametrize(
    ("name", "optimum", "kicks"),
    [("ulysses16", 6859, 60), ("gr17", 2085, 60), ("att48", 10628, 600), ("berlin52", 7542, 600)],
)
def test_a_search_reaches_the_published_optimum_and_never_beats_it(name, optimum, kicks):
    [stops] = read_stops(LIBRARY / f"{name}.tsp")
    converted = to_instance(stops)
    found = min(
        make_solution(converted, torch.from_numpy(best_tour(stops.matrix, seed, kicks))).cost for seed in range(2)
    )
    assert found == optimum
