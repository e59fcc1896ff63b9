"""Which model serves: a file that was replaced is read again."""

from __future__ import annotations

import os
from pathlib import Path

from routelearn.models import FOLDER
from routelearn.problems import get
from routelearn.solving import find_model


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
