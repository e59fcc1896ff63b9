"""`routelearn solve` and `routelearn improve`: files in, files and a table out, clear refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from routelearn.commands.attributes import with_attributes
from routelearn.commands.improve import improve
from routelearn.commands.solve import answer_names, solve, try_writing
from routelearn.errors import InputError

EXAMPLES = Path(__file__).parents[2] / "examples"


def call(command, *arguments: object, stdin: str | None = None):
    app = typer.Typer()
    app.command()(with_attributes(command))
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


def test_stops_with_a_penalty_are_visited_or_paid_for(tmp_path: Path) -> None:
    stops, out = tmp_path / "clients.csv", tmp_path / "day.json"
    stops.write_text("id,x,y,penalty\noffice,0,0,\nnear,3,4,12\nfar,30,40,40\ndear,0,-60,200\n")
    result = call(solve, stops, "--seconds", 0.1, "--out", out)
    assert "left out: far" in result.output
    document = json.loads(out.read_text())
    assert document["cost"] == pytest.approx(5 + np.hypot(3, 64) + 60 + 40)
    assert document["limits"] == {"min_prize": 0}
    again = call(improve, out, "--seconds", 0.1, "--out", "-")
    assert json.loads(again.stdout)["cost"] == pytest.approx(document["cost"])
    stops.write_text("x,y,penalty\n0,0,\n3,4,1\n30,40,2\n")
    result = call(solve, stops, "--seconds", 0.1, "--plot", tmp_path / "day.html", "--out", "-")
    document = json.loads(result.stdout)
    assert (document["cost"], document["routes"]) == (3, [])
    assert (tmp_path / "day.html").exists()


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


@pytest.mark.parametrize("stops", ["one", "one/*.csv", "one/a.csv"])
@pytest.mark.parametrize("folder", ["answers/", "2024.06.01/", "there", "there.json"])
def test_one_file_is_answered_in_a_folder_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stops: str, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "there", "there.json"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "a.csv").write_text("x,y\n0,0\n1,0\n")
    result = call(solve, stops, "--seconds", 0, "--out", folder, "--plot", folder)
    assert result.exit_code == 0, result.output
    assert "order" in result.output  # the whole report: there is but one
    assert sorted(path.name for path in Path(folder).iterdir()) == ["a.csv.html", "a.csv.json"]
    result = call(improve, Path(folder) / "a.csv.json", "--seconds", 0, "--out", "better/")
    assert result.exit_code == 0, result.output
    assert [path.name for path in Path("better").iterdir()] == ["a.csv.json"]


def test_several_files_and_a_folder_with_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell gives them for *.csv."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.csv").write_text("x,y\n0,0\n1,0\n")
    for _ in range(2):  # made, then there
        result = call(solve, "a.csv", "c.csv", "--seconds", 0, "--out", "2024.06.01/")
        assert result.exit_code == 0, result.output
        assert sorted(path.name for path in Path("2024.06.01").iterdir()) == ["a.csv.json", "c.csv.json"]
    for arguments, words in (
        (("--out", "2024.06.02"), "2 sets of stops need a folder, not a file; end its name in /"),
        (("--matrix", "m.txt"), "2 files of stops, but one matrix"),
        (("--out", ""), "--out: the name is empty"),
    ):
        with pytest.raises(InputError) as caught:
            call(solve, "a.csv", "c.csv", *arguments)
        assert words in str(caught.value)


def test_answers_of_files_of_one_name_do_not_overwrite_each_other(tmp_path: Path) -> None:
    for i, name in enumerate(("stops", "a/stops", "b/stops", "a/deep/other")):
        path = tmp_path / "in" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"x,y\n0,0\n{i + 1},0\n")
    for pattern, names in (
        ("*/stops.csv", {"a_stops.csv.json": 4, "b_stops.csv.json": 6}),
        ("**/*.csv", {"stops.csv.json": 2, "a_stops.csv.json": 4, "b_stops.csv.json": 6, "other.csv.json": 8}),
    ):
        out = tmp_path / f"out{len(names)}"
        result = call(solve, tmp_path / "in" / pattern, "--seconds", 0, "--out", out, "--plot", out)
        assert result.exit_code == 0, result.output
        assert {path.name: json.loads(path.read_text())["cost"] for path in out.glob("*.json")} == names
        assert len(list(out.glob("*.html"))) == len(names)


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        (["in/a.csv", "in/b.csv"], ["a.csv", "b.csv"]),
        (["x/a.csv", "y/a.csv", "y/b.csv"], ["x_a.csv", "y_a.csv", "b.csv"]),
        (["a b.csv", "a_b.csv"], ["a_b.csv", "a_b.csv_2"]),
        (["x/a.csv", "y/A.csv"], ["x_a.csv", "y_A.csv"]),
        (["x/y/a.csv", "x_y/a.csv", "x_y_a.csv"], ["x_y_a.csv", "x_y_a.csv_2", "x_y_a.csv_3"]),
        (["s.npz[0]", "s.npz[1]"], ["s.npz_0_", "s.npz_1_"]),
    ],
)
def test_names_of_answers_are_the_files_own_where_they_can_be(sources: list[str], names: list[str]) -> None:
    assert answer_names(sources) == names


@pytest.mark.parametrize(
    ("option", "name", "words"),
    [
        ("--out", "x.geojson", "has no lat and lon"),
        ("--out", "x.sol", "routes from a depot"),
        ("--out", "x" * 300 + ".json", "cannot be written"),
        ("--plot", "x" * 300 + ".html", "cannot be written"),
    ],
)
def test_targets_that_cannot_be_written_are_told_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, name: str, words: str
) -> None:
    (tmp_path / "plane.csv").write_text("id,x,y\na,0,0\nb,0,1\nc,1,1\n")
    (tmp_path / "a.json").write_text('{"routes": [["a", "b", "c"]]}')
    monkeypatch.setattr("routelearn.solving.solve_stops", lambda *_, **__: pytest.fail("searched first"))
    for call_it in (
        lambda: call(solve, tmp_path / "plane.csv", option, tmp_path / name),
        lambda: call(improve, tmp_path / "a.json", "--stops", tmp_path / "plane.csv", option, tmp_path / name),
    ):
        with pytest.raises(InputError) as caught:
            call_it()
        assert words in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "plane.csv"]


def test_a_folder_for_answers_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("")
    with pytest.raises(InputError, match="answers: cannot be written"):
        call(solve, EXAMPLES, "--out", tmp_path / "answers")


def test_a_target_that_is_there_keeps_its_content_until_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("old")
    try_writing("--out", tmp_path / "x.json", folder=False)
    assert (tmp_path / "x.json").read_text() == "old"


def test_split_deliveries_say_how_much_each_visit_brings() -> None:
    text = "id,x,y,demand\nhub,0,0,0\na,1,0,5\nb,2,0,2.5\n"
    result = call(solve, "-", "--problem", "sdvrp", "--capacity", 4, "--seconds", 0, stdin=text)
    brought = {name: [float(x) for x in re.findall(rf"\b{name} \((.+?)\)", result.output)] for name in "ab"}
    assert (sum(brought["a"]), sum(brought["b"])) == (5, 2.5)  # several splits are equally short
    assert len(brought["a"]) == 2
    result = call(solve, "-", "--capacity", 9, "--seconds", 0, stdin=text)
    assert "(" not in next(line for line in result.output.splitlines() if "b" in line and ">" in line)


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
        ([""], "the name of the file is empty"),
        ([str(EXAMPLES / "cities.csv"), "--seed", "-1"], "seed is -1"),
        (
            [str(EXAMPLES / "deliveries.csv"), "--capacity", "abc"],
            "deliveries.csv: the capacity given is 'abc', not a number",
        ),
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
        ("a.json", '{"routes": [{"stops": [1.5]}]}', "not a list of ids"),
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


def test_help_says_that_a_seed_repeats_no_search() -> None:
    for command in (solve, improve):
        assert "ends by the clock" in " ".join(call(command, "--help").output.replace("│", " ").split())


def test_improve_without_stops_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.sol").write_text("Route #1: 1 2\nCost 3\n")
    with pytest.raises(InputError, match="give --stops"):
        call(improve, tmp_path / "a.sol")
