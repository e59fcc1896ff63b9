"""Runs of the ablations and figure 3: which there are, one trained on a few batches, stopped, resumed and refused."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from routelearn.errors import InputError
from routelearn.reproduce import ablations
from routelearn.reproduce.ablations import (
    FULL_INSTANCES,
    HIGH,
    LOW,
    Options,
    Run,
    all_runs,
    baseline_runs,
    finished,
    rows,
    table_ablations,
    train_runs,
)
from routelearn.reproduce.tables import package_csv
from routelearn.training.config import TrainConfig
from routelearn.training.result import TrainingResult

SMALL = Run("attention", 20, 0, "exponential", HIGH, 1234)


@pytest.fixture
def options() -> Options:
    return Options(instances=1024, limit=20, device=torch.device("cpu"))


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configurations as they are, with an eighth of the batch: the numbers of epochs and steps stay."""
    whole = Run.config
    monkeypatch.setattr(Run, "config", lambda run, options: replace(whole(run, options), batch=(64,)))
    monkeypatch.setattr(ablations, "REFERENCES", ("farthest-insertion",))
    monkeypatch.setattr(ablations, "KEPT", Path("nowhere"))


def test_the_runs_are_those_of_the_paper() -> None:
    table = rows((20, 50, 100))
    assert list(table) == list(dict.fromkeys(fact["row"] for fact in package_csv("paper_ablations.csv")))
    assert table["TSP20"] == table["N = 3"] == table["AM / Rollout"]
    assert set(table["TSP100"]) == {(LOW, 1234), (LOW, 1235)}
    folders = [run.folder for run in all_runs((20,))]
    assert len(folders) == len(set(folders)) == 44
    assert {run.seed for run in all_runs((20,), (1235,))} == {1235}


def test_figure_3_has_the_paper_s_baselines_and_two_more_for_the_attention_model() -> None:
    labels = list(baseline_runs((1234,)).values())
    assert [label for label in labels if label.startswith("PN")] == ["PN / Exponential", "PN / Critic", "PN / Rollout"]
    assert {"AM / Rollout", "AM / Shared, 4 solutions", "AM / None"} <= set(labels)
    for run in baseline_runs():
        assert run.config(Options()).baseline == run.baseline  # every configuration is valid
    assert [run.seed for run in baseline_runs()] == 8 * [1234] + 8 * [1235]


def test_a_full_run_is_the_paper_s_and_a_shorter_one_keeps_its_epochs() -> None:
    full = Run("pointer", 20, 3, "critic", HIGH, 1235).config(Options(instances=FULL_INSTANCES))
    assert (full.epochs, full.epoch_steps, full.rate, full.schedule, full.decay) == (100, 2500, 1e-3, "decay", 0.96)
    assert (full.policy, full.baseline, full.seed) == ("pointer", "critic", 1235)
    short = SMALL.config(Options(instances=6_400_000))
    assert (short.epochs, short.epoch_steps, short.layers) == (100, 125, 0)


def test_a_run_is_trained_measured_and_tabled_once(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train_runs([SMALL], options, tmp_path) == []
    result = json.loads((tmp_path / "ablations" / SMALL.folder / "result.json").read_text())
    assert result["infeasible"] == 0
    table_ablations(tmp_path, options)
    with open(tmp_path / "table-ablations.csv", newline="") as file:
        cells = {(r["row"], r["rate"], r["seed"]): r for r in csv.DictReader(file)}
    assert cells["AM / Exponential", HIGH, "1234"]["objective"] == ""  # that row has three layers, not none
    text = (tmp_path / "table-ablations.txt").read_text()
    assert "not trained yet (--train does): tsp20-attention-3layers-rollout-1e-4-seed1234" in text
    assert "left out: TSP50, TSP100" in text
    monkeypatch.setattr(ablations, "train", lambda *_, **__: pytest.fail("trained again"))
    train_runs([SMALL], options, tmp_path)


def test_results_stand_in_the_table_with_their_gap(tmp_path: Path, options: Options) -> None:
    run = Run("attention", 20, 3, "exponential", HIGH, 1234)
    folder = tmp_path / "ablations" / run.folder
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(run.config(options).to_json())
    result = {"instances": 1024, "objective": 5.0, "epoch_seconds": 2.0, "hardware": "a desk"}
    (folder / "result.json").write_text(json.dumps(result))
    table_ablations(tmp_path, options)
    with open(tmp_path / "table-ablations.csv", newline="") as file:
        cells = {(r["row"], r["rate"], r["seed"]): r for r in csv.DictReader(file)}
    found = cells["AM / Exponential", HIGH, "1234"]
    assert (found["objective"], found["epoch_seconds"]) == ("5.000000", "2.000")
    assert 20 < float(found["gap_percent"]) < 40  # tours of 20 nodes measure about 3.9
    assert "Trained on a desk." in (tmp_path / "table-ablations.txt").read_text()


def test_a_kept_run_counts_where_its_settings_are_those_asked_for(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablations, "KEPT", tmp_path / "kept")
    folder = tmp_path / "kept" / SMALL.folder
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(replace(SMALL.config(options), minutes=3.0).to_json())
    (folder / "result.json").write_text('{"objective": 4.0}')
    assert finished(SMALL, options, tmp_path) == {"objective": 4.0}
    assert finished(SMALL, replace(options, limit=21), tmp_path) is None


def test_a_run_that_a_signal_stops_goes_on_from_its_checkpoint(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    whole = ablations.train

    def stopping(config: TrainConfig, out: Path, **settings: object) -> TrainingResult:
        asked.append(bool(settings["resume"]))
        last = whole(config, out, **settings)  # type: ignore[arg-type]
        return replace(last, stopped=len(asked) == 1)

    monkeypatch.setattr(ablations, "train", stopping)
    with pytest.raises(KeyboardInterrupt):
        train_runs([SMALL], options, tmp_path)
    assert train_runs([SMALL], options, tmp_path) == []
    assert asked == [False, True]


def test_when_the_minutes_are_over_runs_are_left_and_go_on_later(tmp_path: Path, options: Options) -> None:
    long = replace(options, instances=512 * 200)
    other = replace(SMALL, seed=1235)
    left = train_runs([SMALL, other], replace(long, minutes=0.001), tmp_path)
    assert left == [SMALL, other]
    folder = tmp_path / "ablations" / SMALL.folder
    before = len((folder / "metrics.jsonl").read_text().splitlines())
    assert not (folder / "result.json").exists()
    assert not (tmp_path / "ablations" / other.folder).exists()
    assert train_runs([SMALL], long, tmp_path) == []
    assert len((folder / "metrics.jsonl").read_text().splitlines()) > before  # it went on in the same file
    assert json.loads((folder / "config.json").read_text())["minutes"] == 0


def test_a_folder_with_other_settings_is_refused(tmp_path: Path, options: Options) -> None:
    folder = tmp_path / "ablations" / SMALL.folder
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(TrainConfig(problem="tsp", rate=0.5).to_json())
    with pytest.raises(InputError, match="holds a run with other settings"):
        train_runs([SMALL], options, tmp_path)


def test_bad_options_are_named() -> None:
    with pytest.raises(InputError, match="one batch has 512"):
        Options(instances=100)
    with pytest.raises(InputError, match="sizes are 30"):
        Options(sizes=(30,))
    with pytest.raises(InputError, match="seeds are 7"):
        Options(seeds=(7,))
