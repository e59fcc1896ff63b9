"""`solve`, `improve` and `check` with rounds: options, files in and out, exit status. The reader is a stand-in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from answer_cases import DRIVES, city, planned

from routelearn.cli import main
from routelearn.rounds.plan import Drive


@pytest.fixture
def routelearn(capsys):
    def call(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        return int(end.value.code or 0), *capsys.readouterr()

    return call


@pytest.fixture
def files(monkeypatch, tmp_path):
    """Files called city* hold the round, others none; gives what the reader was asked for."""
    asked = []

    def read_round(path, *, matrix=None, vehicles=None, options=None, problem=None):
        asked.append({"path": path, "matrix": matrix, "vehicles": vehicles, "options": options, "problem": problem})
        if "city" not in str(path):
            return None
        return city(source=str(path), allow_unassigned=bool((options or {}).get("allow_unassigned")))

    monkeypatch.setattr("routelearn.rounds.files.read_round", read_round, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "city.csv").write_text("id,lat,lon\n")
    (tmp_path / "plain.csv").write_text("x,y\n0,0\n0,1\n1,1\n1,0\n")
    return asked


def written(name):
    return json.loads(Path(name).read_text())


def test_a_round_is_solved_and_told(routelearn, files, inserting):
    status, out, err = routelearn("solve", "city.csv", "--seconds", "0.1", "--out", "plan.json", "--plot", "plan.html")
    assert (status, err) == (0, "")
    assert "cost" in out
    assert "Ana" in out
    assert "08:00-09:00" in out
    document = written("plan.json")
    assert (document["problem"], document["format_version"], document["source"]) == ("vrp", 2, "city.csv")
    assert Path("plan.html").read_text().startswith("<!DOCTYPE html>")


def test_a_vehicle_that_is_a_number_is_called_one_and_waits_are_minutes(routelearn, tmp_path, monkeypatch, inserting):
    monkeypatch.chdir(tmp_path)
    Path("tour.csv").write_text(
        "Name;x;y;Menge;von;bis\nLager;0;0;;08:00;16:00\nCafé;1;0;5;09:00;10:00\nCafé;2;0;5;12:07;13:00\n"
    )
    options = ("--vehicles", "2", "--capacity", "10,12", "--shift", "8:00-16:00", "--speed", "10", "--seconds", "0.05")
    status, out, _ = routelearn("solve", "tour.csv", *options)
    assert status == 0
    assert "vehicle 1  2 stops" in out
    assert "Café (2)" in out
    assert not [line for line in out.splitlines() if "Café" in line and " s " in line]


def test_options_reach_the_reader_by_name(routelearn, files, inserting):
    status, _, err = routelearn(
        "solve", "city.csv", "--seconds", 0, "--matrix", "m.csv", "--vehicles", "vans.csv", "--capacity", "100,100,60",
        "--shift", "8:00-16:00", "--speed", "30", "--round", "dimacs", "--objective", "vehicles", "--allow-unassigned",
        "--max-duration", "8h", "--problem", "vrp", "--out", "plan.json",
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert files[0] == {
        "path": "city.csv", "matrix": "m.csv", "vehicles": "vans.csv", "problem": "vrp",
        "options": {"capacity": "100,100,60", "shift": "8:00-16:00", "speed": "30", "round": "dimacs",
                    "objective": "vehicles", "allow_unassigned": True, "max_duration": "8h"},
    }  # fmt: skip
    document = written("plan.json")
    assert (document["matrix"], document["vehicles"]) == ("m.csv", "vans.csv")
    assert document["options"] == files[0]["options"]


@pytest.mark.parametrize(("option", "name"), [("--rounded", "nearest"), ("--no-rounded", "none")])
def test_rounded_is_another_name_of_nearest_and_none(routelearn, files, inserting, option, name):
    assert routelearn("solve", "city.csv", "--seconds", 0, option)[0] == 0
    assert files[0]["options"] == {"round": name}


def test_two_roundings_that_disagree_are_refused(routelearn, files, inserting):
    status, _, err = routelearn("solve", "city.csv", "--round", "exact", "--no-rounded")
    assert (status, err) == (2, "error: --round exact and --no-rounded disagree; give one of them\n")


def test_a_model_that_nobody_asks_is_told(routelearn, files, inserting):
    assert "the model is not used" in routelearn("solve", "city.csv", "--model", "vrp", "--seconds", "0.1")[1]


def test_iterations_reach_the_search(routelearn, files, inserting):
    assert routelearn("solve", "city.csv", "--iterations", 77)[0] == 0
    assert (inserting[0]["iterations"], inserting[0]["threads"]) == (77, None)


@pytest.mark.parametrize(
    "options",
    [("--shift", "8:00-16:00"), ("--vehicles", "3"), ("--speed", "30"), ("--iterations", "5"), ("--allow-unassigned",)],
)
def test_options_of_rounds_are_refused_for_stops_that_are_none(routelearn, files, options):
    status, _, err = routelearn("solve", "plain.csv", "--seconds", 0, *options)
    assert status == 2
    assert err == f"error: plain.csv: {options[0]} is for rounds; name the problem with --problem vrp\n"


def test_roundings_of_rounds_are_refused_for_stops_that_are_none(routelearn, files):
    status, _, err = routelearn("solve", "plain.csv", "--seconds", 0, "--round", "dimacs")
    assert (status, err) == (2, "error: plain.csv: --round dimacs is for rounds; choose nearest or none\n")
    assert routelearn("solve", "plain.csv", "--seconds", 0, "--round", "none")[0] == 0


def test_standard_input_is_heard_by_both_readers(monkeypatch, capsys, tmp_path):
    import io
    import sys

    from routelearn.data.files import read_bytes

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x,y\n0,0\n1,1\n")))
    assert read_bytes("-") == read_bytes("-") == b"x,y\n0,0\n1,1\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"other")))
    assert read_bytes("-") == b"other"


def test_a_matrix_in_minutes_and_no_capacity(routelearn, tmp_path, monkeypatch, inserting):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,demand,from,to\nd,,,\na,0,2026-11-16 8:00,2026-11-16 9:00\nb,,2026-11-17 8:00,\n")
    Path("m.csv").write_text("0,5,9\n5,0,5\n9,5,0\n")
    options = ("--matrix", "m.csv", "--matrix-unit", "minutes", "--vehicles", 1, "--seconds", 0.05)
    status, out, err = routelearn("solve", "a.csv", *options, "--out", "plan.json")
    assert (status, err) == (0, "")
    assert written("plan.json")["options"] == {"matrix_unit": "minutes"}
    assert written("plan.json")["routes"][0]["driving"] == 19 * 60
    assert "load 0," in out  # holds any amount
    assert any(line.startswith("b ") and "from 08:00 on 2026-11-17" in line for line in out.splitlines())
    assert routelearn("check", "plan.json")[0] == 0
    Path("plain.csv").write_text("x,y\n0,0\n0,1\n1,1\n")
    assert "is for rounds" in routelearn("solve", "--matrix", "m.csv", "--matrix-unit", "minutes", "plain.csv")[2]


def test_rounds_and_stops_in_one_folder(routelearn, files, inserting, tmp_path):
    status, _, err = routelearn("solve", tmp_path, "--seconds", 0, "--out", "answers/")
    assert (status, err) == (0, "")
    found = {path.name: json.loads(path.read_text())["problem"] for path in (tmp_path / "answers").iterdir()}
    assert found == {"city.csv.json": "vrp", "plain.csv.json": "tsp"}


def test_a_folder_may_be_called_as_sets_of_instances_are(routelearn, files, inserting, tmp_path):
    (tmp_path / "from.npz.files").mkdir()
    (tmp_path / "from.npz.files" / "city.csv").write_text("id,lat,lon\n")
    assert routelearn("solve", "from.npz.files/city.csv", "--seconds", 0, "--out", "plan.json")[0] == 0
    assert written("plan.json")["problem"] == "vrp"


def test_vroom_is_for_rounds(routelearn, files, inserting):
    assert routelearn("solve", "city.csv", "--seconds", 0, "--out", "plan.vroom.json")[0] == 0
    assert written("plan.vroom.json")["code"] == 0
    status, _, err = routelearn("solve", "plain.csv", "--seconds", 0, "--out", "plan.vroom.json")
    assert status == 2
    assert "VROOM's answers are for rounds" in err


def test_stops_left_out_are_status_two_unless_allowed(routelearn, files, inserting, plain_reasons, monkeypatch):
    small = city()
    small = replace(small, stops=(*small.stops[:4], replace(small.stops[4], delivery=(40.0,))))

    def read_round(path, *, options=None, **_):
        return replace(small, allow_unassigned=bool(options.get("allow_unassigned")))

    monkeypatch.setattr("routelearn.rounds.files.read_round", read_round, raising=False)
    status, _, err = routelearn("solve", "city.csv", "--seconds", 0)
    assert status == 2
    assert "'Ed': has no van (Ed)" in err
    status, out, _ = routelearn("solve", "city.csv", "--seconds", 0, "--allow-unassigned")
    assert status == 0
    assert "left out: Ed: has no van (Ed)" in out


# --------------------------------------------------------------------------------------------------- keep


def test_a_plan_that_was_begun_is_kept(routelearn, files, inserting):
    planned(city(source="city.csv")).write("morning.json")
    status, _, err = routelearn("solve", "city.csv", "--seconds", 0, "--keep", "morning.json", "--out", "noon.json")
    assert (status, err) == (0, "")
    noon = written("noon.json")
    assert [route["stops"] for route in noon["routes"]] == [["Ana", "Bo", "Cy"], ["Di"], ["Ed"]]
    assert all(visit["kept"] for route in noon["routes"] for visit in route["visits"] if visit["kind"] == "stop")


def test_only_what_has_begun_by_a_time_is_kept(routelearn, files, inserting):
    planned(city(source="city.csv"), (Drive(0, (1, 0, 2)), Drive(1, (3,)), Drive(1, (4,)))).write("morning.json")
    status, _, err = routelearn(
        "solve", "city.csv", "--seconds", 0, "--keep", "morning.json", "--until", "9:00", "--out", "noon.json"
    )
    assert (status, err) == (0, "")
    noon = written("noon.json")
    kept = [[v["id"] for v in route["visits"] if v.get("kept")] for route in noon["routes"]]
    assert ["Bo", "Ana"] in kept
    assert not any("Cy" in stops for stops in kept)
    assert all(
        v["start"] >= "09:00:00"
        for r in noon["routes"]
        for v in r["visits"]
        if v["kind"] == "stop" and not v.get("kept")
    )
    assert routelearn("improve", "noon.json", "--seconds", 0, "--out", "later.json")[0] == 0
    assert (noon["until"], written("later.json")["until"]) == ("9:00", "9:00")
    assert routelearn("check", "later.json")[0] == 0


def test_the_rest_of_a_plan_is_where_a_search_begins(routelearn, files, inserting):
    planned(city(source="city.csv"), (Drive(0, (0, 1, 2)), Drive(1, (4,)), Drive(1, (3,)))).write("morning.json")
    routelearn("solve", "city.csv", "--seconds", 0, "--keep", "morning.json", "--until", "8:12", "--out", "noon.json")
    assert [drive.order for drive in inserting[-1]["start"]] == [(0, 1, 2), (4,), (3,)]
    assert written("noon.json")["cost"] <= written("morning.json")["cost"]


def test_until_needs_keep_and_a_time_of_the_rounds_kind(routelearn, files, inserting):
    assert "--until says what --keep keeps" in routelearn("solve", "city.csv", "--until", "9:00")[2]
    planned(city(source="city.csv")).write("morning.json")
    _, _, err = routelearn("solve", "city.csv", "--keep", "morning.json", "--until", "500")
    assert err == "error: --until 500: the round's times need a clock time such as 12:00\n"
    _, _, err = routelearn("solve", "city.csv", "--keep", "morning.json", "--until", "noon")
    assert err == "error: --until noon: the round's times need a clock time such as 12:00\n"


# ------------------------------------------------------------------------------------------ improve, check


def test_improve_reads_the_round_as_it_was_read_and_starts_from_the_plan(routelearn, files, inserting):
    routelearn("solve", "city.csv", "--seconds", 0, "--vehicles", "3", "--shift", "8:00-16:00", "--out", "plan.json")
    files.clear()
    status, _, err = routelearn("improve", "plan.json", "--seconds", 0.1, "--out", "better.json")
    assert (status, err) == (0, "")
    assert files[0]["vehicles"] == "3"
    assert files[0]["options"] == {"shift": "8:00-16:00"}
    assert inserting[-1]["start"]
    assert written("better.json")["cost"] <= written("plan.json")["cost"]


def test_improve_refuses_a_plan_whose_figures_have_changed(routelearn, files, inserting):
    document = planned(city(source="city.csv")).document() | {"cost": 1.0}
    Path("plan.json").write_text(json.dumps(document))
    status, _, err = routelearn("improve", "plan.json", "--seconds", 0)
    assert status == 2
    assert "the cost is 1 in the file, but 15 by these stops" in err
    assert routelearn("improve", "plan.json", "--seconds", 0, "--stops", "city.csv")[0] == 0


def test_improve_keeps_what_the_plan_marks(routelearn, files, inserting):
    document = planned(city(source="city.csv")).document()
    for route in document["routes"][:1]:
        route["visits"][1]["kept"] = route["visits"][2]["kept"] = True
    Path("plan.json").write_text(json.dumps(document))
    assert routelearn("improve", "plan.json", "--seconds", 0, "--out", "better.json")[0] == 0
    better = written("better.json")
    assert any(route["stops"][:2] == ["Ana", "Bo"] for route in better["routes"])


def test_check_says_yes_to_a_plan_that_breaks_nothing(routelearn, files):
    planned(city(source="city.csv")).write("plan.json")
    status, out, err = routelearn("check", "plan.json")
    assert (status, err) == (0, "")
    assert "cost 15" in out
    assert "broken" not in out


@pytest.mark.parametrize("name", ["plan.json", "plan.vroom.json", "plan.csv"])
def test_check_tells_every_violation_and_ends_with_one(routelearn, files, name):
    planned(city(source="city.csv"), (Drive(0, (2, 0, 1, 4)), Drive(1, (3,)))).write(name)
    stops = [] if name == "plan.json" else ["--stops", "city.csv"]
    status, out, err = routelearn("check", name, *stops, "--out", "checked.json")
    assert (status, err) == (1, "")
    assert out.count("broken:") >= 2
    assert "stop Ana" in out
    document = written("checked.json")
    assert {"window", "capacity"} <= {one["rule"] for one in document["violations"]}


def test_check_takes_an_order_that_somebody_wrote_by_hand(routelearn, files):
    Path("plan.json").write_text(json.dumps({"routes": [["Ana", "Bo", "Cy"], ["Di"], ["Ed"]]}))
    assert routelearn("check", "plan.json", "--stops", "city.csv")[0] == 0
    status, _, err = routelearn("check", "plan.json")
    assert (status, err) == (2, "error: plan.json: does not say where its stops are; give --stops\n")


def test_check_of_stops_that_are_no_round(routelearn, files):
    assert routelearn("solve", "plain.csv", "--seconds", 0, "--out", "tour.json")[0] == 0
    status, out, _ = routelearn("check", "tour.json")
    assert status == 0
    assert "length 4" in out
    document = written("tour.json")
    document["routes"][0]["stops"].pop()
    Path("tour.json").write_text(json.dumps(document))
    status, _, err = routelearn("check", "tour.json")
    assert status == 2
    assert "3 of 4 stops are visited" in err


def test_many_stops_get_a_line_for_each_vehicle(routelearn, files, inserting, monkeypatch):
    monkeypatch.setattr("routelearn.commands.rounds.LONGEST_ITINERARY", 3)
    status, out, _ = routelearn("solve", "city.csv", "--seconds", 0)
    assert status == 0
    assert "leaves" in out
    assert "(start)" not in out


def test_drives_are_what_they_were(files):
    assert planned().plan.drives == DRIVES


def test_waiting_is_told_in_rounds_without_a_clock_however_short(routelearn, tmp_path):
    times = [[0, 0.1, 0.1], [0.1, 0, 0.1], [0.1, 0.1, 0]]
    stops = [
        {"id": "A", "x": 1, "y": 0, "windows": [[0.1, 0.15]]},
        {"id": "B", "x": 1, "y": 1, "windows": [[0.5, 0.6]]},
    ]
    document = {"depot": {"x": 0, "y": 0}, "durations": times, "stops": stops, "vehicles": 1}
    (tmp_path / "small.json").write_text(json.dumps(document))
    (tmp_path / "plan.json").write_text(json.dumps({"routes": [["A", "B"]]}))
    _, out, _ = routelearn("check", tmp_path / "plan.json", "--stops", tmp_path / "small.json")
    [line] = [line.split() for line in out.splitlines() if line.startswith("B ")]
    assert line[:4] == ["B", "0.25", "0.25", "0.5"], "arrives, waits, leaves"
