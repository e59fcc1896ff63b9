"""The examples of docs/reference/formats.md work as written."""

import json
import re
from pathlib import Path

import pytest
from paper_problems import PAPER

from routelearn.data import read_stops, to_instance
from routelearn.data.names import SPELLINGS, WORDS
from routelearn.data.rules import clock, unsupported
from routelearn.problems import PROBLEMS
from routelearn.problems.attributes import OWN
from routelearn.solving import solve_stops

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "formats.md"
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_csv_and_json_examples_are_read_and_converted(tmp_path):
    csv_block = next(text for kind, text in BLOCKS if kind == "")
    json_block = next(text for kind, text in BLOCKS if kind == "json")
    (tmp_path / "a.csv").write_text(csv_block)
    (tmp_path / "a.json").write_text(json_block)
    [from_csv], [from_json] = read_stops(tmp_path / "a.csv"), read_stops(tmp_path / "a.json")
    assert to_instance(from_csv, capacity=10).scale.ids == ("warehouse", "A-17")
    converted = to_instance(from_json)
    assert (converted.problem.name, converted.scale.ids) == ("cvrp", ("depot", "A-17", "B"))
    assert converted.referee.demand.tolist() == [[0, 5, 8]]
    assert converted.referee.capacity.tolist() == [20]


def test_the_python_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(next(text for kind, text in BLOCKS if kind == "python"), names)
    assert names["name"] == "cvrp"
    assert names["x"].xy.shape == (1000, 51, 2)


def attribute_rows():
    """The rows of the page's tables that follow from the attributes of the problems."""
    return [f"| `{one.name}` | {', '.join(f'`{name}`' for name in one.also)} | {one.help} |" for one in OWN]


def test_every_attribute_is_documented_with_all_its_names():
    page = PAGE.read_text(encoding="utf-8")
    assert [row for row in attribute_rows() if row not in page] == []
    declared = {one for name in PAPER for one in PROBLEMS[name].attributes}
    assert {one.name for one in declared} == {one.name for one in OWN}


def test_other_words_for_places_and_ids_are_documented():
    page = PAGE.read_text(encoding="utf-8")
    words = [*SPELLINGS, *(name for names in WORDS.values() for name in names if name != "Laengengrad")]
    assert [name for name in words if f"`{name}`" not in page] == []


def test_what_the_page_calls_a_rule_is_refused():
    table = PAGE.read_text(encoding="utf-8").split("### What is refused")[1].split("###")[0]
    names = re.findall(r"`([^`]+)`", table.split("|---|---|")[1])
    assert len(names) > 20
    assert [name for name in names if unsupported(name) is None and not clock(name)] == []


@pytest.mark.parametrize("name", ["lat", "lon", "demand", "prize", "penalty", "real_prize", "depot", "id"])
def test_every_column_is_documented(name):
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")


def test_every_key_of_a_solution_is_documented(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,demand\n0,0,0\n1,0,5\n2,0,3\n")
    (tmp_path / "m.txt").write_text("0 1 2\n1 0 1\n2 1 0\n")
    [stops] = read_stops(tmp_path / "a.csv", matrix=tmp_path / "m.txt")
    document = json.loads(solve_stops(stops, problem="sdvrp", capacity=4, seconds=0).to_json())
    page = PAGE.read_text(encoding="utf-8")
    assert {"matrix", "limits", "history"} <= set(document)
    assert [key for key in (*document, *document["routes"][0], "rounded", "prize") if f"`{key}`" not in page] == []
