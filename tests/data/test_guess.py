"""Which problem stops are: by what is given and what the problems declare, never by their names."""

import pytest

from routelearn.data.guess import guess, plural
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS, Attribute
from routelearn.problems.attributes import CAPACITY, DEMAND
from routelearn.problems.cvrp import CVRP


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("", "tsp"),
        ("demand capacity", "cvrp"),
        ("demand", "cvrp"),
        ("demand capacity max_length", "cvrp"),
        ("prize max_length", "op-unif"),
        ("max_length", "op-const"),
        ("max_length capacity", "op-const"),
        ("prize max_length real_prize", "op-unif"),
        ("prize penalty max_length", "pctsp"),
        ("penalty", "pctsp"),
        ("prize min_prize", "pctsp"),
        ("prize penalty min_prize real_prize", "spctsp"),
    ],
)
def test_what_is_given_decides(given, problem):
    assert guess("a.csv", set(given.split())) == problem


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("prize", "prizes, but neither a maximum length (op-unif) nor penalties (pctsp); add one, or name the problem"),
        ("demand prize", "both demands and prizes; name the problem"),
        ("demand penalty capacity", "both demands and penalties; name the problem"),
        ("capacity", "a capacity, but no demand; give every stop its demand"),
        ("min_prize", "a minimum prize, but no penalty; give every stop its penalty"),
    ],
)
def test_what_could_be_two_problems_is_told(given, told):
    with pytest.raises(InputError) as caught:
        guess("a.csv", set(given.split()))
    assert str(caught.value) == f"a.csv: {told}"


class Careful(CVRP):
    name = "careful"
    attributes = (DEMAND, CAPACITY, Attribute("care", "stop", "amount", whole=True, required=True))
    preference = 1


def with_care(monkeypatch, name):
    problem = type(name, (Careful,), {"name": name})()
    monkeypatch.setitem(PROBLEMS, name, problem)
    monkeypatch.setattr("routelearn.data.guess.unfilled", lambda problem: [])


def test_a_plugin_is_guessed_where_it_claims_more(monkeypatch):
    with_care(monkeypatch, "careful")
    assert guess("a.csv", {"demand", "capacity"}) == "cvrp"
    assert guess("a.csv", {"demand", "capacity", "care"}) == "careful"
    with_care(monkeypatch, "cautious")
    with pytest.raises(InputError, match=r"a\.csv: this could be careful or cautious; name the problem"):
        guess("a.csv", {"demand", "capacity", "care"})


def test_problems_are_compared_once_for_the_same_attributes(monkeypatch):
    with_care(monkeypatch, "careful")
    asked = []
    monkeypatch.setattr("routelearn.data.guess.unfilled", asked.append)
    first = guess("a.csv", {"demand", "capacity"})
    often = len(asked)
    assert often
    assert guess("b.csv", {"capacity", "demand"}) == first
    assert len(asked) == often


def test_plurals():
    assert [plural(word) for word in ("demand", "penalty")] == ["demands", "penalties"]
