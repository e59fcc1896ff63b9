"""Registries: lookups, refusals, and where a name came from."""

from __future__ import annotations

import pytest

from routelearn.errors import InputError
from routelearn.plugins import Plugin
from routelearn.registry import Registry

ORCHARD = Plugin("orchard.py", "orchard", "/orchard.py")
OTHER = Plugin("other.py", "other", "/other.py")
NOTEBOOK = Plugin("__main__", "__main__")


@pytest.fixture
def fruit():
    return Registry("fruit", {"apple": 1})


def test_what_is_added_is_found_beside_what_was_there(fruit):
    fruit.add("pear", 2, ORCHARD)
    assert fruit.find("pear") == 2
    assert list(fruit) == ["apple", "pear"]
    assert (fruit.plugin_of("apple"), fruit.plugin_of("pear")) == (None, ORCHARD)


def test_an_unknown_name_lists_the_choices(fruit):
    with pytest.raises(InputError, match="unknown fruit 'plum'; the choices are apple; a plugin's own need --plugin"):
        fruit.find("plum")


def test_a_taken_name_is_refused_with_its_owner(fruit):
    with pytest.raises(InputError, match=r"'apple' is taken \(by routelearn itself\)"):
        fruit.add("apple", 3, ORCHARD)
    fruit.add("pear", 2, ORCHARD)
    with pytest.raises(InputError, match=r"'pear' is taken \(by orchard.py\)"):
        fruit.add("pear", 3, OTHER)
    assert dict(fruit) == {"apple": 1, "pear": 2}


def test_the_same_thing_may_be_added_again(fruit):
    pear = object()
    fruit.add("pear", pear, ORCHARD)
    fruit.add("pear", pear, ORCHARD)
    assert fruit["pear"] is pear
    assert fruit.plugin_of("pear") is ORCHARD


def test_its_own_thing_added_again_stays_its_own(fruit):
    fruit.add("apple", 1, ORCHARD)
    assert fruit.plugin_of("apple") is None
    fruit.remove("apple")
    assert dict(fruit) == {"apple": 1}


def test_what_is_taken_back_is_gone(fruit):
    fruit.add("pear", 2, ORCHARD)
    fruit.remove("pear")
    assert dict(fruit) == {"apple": 1}
    fruit.add("pear", 3, OTHER)
    assert fruit.plugin_of("pear") is OTHER


def test_a_cell_of_a_notebook_may_run_again(fruit):
    fruit.add("pear", 2, NOTEBOOK)
    fruit.add("pear", 3, NOTEBOOK)
    assert fruit["pear"] == 3
    with pytest.raises(InputError, match="taken"):
        fruit.add("apple", 3, NOTEBOOK)
