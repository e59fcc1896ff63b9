"""Loading: once a process, every failure one line with file and line, nothing left of what failed half way."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings

import pytest
from plugin_cases import PROBLEM, ROOT, SOLVER

from routelearn import plugins, problems
from routelearn.errors import InputError, Notice
from routelearn.problems import PROBLEMS
from routelearn.solvers import SOLVERS

# What is in the file, and the line that says what is wrong with it.
BROKEN = {
    "a name that is not there": ("import routelearn\nfoo()\n", "my.py, line 2: NameError: name 'foo' is not defined"),
    "no Python": ("import routelearn\n\ndef broken(:\n", "my.py, line 3: SyntaxError: invalid syntax"),
    "a module that is not there": (
        "import no_such_module\n",
        "my.py, line 1: ModuleNotFoundError: No module named 'no_such_module'",
    ),
    "an end of the program": (
        "import sys\nsys.exit(3)\n",
        "my.py, line 2: ends the program (SystemExit: 3); a plugin only registers, and leaves the rest to commands",
    ),
    "an error deeper down": (
        "import json\n\ndef read():\n    json.loads('{')\n\nread()\n",
        "my.py, line 4: JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ),
    "bad input of its own": (
        "from routelearn import problems\nproblems.get('nope')\n",
        "my.py, line 2: unknown problem 'nope'; the choices are tsp, cvrp, sdvrp, op-const, op-unif, op-dist, pctsp, "
        "spctsp, vrp; a plugin's own need --plugin FILE.py",
    ),
    "nothing registered": ("x = 1\n", "my.py: registers nothing; call routelearn.register(...) in it"),
    "nothing at all": ("", "my.py: registers nothing; call routelearn.register(...) in it"),
    "several lines of message": ("raise ValueError('one\\ntwo')\n", "my.py, line 1: ValueError: one two"),
}


def refused(what, line):
    with pytest.raises(InputError) as error:
        plugins.load(what)
    assert str(error.value) == line


@pytest.mark.parametrize("case", BROKEN)
def test_a_plugin_that_does_not_load_is_one_line(write, case):
    text, line = BROKEN[case]
    known = plugins.loaded()
    refused(write("my.py", text), line)
    assert plugins.loaded() == known
    assert plugins.paths() == []


def test_what_is_no_plugin_file_is_told(write, tmp_path):
    refused("none.py", "none.py: no such plugin file")
    refused(
        "no_such_module",
        "no_such_module: no module of that name can be imported; give a file (.py), or install the package",
    )
    refused(write("notes.txt", ""), "notes.txt: a plugin is a Python file (.py) or the name of an importable module")
    refused(tmp_path, f"{tmp_path}: a folder; name the plugin's file, such as {tmp_path}/my_variant.py")
    (tmp_path / "a:b").mkdir()
    refused(
        write("a:b/my.py", PROBLEM),
        "a:b/my.py: child processes cannot be told of a path with ':' in it; move the file",
    )


def test_bytes_that_are_no_text_are_told(write, tmp_path):
    write("my.py", "")
    (tmp_path / "my.py").write_bytes(b"x = '\xff'\n")
    with pytest.raises(InputError, match=r"my\.py.*: (SyntaxError|UnicodeDecodeError): "):
        plugins.load("my.py")


def test_what_failed_half_way_is_taken_back_and_may_be_mended(write):
    refused(write("my.py", PROBLEM + "oops\n"), "my.py, line 7: NameError: name 'oops' is not defined")
    assert "mini-tsp" not in PROBLEMS
    plugins.load(write("my.py", PROBLEM))
    assert "mini-tsp" in PROBLEMS


def test_a_plugin_is_loaded_once_however_it_is_named(write, tmp_path):
    first = plugins.load(write("my.py", PROBLEM + "print('loading')\n"))
    assert plugins.load(tmp_path / "my.py") is first
    assert plugins.load("./my.py") is first
    assert plugins.paths() == [str(tmp_path / "my.py")]


def test_two_files_of_one_name_are_two_plugins(write, tmp_path):
    for folder, name in (("a", "mini-tsp"), ("b", "other-tsp")):
        (tmp_path / folder).mkdir()
        plugins.load(write(f"{folder}/my.py", PROBLEM.replace("mini-tsp", name)))
    assert {"mini-tsp", "other-tsp"} <= set(PROBLEMS)
    assert type(PROBLEMS["mini-tsp"]) is not type(PROBLEMS["other-tsp"])


def test_a_plugin_may_load_another_one(write):
    write("inner.py", PROBLEM)
    outer = "import routelearn\nroutelearn.load_plugin('inner.py')\n" + SOLVER
    plugins.load(write("outer.py", outer))
    assert (PROBLEMS.plugin_of("mini-tsp").name, SOLVERS.plugin_of("in-order").name) == ("inner.py", "outer.py")
    write("inner2.py", "nothing_here\n")
    refused(
        write("outer2.py", "import routelearn\nroutelearn.load_plugin('inner2.py')\n"),
        "outer2.py, line 2: inner2.py, line 1: NameError: name 'nothing_here' is not defined",
    )


@pytest.mark.parametrize("first", ["inner", "outer"])
def test_a_plugin_that_imports_another_one_may_be_given_with_it(write, monkeypatch, tmp_path, first):
    monkeypatch.syspath_prepend(tmp_path)  # before the folders of other tests, whose files have the same names
    monkeypatch.delitem(sys.modules, "inner_one", raising=False)
    files = {"inner": write("inner_one.py", PROBLEM), "outer": write("outer_one.py", "import inner_one\n" + SOLVER)}
    plugins.load(files[first])
    for file in files.values():
        plugins.load(file)
    assert (PROBLEMS.plugin_of("mini-tsp").name, "in-order" in SOLVERS) == (files[first], True)
    monkeypatch.delitem(sys.modules, "inner_one", raising=False)


def test_nothing_is_left_beside_the_file(write, tmp_path):
    plugins.load(write("my.py", PROBLEM))
    assert [path.name for path in tmp_path.iterdir()] == ["my.py"]


# --------------------------------------------------------------------------------------------------- by module


def package(tmp_path, monkeypatch, name, text):
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)


def test_an_importable_module_is_a_plugin_too(tmp_path, monkeypatch):
    package(tmp_path, monkeypatch, "routes_of_mine", PROBLEM)
    plugin = plugins.load("routes_of_mine")
    assert plugin.record()["path"] == str(tmp_path / "routes_of_mine.py")
    assert PROBLEMS.plugin_of("mini-tsp") is plugin
    assert plugins.paths() == ["routes_of_mine"]
    assert plugins.load(str(tmp_path / "routes_of_mine.py")) is plugin


def test_a_module_that_was_imported_before_is_not_refused(tmp_path, monkeypatch):
    package(tmp_path, monkeypatch, "routes_of_mine", PROBLEM)
    __import__("routes_of_mine")
    assert PROBLEMS.plugin_of("mini-tsp") is plugins.load("routes_of_mine")


def test_a_module_that_another_plugin_imported_is_not_refused(tmp_path, monkeypatch):
    package(tmp_path, monkeypatch, "policies_of_mine", SOLVER)
    package(tmp_path, monkeypatch, "routes_of_mine", "import policies_of_mine\n" + PROBLEM)
    assert plugins.load("routes_of_mine") is plugins.load("policies_of_mine")


def test_a_package_is_called_by_its_name_and_known_by_all_its_files(tmp_path, monkeypatch):
    (tmp_path / "whole_package").mkdir()
    package(tmp_path, monkeypatch, "whole_package/problem", PROBLEM)
    package(tmp_path, monkeypatch, "whole_package/__init__", "from whole_package import problem\n")
    for module in ("whole_package", "whole_package.problem"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    before = plugins.load("whole_package").record()
    assert (before["file"], before["module"]) == ("whole_package", "whole_package")
    plugins.forget(plugins.load("whole_package"))
    for module in ("whole_package", "whole_package.problem"):
        monkeypatch.delitem(sys.modules, module)
    (tmp_path / "whole_package" / "problem.py").write_text(PROBLEM + "\n# edited\n")
    assert plugins.load("whole_package").record()["sha256"] != before["sha256"]


def distribution(tmp_path, monkeypatch, text):
    """An installed package, as far as the importer can tell: a module, and its entry point."""
    package(tmp_path, monkeypatch, "installed_routes", text)
    about = tmp_path / "installed_routes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-routes\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[routelearn.plugins]\nroutes = installed_routes\n")
    monkeypatch.setattr(plugins, "_installed_asked", False)


def test_an_unknown_name_is_looked_for_in_installed_packages(tmp_path, monkeypatch):
    distribution(tmp_path, monkeypatch, PROBLEM)
    assert "mini-tsp" not in PROBLEMS
    assert problems.get("mini-tsp").name == "mini-tsp"
    assert PROBLEMS.plugin_of("mini-tsp").module == "installed_routes"


def test_a_broken_installed_plugin_is_left_out_with_a_warning_once(tmp_path, monkeypatch):
    distribution(tmp_path, monkeypatch, "nowhere\n")
    with pytest.warns(Notice) as heard:
        plugins.available()
    assert [str(warning.message) for warning in heard] == [
        "the installed plugin 'routes' is left out: installed_routes, line 1: NameError: name 'nowhere' is not defined"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plugins.available()
    refused("installed_routes", "installed_routes, line 1: NameError: name 'nowhere' is not defined")


# ---------------------------------------------------------------------------------------------- child processes


def test_a_child_process_reads_what_it_is_sent(write, tmp_path):
    """Objects of a plugin's classes travel by the name of its module, which the environment lets the child find."""
    plugins.load(write("my.py", PROBLEM))
    (tmp_path / "sent").write_bytes(pickle.dumps(PROBLEMS["mini-tsp"]))
    code = "import pickle; print(pickle.load(open('sent', 'rb')).name); from routelearn.problems import PROBLEMS; "
    code += "print(PROBLEMS.plugin_of('mini-tsp').file)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.stdout.split(), done.stderr) == (["mini-tsp", "my.py"], "")


def test_the_environment_alone_makes_a_plugin_known(write, tmp_path, monkeypatch):
    monkeypatch.setenv(plugins.VARIABLE, os.pathsep.join([str(tmp_path / write("my.py", PROBLEM))]))
    monkeypatch.setattr(plugins, "_installed_asked", False)
    assert problems.get("mini-tsp").name == "mini-tsp"


def test_a_file_that_the_environment_names_in_vain_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / "gone.py"))
    with pytest.raises(InputError) as error:
        plugins.from_environment()
    assert str(error.value) == f"ROUTELEARN_PLUGINS: {tmp_path}/gone.py: no such plugin file"
