"""Paired comparisons, the paper's figures, and tables in four formats."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest
import torch
from rich.console import Console

from routelearn.errors import InputError
from routelearn.problems import get
from routelearn.reproduce.rows import REPORTED, ROWS, SIZES, TITLES, fact_of, parse_time
from routelearn.reproduce.tables import (
    Entry,
    Grid,
    compare,
    comparison_table,
    duration,
    latex_escape,
    package_csv,
    paper_results,
    percent,
    write_tables,
)
from routelearn.solvers import SOLVERS

NAN = math.nan


def entry(name: str, *costs: float, seconds: float = 1.0) -> Entry:
    return Entry(name, torch.tensor(costs, dtype=torch.float64), seconds)


def test_gap_wins_and_errors_are_paired() -> None:
    best, worse = compare([entry("a", 1.0, 2.0, 3.0), entry("b", 1.1, 2.0, 3.2)], get("tsp"))
    assert best.gap == 0
    assert best.wins == 3
    assert worse.wins == 1  # the tie
    assert worse.gap == pytest.approx((0.1 + 0 + 0.2) / 3 / 2.0)
    assert worse.gap_error == pytest.approx(torch.tensor([0.05, 0.0, 0.1]).std().item() / 3**0.5)
    assert best.standard_error == pytest.approx(1 / 3**0.5)


def test_a_method_that_fails_is_compared_where_it_answered_and_never_counts_as_best() -> None:
    lines = compare([entry("fails", 0.5, NAN, NAN), entry("whole", 1.0, 9.0, 9.0)], get("cvrp"))
    assert [line.infeasible for line in lines] == [2, 0]
    assert lines[1].gap == 0
    assert lines[0].gap == pytest.approx(-0.5)
    assert lines[0].objective == 0.5


def test_prizes_are_stated_positive_and_less_of_them_is_a_gap() -> None:
    first, second = compare([entry("a", -4.0, -6.0), entry("b", -2.0, -6.0)], get("op-dist"))
    assert first.objective == 5.0
    assert second.gap == pytest.approx(0.2)


def test_a_method_without_any_answer_has_no_figures() -> None:
    nothing, _ = compare([entry("none", NAN, NAN), entry("a", 1.0, 1.0)], get("tsp"))
    assert math.isnan(nothing.objective)
    assert nothing.wins == 0
    assert percent(nothing.gap) == "-"


def test_methods_on_different_instances_are_not_compared() -> None:
    with pytest.raises(InputError, match="same instances, but they have a 1, b 2"):
        compare([entry("a", 1.0), entry("b", 1.0, 2.0)], get("tsp"))


def test_the_terminal_table_names_time_and_hardware() -> None:
    console = Console(width=150, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(comparison_table(compare([entry("a", 1.0, 2.0, seconds=75)], get("tsp")), "title", "a machine"))
    text = console.export_text()
    assert "75s" in text
    assert "2 instances on a machine" in text


def test_the_paper_s_figures_are_all_there() -> None:
    facts = paper_results()
    assert len(facts) == len(package_csv("paper_results.csv")) == 198
    assert fact_of("tsp", "AM (greedy)", 100).objective == 8.12  # type: ignore[union-attr]
    assert fact_of("op-const", "Compass", 50).gap is None  # type: ignore[union-attr]
    ablations = package_csv("paper_ablations.csv")
    assert len(ablations) == 58
    assert ablations[-1] == {
        "group": "baseline", "row": "PN / Rollout", "epoch_time": "6:40", "rate": "1e-3 x 0.96^epoch", "seed": "1235",
        "objective": "3.90", "gap_percent": "1.78",
    }  # fmt: skip


def test_every_row_of_the_paper_is_a_row_here_and_every_solver_has_one() -> None:
    rows = {(TITLES[problem], row.row) for problem, all_rows in ROWS.items() for row in all_rows}
    assert {(fact.problem, fact.method) for fact in paper_results()} <= rows
    used = {name for all_rows in ROWS.values() for row in all_rows for name in row.solvers.split()}
    assert used == set(SOLVERS)
    for problem, all_rows in ROWS.items():
        assert len({row.row for row in all_rows}) == len(all_rows)
        for row in all_rows:
            for name in row.solvers.split():
                assert problem in SOLVERS[name].problems
            if row.kind == REPORTED:
                assert any(fact_of(problem, row.row, n) for n in SIZES)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0123, "12ms"), (0.3, "0.3s"), (59.6, "60s"), (600, "10m"), (36000, "10h")]
)
def test_durations_read_as_in_the_paper(seconds: float, text: str) -> None:
    assert duration(seconds) == text
    if seconds >= 59:
        assert parse_time(text) == pytest.approx(seconds, rel=0.01)


def test_rounding_never_shows_a_negative_zero() -> None:
    assert percent(-1e-9) == "0.00 %"


def test_latex_is_escaped() -> None:
    assert latex_escape("50 % & a_b † ^") == r"50 \% \& a\_b $^\dagger$ \textasciicircum{}"


def test_four_formats_hold_the_same_cells(tmp_path: Path) -> None:
    grid = Grid("TSP", ("method", "here"), [("Nearest | odd", "3.84  0.10 %"), ("B", "-")], ["B: not run: reason"])
    records: list[dict[str, object]] = [{"problem": "TSP", "objective": 3.84}, {"problem": "TSP", "objective": ""}]
    paths = write_tables(tmp_path / "new", "table", "A title", [grid], records, ["a note"])
    text, markdown, latex, table = (path.read_text() for path in paths)
    for content in (text, markdown, latex):
        for piece in ("Nearest", "3.84", "B: not run: reason", "a note", "A title"):
            assert piece in content
    assert text.splitlines()[6] == "Nearest | odd  3.84  0.10 %"
    assert r"| Nearest \| odd | 3.84  0.10 % |" in markdown
    assert latex.count(r"\\") == 3
    assert r"3.84  0.10 \%" in latex
    assert next(csv.DictReader(table.splitlines()))["objective"] == "3.84"
