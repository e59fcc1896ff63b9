"""The documentation names files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    *(f"docs/{name}.md" for name in ("add_a_problem", "formats", "glossary", "serve", "solve", "solvers")),
)


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page):
    named = re.findall(r"`((?:routelearn|benchmarks|tests|examples)/[\w./*]+)`", (ROOT / page).read_text())
    assert page != "docs/glossary.md" or len(named) > 30
    assert [path for path in named if not list(ROOT.glob(path.rstrip("/")))] == []
