"""`routelearn solve` and `routelearn improve`: files in, files and a table out, clear refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from routelearn.commands.improve import improve
from routelearn.commands.solve import solve
from routelearn.errors import InputError

EXAMPLES = Path(__file__).parents[2] / "examples"


def call(command, *arguments: object, stdin: str | None = None):
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin, catch_exceptions=True)
    if isinstance(result.exception, InputError):
        raise result.exception
    return result


def test_cities_in_kilometres(tmp_path: Path) -> None:
    out = tmp_path / "tour.json"
    result = call(solve, EXAMPLES / "cities.csv", "--seconds", 0.1, "--out", out)
    assert result.exit_code == 0, result.output
    assert "Amsterdam" in result.output
    assert "km" in result.output
    document = json.loads(out.read_text())
    assert document["problem"] == "tsp"
    assert document["cost"] < 1015
    assert document["seconds"] < 2
    assert len(document["routes"][0]["stops"]) == 24
    assert document["history"][-1][1] == pytest.approx(document["cost"])


def test_deliveries_keep_the_capacity_and_can_be_improved(tmp_path: Path) -> None:
    out, sol = tmp_path / "round.json", tmp_path / "round.sol"
    call(solve, EXAMPLES / "deliveries.csv", "--capacity", 12, "--seconds", 0, "--out", out)
    first = json.loads(out.read_text())
    assert all(route["load"] <= 12 for route in first["routes"])
    result = call(improve, out, "--seconds", 0.1, "--out", sol)
    assert result.exit_code == 0, result.output
    again = call(improve, sol, "--stops", EXAMPLES / "deliveries.csv", "--capacity", 12, "--seconds", 0, "--out", "-")
    better = json.loads(again.stdout)
    assert better["cost"] < first["cost"]
    assert better["limits"] == {"capacity": 12.0}


def test_a_tourist_day_within_its_length(tmp_path: Path) -> None:
    out = tmp_path / "day.geojson"
    result = call(solve, EXAMPLES / "tourist_day.csv", "--max-length", 15, "--seconds", 0.1, "--out", out)
    assert "left out" in result.output
    features = json.loads(out.read_text())["features"]
    assert sum(f["properties"]["length"] for f in features if f["geometry"]["type"] == "LineString") <= 15 * 1.00001


def test_watch_tells_of_every_new_best() -> None:
    result = call(solve, EXAMPLES / "deliveries.csv", "--capacity", 12, "--seconds", 0.1, "--watch", "--out", "-")
    lines = [line.split() for line in result.stderr.splitlines() if " s  " in line]
    costs = [float(words[2]) for words in lines if words[-1] in ("heuristic", "policy", "search", "rebuild")]
    assert len(costs) >= 2
    assert costs == sorted(costs, reverse=True)
    assert json.loads(result.stdout)["problem"] == "cvrp"


def test_standard_input_and_a_matrix(tmp_path: Path) -> None:
    result = call(solve, "-", "--seconds", 0, "--out", "-", stdin="id,x,y\na,0,0\nb,0,1\nc,1,1\nd,1,0\n")
    assert json.loads(result.stdout)["cost"] == pytest.approx(4)
    times = tmp_path / "times.txt"
    times.write_text("0 1 9\n9 0 1\n1 9 0\n")
    result = call(solve, "--matrix", times, "--seconds", 0.05, "--out", "-")
    assert json.loads(result.stdout)["cost"] == 3
    assert json.loads(result.stdout)["routes"][0]["stops"] == [1, 2, 3]


def test_a_folder_is_solved_file_by_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("monday", "tuesday"):
        rows = "\n".join(f"{x},{y}" for x, y in rng.random((6, 2)))
        (tmp_path / f"{name}.csv").write_text(f"x,y\n{rows}\n")
    out, pictures = tmp_path / "out", tmp_path / "pictures"
    result = call(solve, tmp_path, "--seconds", 0, "--out", out, "--plot", pictures)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == ["monday.csv.json", "tuesday.csv.json"]
    assert sorted(path.name for path in pictures.iterdir()) == ["monday.csv.html", "tuesday.csv.html"]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "html"])
def test_pictures(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"picture.{suffix}"
    call(solve, EXAMPLES / "deliveries.csv", "--capacity", 12, "--seconds", 0, "--plot", path)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}[suffix]
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.csv"], "no such file"),
        ([str(EXAMPLES / "deliveries.csv")], "needs the vehicle's capacity"),
        ([str(EXAMPLES / "deliveries.csv"), "--capacity", "3"], "more than the capacity"),
        ([str(EXAMPLES / "cities.csv"), "--out", "a.docx"], "must end in"),
        ([str(EXAMPLES / "cities.csv"), "--plot", "a.docx"], "must end in"),
        ([str(EXAMPLES / "cities.csv"), "--out", "no/such/folder/a.json"], "there is no folder"),
        ([str(EXAMPLES), "--out", "a.json"], "need a folder"),
        ([str(EXAMPLES / "cities.csv"), "--seconds", "-1"], "seconds is -1"),
        ([str(EXAMPLES / "cities.csv"), "--capacity", "3"], "no demand"),
        ([], "no stops"),
    ],
)
def test_refusals_are_one_line(arguments: list[str], words: str) -> None:
    with pytest.raises(InputError) as caught:
        call(solve, *arguments)
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", "{", "not JSON"),
        ("a.json", "[]", "no list of routes"),
        ("a.json", '{"routes": [{"stops": [1.5]}]}', "no list of ids"),
        ("a.json", '{"routes": [["Amsterdam"]]}', "1 of 24 stops"),
        ("a.json", '{"routes": [["Atlantis"]]}', "'Atlantis', which is not among the stops"),
        ("a.sol", "nothing", "no line 'Route #1"),
        ("a.csv", "x,y\n1,2\n", "columns route, position and id"),
        ("a.txt", "x", "ends in .json, .csv or .sol"),
    ],
)
def test_solutions_that_are_none(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        call(improve, tmp_path / name, "--stops", EXAMPLES / "cities.csv", "--seconds", 0)
    assert words in str(caught.value)


def test_improve_reads_what_solve_writes_in_every_format(tmp_path: Path) -> None:
    stops = EXAMPLES / "deliveries.csv"
    for suffix in ("json", "csv", "sol"):
        path = tmp_path / f"a.{suffix}"
        call(solve, stops, "--capacity", 12, "--seconds", 0.05, "--out", path)
        result = call(improve, path, "--stops", stops, "--capacity", 12, "--seconds", 0, "--out", "-")
        assert json.loads(result.stdout)["history"][0][2] == "given"


def test_improve_without_stops_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.sol").write_text("Route #1: 1 2\nCost 3\n")
    with pytest.raises(InputError, match="give --stops"):
        call(improve, tmp_path / "a.sol")
