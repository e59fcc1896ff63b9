"""How kernels are compiled for a plugin's resources."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from routelearn.search import compiling


class Foreign(NamedTuple):
    """A resource that is not the package's."""

    zone: Any


def doubled(number: int) -> int:
    return 2 * number


def tripled(number: int) -> int:
    return 3 * number


@pytest.fixture
def kernels(monkeypatch):
    """The known kernels, one of them; those that a test adds are forgotten."""
    found: list[Any] = []
    monkeypatch.setattr(compiling, "_kernels", found)
    compiling.kernel(doubled)
    return found


def test_kernels_write_to_other_files_for_a_plugins_resource_and_to_their_own_again_after_it(kernels):
    own = kernels[0]._cache
    with compiling.compiling([Foreign(0)]):
        assert kernels[0]._cache is not own
    assert kernels[0]._cache is own


def test_kernels_that_another_thread_imports_meanwhile_disturb_nothing(kernels):
    own = kernels[0]._cache
    with compiling.compiling([Foreign(0)]):
        compiling.kernel(tripled)
    assert kernels[0]._cache is own
