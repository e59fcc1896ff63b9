"""The commands in README.md are real: each parses, and each runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from routelearn.cli import COMMANDS, command, take_plugins

ROOT = Path(__file__).parents[2]
# Training for real takes minutes on a GPU, so the last word is that of these flags.
SHORT = ["--device", "cpu", "--width", "32", "--heads", "2", "--layers", "1", "--epochs", "1", "--epoch-steps", "2"]
SHORT += ["--batch", "4", "--validation-instances", "8", "--evaluation-instances", "8"]
UNBOUNDED = {"reproduce", "serve"}  # whole tables, a server: parsed here, run by their own tests


def readme_commands():
    """The lines of code blocks that begin with `routelearn`, continued lines joined, comments left out."""
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    words = [
        shlex.split(line.removeprefix("$ "), comments=True) for line in lines if re.match(r"(\$ )?routelearn ", line)
    ]
    return [line[1:] for line in words]


def needed():
    found = readme_commands()
    if not found:
        pytest.skip("README.md has no code block with a routelearn command")
    return found


def test_every_command_in_the_readme_is_understood():
    for line, _ in map(take_plugins, needed()):
        if line[0].startswith("-"):
            continue
        assert line[0] in COMMANDS
        pipe = next((i for i, word in enumerate(line) if word in ("|", ">", "<", "&&")), len(line))
        if "--help" not in line:
            command(line[0]).make_context(line[0], line[1:pipe])


@pytest.mark.slow
def test_every_command_in_the_readme_runs(tmp_path):
    """In order, in one folder, for a later one may use the files of an earlier one."""
    for name in ("examples", "docs"):
        if (ROOT / name).is_dir():
            (tmp_path / name).symlink_to(ROOT / name)
    for line in needed():
        if line[0] in UNBOUNDED:
            continue
        more = SHORT if line[0] == "train" and "--help" not in line else []
        program = shlex.quote(sys.executable)
        words = [word if word in ("|", ">", "<", "&&") else shlex.quote(word) for word in [*line, *more]]
        done = subprocess.run(
            f"{program} -m routelearn {' '.join(words)}", shell=True, cwd=tmp_path, capture_output=True, text=True,
            timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"routelearn {' '.join(line)}: {done.stderr}"
