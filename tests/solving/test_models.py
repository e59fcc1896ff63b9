"""Which model serves: a file that was replaced is read again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from routelearn.errors import InputError
from routelearn.models import FOLDER, load_model
from routelearn.problems import PROBLEMS, get
from routelearn.problems.tsp import TSP
from routelearn.solving import find_model, solve, solve_many

PLACES = [(0, 0), (1, 0), (1, 1), (0, 1)]


def test_what_is_no_model_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the model is of type list; give a Model"):
        solve(PLACES, model=[1, 2], seconds=0)
    with pytest.raises(InputError, match=r"a folder; name the model in it, such as .*best.safetensors"):
        solve(PLACES, model=tmp_path, seconds=0)
    (tmp_path / "m.safetensors").write_bytes((FOLDER / "tsp-20.safetensors").read_bytes())
    with pytest.raises(InputError, match=r"m.safetensors is a model, not a problem; load it with path="):
        load_model(str(tmp_path / "m.safetensors"))


def test_a_model_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path, problem = tmp_path / "m.safetensors", get("tsp")
    path.write_bytes((FOLDER / "tsp-50.safetensors").read_bytes())
    first, _ = find_model(problem, 20, path=path)
    again, _ = find_model(problem, 20, path=path)
    assert again is first
    (tmp_path / "new").write_bytes((FOLDER / "tsp-20.safetensors").read_bytes())
    os.replace(tmp_path / "new", path)
    second, _ = find_model(problem, 20, path=path)
    assert first is not None
    assert second is not None
    assert second.card["sizes"] != first.card["sizes"]


def test_a_model_and_a_problem_may_be_objects() -> None:
    model, problem = load_model("tsp", 20), PROBLEMS["tsp"]
    found = solve(PLACES, problem=problem, model=model, seconds=0)
    assert (found.problem, found.length) == ("tsp", 4)
    assert [one.length for one in solve_many([PLACES, PLACES], problem=problem, model=model)] == [4, 4]
    with pytest.raises(InputError, match="a model for tsp, not for cvrp"):
        solve(PLACES, demand=[0, 1, 1, 1], capacity=2, model=model, seconds=0)
    with pytest.raises(InputError, match=r"the problem is a TSP that is not registered; name one of tsp, "):
        solve(PLACES, problem=TSP(), seconds=0)
    with pytest.raises(InputError, match=r"the problem is the class TSP; name one of tsp, "):
        solve(PLACES, problem=TSP, seconds=0)  # type: ignore[arg-type]


def test_the_name_of_a_model_in_place_of_a_problem_is_told() -> None:
    with pytest.raises(InputError, match='tsp-20 is a model, not a problem; load it with path="tsp-20"'):
        load_model("tsp-20")
