"""The table of ablations: which runs there are, one of them trained on a few batches, resumed and refused."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from routelearn import ablations
from routelearn.ablations import FULL_INSTANCES, HIGH, LOW, Options, Run, all_runs, rows, table_ablations
from routelearn.config import TrainConfig
from routelearn.errors import InputError
from routelearn.tables import package_csv

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


def test_the_runs_are_those_of_the_paper() -> None:
    table = rows((20, 50, 100))
    assert list(table) == list(dict.fromkeys(fact["row"] for fact in package_csv("paper_ablations.csv")))
    assert table["TSP20"] == table["N = 3"] == table["AM / Rollout"]
    assert set(table["TSP100"]) == {(LOW, 1234), (LOW, 1235)}
    folders = [run.folder for run in all_runs((20,))]
    assert len(folders) == len(set(folders)) == 48  # 44 of the table, 4 more for figure 6


def test_a_full_run_is_the_paper_s_and_a_shorter_one_keeps_its_epochs() -> None:
    full = Run("pointer", 20, 3, "critic", HIGH, 1235).config(Options(instances=FULL_INSTANCES))
    assert (full.epochs, full.epoch_steps, full.rate, full.schedule, full.decay) == (100, 2500, 1e-3, "decay", 0.96)
    assert (full.policy, full.baseline, full.seed) == ("pointer", "critic", 1235)
    short = SMALL.config(Options(instances=6_400_000))
    assert (short.epochs, short.epoch_steps, short.layers) == (100, 125, 0)


def test_a_run_is_trained_measured_and_tabled_once(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_ablations(tmp_path, options, only=[SMALL])
    result = json.loads((tmp_path / "ablations" / SMALL.folder / "result.json").read_text())
    assert result["infeasible"] == 0
    assert result["gap"] > 0
    with open(tmp_path / "table-ablations.csv", newline="") as file:
        row = next(
            r for r in csv.DictReader(file) if (r["row"], r["rate"], r["seed"]) == ("AM / Exponential", HIGH, "1234")
        )
    assert row["objective"] == ""  # that row has three layers, not none
    text = (tmp_path / "table-ablations.txt").read_text()
    assert "not trained yet: tsp20-attention-3layers-rollout-1e-4-seed1234" in text
    assert "left out: TSP50, TSP100" in text
    monkeypatch.setattr(ablations, "train", lambda *_, **__: pytest.fail("trained again"))
    table_ablations(tmp_path, options, only=[SMALL])


def test_a_stopped_run_goes_on_from_its_checkpoint(
    tmp_path: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    whole = ablations.train

    def stopping(config: TrainConfig, out: Path, **settings: object) -> dict[str, object]:
        asked.append(bool(settings["resume"]))
        last = whole(config, out, **settings)  # type: ignore[arg-type]
        return {**last, "stopped": len(asked) == 1}

    monkeypatch.setattr(ablations, "train", stopping)
    with pytest.raises(KeyboardInterrupt):
        table_ablations(tmp_path, options, only=[SMALL])
    table_ablations(tmp_path, options, only=[SMALL])
    assert asked == [False, True]


def test_a_folder_with_other_settings_is_refused(tmp_path: Path, options: Options) -> None:
    folder = tmp_path / "ablations" / SMALL.folder
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(TrainConfig(problem="tsp", rate=0.5).to_json())
    with pytest.raises(InputError, match="holds a run with other settings"):
        table_ablations(tmp_path, options, only=[SMALL])


def test_bad_options_are_named() -> None:
    with pytest.raises(InputError, match="a batch alone has 512"):
        Options(instances=100)
    with pytest.raises(InputError, match="sizes are 30"):
        Options(sizes=(30,))
