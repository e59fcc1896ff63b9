"""Plugins for the tests: files in a folder of the test's own, and registries as they were afterwards."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from routelearn import plugins


@pytest.fixture(autouse=True)
def _registries_as_before(monkeypatch: pytest.MonkeyPatch):
    """What a test loads or registers is gone afterwards, and other packages' plugins are not looked for."""
    monkeypatch.setenv(plugins.VARIABLE, "")  # recorded first, so that undone last: loading sets it too
    monkeypatch.delenv(plugins.VARIABLE)
    monkeypatch.setattr(plugins, "_installed_asked", True)
    before = plugins.loaded()
    yield
    for plugin in plugins.loaded():
        if plugin not in before:
            plugins.forget(plugin)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """A file of that name in the current folder, which is the test's own; gives its name."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> str:
        (tmp_path / name).write_text(textwrap.dedent(text).lstrip())
        return name

    return write
