"""--plugin on the command line: before or after the command, repeated, in help texts, and wrong in every way."""

from __future__ import annotations

import pytest
from plugin_cases import BASELINE, POLICY, PROBLEM, SOLVER, run

from routelearn import cli


def call(capsys, *arguments):
    """(status, standard output, standard error) of the command line, in this process."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        cli.main([str(argument) for argument in arguments])
    return int(end.value.code or 0), *capsys.readouterr()


@pytest.mark.parametrize(
    ("given", "others", "wanted"),
    [
        (["solve", "a.csv"], ["solve", "a.csv"], []),
        (["--plugin", "p.py", "solve", "a.csv"], ["solve", "a.csv"], ["p.py"]),
        (["solve", "--plugin", "p.py", "a.csv"], ["solve", "a.csv"], ["p.py"]),
        (["solve", "a.csv", "--plugin=p.py", "--plugin", "q.py"], ["solve", "a.csv"], ["p.py", "q.py"]),
        (["solve", "--", "--plugin", "p.py"], ["solve", "--", "--plugin", "p.py"], []),
        (["--plugin", "p.py"], [], ["p.py"]),
    ],
)
def test_plugins_are_taken_out_of_the_arguments(given, others, wanted):
    assert cli.take_plugins(given) == (others, wanted)


@pytest.mark.parametrize("line", [["models", "--plugin"], ["--plugin=", "models"]])
def test_a_plugin_without_a_name_is_told(capsys, line):
    assert call(capsys, *line) == (2, "", "error: --plugin needs a file, such as --plugin my_variant.py\n")


def test_what_is_wrong_with_a_plugin_is_one_line(capsys, write):
    write("broken.py", "import routelearn\nfoo()\n")
    status, out, err = call(capsys, "models", "--plugin", "broken.py")
    assert (status, out) == (2, "")
    assert err == "error: broken.py, line 2: NameError: name 'foo' is not defined\n"
    assert call(capsys, "--plugin", "gone.py", "models")[2] == "error: gone.py: no such plugin file\n"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (
            'raise routelearn.Infeasible(0, "never right")',
            "error: a solution broke a rule: instance 0, solution 0: never right; ",
        ),
        ('raise ValueError("oh")', "ValueError: oh\nin mine.py, line 9; "),
    ],
)
def test_a_fault_in_a_plugins_problem_is_told_with_what_finds_it(write, tmp_path, fault, told):
    write("mine.py", f"{PROBLEM}\n    def check(self, x, tour, tolerance=0.0):\n        {fault}\n")
    (tmp_path / "a.csv").write_text("x,y\n0,0\n3,4\n6,0\n")
    done = run("solve", "a.csv", "--problem", "mini-tsp", "--seconds", "0", "--plugin", "mine.py", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith(f'{told}routelearn.check_problem("mini-tsp") may know why\n')


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_help_says_that_there_are_plugins(capsys, name):
    status, out, _ = call(capsys, name, "--help")
    assert status == 0
    assert "--plugin FILE.py loads a plugin" in " ".join(out.split())


def test_the_overview_names_plugins(capsys):
    assert "--plugin FILE.py, on any command" in call(capsys, "--help")[1]


def test_solvers_of_a_plugin_are_listed(capsys, write):
    write("mine.py", SOLVER)
    status, out, _ = call(capsys, "solvers", "--plugin", "mine.py")
    assert status == 0
    assert "in-order" in out


def test_commands_in_processes_of_their_own_know_the_plugin(write, tmp_path):
    """Instances of a problem from outside, judged by a solver from outside; the plugin stands before and after."""
    write("problem.py", PROBLEM)
    write("solver.py", SOLVER.replace('{"tsp"}', '{"mini-tsp"}'))
    made = run("generate", "mini-tsp", 6, "--count", 4, "--out", "x.npz", "--plugin", "problem.py", folder=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    line = ("--plugin", "problem.py", "evaluate", "x.npz", "--solver", "in-order")
    judged = run(*line, "--plugin=solver.py", folder=tmp_path)
    assert (judged.returncode, judged.stderr) == (0, "")
    assert judged.stdout.startswith("x.npz: 4 instances of mini-tsp, 6 nodes, in-order\n")
    without = run("evaluate", "x.npz", folder=tmp_path)
    assert without.returncode == 2
    assert without.stderr.startswith("error: x.npz: unknown problem 'mini-tsp'; the choices are tsp, ")
    assert without.stderr.count("\n") == 1
    through_environment = run(
        *line[2:], folder=tmp_path, ROUTELEARN_PLUGINS=f"{tmp_path}/problem.py:{tmp_path}/solver.py"
    )
    assert through_environment.stdout.splitlines()[:2] == judged.stdout.splitlines()[:2]


def test_training_names_the_problem_and_its_model_needs_the_plugin(capsys, write, tmp_path):
    write("problem.py", PROBLEM)
    told = run("train", "--help", "--plugin", "problem.py", folder=tmp_path)
    assert "spctsp, vrp, mini-tsp" in " ".join(told.stdout.split())
    tiny = ("--width", 16, "--heads", 2, "--layers", 1, "--epochs", 1, "--epoch-steps", 1, "--batch", 4, "--quiet")
    tiny += ("--validation-instances", 4, "--evaluation-instances", 4, "--device", "cpu", "--out", "run")
    made = run("train", "mini-tsp", 6, *tiny, "--plugin", "problem.py", folder=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    assert call(capsys, "generate", "tsp", 6, "--count", 2, "--out", "x.npz")[0] == 0
    evaluate = ("evaluate", "x.npz", "--model", "run/last.safetensors", "--device", "cpu")
    line = "needs the plugin problem.py (not loaded); add --plugin problem.py, or import it before"
    assert call(capsys, *evaluate, "--problem", "tsp") == (2, "", f"error: run/last.safetensors: {line}\n")
    write("problem.py", PROBLEM + "# changed\n")
    assert call(capsys, "generate", "mini-tsp", 6, "--count", 2, "--out", "x.npz", "--plugin", "problem.py")[0] == 0
    noted = run(*evaluate, "--plugin", "problem.py", folder=tmp_path)
    assert noted.returncode == 0
    line = "was made with another version of the plugin problem.py; results may differ"
    assert noted.stderr == f"warning: run/last.safetensors: {line}\n"


def test_a_broken_installed_plugin_does_not_break_a_command(write, tmp_path):
    write("installed_routes.py", "nowhere\n")
    about = tmp_path / "installed_routes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-routes\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[routelearn.plugins]\nroutes = installed_routes\n")
    done = run("generate", "tsp", 6, "--count", 2, "--out", "x.npz", folder=tmp_path)  # -m puts the folder on the path
    assert done.returncode == 0
    why = "installed_routes, line 1: NameError: name 'nowhere' is not defined"
    assert done.stderr == f"warning: the installed plugin 'routes' is left out: {why}\n"
    write("installed_routes.py", PROBLEM)
    done = run("generate", "mini-tsp", 6, "--count", 2, "--out", "x.npz", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    write("installed_routes.py", PROBLEM + BASELINE + POLICY)
    assert run("models", "--plugin", "installed_routes", folder=tmp_path).returncode == 0
