"""The benchmark of rounds: what it compares, and how it counts answers that are none."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from round_cases import line, stop, van

from routelearn.rounds.files import read_round
from routelearn.rounds.model import Break
from routelearn.rounds.plan import Drive

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "rounds_quality.py"
TINY = """NAME : tiny
TYPE : VRPTW
DIMENSION : 3
VEHICLES : 2
CAPACITY : 5
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 3 4
3 6 8
DEMAND_SECTION
1 0
2 2
3 2
TIME_WINDOW_SECTION
1 0 100
2 0 100
3 0 100
DEPOT_SECTION
1
-1
EOF
"""
ALL = (Drive(0, (0, 1, 2)),)


@pytest.fixture(scope="module")
def quality():
    spec = importlib.util.spec_from_file_location("rounds_quality", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def amounts(count, **attributes):
    return [stop(i, delivery=(1.0,), **attributes) for i in range(count)]


def test_classes_are_told_from_what_a_round_has(quality):
    windows = {"windows": ((0.0, 500.0),)}
    pair = [stop(0, pickup=(1.0,), **windows), stop(1, delivery=(1.0,), **windows)]
    assert quality.class_of(line(amounts(2))) == "VRP"
    assert quality.class_of(line(amounts(2, **windows))) == "VRPTW"
    assert quality.class_of(line(amounts(2), van(), van(id="other", start=1, end=1))) == "MDVRP"
    assert quality.class_of(line(amounts(2), van(), van(id="other", fixed_cost=1.0))) == "HFVRP"
    assert quality.class_of(line(amounts(2, penalty=3.0, **windows))) == "PCVRPTW"
    assert quality.class_of(line(amounts(2, release=0.0, **windows), van(trips=2, reloads=(0,)))) == "MTVRPTWR"
    assert quality.class_of(line(pair, shipments=((0, 1),))) == "PDPTW"


def test_the_best_known_cost_is_that_of_the_routes_in_the_solution(quality, tmp_path):
    path = tmp_path / "tiny.vrp"
    path.write_text(TINY)
    x = read_round(path)
    (tmp_path / "tiny.sol").write_text("Route #1: 1 2\nCost 200\n")  # DIMACS: tenths
    assert quality.best_known(path, x) == (20.0, None)
    (tmp_path / "tiny.sol").write_text("Route #1: 1 2\nCost 21\n")
    with pytest.raises(ValueError, match="its routes cost 20, not 21"):
        quality.best_known(path, x)
    (tmp_path / "tiny.sol").write_text("Route #1: 1\nCost 10\n")
    with pytest.raises(ValueError, match="not visited"):
        quality.best_known(path, x)
    (tmp_path / "tiny.sol").unlink()
    with pytest.raises(ValueError, match="no best known value"):
        quality.best_known(path, x)


@pytest.mark.parametrize(
    ("drives", "status"),
    [
        (ALL, "ok"),
        (None, "none"),
        ((Drive(0, (0, 1)),), "incomplete"),
        ((Drive(0, (0, 1, 2, 2)),), "infeasible"),
        ((Drive(0, (0, 1)), Drive(0, (2,))), "more vehicles"),
    ],
)
def test_only_answers_that_keep_all_rules_have_a_gap(quality, monkeypatch, drives, status):
    monkeypatch.setitem(quality.SOLVERS, "ours", lambda x, seconds, seed: drives)
    row = quality.measure(line(3, van(number=3), objective="vehicles"), (50.0, 1), "ours", 1.0, 1)
    assert row["status"] == status
    assert row["gap"] == (pytest.approx(0.2) if status == "ok" else None)


def test_a_cell_averages_what_counts_and_counts_the_rest(quality):
    rows = [{"status": "ok", "gap": 0.01}, {"status": "ok", "gap": 0.03}, {"status": "infeasible", "gap": None}]
    assert quality.cell(rows) == "2.00%; 1 infeasible"
    assert quality.cell([{"status": "ok", "gap": -1e-6}]) == "0.00%"
    assert quality.cell([{"status": "unsupported", "gap": None}]) == ""


def test_a_folder_that_is_not_there_is_named(quality, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["rounds_quality.py", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit):
        quality.main()
    assert "nowhere; the library files are no part of routelearn" in capsys.readouterr().err


@pytest.mark.extra
@pytest.mark.parametrize("solver", ["pyvrp", "ortools"])
def test_other_solvers_answer_in_our_drives(quality, solver):
    windows = [((40.0, 60.0),), ((0.0, 25.0),), ((0.0, 500.0),)]
    timed = line([stop(i, delivery=(1.0,), windows=w) for i, w in enumerate(windows)], van(capacity=(5.0,), number=2))
    row = quality.measure(timed, (60.0, None), solver, 0.2, 1)
    assert (row["status"], row["gap"]) == ("ok", pytest.approx(0.0))
    pairs = [stop(0, delivery=(1.0,)), stop(1, pickup=(1.0,)), stop(2, delivery=(1.0,)), stop(3, pickup=(1.0,))]
    shipped = line(pairs, van(capacity=(1.0,), number=2), shipments=((1, 0), (3, 2)), objective="vehicles")
    row = quality.measure(shipped, (80.0, 1), solver, 0.2, 1)
    assert (row["status"], row["gap"]) == ("ok", pytest.approx(0.0))
    pausing = line(2, van(breaks=(Break(id="lunch", windows=((0.0, 5.0),), service=1.0),)))
    assert quality.measure(pausing, (40.0, None), solver, 0.2, 1)["status"] == "unsupported"


@pytest.mark.extra
def test_pyvrp_reloads_in_our_drives(quality):
    x = line(amounts(3, release=0.0), van(capacity=(2.0,), trips=3, reloads=(0,)))
    row = quality.measure(x, (80.0, None), "pyvrp", 0.2, 1)
    assert (row["status"], row["gap"]) == ("ok", pytest.approx(0.0))
    assert quality.measure(x, (80.0, None), "ortools", 0.2, 1)["status"] == "unsupported"
