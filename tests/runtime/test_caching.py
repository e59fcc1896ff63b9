"""Compiled code is kept where that can be written, else in a private temporary folder, else nowhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from routelearn.runtime import caching

NOWHERE = """
import warnings
from pathlib import Path
from routelearn.runtime import caching
caching.writable = lambda folder: False
caching.private_folder = lambda: None
print(caching.choose_place(Path("package")))
import routelearn
print(routelearn.solve([[0, 0], [1, 1], [2, 3]], seconds=0).cost)
"""


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """Neither package nor home can be written; temporary files have a folder."""
    monkeypatch.setenv(caching.VARIABLE, "")
    monkeypatch.setattr(caching, "writable", lambda folder: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_nothing_changes_where_the_package_can_be_written_or_a_place_is_named(tmp_path, read_only, monkeypatch):
    monkeypatch.setenv(caching.VARIABLE, "mine")
    assert caching.choose_place(tmp_path) is None
    monkeypatch.setenv(caching.VARIABLE, "")
    monkeypatch.setattr(caching, "writable", lambda folder: folder == tmp_path)
    assert caching.choose_place(tmp_path) is None
    assert not os.environ[caching.VARIABLE]


def test_a_private_temporary_folder_is_taken_and_named(read_only):
    words = caching.choose_place(read_only / "package")
    folder = read_only / f"routelearn-{os.getuid()}"
    assert os.environ[caching.VARIABLE] == str(folder)
    assert words is not None
    assert str(folder) in words
    assert folder.stat().st_mode & 0o077 == 0


def test_a_folder_that_others_can_write_is_not_trusted(read_only):
    folder = read_only / f"routelearn-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    assert caching.private_folder() is None
    folder.rmdir()
    folder.symlink_to(read_only)
    assert caching.private_folder() is None


def test_without_any_place_code_is_compiled_and_kept_nowhere():
    done = subprocess.run([sys.executable, "-c", NOWHERE], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("compiled code cannot be kept")


def test_a_folder_that_is_not_there_is_judged_by_its_parents(tmp_path):
    assert caching.writable(tmp_path / "a" / "b")
    (tmp_path / "file").write_text("")
    assert not caching.writable(tmp_path / "file" / "b")


NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
SOLVE = "import sys; from routelearn.cli import main; main(['solve', *sys.argv[1:]])"


def test_an_ordinary_user_solves_with_a_package_and_a_home_that_are_really_read_only(tmp_path):
    """As another user, because permissions do not bind root."""
    root = Path(caching.__file__).parents[2]
    if not hasattr(os, "getuid") or os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root, with setpriv, can become a user who may not write the package")
    if subprocess.run([*NOBODY, sys.executable, "-c", "import torch"], capture_output=True, check=False).returncode:
        pytest.skip("another user cannot run this Python")
    with tempfile.TemporaryDirectory() as temporary:  # not in tmp_path, which is root's alone
        os.chmod(temporary, 0o777)
        environment = {"HOME": "/nonexistent", "PYTHONPATH": str(root), "TMPDIR": temporary, "PATH": os.environ["PATH"]}
        file = Path(temporary) / "stops.csv"
        file.write_text("x,y\n0,0\n3,4\n6,0\n")
        command = [*NOBODY, sys.executable, "-c", SOLVE, str(file), "--seconds", "0"]
        done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "tsp: length 16" in done.stdout
        assert f"compiled code is kept in {temporary}/routelearn-65534" in done.stderr
