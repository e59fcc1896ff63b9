"""Every reader, over the saved corpus and over damaged copies of it (`benchmarks/fuzz.py` runs 100,000)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "fuzz.py"
spec = importlib.util.spec_from_file_location("fuzz", SCRIPT)
fuzz = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz)


@pytest.mark.parametrize("reader", fuzz.READERS)
def test_the_corpus_is_read(reader):
    """What begins with `odd` was found by damage and is refused."""
    for path in fuzz.corpus(reader):
        assert fuzz.outcome(fuzz.READERS[reader], path) == ("refused" if path.name.startswith("odd") else "read"), path


@pytest.mark.parametrize("reader", fuzz.READERS)
def test_damaged_copies_are_read_or_refused_in_one_line(reader, tmp_path):
    counts, faults = fuzz.run(reader, 100, 1, tmp_path)
    assert not faults
    assert counts["read"] > 0
    assert counts["refused"] > 0
