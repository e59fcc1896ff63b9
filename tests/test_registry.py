"""Registries: lookups, refusals, and where a name came from."""

from __future__ import annotations

import pytest

from routelearn.errors import InputError
from routelearn.registry import Registry


@pytest.fixture
def fruit():
    return Registry("fruit", {"apple": 1})


def test_what_is_added_is_found_beside_what_was_there(fruit):
    fruit.add("pear", 2, "orchard.py")
    assert fruit.find("pear") == 2
    assert list(fruit) == ["apple", "pear"]
    assert (fruit.plugin_of("apple"), fruit.plugin_of("pear")) == (None, "orchard.py")


def test_an_unknown_name_lists_the_choices(fruit):
    with pytest.raises(InputError, match="unknown fruit 'plum'; the choices are apple"):
        fruit.find("plum")


def test_a_taken_name_is_refused_with_its_owner(fruit):
    with pytest.raises(InputError, match=r"'apple' is taken \(by routelearn itself\)"):
        fruit.add("apple", 3, "orchard.py")
    fruit.add("pear", 2, "orchard.py")
    with pytest.raises(InputError, match=r"'pear' is taken \(by orchard.py\)"):
        fruit.add("pear", 3, "other.py")
    assert dict(fruit) == {"apple": 1, "pear": 2}


def test_the_same_thing_may_be_added_again(fruit):
    pear = object()
    fruit.add("pear", pear, "orchard.py")
    fruit.add("pear", pear, "orchard.py")
    assert fruit["pear"] is pear
