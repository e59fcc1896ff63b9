"""The commands and the Python of README.md, first steps, guides and notebooks are real: each parses, and each runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from snippets import ROOT, blocks, snippets, words

from routelearn.cli import COMMANDS, command, take_plugins
from routelearn.data import generate, npz

PATTERNS = ("README.md", "docs/start/*.md", "docs/guides/*.md", "docs/notebooks/*.ipynb")
FILES = sorted(str(file.relative_to(ROOT)) for pattern in PATTERNS for file in ROOT.glob(pattern))
PAGES = [page for page in FILES if snippets(page)]
NEEDS = {"docs/notebooks/add_a_variant.ipynb": "pyvrp"}
MOST_BYTES = 300_000  # of a notebook, with its pictures


# ------------------------------------------------------------------- what the reader of a page has in the folder


def own_stops(folder: Path) -> None:
    """Of the guide to `solve`: a table, a folder of tables, an answer, and lists in Python."""
    (folder / "stops.csv").write_text("x,y\n0,0\n3,4\n6,0\n3,-4\n")
    (folder / "days").mkdir()
    for name in ("monday", "tuesday"):
        shutil.copy(folder / "stops.csv", folder / "days" / f"{name}.csv")
    answer = {"problem": "tsp", "source": "stops.csv", "routes": [{"stops": ["1", "3", "2", "4"]}]}
    (folder / "answer.json").write_text(json.dumps({"format": "routelearn-solution", "format_version": 1, **answer}))
    places = "places, prizes = [(52.1, 5.1), (52.2, 5.2), (52.1, 5.3)], [0, 3, 5]\n"
    (folder / "prepared.py").write_text(places + "import numpy\ncoords = numpy.random.rand(3, 10, 2)\n")


def own_round(folder: Path) -> None:
    """Of the guide to rounds: stops, vans, a matrix as OSRM answers it, a document of VROOM's."""
    rows = (ROOT / "examples" / "bakery" / "stops.csv").read_text().splitlines()
    (folder / "stops.csv").write_text("\n".join(re.sub(r"\d\d:\d\d-\d\d:\d\d", "06:00-16:00", row) for row in rows))
    shutil.copy(ROOT / "examples" / "bakery" / "vans.csv", folder / "vans.csv")
    table = [[60 * abs(i - j) for j in range(1, len(rows))] for i in range(1, len(rows))]
    (folder / "osrm_table.json").write_text(json.dumps({"code": "Ok", "durations": table, "distances": table}))
    document = {
        "jobs": [{"id": i, "location_index": i, "service": 60} for i in (1, 2)],
        "vehicles": [{"id": 1, "start_index": 0, "end_index": 0}],
        "matrices": {"car": {"durations": [[0, 9, 9], [9, 0, 9], [9, 9, 0]]}},
    }
    (folder / "vroom.json").write_text(json.dumps(document))


def own_problem(folder: Path) -> None:
    """Of the guide to problems: a plugin, and another problem that is not registered yet."""
    code = (ROOT / "examples" / "plugins" / "open_vrp.py").read_text()
    (folder / "my_problem.py").write_text(code.replace('"open-vrp"', '"my-problem"'))
    plain = code.replace("@routelearn.register\n", "").replace("class OpenVRP", "class MyProblem")
    (folder / "not_registered.py").write_text(plain)
    (folder / "prepared.py").write_text(
        "import sys\nfrom typing import Any, NamedTuple\n\n"
        "sys.path.insert(0, '.')\nfrom not_registered import MyProblem\n"
    )


def own_plugin(folder: Path) -> None:
    npz.save(folder / "tsp20.npz", "tsp", generate("tsp", 20, count=8))
    (folder / "prepared.py").write_text(
        "import routelearn, torch\nfrom torch import Tensor\nfrom routelearn.problems import Attribute\n"
        "from routelearn.training.losses import Loss, Scored\n"
    )


def own_set(folder: Path) -> None:
    npz.save(folder / "tsp100.npz", "tsp", generate("tsp", 100, count=8))


def own_python(folder: Path) -> None:
    (folder / "prepared.py").write_text("import routelearn\n")


OWN: dict[str, Callable[[Path], None]] = {
    "docs/guides/solve.md": own_stops,
    "docs/guides/rounds.md": own_round,
    "docs/guides/add_a_problem.md": own_problem,
    "docs/guides/extend.md": own_plugin,
    "docs/guides/solvers.md": own_set,
    "docs/guides/training.md": own_python,
}


# --------------------------------------------------------------------------------------------------------- tests


def test_readme_first_steps_and_guides_have_snippets():
    assert len(PAGES) >= 10
    assert {"README.md", *OWN} <= set(PAGES)
    assert sum(len(snippets(page)) for page in PAGES) >= 60


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_understood(page):
    for snippet in snippets(page):
        if snippet.kind == "command":
            line, plugins = take_plugins(words(snippet))
            assert line[0] in COMMANDS
            if not plugins:  # those of a plugin may be choices of its own: they run below
                command(line[0]).make_context(line[0], line[1:])


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_snippet_runs(page, tmp_path):
    """In order, in one folder, for a later one may use the files of an earlier one."""
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    OWN.get(page, lambda folder: None)(tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("snippets.py")), page],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("page", [page for page in PAGES if page.endswith(".ipynb")])
def test_notebooks_are_small_and_hold_their_pictures(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert len(text) < MOST_BYTES
    assert '"image/png"' in text
    assert '"output_type": "error"' not in text


def test_a_wrong_command_and_wrong_python_are_found_out(tmp_path, monkeypatch):
    import snippets as module

    (tmp_path / "page.md").write_text("```\nroutelearn solve no.csv\n```\n\n```python\nundefined\n```\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    bad_command, bad_python = module.snippets("page.md")
    with pytest.raises(SystemExit):
        module.run_command(bad_command)
    with pytest.raises(NameError):
        module.run_python(bad_python, {})
    assert [language for _, language, _ in blocks("page.md")] == ["", "python"]
