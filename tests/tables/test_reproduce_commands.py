"""The command line of solvers, reproduce and plot-run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routelearn.cli import main
from routelearn.reproduce import ablations
from routelearn.solvers import SOLVERS


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def test_solvers_are_listed_with_licence_and_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROUTELEARN_CONCORDE", raising=False)
    code, out, _ = run(capsys, "solvers")
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert set(SOLVERS) <= set(lines)
    assert (SOLVERS["elkai"].unavailable() or "non-commercial") in lines["elkai"]
    assert "set ROUTELEARN_CONCORDE to the path" in out
    _, only, _ = run(capsys, "solvers", "--problem", "spctsp")
    assert "reopt-half" in only
    assert "pyvrp" not in only


def test_a_program_that_is_another_one_is_listed_as_not_usable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTELEARN_CONCORDE", "true")  # on PATH, and ends well
    _, out, _ = run(capsys, "solvers", "--problem", "tsp")
    (told,) = (line for line in out.splitlines() if "ROUTELEARN_CONCORDE" in line)
    assert "did not solve a small example (it wrote no answer and said nothing); is it Concorde" in told
    assert "no" in next(line for line in out.splitlines() if line.startswith("concorde ")).split()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("solvers", "--problem", "tps"), "unknown problem 'tps'"),
        (("reproduce", "table7"), "unknown target 'table7'; the choices are table1"),
        (("reproduce", "figures", "--paper-limits"), "--paper-limits has no meaning for figures"),
        (
            ("reproduce", "table1", "--instances", "9"),
            "--instances has no meaning for table1; it is for table-ablations, figure3, figure6",
        ),
        (("reproduce", "table1", "--sizes", "20;50"), "sizes is '20;50'"),
        (("reproduce", "table1", "--problems", "tsp,vrp"), "'vrp' is not in this table"),
        (("reproduce", "table-ablations", "--full", "--instances", "999"), "leave out --instances"),
        (("reproduce", "figure3", "--train", "--seeds", "one"), "seeds is 'one'"),
        (("reproduce", "figure7", "--train"), "--train has no meaning for figure7"),
        (("reproduce", "figure3", "--limit", "50"), "--limit has no meaning for figure3 without training"),
        (("reproduce", "figure6", "--full"), "--full has no meaning for figure6 without training; give --train"),
        (("reproduce", "table-ablations", "--minutes", "5"), "--minutes has no meaning for table-ablations without"),
        (("reproduce", "table1", "--rows", "LKH4"), "no row 'LKH4' in this table; its rows are Concorde, LKH3"),
        (("reproduce", "figure3", "--rows", "LKH3"), "--rows has no meaning for figure3; it is for table1, table-op"),
        (("plot-run", "missing"), "missing: no metrics there"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_training_gets_what_the_command_line_asks_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def train_runs(runs: list[Any], options: Any, out: Path, *, report: Any) -> list[Any]:
        asked.append((len(runs), options.instances, options.limit, options.seeds, options.minutes, out))
        return runs[:3]

    monkeypatch.setattr(ablations, "train_runs", train_runs)
    monkeypatch.setattr(ablations, "KEPT", tmp_path / "kept")
    arguments = ("--instances", "2048", "--limit", "20", "--seeds", "1234", "--minutes", "2", "--out", str(tmp_path))
    code, out, err = run(capsys, "reproduce", "figure3", "--train", *arguments)
    assert code == 0
    assert asked == [(8, 2048, 20, (1234,), 2.0, tmp_path)]
    assert "3 of 8 runs are not done" in err
    assert "figure3: not drawn" in out
    run(capsys, "reproduce", "figure6", "--train", "--sizes", "20,50", "--out", str(tmp_path))
    assert asked[1][:2] == (16, 6_400_000)
    run(capsys, "reproduce", "figure3", "--out", str(tmp_path))
    assert len(asked) == 2  # only --train trains


def test_figures_of_runs_show_the_seeds_and_sizes_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablations, "KEPT", tmp_path / "kept")
    out = ("--out", str(tmp_path))
    assert "8 of 8 runs are missing" in run(capsys, "reproduce", "figure3", "--seeds", "1234", *out)[1]
    assert "16 of 16 runs are missing" in run(capsys, "reproduce", "figure3", *out)[1]
    _, large, _ = run(capsys, "reproduce", "figure6", "--sizes", "100", "--seeds", "1235", *out)
    assert "4 of 4 runs are missing (tsp100-attention-3layers-rollout-1e-4-seed1235" in large
    assert "figure6 --train --sizes 100" in large
    assert "16 of 16 runs are missing (tsp20-" in run(capsys, "reproduce", "figure6", *out)[1]


def test_figure_3_is_drawn_from_the_runs_kept_in_the_repository(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not ablations.KEPT.is_dir():
        pytest.skip("not a checkout: docs/runs is not there")
    monkeypatch.setattr(ablations, "REFERENCES", ())  # without gaps: optimal tours of 10,000 instances take minutes
    code, out, _ = run(capsys, "reproduce", "figure3", "--seeds", "1234", "--out", str(tmp_path))
    assert code == 0
    assert "missing" not in out
    assert (tmp_path / "figure3-learning-curves.png").is_file()


def test_the_table_of_one_seed_misses_nothing_of_the_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablations, "KEPT", tmp_path / "kept")
    _, out, _ = run(capsys, "reproduce", "table-ablations", "--seeds", "1234", "--out", str(tmp_path))
    assert "seed1234" in out
    assert "seed1235" not in out
    assert "left out: the runs with seed 1235" in out


def test_a_run_is_plotted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [{"epoch": i, "instances": i, "elapsed": i, "validation": {"20": 4.0 - i / 10}, "gap": {}} for i in (1, 2)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = run(capsys, "plot-run", str(tmp_path), "--out", str(tmp_path / "curve.png"), "--along", "time")
    assert code == 0
    assert str(tmp_path / "curve.svg") in out
    assert (tmp_path / "curve.png").stat().st_size > 1000
