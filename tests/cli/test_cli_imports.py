"""What a command needs in order to start: training and evaluating do without all that they do not use."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata

import pytest

NEEDED = ("torch", "numpy", "numba", "safetensors", "typer", "rich")

# Whatever else is installed is hidden, as on a machine that does not have it.
HIDDEN = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in hidden else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

hidden = set(sys.argv[1].split(","))
sys.meta_path[:] = map(Without, sys.meta_path)
from routelearn.cli import main
for line in sys.argv[2:]:
    try:
        main(line.split("|"))
    except SystemExit as end:
        if end.code:
            raise
"""


def run_without(hidden, *lines):
    return subprocess.run(
        [sys.executable, "-c", HIDDEN, ",".join(sorted(hidden)), *("|".join(map(str, line)) for line in lines)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def canonical(name):
    return name.lower().replace("_", "-").replace(".", "-")


def required_by(names):
    """The distributions that these need, themselves included, without extras."""
    found, left = set(), [canonical(name) for name in names]
    while left:
        name = left.pop()
        if name in found:
            continue
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        found.add(name)
        for line in requires:
            if "extra ==" not in line:
                left.append(canonical(re.match(r"[\w.-]+", line)[0]))
    return found


def others():
    """Top-level modules of every installed distribution that the six do not need."""
    needed = required_by(NEEDED)
    modules = metadata.packages_distributions()
    mine = {name for name, owners in modules.items() if any(canonical(owner) in needed for owner in owners)}
    return {name for name in modules if name not in mine and name != "routelearn" and name.isidentifier()}


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_help_needs_no_plotting_reading_or_solving_library(command):
    done = run_without({"matplotlib", "vrplib", "scipy", "pyvrp", "ortools", "pandas"}, [command, "--help"])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: routelearn {command}")


def test_the_six_libraries_are_found():
    assert {"torch", "numpy", "numba", "llvmlite", "safetensors", "typer", "rich", "sympy"} <= required_by(NEEDED)
    assert "pytest" in others()
    assert not others() & {"torch", "numpy", "numba", "safetensors", "typer", "rich"}


def test_training_and_evaluating_run_with_six_libraries(tmp_path):
    data, run = tmp_path / "x.npz", tmp_path / "run"
    tiny = ("--width", 32, "--heads", 2, "--layers", 1, "--epochs", 1, "--epoch-steps", 1, "--batch", 4)
    done = run_without(
        others(),
        ["generate", "tsp", 6, "--count", 4, "--out", data],
        ["train", "tsp", 6, *tiny, "--validation-instances", 4, "--device", "cpu", "--out", run],
        ["evaluate", data, "--model", run / "last.safetensors", "--device", "cpu"],
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "mean cost" in done.stdout


def test_garbage_is_collected_once_the_libraries_are_loaded():
    """While they load it is not, which makes a command start sooner; they are then left out of every collection."""
    ask = (
        "import gc, sys, routelearn.commands.solvers as module\n"
        "from routelearn.cli import main\n"
        "module.solvers = lambda: print(gc.isenabled(), gc.get_freeze_count() > 1000)\n"
        "sys.argv = ['routelearn', 'solvers']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "True"]
