"""What a Solution offers: gaps, files, pictures, how it was found."""

from __future__ import annotations

import json

import numpy as np
import pytest

from routelearn.errors import InputError
from routelearn.solving import solve

SQUARE = [[0, 0], [0, 1], [1, 1], [1, 0]]


def test_ids_are_rows_unless_named() -> None:
    assert sorted(solve(SQUARE, seconds=0).routes[0]) == [0, 1, 2, 3]
    assert sorted(solve(SQUARE, ids="abcd", seconds=0).routes[0]) == ["a", "b", "c", "d"]


def test_it_is_shown_in_one_line_however_many_stops() -> None:
    shown = repr(solve(np.random.default_rng(0).uniform(size=(50, 2)), seconds=0))
    assert shown.startswith("Solution(tsp: length ")
    assert len(shown) < 80


def test_gap_to_a_number_and_to_another_solution() -> None:
    tour = solve(SQUARE, seconds=0)
    assert tour.cost == pytest.approx(4)
    assert tour.gap_to(3.2) == pytest.approx(0.25)
    assert tour.gap_to(tour) == 0


def test_gap_of_a_prize_counts_what_is_missing() -> None:
    day = solve(SQUARE, prize=[0, 1, 2, 3], max_length=100, seconds=0.05)
    assert day.objective == 6
    assert day.cost == -6
    assert day.gap_to(8) == day.gap_to(-8) == pytest.approx(0.25)


def test_another_row_as_depot() -> None:
    found = solve(SQUARE, demand=[1, 1, 0, 1], capacity=2, depot=2, seconds=0.05)
    assert found.depot == 2
    assert sorted(stop for route in found.routes for stop in route) == [0, 1, 3]


def test_json_says_how_it_was_found() -> None:
    found = solve(np.random.default_rng(0).random((30, 2)), seconds=0.1, policy=False)
    document = json.loads(found.to_json())
    assert {"problem", "cost", "routes", "seconds", "history"} <= set(document)
    assert found.events[0].by == "heuristic"
    assert found.events[-1].cost == pytest.approx(found.cost)
    assert found.found_by()["search"] == pytest.approx(found.events[0].cost - found.cost)
    assert [e.cost for e in found.events] == sorted((e.cost for e in found.events), reverse=True)


def test_sol_and_geojson_only_where_they_make_sense() -> None:
    with pytest.raises(InputError, match="without one"):
        solve(SQUARE, seconds=0).to_sol()
    with pytest.raises(InputError, match="globe"):
        solve(SQUARE, seconds=0).to_geojson()
    routes = solve(SQUARE, demand=[0, 1, 1, 1], capacity=2, seconds=0.05)
    assert routes.to_sol().startswith("Route #1: ")
    assert json.loads(solve(latlon=SQUARE, seconds=0).to_geojson())["type"] == "FeatureCollection"


def test_no_model_is_said_once() -> None:
    assert solve(SQUARE, seconds=0).notes == ()
    far = solve(np.random.default_rng(0).random((700, 2)), seconds=0)
    assert len(far.notes) == 1
    assert "heuristic" in far.notes[0]


def test_seeds_repeat_what_time_does_not_decide() -> None:
    coords = np.random.default_rng(0).random((30, 2))
    assert solve(coords, seconds=0, seed=1).routes == solve(coords, seconds=0, seed=1).routes


def test_a_figure_has_a_line_for_every_route() -> None:
    figure = solve(SQUARE, demand=[0, 1, 1, 1], capacity=1, seconds=0).plot()
    assert figure is not None
    assert len(figure.axes[0].lines) == 3


def test_a_picture_of_distances_alone() -> None:
    found = solve(matrix=[[0, 1, 2], [1, 0, 1.5], [2, 1.5, 0]], seconds=0)
    assert found.embedded
    assert "made from the distances" in found.plot().axes[0].get_xlabel()


def test_pictures_of_other_kinds_are_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf, \.html"):
        solve(SQUARE, seconds=0).plot(tmp_path / "a.gif")
    with pytest.raises(InputError, match="cannot be written"):
        solve(SQUARE, seconds=0).plot(tmp_path / "nowhere" / "a.html")


@pytest.mark.parametrize("seconds", [0, 0.05])
def test_deliveries_of_nothing_are_an_answer_without_routes(seconds):
    found = solve(
        [[0, 0], [1, 1], [2, 3]], problem="sdvrp", demand=[0, 0, 0], capacity=5, seconds=seconds
    )  # fmt: skip
    assert (found.routes, found.cost) == ([], 0.0)


def test_a_tour_without_length_that_leaves_nothing_out_costs_exactly_nothing():
    draw = np.random.default_rng(0)
    for _ in range(20):
        prize, penalty = draw.random(30), 1000 * draw.random(30)
        prize[0] = penalty[0] = 0
        least = 0.999 * float(prize.sum())  # every stop is needed
        found = solve(np.zeros((30, 2)), problem="pctsp", prize=prize, penalty=penalty, min_prize=least, seconds=0)
        assert found.cost == 0


def test_deliveries_of_more_loads_than_can_be_listed_are_refused_at_once():
    with pytest.raises(InputError, match=r"the demands fill 1,000,000 vehicles; at most 10,000 are planned"):
        solve([[0, 0], [1, 1], [2, 3]], problem="sdvrp", demand=[0, 600_000, 400_000], capacity=1, seconds=0)
