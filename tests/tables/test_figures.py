"""Plots hold what they were given, as PNG and SVG; a figure that cannot be drawn says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from routelearn import models
from routelearn.data import generate
from routelearn.errors import InputError
from routelearn.plots.cvrp_examples import cvrp_examples
from routelearn.plots.generalisation import GENERAL, LEARNED, SEARCH, Series, generalisation
from routelearn.plots.learning_curves import Curve, learning_curves, rate_schedules, read_run
from routelearn.plots.saving import save
from routelearn.problems.base import take
from routelearn.reproduce import ablations, figures
from routelearn.reproduce.ablations import HIGH, baseline_runs, schedule_runs
from routelearn.reproduce.figures import Options, draw_figures
from routelearn.reproduce.running import silent
from routelearn.training.config import TrainConfig


def write_run(folder: Path, sizes: tuple[int, ...] = (20,), gap: bool = True, epochs: int = 4) -> Path:
    folder.mkdir(parents=True)
    lines = [{"epoch": 0, "instances": 100, "elapsed": 1.0, "cost": 5.0}]  # a look between two validations
    for epoch in range(1, epochs + 1):
        row: dict[str, Any] = {"epoch": epoch, "instances": 512 * epoch, "elapsed": 30.0 * epoch}
        row["validation"] = {str(n): 4.0 + n / 100 + 1 / epoch for n in sizes}
        row["gap"] = {str(n): 0.3 / epoch for n in sizes} if gap else {}
        lines.append(row)
    (folder / "config.json").write_text(TrainConfig(sizes=sizes, validation_instances=10).to_json())
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"epoch": 9, "val')
    return folder


def test_a_run_is_read_from_its_metrics(tmp_path: Path) -> None:
    small, large = read_run(write_run(tmp_path / "mixed", (20, 50)))
    assert (small.label, large.n) == ("mixed, n = 20", 50)
    assert small.epochs == [1, 2, 3, 4]
    assert small.time == [0.5, 1.0, 1.5, 2.0]
    assert small.gap[1] == pytest.approx(15.0)
    assert large.cost[0] == pytest.approx(5.5)


@pytest.mark.parametrize(("along", "last"), [("epochs", 4), ("instances", 2048), ("time", 2.0), (None, 4)])
def test_curves_are_drawn_along_the_axis_asked_for(tmp_path: Path, along: str | None, last: float) -> None:
    curves = [*read_run(write_run(tmp_path / "a"), "AM"), *read_run(write_run(tmp_path / "b"), "AM")]
    (axes,) = learning_curves(curves, along=along).axes
    assert [line.get_xdata()[-1] for line in axes.lines] == [last, last]
    assert axes.lines[0].get_color() == axes.lines[1].get_color()  # two seeds of one setting
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["AM"]
    assert "gap" in axes.get_ylabel()


@pytest.mark.parametrize(
    ("instances", "minutes", "epochs", "along", "label", "last"),
    [
        (15_936, 2.0, 0.25, None, "training instances", 15_936),
        (400_000, 2.0, 0.25, None, "training instances, thousands", 400),
        (6_400_000, 30.0, 100, None, "epochs", 100),
        (6_400_000, 30.0, 100, "instances", "training instances, millions", 6.4),
        (15_936, 0.5, 0.25, "time", "seconds of training", 30),
        (400_000, 20.0, 3, "time", "minutes of training", 20),
        (400_000, 600.0, 3, "time", "hours of training", 10),
    ],
)
def test_axis_and_unit_go_by_the_run(
    instances: int, minutes: float, epochs: float, along: str | None, label: str, last: float
) -> None:
    curve = Curve("a", 20, [epochs / 2, epochs], [instances / 2, instances], [minutes / 2, minutes], [5.0, 4.0], [])
    (axes,) = learning_curves([curve], along=along).axes
    assert axes.get_xlabel() == label
    assert axes.lines[0].get_xdata()[-1] == pytest.approx(last)


def test_without_reference_costs_the_cost_is_drawn_and_a_gap_refused(tmp_path: Path) -> None:
    curves = [*read_run(write_run(tmp_path / "a")), *read_run(write_run(tmp_path / "b", gap=False))]
    assert "cost" in learning_curves(curves).axes[0].get_ylabel()
    with pytest.raises(InputError, match="b: trained without reference costs"):
        learning_curves(curves, measure="gap")
    with pytest.raises(InputError, match="unknown axis 'weeks'; the choices are epochs"):
        learning_curves(curves, along="weeks")


def test_bad_runs_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: no metrics there"):
        read_run(tmp_path / "nowhere")
    (tmp_path / "text.jsonl").write_text("hello\nworld\n")
    with pytest.raises(InputError, match="line 1: not a line of metrics"):
        read_run(tmp_path / "text.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InputError, match="no validation yet"):
        read_run(tmp_path / "empty.jsonl")
    (tmp_path / "best.safetensors").write_bytes(b"\x93\xff\x00")
    with pytest.raises(InputError, match="not a run's metrics; name the folder"):
        read_run(tmp_path / "best.safetensors")
    two = write_run(tmp_path / "two") / "metrics.jsonl"
    two.write_text(two.read_text().replace('"validation": {"20": 4.7', '"validation": {"50": 4.7'))
    with pytest.raises(InputError, match=r"do not fit together \('20'\); were there two runs in it"):
        read_run(two)


def test_a_validation_within_an_epoch_stands_within_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_run(tmp_path / "run", epochs=2)
    rows = [{"step": step, "epoch": step // 2500, "instances": step, "elapsed": 1.0} for step in (1250, 2500, 3000)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row | {"validation": {"20": 4.0}}) + "\n" for row in rows))
    (curve,) = read_run(folder)
    assert curve.epochs == [0.5, 1.0, 1.2]
    monkeypatch.chdir(folder)
    assert read_run(Path("."))[0].label == "run"


def test_a_figure_needs_instances() -> None:
    with pytest.raises(InputError, match="a limit of 0 instances"):
        Options(limit=0)


def test_rates_have_a_panel_for_each_size(tmp_path: Path) -> None:
    curves = [*read_run(write_run(tmp_path / "a", (20,)), "1e-4"), *read_run(write_run(tmp_path / "b", (50,)), "1e-4")]
    titles = [axes.get_title() for axes in rate_schedules(curves).axes]
    assert [title[:5] for title in titles] == ["TSP20", "TSP50"]


def test_generalisation_draws_kinds_differently_and_marks_train_sizes() -> None:
    series = [
        Series("AM", LEARNED, {5: 0.1, 20: 0.2}, (20,)),
        Series("NN", GENERAL, {5: 10.0, 20: 17.0}),
        Series("2OPT", SEARCH, {5: 1.0, 20: 2.0}),
    ]
    (axes,) = generalisation(series).axes
    styles = {line.get_label(): line.get_linestyle() for line in axes.lines}
    assert (styles["AM"], styles["NN"], styles["2OPT"]) == ("-", "--", "None")
    assert any(list(line.get_xdata()) == [20, 20] for line in axes.lines)


def test_examples_tell_stops_load_and_length_of_every_route() -> None:
    x = take(generate("cvrp", 4, count=2), slice(0, 2))
    demand = x.demand[0].tolist()
    tours = torch.tensor([[[1, 2, 0, 3, 4]], [[1, 0, 2, 0, 3]]])
    tours = torch.cat((tours, torch.tensor([[[0, 0]], [[0, 4]]])), 2)
    figure = cvrp_examples(x, tours)
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert len(texts) == 2
    assert texts[0].startswith(f"R1, 2 stops, {demand[1] + demand[2]}/{int(x.capacity[0])}, ")
    assert len(figure.axes[1].get_legend().get_texts()) == 4


def test_png_and_svg_are_written_and_the_same_figure_is_the_same_file(tmp_path: Path) -> None:
    figure = generalisation([Series("a", GENERAL, {5: 1.0, 10: 2.0})])
    png, svg = save(figure, tmp_path / "new" / "v1.2")
    assert png.name == "v1.2.png"
    assert png.read_bytes().startswith(b"\x89PNG")
    again = save(generalisation([Series("a", GENERAL, {5: 1.0, 10: 2.0})]), tmp_path / "again")[1]
    assert "<svg" in svg.read_text()
    assert svg.read_text() == again.read_text()


def test_all_figures_are_drawn_or_say_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablations, "REFERENCES", ("farthest-insertion+2opt",))
    monkeypatch.setattr(ablations, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(models, "shipped", dict)
    monkeypatch.setattr(figures, "EXAMPLES", 1)
    for run, rate in schedule_runs(20).items():
        if rate != HIGH:  # those are of figure 3, too
            write_run(tmp_path / "ablations" / run.folder)
    drawn = {one.name: one for one in draw_figures(tmp_path, Options(limit=4, sizes=(5, 10)))}
    assert list(drawn) == list(figures.FIGURES)
    assert drawn["figure3"].paths == []
    assert "16 of 16 runs are missing" in drawn["figure3"].note
    assert "10 of 16 runs are missing" in drawn["figure6"].note
    assert "no TSP model yet" in drawn["figure5"].note
    gaps = json.loads((tmp_path / "figure5-generalisation.json").read_text())
    assert gaps["Nearest Neighbor"]["10"] > 0
    for one in drawn.values():
        assert all(path.is_file() for path in one.paths)


def test_curves_come_from_kept_runs_with_gaps_to_optimal_tours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablations, "REFERENCES", ("farthest-insertion+2opt",))
    monkeypatch.setattr(ablations, "KEPT", tmp_path / "kept")
    runs = baseline_runs((1234,))
    for run in list(runs)[:2]:
        write_run(tmp_path / "kept" / run.folder, gap=False)
    curves, missing = figures.curves_of(tmp_path / "out", runs, silent)
    assert [curve.label for curve in curves] == ["AM / Exponential", "AM / Critic"]
    assert missing.startswith("6 of 8 runs are missing")
    optimum = ablations.optimal_mean(20, 4321, 10, tmp_path / "out", silent)
    assert optimum is not None
    assert curves[0].gap[0] == pytest.approx(100 * (5.2 / optimum - 1))


def test_one_figure_alone_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "EXAMPLES", 1)
    monkeypatch.setattr(models, "load_model", lambda *_, **__: (_ for _ in ()).throw(InputError("none ships")))
    (drawn,) = draw_figures(tmp_path, Options(), only=("figure7",))
    assert [path.name for path in drawn.paths] == ["figure7-cvrp-examples.png", "figure7-cvrp-examples.svg"]
    assert "drawn with random-savings+2opt" in drawn.note
