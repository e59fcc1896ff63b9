"""`routelearn examples` writes the files that the documentation names, and keeps what is there."""

from __future__ import annotations


def test_examples_are_written_and_solved(routelearn, tmp_path):
    folder = tmp_path / "here" / "mine"
    status, out, _ = routelearn("examples", folder)
    assert status == 0
    assert {"cities.csv", "deliveries.csv", "vans.csv", "open_vrp.py"} <= {file.name for file in folder.rglob("*.*")}
    assert str(folder / "bakery" / "stops.csv") in out.splitlines()
    assert routelearn("solve", folder / "cities.csv", "--seconds", 0).status == 0


def test_a_file_that_is_there_stays(routelearn, tmp_path):
    (tmp_path / "cities.csv").write_text("mine")
    assert routelearn("examples", tmp_path).status == 0
    assert (tmp_path / "cities.csv").read_text() == "mine"
    assert (tmp_path / "deliveries.csv").stat().st_size > 100


def test_a_folder_that_cannot_be_written_is_one_line(routelearn, tmp_path):
    (tmp_path / "taken").write_text("a file")
    status, _, err = routelearn("examples", tmp_path / "taken")
    assert status == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
