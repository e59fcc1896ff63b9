"""docs/results/reproduce.md: its Python runs, its commands parse, and its claims about defaults are the program's."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from routelearn.commands.reproduce import READS, reproduce
from routelearn.reproduce.ablations import INSTANCES, all_runs
from routelearn.reproduce.rows import EXACT_SECONDS, HEURISTIC_SECONDS
from routelearn.reproduce.running import SAMPLES_CPU

PAGE = Path(__file__).resolve().parents[2] / "docs" / "results" / "reproduce.md"


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    exec(code.replace("slice(0, 100)", "slice(0, 4)"), {})
    out = capsys.readouterr().out
    assert "CVRP50" in out
    assert "random-sweep+2opt" in out


def test_commands_and_options_exist() -> None:
    text = PAGE.read_text()
    known = {f"--{name.replace('_', '-')}" for name in inspect.signature(reproduce).parameters}
    for target, rest in re.findall(r"^routelearn reproduce (\S+)([^#\n]*)", text, re.M):
        assert target in READS
        for option in re.findall(r"--[a-z-]+", rest):
            assert option[2:].replace("-", "_") in READS[target]
    for option in re.findall(r"`(--[a-z-]+)[ `]", text):
        assert option in known | {"--on", "--store", "--seconds", "--solver"}


def test_figures_in_the_text_are_the_program_s() -> None:
    text = PAGE.read_text()
    assert f"{HEURISTIC_SECONDS:g} s an instance" in text
    assert f"at most {EXACT_SECONDS:g} s an instance" in text
    assert f"trains {len(all_runs((20,)))} models" in text
    assert f"{INSTANCES / 1e6:g} million instances" in text
    assert f"{SAMPLES_CPU} of them on a CPU" in text
