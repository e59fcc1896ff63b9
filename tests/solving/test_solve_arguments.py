"""What a Python caller gives may be numpy's or torch's, of any precision."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
import torch

from routelearn.data.numbers import exact, plain
from routelearn.errors import InputError
from routelearn.solving import solve, solve_many, stops_of

PLACES = [(0, 0), (1, 0), (0, 1)]
FIVES = [np.int64(5), np.uint8(5), np.float32(5), np.float16(5), np.array(5), torch.tensor(5), torch.tensor(5.0)]


@pytest.mark.parametrize("five", FIVES, ids=repr)
def test_limits_are_numbers_of_any_kind(five: object) -> None:
    assert solve(PLACES, demand=[0, 1, 1], capacity=five, seconds=0).limits == {"capacity": 5}
    assert solve(PLACES, max_length=five, seconds=0).limits == {"max_length": 5}
    many = solve_many([PLACES] * 2, demand=[[0, 1, 1]] * 2, capacity=five, seconds=0)
    assert [solution.limits for solution in many] == [{"capacity": 5}] * 2


def test_effort_and_depot_are_so_too() -> None:
    solution = solve(
        PLACES, max_length=4, depot=torch.tensor(2), seconds=torch.tensor(0), seed=np.int64(3), threads=np.int64(1)
    )
    assert solution.depot == 2


@pytest.mark.parametrize(
    "demand",
    [
        np.array([0, 0.3, 0.7], dtype=np.float32),
        np.array([0, 0.3, 0.7], dtype=np.float16),
        torch.tensor([0, 0.3, 0.7]),
        [0, np.float32(0.3), np.float32(0.7)],
        (torch.tensor(0), torch.tensor(0.3), 0.7),
        np.array([0, 0.3, 0.7]),
    ],
    ids=lambda demand: f"{type(demand).__name__} {getattr(demand, 'dtype', '')}",
)
def test_demands_of_single_precision_are_the_decimals_that_were_meant(demand: object) -> None:
    assert stops_of(coords=PLACES, demand=demand).columns["demand"] == (0, Fraction(3, 10), Fraction(7, 10))
    assert solve(PLACES, demand=demand, capacity=np.float32(1.1), seconds=0).limits == {"capacity": 1.1}


@pytest.mark.parametrize("value", [0.1, 0.3, 1234.567, 2.5, 100.25, 8388607.5, 16777215.0, 1e-4])
def test_single_precision_gives_back_what_was_written(value: float) -> None:
    assert plain(np.float32(value)) == value


def test_the_dust_of_single_precision_is_wiped_off_and_no_more() -> None:
    assert plain(np.nextafter(np.float32(0.7), np.float32(1))) == 0.7
    assert plain(np.nextafter(np.float32(10), np.float32(11))) == 10
    assert plain(np.float32(1 / 3)) == 0.33333334
    with pytest.raises(InputError, match="more than 6 decimals"):
        solve(PLACES, demand=np.array([0, 1 / 3, 1], dtype=np.float32), capacity=2, seconds=0)


@pytest.mark.parametrize("value", [np.True_, torch.tensor(True), np.complex64(1), np.array([1.0]), np.float32("nan")])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"here: it is .*not a (finite )?number"):
        exact(value, "here", "it")


def test_a_precision_that_numpy_does_not_have() -> None:
    assert solve(torch.tensor(PLACES, dtype=torch.bfloat16), seconds=0).length == pytest.approx(2 + 2**0.5)


def test_iterators_and_arrays_of_objects_are_read_as_lists() -> None:
    xs, ys = zip(*PLACES, strict=True)
    for coords in (zip(xs, ys, strict=True), iter(PLACES), np.array(PLACES, dtype=object)):
        assert stops_of(coords=coords, demand=(amount for amount in (0, 1, 2))).columns["demand"] == (0, 1, 2)
    with pytest.raises(InputError, match="coords holds something that is not a number"):
        stops_of(coords=np.array([(0, "1"), (1, 0)], dtype=object))


def test_many_instances_may_come_in_any_container() -> None:
    class Series:  # as those of pandas: its rows have names
        def __init__(self, rows: list[object]) -> None:
            self.rows = {f"row {i}": row for i, row in enumerate(rows)}

        def __iter__(self) -> Iterator[object]:
            return iter(self.rows.values())

        def __len__(self) -> int:
            return len(self.rows)

        def __getitem__(self, name: str) -> object:
            return self.rows[name]

    for container in (iter, tuple, Series):
        found = solve_many(container([PLACES] * 2), demand=container([[0, 1, 1]] * 2), capacity=2, seconds=0)
        assert [solution.limits for solution in found] == [{"capacity": 2}] * 2
    with pytest.raises(InputError, match="coords is a dict; one entry per instance is needed"):
        solve_many({"a": PLACES}, seconds=0)
