"""The seconds given are kept, for every size; and the policy alone answers soon after the program starts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import product

import numpy as np
import pytest
from paper_problems import PAPER
from solving_referee import judge, random_case

from routelearn.solving import solve

# Beside other tests a wall clock tells nothing, so these run alone: ROUTELEARN_TIMINGS=1 pytest -n 0 FILE
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("ROUTELEARN_TIMINGS" not in os.environ, reason="set ROUTELEARN_TIMINGS=1 on an idle machine"),
]


@pytest.mark.parametrize(
    ("name", "seconds"), [*product(PAPER, (0.1, 1.0)), ("tsp", 10.0), ("cvrp", 10.0), ("spctsp", 10.0)]
)
def test_time_limits_are_kept(name: str, seconds: float) -> None:
    rng = np.random.default_rng(3)
    solve(**random_case(name, 10, rng).arguments(), seconds=0.05)
    for customers in (10, 100, 500, 2000) if seconds < 10 else (100, 2000):
        case = random_case(name, customers, rng)
        began = time.perf_counter()
        solution = solve(**case.arguments(), seconds=seconds)
        took = time.perf_counter() - began
        assert took <= seconds * 1.05 + 0.05, f"{customers} stops: {took:.3f} s"
        assert solution.cost == pytest.approx(judge(case, solution.routes), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("demand", [False, True])
def test_the_first_answer_comes_within_three_seconds_of_the_start(demand: bool) -> None:
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{x},{y}{f',{min(i, 1)}' if demand else ''}" for i, (x, y) in enumerate(rng.random((50, 2))))
    command = [sys.executable, "-m", "routelearn", "solve", "-", "--seconds", "0"]
    command += ["--capacity", "9"] if demand else []
    header = "x,y,demand" if demand else "x,y"
    began = time.perf_counter()
    done = subprocess.run(command, input=f"{header}\n{rows}\n", text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "by the policy" in done.stdout
    assert time.perf_counter() - began < 3


def test_heavy_libraries_wait_until_they_are_needed() -> None:
    code = (
        "import sys; from routelearn.solving import solve; solve([[0, 0], [1, 1], [0, 1]], seconds=0);"
        "print([m for m in ('numba', 'matplotlib', 'triton') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert done.stdout.strip() == "[]"
