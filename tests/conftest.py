"""What all tests share: a fixed seed before each, and every problem as a parameter."""

from __future__ import annotations

import os
from pathlib import Path

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


@pytest.fixture(scope="session")
def authors_answers() -> Path:
    """The folder with the authors' checkpoints and what their code answers with them, where there is one."""
    folder = Path(os.environ.get("ROUTELEARN_REFERENCE_DATA", "reference_data")) / "reference"
    if not (folder / "golden-n20.json").is_file():
        pytest.skip("no answers of the authors' code: ROUTELEARN_REFERENCE_DATA names no folder with reference/")
    return folder
