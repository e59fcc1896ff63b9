"""The front: every method measured once, gaps to the best found, and what cannot be asked for."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from routelearn.errors import InputError
from routelearn.plots.front import Point, front
from routelearn.reproduce import front as fronts
from routelearn.reproduce.front import Measured, Options, named_sets, points_of, reproduce_front

CPU = torch.device("cpu")
SMALL = {"sets": {"tsp": 20}, "strategies": ("greedy", "augment:8"), "seconds": (0.02, 0.05), "device": CPU}


def test_every_method_is_measured_once_and_the_same_command_goes_on(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(fronts, "SOLVERS", ("farthest-insertion", "savings", "concorde"))
    paths = reproduce_front(tmp_path, Options(limit=4, **SMALL))
    assert [path.name for path in paths] == ["front.md", "front.png", "front.svg"]
    assert all(path.stat().st_size for path in paths)
    text = paths[0].read_text()
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ") and "%" in line]
    assert {(row[0].strip("| "), row[1]) for row in rows} == {
        ("policy, rollouts", "greedy"), ("policy, rollouts", "augment:8"), ("policy and search", "0.02 s"),
        ("policy and search", "0.05 s"), ("farthest-insertion", "0.05 s"),
    }  # fmt: skip
    gap = {row[1]: float(row[4].split(" ")[0]) for row in rows if row[0] != "| farthest-insertion"}
    assert 0 <= gap["0.05 s"] <= gap["augment:8"] <= gap["greedy"]
    assert "- tsp: not run: concorde" in text
    assert "no valid answer" not in text

    def measured_again(*arguments, **options):
        raise AssertionError("it was there")

    monkeypatch.setattr("routelearn.reproduce.running.evaluate", measured_again)
    monkeypatch.setattr("routelearn.solvers.farm.running.solve_block", measured_again)
    reproduce_front(tmp_path, Options(limit=4, **SMALL))
    assert paths[0].read_text() == text
    with pytest.raises(InputError, match=r"holds results of .*instances 4,"):
        reproduce_front(tmp_path, Options(limit=5, **SMALL))


def test_answers_that_are_missing_are_counted(tmp_path: Path, monkeypatch) -> None:
    def judged(problem, x, tours):
        costs = problem.cost(x, tours)[:, 0].double()
        costs[0] = math.nan
        return costs

    monkeypatch.setattr(fronts, "SOLVERS", ())
    monkeypatch.setattr("routelearn.solvers.farm.running.judge", judged)
    table, *_ = reproduce_front(tmp_path, Options(limit=3, **SMALL | {"strategies": ("greedy",), "seconds": (0.02,)}))
    assert "- tsp: policy, rollouts, greedy: no valid answer to 1 of 3, which are left out" in table.read_text()


def test_gaps_are_to_the_best_of_each_instance_and_missing_answers_are_left_out() -> None:
    first = Measured("a", "1 s", 1.0, torch.tensor([10.0, 12.0], dtype=torch.float64))
    second = Measured("b", "1 s", 2.0, torch.tensor([11.0, math.nan], dtype=torch.float64))
    third = Measured("c", "1 s", 3.0, torch.tensor([12.0, 10.0], dtype=torch.float64))
    a, b, c = points_of([first, second, third])
    assert (a.gap, c.gap) == pytest.approx((10.0, 10.0))
    assert b.gap == pytest.approx(10.0)
    assert b.cost == 11.0


def test_a_panel_has_a_line_for_every_method() -> None:
    points = [Point("a", "1", 1.0, 5.0, 3.0, 0.1), Point("a", "2", 0.1, 5.0, 0.0, 0.1), Point("b", "1", 1, 5, 2, 0.1)]
    figure = front({"tsp": points, "cvrp": points[:2], "op": points})
    assert [len(panel.lines) for panel in figure.axes if panel.get_visible()] == [2, 1, 2]
    assert list(figure.axes[0].lines[0].get_xdata()) == [0.1, 1.0]


def test_what_the_front_does_not_have_is_refused() -> None:
    assert named_sets("cvrp, tsp") == {"cvrp": 100, "tsp": 100}
    with pytest.raises(InputError, match="the choices are tsp"):
        named_sets("sdvrp")
    for changes in ({"limit": 0}, {"seconds": (0.0,)}, {"seconds": ()}):
        with pytest.raises(InputError):
            Options(**changes)
