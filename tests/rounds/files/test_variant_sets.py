"""Instances of variants as rounds: what the search finds, the variants' own referee accepts at the same cost."""

from __future__ import annotations

import pytest
import torch

from routelearn.data import npz
from routelearn.data.generate import generate
from routelearn.errors import InputError
from routelearn.problems.base import take
from routelearn.problems.variants import NAMES
from routelearn.problems.vrp import VRP
from routelearn.rounds.files.variants import read_set, round_of
from routelearn.rounds.solving import solve_round


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_of_the_round_is_a_solution_of_the_instance(name: str) -> None:
    problem = VRP(name)
    x = take(generate(problem, 9, count=2), [1])
    x = x._replace(**{field: getattr(x, field).double() for field in ("xy", "window", "service", "max_length")})
    found = solve_round(round_of(x, "set.npz[1]"), iterations=100)
    first = x.depots.shape[1]
    used = [depot for depot in range(first) if x.depots[0, depot]]
    routes = [(used[route.vehicle], [first + stop for stop in route.stops]) for route in found.plan.routes]
    tour = torch.tensor([node for depot, nodes in routes for node in (depot, *nodes)])[None, None]
    problem.check(x, tour)
    assert float(problem.cost(x, tour)) == pytest.approx(found.cost, abs=1e-6)


def test_a_set_gives_all_its_rounds_or_the_one_that_is_named(tmp_path) -> None:
    path = tmp_path / "set.npz"
    npz.save(path, "vrp", generate("mdovrptw", 5, count=3))
    assert [one.source for one in read_set(path)] == [f"{path}[{k}]" for k in range(3)]
    assert [one.source for one in read_set(f"{path}[2]")] == [f"{path}[2]"]
    with pytest.raises(InputError, match=r"set\.npz\[3\]: the file holds 3 instances, numbered from 0"):
        read_set(f"{path}[3]")


def test_sets_of_other_problems_and_other_files_hold_no_rounds(tmp_path) -> None:
    npz.save(tmp_path / "set.npz", "cvrp", generate("cvrp", 5, count=3))
    (tmp_path / "a.csv").write_text("id,x,y\na,0,0\nb,1,1\n")
    for name in ("set.npz", "set.npz[1]", "a.csv", "none.npz"):
        assert read_set(tmp_path / name) == []
