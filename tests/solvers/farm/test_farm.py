"""solve_instances: judged by the problem, resumable, the same whatever the number of cores or sittings."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from paper_problems import PAPER

from routelearn.data import generate
from routelearn.errors import InputError
from routelearn.evaluation.referee import judge
from routelearn.problems import get
from routelearn.problems.base import take
from routelearn.solvers import get as get_solver
from routelearn.solvers.farm.running import solve_instances


def instances(problem: str, count: int, n: int = 8) -> Any:
    return generate(problem, n, count=count)


@dataclass
class Fake:
    """Answers TSP rows in the order of the nodes; `bad` rows (by first coordinate) get a broken or no tour."""

    name: str = "fake"
    problems: frozenset[str] = frozenset({"tsp"})
    licence: str = "MIT"
    anytime: bool = False
    exact: bool = False
    chunk_rows: int = 1
    broken: tuple[float, ...] = ()
    silent: tuple[float, ...] = ()
    stop_after: int | None = None
    calls: list[int] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)

    def unavailable(self) -> str | None:
        return None

    def solve(self, problem: Any, x: Any, *, seconds: float, seed: int = 0) -> torch.Tensor:
        if self.stop_after is not None and len(self.calls) > self.stop_after:
            raise KeyboardInterrupt
        self.calls.append(len(x.xy))
        self.seeds.append(seed)
        tours = torch.arange(x.xy.shape[1]).repeat(len(x.xy), 1, 1)
        for row, mark in enumerate(x.xy[:, 0, 0].tolist()):
            if mark in self.broken:
                tours[row, 0, 1] = 0
            if mark in self.silent:
                tours[row] = -1
        return tours


def marks(x: Any, *rows: int) -> tuple[float, ...]:
    return tuple(x.xy[list(rows), 0, 0].tolist())


def test_costs_are_the_referee_s_in_double_precision() -> None:
    x = instances("tsp", 5)
    result = solve_instances(get("tsp"), x, get_solver("farthest-insertion"), seconds=1)
    exact = x._replace(xy=x.xy.double())
    assert result.costs.dtype == torch.float64
    assert torch.equal(result.costs, get("tsp").cost(exact, result.tours)[:, 0])
    assert result.infeasible == 0
    assert result.seconds > 0


@pytest.mark.parametrize("chunk_rows", [1, 3])
def test_a_broken_tour_and_a_missing_one_are_counted_and_have_no_cost(chunk_rows: int) -> None:
    x = instances("tsp", 7)
    solver = Fake(chunk_rows=chunk_rows, broken=marks(x, 2), silent=marks(x, 4))
    result = solve_instances(get("tsp"), x, solver, seconds=1)
    assert result.costs.isnan().nonzero()[:, 0].tolist() == [2, 4]
    assert result.infeasible == 2


def test_judging_tells_good_rows_from_bad_ones_in_every_block() -> None:
    x = instances("tsp", 600)
    tours = torch.arange(8).repeat(600, 1, 1)
    tours[[0, 300, 599], 0, 0] = 7
    assert judge(get("tsp"), x, tours).isnan().nonzero()[:, 0].tolist() == [0, 300, 599]


def test_answers_do_not_depend_on_the_number_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    x = instances("tsp", 100, n=12)
    found = []
    for workers in ("1", "3"):
        monkeypatch.setenv("ROUTELEARN_WORKERS", workers)
        found.append(solve_instances(get("tsp"), x, get_solver("random-insertion"), seconds=1, seed=3).tours)
    assert torch.equal(found[0], found[1])


def test_every_block_has_its_own_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTELEARN_WORKERS", "1")
    solver = Fake()
    solve_instances(get("tsp"), instances("tsp", 6), solver, seconds=1, seed=5)
    assert len(set(solver.seeds[1:])) == 6  # the first call is the warm-up


def test_a_stopped_evaluation_resumes_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTELEARN_WORKERS", "1")
    x, store = instances("tsp", 10), tmp_path / "deep" / "results.jsonl"
    with pytest.raises(KeyboardInterrupt):
        solve_instances(get("tsp"), x, Fake(stop_after=4), seconds=1, store=store)
    kept = len(store.read_text().splitlines()) - 1
    assert 0 < kept < 10
    solver, heard = Fake(), []
    result = solve_instances(get("tsp"), x, solver, seconds=1, store=store, progress=heard.append)
    assert len(solver.calls) == 10 - kept + 1  # and the warm-up
    assert sum(heard) == 10
    whole = solve_instances(get("tsp"), x, Fake(), seconds=1)
    assert torch.equal(result.tours, whole.tours)
    again = Fake()
    solve_instances(get("tsp"), x, again, seconds=1, store=store)
    assert again.calls == []


def test_a_store_cut_off_at_any_byte_is_still_good(tmp_path: Path) -> None:
    x, store = instances("tsp", 3, n=4), tmp_path / "results.jsonl"
    whole = solve_instances(get("tsp"), x, Fake(), seconds=1, store=store)
    content = store.read_bytes()
    for length in range(0, len(content), 7):
        store.write_bytes(content[:length])
        result = solve_instances(get("tsp"), x, Fake(), seconds=1, store=store)
        assert torch.equal(result.costs, whole.costs)
        records = [json.loads(line) for line in store.read_text().splitlines()]
        assert sorted(record["first"] for record in records[1:]) == [0, 1, 2]


@pytest.mark.parametrize("change", ["seconds", "seed", "solver", "data", "count"])
def test_a_store_of_other_settings_is_refused_and_left_alone(tmp_path: Path, change: str) -> None:
    x, store = instances("tsp", 4), tmp_path / "results.jsonl"
    solve_instances(get("tsp"), x, Fake(), seconds=1, seed=1, store=store)
    before = store.read_bytes()
    solver = Fake(name="other") if change == "solver" else Fake()
    other = {"data": x._replace(xy=x.xy + 0.1), "count": take(x, slice(0, 3))}.get(change, x)
    with pytest.raises(InputError, match=r"results\.jsonl: holds results of"):
        solve_instances(
            get("tsp"), other, solver, seconds=2 if change == "seconds" else 1, seed=2 if change == "seed" else 1,
            store=store,
        )  # fmt: skip
    assert store.read_bytes() == before


@pytest.mark.parametrize("content", ["hello", "hello\n", '{"a": 1}\n', "[1, 2]\n", '{"a": 1}'])
def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    store = tmp_path / "mine.txt"
    store.write_text(content)
    with pytest.raises(InputError, match=r"mine\.txt: not a file of stored results"):
        solve_instances(get("tsp"), instances("tsp", 2), Fake(), seconds=1, store=store)
    assert store.read_text() == content


def test_two_evaluations_cannot_write_one_store(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="no file locks on this system")
    x, store = instances("tsp", 2), tmp_path / "results.jsonl"

    def meddle(count: int) -> None:
        with pytest.raises(InputError, match="another evaluation is writing"):
            solve_instances(get("tsp"), x, Fake(), seconds=1, store=store)

    solve_instances(get("tsp"), x, Fake(), seconds=1, store=store, progress=meddle)


def test_real_prizes_stay_hidden_until_visited() -> None:
    class Peeking(Fake):
        def solve_online(self, problem: Any, x: Any, reveal: Any, *, seconds: float, seed: int = 0) -> torch.Tensor:
            assert x.real_prize is None
            for node in range(1, x.xy.shape[1]):
                assert reveal.visit(0, node) >= 0
            return torch.tensor([[reveal.visits[0]]])

    x = instances("spctsp", 3)
    result = solve_instances(get("spctsp"), x, Peeking(problems=frozenset({"spctsp"})), seconds=1)
    assert result.infeasible == 0


@pytest.mark.parametrize("name", PAPER)
def test_every_problem_has_a_solver_that_runs_through_the_engine(name: str) -> None:
    solver = {
        "tsp": "nearest-neighbour", "cvrp": "savings", "sdvrp": "sweep", "pctsp": "pctsp-ils", "spctsp": "reopt-half",
    }.get(name, "tsiligirides")  # fmt: skip
    result = solve_instances(get(name), instances(name, 3), get_solver(solver), seconds=0.02)
    assert result.infeasible == 0
    assert bool(result.costs.isfinite().all())


def test_bad_requests_are_named() -> None:
    x = instances("tsp", 2)
    with pytest.raises(InputError, match="unknown place 'spark' to run on; the choices are local, ray"):
        solve_instances(get("tsp"), x, Fake(), seconds=1, on="spark")
    with pytest.raises(InputError, match="savings does not solve tsp"):
        solve_instances(get("tsp"), x, get_solver("savings"), seconds=1)
    with pytest.raises(InputError, match="must be more than 0"):
        solve_instances(get("tsp"), x, Fake(), seconds=0)
