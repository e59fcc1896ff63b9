"""`routelearn improve` measures a solution as it was measured before, or says that it does not."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from test_solve_command import EXAMPLES, call

from routelearn.commands.improve import improve
from routelearn.commands.solve import solve
from routelearn.data import generate, npz
from routelearn.errors import InputError
from routelearn.solving.resume import read_routes

STOPS = "id,x,y\na,0,0\nb,3,4\nc,6,0\nd,3,-4\n"
TIMES = "0 2 9 4\n1 0 6 4\n7 3 0 2\n5 5 5 0\n"  # minutes, not the lengths of the places
TSP = "TYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 3 4.01\n3 6 0\n4 3 -4\nEOF\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("stops.csv", STOPS), ("times.txt", TIMES), ("t.tsp", TSP)):
        (tmp_path / name).write_text(text)
    return tmp_path


def printed(*arguments: object) -> dict:
    result = call(improve, *arguments, "--seconds", 0, "--out", "-")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    "options", [("stops.csv", "--matrix", "times.txt"), ("--matrix", "times.txt"), ("t.tsp", "--no-rounded")]
)
def test_a_solution_is_measured_as_it_was_solved(files: Path, options: tuple[str, ...]) -> None:
    call(solve, *options, "--seconds", 0.05, "--out", "m.json")
    before = json.loads((files / "m.json").read_text())
    after = printed("m.json")
    assert after["history"][0][1:] == [before["cost"], "given"]
    assert after["cost"] == before["cost"]
    assert {name: after.get(name) for name in ("matrix", "rounded")} == {
        name: before.get(name) for name in ("matrix", "rounded")
    }
    assert after["notes"] == []


def test_solutions_say_how_lengths_were_measured_where_a_file_alone_does_not(files: Path) -> None:
    for options, matrix, rounded in (
        (("stops.csv",), None, None),
        (("stops.csv", "--no-rounded"), None, None),  # nothing to round
        (("t.tsp",), None, None),
        (("t.tsp", "--no-rounded"), None, False),
        (("stops.csv", "--matrix", "times.txt"), "times.txt", None),
    ):
        document = json.loads(call(solve, *options, "--seconds", 0, "--out", "-").stdout)
        assert (document.get("matrix"), document.get("rounded")) == (matrix, rounded)


def test_a_matrix_that_is_gone_is_told(files: Path) -> None:
    call(solve, "stops.csv", "--matrix", "times.txt", "--seconds", 0, "--out", "m.json")
    (files / "times.txt").rename(files / "moved.txt")
    with pytest.raises(InputError, match=r"m\.json: was measured by the matrix 'times\.txt'.* give --matrix"):
        printed("m.json")
    document = printed("m.json", "--matrix", "moved.txt")
    assert (document["cost"], document["matrix"], document["notes"]) == (13, "moved.txt", [])


def test_a_cost_that_does_not_come_out_is_refused(files: Path) -> None:
    call(solve, "stops.csv", "--seconds", 0, "--out", "m.json")
    (files / "stops.csv").write_text(STOPS.replace("6,0", "9,0"))
    with pytest.raises(InputError) as caught:
        printed("m.json")
    assert "m.json: the cost is 20 in the file, but" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    note = printed("m.json", "--stops", "stops.csv")["notes"]
    assert len(note) == 1
    assert "the cost is 20 in the file, but" in note[0]


def test_the_length_of_a_prize_tour_must_come_out_too(files: Path) -> None:
    """Its cost is a prize, which no lengths change."""
    call(solve, "stops.csv", "--max-length", 100, "--seconds", 0, "--out", "m.json")
    (files / "stops.csv").write_text(STOPS.replace("6,0", "9,0"))
    with pytest.raises(InputError, match=r"the length is 20 in the file, but"):
        printed("m.json")


def test_a_sol_of_other_lengths_is_noted(files: Path) -> None:
    vrp = TSP.replace("TYPE: TSP", "TYPE: CVRP\nCAPACITY: 9").replace("EOF", "DEMAND_SECTION\n1 0\n2 1\n3 1\n4 1\nEOF")
    (files / "t.vrp").write_text(vrp)
    (files / "a.sol").write_text("Route #1: 1 2 3\nCost 20.5\n")
    notes = printed("a.sol", "--stops", "t.vrp")["notes"]
    assert notes == ["a.sol: the length is 20.5 in the file, but 20 by these stops and lengths"]
    (files / "a.sol").write_text("Route #1: 1 2 3\nCost 20\n")
    assert printed("a.sol", "--stops", "t.vrp")["notes"] == []


def test_stops_that_are_gone_are_named(files: Path) -> None:
    call(solve, "stops.csv", "--seconds", 0, "--out", "m.json")
    (files / "stops.csv").unlink()
    with pytest.raises(InputError, match=r"its stops are from 'stops\.csv', which is not a file here; give --stops"):
        printed("m.json")


def test_an_answer_for_an_instance_of_a_set_finds_its_stops(files: Path) -> None:
    npz.save("set.npz", "tsp", generate("tsp", 6, count=3, seed=1))
    call(solve, "set.npz", "--seconds", 0, "--out", "answers")
    before = json.loads((files / "answers" / "set.npz_1_.json").read_text())
    after = printed("answers/set.npz_1_.json")
    assert (after["source"], after["history"][0][1]) == ("set.npz[1]", before["cost"])
    with pytest.raises(InputError, match=r"set\.npz\[3\]: the file holds 3 instances"):
        call(solve, "set.npz[3]", "--seconds", 0)


def test_a_csv_is_read_by_position_not_by_line(files: Path) -> None:
    call(solve, EXAMPLES / "deliveries.csv", "--capacity", 12, "--seconds", 0.05, "--out", "a.csv")
    header, *lines = (files / "a.csv").read_text().splitlines()
    shuffled = np.random.default_rng(0).permutation(lines).tolist()
    (files / "b.csv").write_text("\n".join([header, *shuffled]) + "\n")
    assert read_routes("b.csv") == read_routes("a.csv")


FORMULAS = (
    '=HYPERLINK("http://a.example","x")',
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "'=1",
    "''@a",
)


@pytest.mark.parametrize("options", [(), ("--vehicles", "2")])  # a problem's writer, and that of rounds
def test_ids_that_a_spreadsheet_would_run_are_escaped_and_read_back(files: Path, options: tuple[str, ...]) -> None:
    with (files / "f.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "x", "y", "demand"))
        rows.writerows((name, i, i * i, int(i > 0)) for i, name in enumerate(("depot", *FORMULAS, "+49 30 1", "-5")))
    call(solve, "f.csv", "--capacity", 9, *options, "--seconds", 0, "--out", "a.csv")
    with (files / "a.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert {f"'{name}" for name in FORMULAS} <= set(cells)
    assert {"+49 30 1", "-5"} <= set(cells)
    assert not [cell for cell in cells if cell[:1] in "=@" and cell]
    assert {str(stop) for route in read_routes("a.csv")[0] for stop in route} >= {*FORMULAS, "+49 30 1", "-5"}
    printed("a.csv", "--stops", "f.csv", "--capacity", 9, *options)


def test_a_csv_that_a_spreadsheet_saved_is_read(files: Path) -> None:
    call(solve, EXAMPLES / "deliveries.csv", "--capacity", 12, "--seconds", 0, "--out", "a.csv")
    header, *lines = (files / "a.csv").read_text().splitlines()
    for delimiter in ";\t":
        rows = [line.replace(",", delimiter).replace(".", ",") for line in lines]
        saved = [header.replace(",", delimiter).title(), *rows, delimiter * 4]
        (files / "b.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(saved).encode())
        assert read_routes("b.csv") == read_routes("a.csv")


LOADS = "id,x,y,demand\nhub,0,0,0\na,1,0,2.5\nb,2,0,3\nc,3,0,1.5\n"


@pytest.mark.parametrize(
    ("routes", "options", "words"),
    [
        ([["a", "b"], ["c"]], ("--capacity", 5), "route 1 loads 5.5; the capacity is 5"),
        ([["a", "b"]], ("--capacity", 6), "stop 'c' is never visited"),
        ([["a", "b"], ["c", "a"]], ("--capacity", 6), "stop 'a' is visited more than once"),
        ([["a"], ["b"], ["c"]], ("--capacity", 2, "--problem", "sdvrp"), "stop 'a' is still owed 0.5 of its demand"),
        ([["a"], ["b", "a"]], ("--capacity", 4, "--problem", "sdvrp"), "nothing is delivered in route 2 (stop 'a')"),
    ],
)
def test_what_is_wrong_is_told_in_ids_and_amounts_of_the_user(
    files: Path, routes: list[list[str]], options: tuple, words: str
) -> None:
    (files / "loads.csv").write_text(LOADS)
    (files / "a.json").write_text(json.dumps({"routes": routes}))
    with pytest.raises(InputError) as caught:
        printed("a.json", "--stops", "loads.csv", *options)
    assert str(caught.value) == f"a.json: not a solution of these stops: {words}"


def test_the_numbers_of_a_sol_are_told_beside_the_ids(files: Path) -> None:
    (files / "loads.csv").write_text(LOADS)
    (files / "a.sol").write_text("Route #1: 1 3\n")
    with pytest.raises(InputError, match=r"stop 'b' \(number 2 of the \.sol\) is never visited"):
        printed("a.sol", "--stops", "loads.csv", "--capacity", 9)


def test_limits_that_another_problem_does_not_have_are_left_behind(files: Path) -> None:
    (files / "loads.csv").write_text(LOADS)
    call(solve, "loads.csv", "--capacity", 9, "--seconds", 0, "--out", "a.json")
    document = json.loads((files / "a.json").read_text())
    assert document["limits"] == {"capacity": 9}
    document["routes"][0]["stops"].insert(0, "hub")
    (files / "a.json").write_text(json.dumps(document))
    assert printed("a.json", "--problem", "tsp")["limits"] == {}
    with pytest.raises(InputError, match="tsp has no capacity"):
        printed("a.json", "--problem", "tsp", "--capacity", 9)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("route,id\n1,a\n", "columns route, position and id"),
        ("route,position,id\n1,first,a\n", "line 2: position is 'first'; a whole number is needed"),
        ("route,position,id\n1,,a\n", "line 2: position is ''"),
        ("route,position,id\n1,1,a\n1,1,b\n", "line 3: a second visit at position 1 of route '1'"),
    ],
)
def test_a_csv_without_an_order_is_refused(files: Path, text: str, words: str) -> None:
    (files / "a.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        read_routes("a.csv")
    assert words in str(caught.value)
