"""The documentation names files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import routelearn

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")))
FILES = [str(path.relative_to(ROOT)) for folder in ("routelearn", "benchmarks", "tests", "examples")
         for path in (ROOT / folder).rglob("*")]  # fmt: skip
OTHERS = {"my_variant.py", "my_problem.py", "generate_data.py"}  # of readers, and of the authors


def named_files(text):
    """What stands in backquotes and looks like a file or a folder of ours; `*` stands for anything."""
    for path in re.findall(r"`((?:routelearn|benchmarks|tests|examples)/[\w./*-]+|[\w/*-]+\.py)`", text):
        yield path.rstrip("/")


def exists(path):
    pattern = re.compile(rf"(.*/)?{re.escape(path).replace(re.escape('*'), '[^/]*')}")
    return any(pattern.fullmatch(file) for file in FILES)


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page):
    named = [path for path in named_files((ROOT / page).read_text()) if path not in OTHERS]
    assert [path for path in named if not exists(path)] == []


def test_the_glossary_says_where_each_thing_lives():
    assert len(list(named_files((ROOT / "docs/concepts/glossary.md").read_text()))) > 30


def test_the_whole_python_interface_is_documented():
    page = (ROOT / "docs/reference/api.md").read_text()
    assert [name for name in routelearn.__all__ if not re.search(rf"\broutelearn\.{name}\b", page)] == []


def test_a_file_that_is_not_there_is_found_out():
    assert all(
        exists(path) for path in ("training/loop.py", "loop.py", "routelearn/training", "tests/*/test_train*.py")
    )
    assert not any(exists(path) for path in ("training/no_such.py", "tests/*/no_such*.py"))
