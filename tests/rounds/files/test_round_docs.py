"""The page of formats lists every attribute of rounds under all its names."""

from __future__ import annotations

from pathlib import Path

import pytest

from routelearn.rounds.files.columns import ALSO
from routelearn.rounds.files.table import OPTIONS, VEHICLE_OPTIONS
from routelearn.rounds.model import Stop, Vehicle, attributes_of

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [Stop, Vehicle])
def test_every_attribute_and_its_names(kind: type):
    for one in attributes_of(kind):
        words = dict.fromkeys((*one.also, *ALSO.get((kind, one.name), ())))
        assert f"| `{one.name}` | {', '.join(f'`{word}`' for word in words)} | {one.help} |" in PAGE


def test_options_are_named():
    for name in set(OPTIONS) - set(VEHICLE_OPTIONS) - {"depot"}:
        dashed = name.replace("_", "-")
        assert name in PAGE or f"--{dashed}" in PAGE or dashed in PAGE, name
