"""What all tests share: a fixed seed before each, every problem as a parameter, and a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from routelearn.problems import PROBLEMS, Problem

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM_VARIABLE = "ROUTELEARN_CHROMIUM"

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


def find_chromium(playwright: Any) -> str | None:
    """The path of a Chromium: the variable's, one on PATH, or Playwright's own; None if there is none."""
    named = os.environ.get(CHROMIUM_VARIABLE)
    if named:
        assert Path(named).exists(), f"{CHROMIUM_VARIABLE} names {named}, which is not there"
        return named
    found = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    own = playwright.chromium.executable_path
    return found or (own if Path(own).exists() else None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="needs routelearn[service-tests]")
    with api.sync_playwright() as playwright:
        path = find_chromium(playwright)
        if path is None:
            names = ", ".join(CHROMIUM)
            pytest.skip(
                f"no Chromium: {names} are not on PATH; set {CHROMIUM_VARIABLE}, or playwright install chromium"
            )
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()
