"""solve() on whatever people pass: a feasible answer, or one clear line; never a traceback of another kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paper_problems import PAPER
from solving_referee import Case, judge

from routelearn.errors import InputError
from routelearn.solving import solve

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
numbers = st.one_of(
    st.integers(-5, 5).map(float), st.floats(-1e6, 1e6, allow_nan=False), st.sampled_from([0.0, 1e-9, 1e12, -1e12])
)
amounts = st.one_of(st.integers(0, 9).map(float), st.sampled_from([0.5, 2.25, 1e-3]))


@st.composite
def valid_cases(draw: st.DrawFn) -> Case:
    """Any problem, degenerate geometry included: doubles, lines, everything in one place."""
    name = draw(st.sampled_from(PAPER))
    count = draw(st.integers(2, 9))
    case = Case(name)
    pairs = st.tuples(numbers, numbers)
    if draw(st.booleans()):
        case.coords = np.array(draw(st.lists(pairs, min_size=count, max_size=count)))
    else:
        row = st.lists(st.one_of(amounts, st.sampled_from([1e6])), min_size=count, max_size=count)
        case.matrix = np.array(draw(st.lists(row, min_size=count, max_size=count)))

    def column(values: st.SearchStrategy[float]) -> np.ndarray:
        return np.array([0.0, *draw(st.lists(values, min_size=count - 1, max_size=count - 1))])

    if name in ("cvrp", "sdvrp"):
        case.demand = column(amounts)
        case.capacity = (
            draw(st.sampled_from([9.0, 10.5, 30.0])) if name == "cvrp" else draw(st.sampled_from([0.5, 4.0]))
        )
    elif name.startswith("op-"):
        case.prize = None if name == "op-const" else column(amounts)
        case.max_length = draw(st.one_of(st.floats(1e-3, 1e7), st.sampled_from([1.0, 4.0])))
    elif name != "tsp":
        case.prize, case.penalty = column(amounts), column(amounts)
        case.real_prize = column(amounts) if name == "spctsp" else None
        case.min_prize = max(float(case.prize.sum()) * draw(st.floats(0.01, 1.0)), 1e-3)
    return case


@FEW
@given(valid_cases(), st.sampled_from([0, 0.005]), st.booleans())
def test_valid_input_gets_a_feasible_answer(case: Case, seconds: float, policy: bool) -> None:
    if case.min_prize is not None and case.min_prize > case.prize.sum():
        with pytest.raises(InputError, match="out of reach"):
            solve(**case.arguments(), seconds=0)
        return
    solution = solve(**case.arguments(), seconds=seconds, policy=policy, threads=1)
    cost = judge(case, solution.routes)
    assert solution.cost == pytest.approx(cost, rel=1e-6, abs=1e-6 * (1 + abs(cost)))


anything = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.floats(),
    st.text(max_size=3),
    st.booleans(),
    st.lists(st.floats(), max_size=4),
    st.lists(st.tuples(st.floats(), st.floats()), max_size=4),
    st.lists(st.lists(st.one_of(st.floats(), st.text(max_size=2), st.none()), max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=1), st.integers(), max_size=2),
)
ARGUMENTS = ("coords", "latlon", "matrix", "demand", "prize", "penalty", "real_prize", "ids", "depot")
LIMITS = ("capacity", "max_length", "min_prize", "problem")


@FEW
@given(
    st.dictionaries(st.sampled_from(ARGUMENTS), anything, max_size=4),
    st.dictionaries(st.sampled_from(LIMITS), st.one_of(st.none(), st.floats(), st.text(max_size=4)), max_size=2),
)
def test_anything_else_is_one_clear_line(arrays: dict, limits: dict) -> None:
    try:
        solve(**arrays, **limits, seconds=0)
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 (an answer is fine, too)
        assert len(str(error)) < 400  # noqa: PT017


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "give coords, latlon or matrix"),
        ({"coords": [[0, 0]]}, "one stop"),
        ({"coords": []}, "shape"),
        ({"coords": [[0, 0], [1]]}, "unequal"),
        ({"coords": [[0, 0], [1, float("nan")]]}, "row 1 of coords"),
        ({"coords": [[0, 0], [1, "a"]]}, "not a number"),
        ({"coords": [[0, 0], [1, 1]], "latlon": [[0, 0], [1, 1]]}, "both coords and latlon"),
        ({"latlon": [[0, 0], [100, 1]]}, "row 1"),
        ({"matrix": [[0, 1, 2], [1, 0, 2]]}, "as many columns"),
        ({"coords": [[0, 0], [1, 1]], "matrix": [[0]]}, "1 rows"),
        ({"coords": [[0, 0], [1, 1]], "demand": [0, 1]}, "capacity"),
        ({"coords": [[0, 0], [1, 1]], "demand": [0, 9], "capacity": 5}, "more than the capacity"),
        ({"coords": [[0, 0], [1, 1]], "demand": [1], "capacity": 5}, "2 stops need (2,)"),
        ({"coords": [[0, 0], [1, 1]], "capacity": 5}, "no demand"),
        ({"coords": [[0, 0], [1, 1]], "ids": ["a", "a"]}, "already used"),
        ({"coords": [[0, 0], [1, 1]], "ids": ["a"]}, "1 ids for 2 stops"),
        ({"coords": [[0, 0], [1, 1]], "depot": 2}, "0 to 1"),
        ({"coords": [[0, 0], [1, 1]], "seconds": -1}, "seconds is -1"),
        ({"coords": [[0, 0], [1, 1]], "seconds": float("nan")}, "seconds is nan"),
        ({"coords": [[0, 0], [1, 1]], "seconds": "a"}, "seconds is 'a'; a number from 0"),
        ({"coords": [[0, 0], [1, 1]], "seconds": None}, "seconds is None"),
        ({"coords": [[0, 0], [1, 1]], "seed": -1}, "seed is -1; a whole number from 0"),
        ({"coords": [[0, 0], [1, 1]], "seed": 1.5}, "seed is 1.5"),
        ({"coords": [[0, 0], [1, 1]], "threads": -1}, "threads is -1; a whole number from 1"),
        ({"coords": [[0, 0], [1, 1]], "threads": 0}, "threads is 0"),
        ({"coords": [[0, 0], [1, 1]], "threads": True}, "threads is True"),
        (
            {"coords": [[0, 0], [1, 1]], "demand": [0, 1], "capacity": "abc"},
            "the arguments: the capacity given is 'abc', not a number",
        ),
        ({"coords": [[0, 0], [1, 1]], "max_length": "1.000,5"}, "nothing between thousands, as 1000.5"),
        ({"coords": [[0, 0], [1, 1]], "problem": "vrpx"}, "unknown problem"),
        ({"coords": [[0, 0], [1, 1]], "model": "nowhere.safetensors"}, "no such model"),
        ({"coords": [[0, 0], [1, 1]], "prize": [0, 1], "penalty": [0, 1], "min_prize": 7}, "out of reach"),
    ],
)
def test_messages_say_what_and_where(arguments: dict, words: str) -> None:
    with pytest.raises(InputError) as caught:
        solve(**arguments)
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_numbers_of_numpy_are_numbers() -> None:
    found = solve([[0, 0], [0, 1], [1, 1]], seconds=np.float32(0.01), seed=np.int64(3), threads=np.int64(1))
    assert len(found.routes[0]) == 3
