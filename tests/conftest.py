"""What all tests share: a fixed seed before each, and every problem as a parameter."""

from __future__ import annotations

import pytest
import torch

from routelearn.problems import PROBLEMS, Problem

torch.set_num_threads(1)  # the tensors are tiny: threads only get in each other's way, above all under xdist


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Every test starts from the same random state, in whatever order the tests run."""
    torch.manual_seed(1)


@pytest.fixture(params=list(PROBLEMS))
def problem(request: pytest.FixtureRequest) -> Problem:
    return PROBLEMS[request.param]
