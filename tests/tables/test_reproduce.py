"""Table 1 on a handful of instances: quick rows run, the others say why not, a second run only reads."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from routelearn import models, policies
from routelearn.errors import InputError
from routelearn.evaluation.evaluate import Evaluation
from routelearn.models import model_file
from routelearn.policies.base import shape_of
from routelearn.problems import get
from routelearn.reproduce import running as reproduce
from routelearn.reproduce.layout import Cell, notes_on
from routelearn.reproduce.rows import QUICK, ROWS, TABLE1, TITLES, named_rows, not_run, seconds_for
from routelearn.reproduce.running import Options, expected_seconds, plan, table1, table_op
from routelearn.reproduce.tables import paper_results
from routelearn.solvers.farm.running import Progress, solve_instances
from routelearn.training.config import TrainConfig


@pytest.fixture(autouse=True)
def _only_quick_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches, exact methods and foreign programs have tests of their own."""
    quick = {
        problem: tuple(row for row in rows if (not row.solvers or row.kind == QUICK) and "improve:" not in row.decode)
        for problem, rows in ROWS.items()
    }
    monkeypatch.setattr(reproduce.table, "ROWS", quick)

    def none_ships(problem: str, n: int) -> Any:
        raise InputError(f"no trained model ships for {problem}")

    monkeypatch.setattr(models, "load_model", none_ships)


def tiny_model(path: Path, problem: str) -> Path:
    torch.manual_seed(1)
    options = TrainConfig(problem=problem, width=16, heads=2, layers=1, hidden=16).policy_options()
    policy = policies.build("attention", shape_of(get(problem)), options).eval()
    model_file.save(path, model_file.Model(policy, problem, "attention", options, {"sizes": [20]}))
    return path


def cells(out: Path, stem: str) -> dict[tuple[str, str], dict[str, str]]:
    with open(out / f"{stem}.csv", newline="") as file:
        return {(row["problem"], row["method"]): row for row in csv.DictReader(file)}


def test_rows_run_or_say_why_not(tmp_path: Path) -> None:
    table1(["sdvrp", "cvrp"], tmp_path, Options(limit=3, sizes=(20,)))
    found = cells(tmp_path, "table1")
    savings = found["CVRP", "Savings"]
    assert savings["instances"] == "3"
    assert savings["infeasible"] == "0"
    assert 4 < float(savings["objective"]) < 8
    assert min(float(row["gap_percent"]) for row in found.values() if row["gap_percent"]) == 0
    assert found["CVRP", "AM (greedy)"]["paper_objective"] == "6.4"
    assert "no model yet: no trained model ships for cvrp" in found["CVRP", "AM (greedy)"]["note"]
    text = (tmp_path / "table1.txt").read_text()
    assert "† RL (beam 10): reported by Nazari et al. (2018)" in text
    assert "AM (sampling): not run at n = 20: no model yet" in text
    assert "first 3 instances" in text
    assert (tmp_path / "table1.md").read_text().count("\n| ") == len(found) + 2
    assert r"\toprule" in (tmp_path / "table1.tex").read_text()


def test_a_table_of_a_few_rows(tmp_path: Path) -> None:
    rows = named_rows("Savings, Sweep, unordered", ["cvrp"])
    assert rows == ("Savings", "Sweep, unordered")
    table1(["cvrp"], tmp_path, Options(limit=2, sizes=(20,), rows=rows))
    assert {method for _, method in cells(tmp_path, "table1")} == set(rows)
    with pytest.raises(InputError, match="no row 'Sweeep' in this table; its rows are "):
        named_rows("Sweeep", ["cvrp"])


@pytest.mark.parametrize(("solver", "told"), [("lkh3", []), ("elkai", ["LKH3 (elkai): LKH through elkai"])])
def test_the_row_of_lkh_says_which_one_ran(solver: str, told: list[str]) -> None:
    row = next(row for row in ROWS["tsp"] if row.row == "LKH3")
    result = Evaluation(torch.zeros(1, 1, 20, dtype=torch.long), torch.ones(1), 0, 1.0, solver, "cpu")
    notes = notes_on(row, [Cell("tsp", 20, row, solver, result=result)])
    assert [note.partition(";")[0] for note in notes] == told


def test_a_second_run_reads_what_the_first_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(limit=3, sizes=(20,))
    table1(["sdvrp"], tmp_path, options)
    first = (tmp_path / "table1.csv").read_text()
    monkeypatch.setattr("routelearn.solvers.farm.running.solve_block", lambda *_: pytest.fail("solved again"))
    table1(["sdvrp"], tmp_path, options)
    assert (tmp_path / "table1.csv").read_text() == first


def test_learned_rows_use_the_model_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = (tiny_model(tmp_path / "mine.safetensors", "cvrp"), tiny_model(tmp_path / "other.safetensors", "tsp"))
    options = Options(limit=3, sizes=(20,), samples=16, model_files=given, device=torch.device("cpu"))
    table1(["cvrp"], tmp_path, options)
    found = cells(tmp_path, "table1")
    greedy, sampling = (found["CVRP", f"AM ({how})"] for how in ("greedy", "sampling"))
    assert sampling["setting"] == "augment:8+sample:2"
    assert "mine.safetensors" in greedy["solver"]
    assert float(sampling["objective"]) < float(greedy["objective"])
    assert greedy["infeasible"] == sampling["infeasible"] == "0"
    monkeypatch.setattr(reproduce, "evaluate", lambda *_, **__: pytest.fail("evaluated again"))
    table1(["cvrp"], tmp_path, options)
    assert cells(tmp_path, "table1")["CVRP", "AM (greedy)"] == greedy


def rival_model(folder: Path, kind: str, loss: str, problem: str = "tsp") -> Path:
    config = TrainConfig(policy=kind, problem=problem, width=16, heads=2, layers=1, hidden=16)
    policy = policies.build(kind, shape_of(get(problem)), config.policy_options()).eval()
    path = folder / f"{kind}-{loss}-{problem}.safetensors"
    card = {"sizes": [20], "config": {"loss": loss}}
    model_file.save(path, model_file.Model(policy, problem, kind, config.policy_options(), card))
    return path


RIVAL_ROWS = [
    ("Vinyals 2015 (gr.)", "pointer", "supervised", "tsp"),
    ("Bello 2016 (gr.)", "pointer", "reinforce", "tsp"),
    ("Bello 2016 (s.)", "pointer", "reinforce", "tsp"),
    ("Dai 2017", "dai", "q-learning", "tsp"),
    ("Nowak 2017", "nowak", "supervised", "tsp"),
    ("EAN (greedy)", "ean", "reinforce", "tsp"),
    ("EAN (gr. + 2OPT)", "ean", "reinforce", "tsp"),
    ("EAN (sampling)", "ean", "reinforce", "tsp"),
    ("EAN (s. + 2OPT)", "ean", "reinforce", "tsp"),
    *((row, "nazari", "reinforce", name) for row in ("RL (greedy)", "RL (beam 10)") for name in ("cvrp", "sdvrp")),
]


def test_every_row_of_a_learner_is_among_those_that_are_tried_here() -> None:
    learned = {(row.row, row.policy, name) for name, rows in ROWS.items() for row in rows if row.policy}
    assert learned == {(row, kind, name) for row, kind, _, name in RIVAL_ROWS}


@pytest.mark.parametrize(("row", "kind", "loss", "problem"), RIVAL_ROWS)
def test_a_learners_row_is_produced_from_its_model(
    tmp_path: Path, row: str, kind: str, loss: str, problem: str
) -> None:
    given = (rival_model(tmp_path, kind, loss, problem),)
    options = Options(limit=2, sizes=(20,), samples=8, rows=(row,), model_files=given, device=torch.device("cpu"))
    table1([problem], tmp_path, options)
    ((_, found),) = cells(tmp_path, "table1").items()
    assert float(found["objective"]) > 2
    assert (found["infeasible"], "†" in (tmp_path / "table1.txt").read_text().splitlines()[3]) == ("0", False)


def test_rivals_are_run_where_there_is_a_model_of_theirs(tmp_path: Path) -> None:
    """Each model fills the rows that are about it; the others stay as reported."""
    given = []
    for kind, loss in (("ean", "reinforce"), ("pointer", "supervised"), ("attention", "supervised")):
        given.append(rival_model(tmp_path, kind, loss))
    options = Options(limit=2, sizes=(20,), samples=8, model_files=tuple(given), device=torch.device("cpu"))
    table1(["tsp"], tmp_path, options)
    found = {method: row for (_, method), row in cells(tmp_path, "table1").items()}
    settings = {"EAN (greedy)": "greedy", "EAN (s. + 2OPT)": "sample:8+improve", "Vinyals 2015 (gr.)": "greedy"}
    assert {name: found[name]["setting"] for name in settings} == settings
    assert "ean-reinforce-tsp.safetensors" in found["EAN (sampling)"]["solver"]
    assert float(found["EAN (s. + 2OPT)"]["objective"]) <= float(found["EAN (sampling)"]["objective"])
    assert found["Bello 2016 (gr.)"]["objective"] == found["Nowak 2017"]["objective"] == ""
    assert "no model yet" in found["AM (greedy)"]["note"], "nobody takes a supervised model for the paper's"
    text = (tmp_path / "table1.txt").read_text()
    assert "† Nowak 2017" in text
    assert "† EAN" not in text


def test_a_solver_that_refuses_is_named_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(problem: Any, x: Any, solver: Any, **settings: Any) -> Any:
        if solver.name == "sweep+2opt":
            raise InputError("sweep: not today")
        return solve_instances(problem, x, solver, **settings)

    monkeypatch.setattr(reproduce.farm, "solve_instances", refuse)
    table1(["sdvrp"], tmp_path, Options(limit=2, sizes=(20,)))
    assert "Sweep: not run at n = 20: sweep: not today" in (tmp_path / "table1.txt").read_text()


def test_the_table_of_the_op_has_both_prize_distributions(tmp_path: Path) -> None:
    table_op(tmp_path, Options(limit=2, sizes=(20,)))
    found = cells(tmp_path, "table-op")
    assert float(found["OP (constant)", "Tsili (greedy)"]["objective"]) > 2
    assert found["OP (uniform)", "Tsili (sampling)"]["paper_gap_percent"] == ""


def test_limits_are_the_default_s_or_the_paper_s() -> None:
    ils = next(row for row in ROWS["pctsp"] if row.row == "ILS (C++)")
    gurobi = next(row for row in ROWS["op-dist"] if row.row == "Gurobi (10s)")
    assert seconds_for(ils, "pctsp", 20, paper_limits=False) == 0.3
    assert seconds_for(ils, "pctsp", 20, paper_limits=True) == pytest.approx(16 * 60 * 32 / 10_000)
    assert not_run(gurobi, 50, paper_limits=False) == "up to 10 s an instance: only with --paper-limits"
    assert not_run(gurobi, 20, paper_limits=False) is None  # proves those in a fraction of a second
    assert not_run(gurobi, 50, paper_limits=True) is None
    assert seconds_for(gurobi, "op-dist", 50, paper_limits=True) == 10


@pytest.mark.extra  # the estimate is for the rows of every solver
def test_the_estimate_for_100_instances_on_two_cores_is_below_forty_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduce.table, "ROWS", ROWS)
    monkeypatch.setenv("ROUTELEARN_WORKERS", "2")
    options = Options(limit=100)
    assert 300 < sum(expected_seconds(cell, options) for cell in plan(TABLE1, tmp_path, options)) < 2400


def test_every_row_of_the_paper_has_its_place() -> None:
    ours = {(TITLES[problem], row.row) for problem, rows in ROWS.items() for row in rows}
    assert {(fact.problem, fact.method) for fact in paper_results()} <= ours


def test_progress_tells_the_place_and_the_time_left(tmp_path: Path) -> None:
    labels = []

    @contextlib.contextmanager
    def watch(label: str, total: int) -> Iterator[Progress]:
        labels.append(label)
        yield lambda done: None

    table1(["sdvrp"], tmp_path, Options(limit=2, sizes=(20,)), watch=watch)
    count = len(labels)
    assert labels[0].startswith(f"SDVRP n=20: Savings (1 of {count}, about ")
    assert f"({count} of {count}, about " in labels[-1]


def test_what_is_stored_is_not_expected_again(tmp_path: Path) -> None:
    options = Options(limit=2, sizes=(20,))
    before = [expected_seconds(cell, options) for cell in plan(["sdvrp"], tmp_path, options)]
    table1(["sdvrp"], tmp_path, options)
    after = [expected_seconds(cell, options) for cell in plan(["sdvrp"], tmp_path, options)]
    assert sum(before) > 1
    assert sum(after) == 0


def test_bad_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="limit of 0 instances"):
        Options(limit=0)
    with pytest.raises(InputError, match="sizes are 30"):
        Options(sizes=(30,))
    with pytest.raises(InputError, match="12 samples; give a multiple of 8"):
        Options(samples=12)
    with pytest.raises(InputError, match="'op-unif' is not in this table; the choices are tsp"):
        table1(["op-unif"], tmp_path, Options(limit=2))
