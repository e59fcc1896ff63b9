"""`register`: the kind is found, what is missing is named, taken names are refused, and the thing comes back."""

from __future__ import annotations

import re
import runpy

import pytest
from plugin_cases import BASELINE, LOSS, POLICY, PROBLEM, SOLVER
from torch import nn

import routelearn
from routelearn import plugins, registering, solvers
from routelearn.data.fields import template
from routelearn.errors import InputError
from routelearn.policies import POLICIES
from routelearn.policies.attention import AttentionPolicy
from routelearn.problems import PROBLEMS
from routelearn.problems.tsp import TSP
from routelearn.training.baselines import BASELINES, Baseline
from routelearn.training.losses import LOSSES


def refused(path, line):
    with pytest.raises(InputError) as error:
        plugins.load(path)
    assert str(error.value) == line


def named(name):
    return type("Other", (TSP,), {"name": name})()


EVERY_KIND = {
    "mini-tsp": (PROBLEM, PROBLEMS),
    "mini-attention": (POLICY, POLICIES),
    "in-order": (SOLVER, solvers.SOLVERS),
    "mini-loss": (LOSS, LOSSES),
    "mini-baseline": (BASELINE, BASELINES),
}


@pytest.mark.parametrize("name", EVERY_KIND)
def test_every_kind_finds_its_registry_and_its_plugin(write, tmp_path, name):
    text, registry = EVERY_KIND[name]
    before = list(registry)
    plugin = plugins.load(write("mine.py", text))
    assert list(registry) == [*before, name]
    assert registry.plugin_of(name) is plugin
    assert (plugin.name, plugin.path) == ("mine.py", str(tmp_path / "mine.py"))
    plugins.forget(plugin)
    assert list(registry) == before


def test_a_decorated_class_stays_a_class_and_objects_are_registered():
    @routelearn.register
    class Mine(TSP):
        name = "mine"

    assert isinstance(Mine, type)
    assert isinstance(PROBLEMS["mine"], Mine)
    other = Mine()
    other.name = "mine-too"
    assert routelearn.register(other) is other
    assert PROBLEMS["mine-too"] is other


def test_a_problem_without_a_name_takes_the_one_that_is_given():
    class Mine(TSP):
        name = None

    thing = Mine()
    routelearn.register(thing, name="mine")
    assert (PROBLEMS["mine"], thing.name) == (thing, "mine")


def test_a_script_that_registers_is_the_plugin(write, tmp_path):
    runpy.run_path(write("script.py", PROBLEM), run_name="__main__")
    plugin = PROBLEMS.plugin_of("mini-tsp")
    assert (plugin.file, plugin.path, plugin.module) == ("script.py", str(tmp_path / "script.py"), "__main__")
    assert plugins.load("script.py") is plugin  # not run a second time


def test_a_notebook_is_called_main_and_may_register_again():
    cell = {"__name__": "__main__"}
    for _ in range(2):
        exec(PROBLEM, cell)
    assert PROBLEMS.plugin_of("mini-tsp").record() == {
        "file": "__main__", "path": None, "sha256": None, "module": "__main__"
    }  # fmt: skip
    assert isinstance(PROBLEMS["mini-tsp"], cell["Mini"])


def test_a_problem_that_is_registered_anew_shows_its_new_fields():
    cell = {"__name__": "__main__"}
    exec(PROBLEM, cell)
    assert template(PROBLEMS["mini-tsp"])._fields == ("xy", "distances")
    exec(PROBLEM.replace("tsp import TSP", "cvrp import CVRP").replace("(TSP)", "(CVRP)"), cell)
    assert "demand" in template(PROBLEMS["mini-tsp"])._fields


# ---------------------------------------------------------------------------------------------- what is missing

LACKING = {
    "problem": (
        """
        import routelearn

        class Foo:
            name = "foo"
            feature_dims, context_nodes, context_scalars, step_dim = (2,), 2, 0, 0
            has_depot = maximise = reveals_on_visit = False
            sample = validate = max_steps = initial = feasible = step = done = context = len
            step_features = starts = check = len

        routelearn.register(Foo())
        """,
        "line 10: class Foo lacks `features`, `cost`; a problem needs them (see docs/guides/add_a_problem.md)",
    ),
    "policy": (
        """
        import routelearn
        from torch import nn

        @routelearn.register(name="foo")
        class Foo(nn.Module):
            compiles = False
            encode = begin = step = choose = len
        """,
        "line 4: class Foo lacks `score`; a policy needs it (see docs/guides/extend.md)",
    ),
    "loss": (
        """
        import routelearn
        from routelearn.training.losses import Loss

        @routelearn.register(name="foo")
        class Foo(Loss):
            pass
        """,
        "line 4: class Foo lacks `__call__`; a loss needs it (see docs/guides/extend.md)",
    ),
    "baseline": (
        """
        import routelearn
        from routelearn.training.baselines import Baseline

        @routelearn.register(name="foo")
        class Foo(Baseline):
            def prepare(self, x, features):
                return None
        """,
        "line 4: class Foo lacks `value`; a baseline needs it (see docs/guides/extend.md)",
    ),
    "solver": (
        """
        import routelearn

        @routelearn.register
        class Foo:
            name, problems, licence = "foo", frozenset({"tsp"}), "MIT"
            def solve(self, problem, x, *, seconds, seed=0):
                return None
        """,
        "line 3: class Foo lacks `anytime`, `exact`, `unavailable`; a solver needs them (see docs/guides/extend.md)",
    ),
}


@pytest.mark.parametrize("kind", LACKING)
def test_what_a_thing_lacks_is_named_with_file_and_line(write, kind):
    text, line = LACKING[kind]
    refused(write("my_variant.py", text), f"my_variant.py, {line}")


class Policylike:
    encode = begin = step = choose = score = compiles = None


class NeedsArguments(TSP):
    name = "needs-arguments"

    def __init__(self, capacity):
        self.capacity = capacity


REFUSED = {
    "not a thing at all": (lambda: routelearn.register(3), "3 is not a problem, policy, loss, baseline or solver"),
    "a class of nothing": (lambda: routelearn.register(object), "class object is not a problem, policy, loss"),
    "a policy that is no module": (
        lambda: routelearn.register(Policylike, "x"),
        "class Policylike has a policy's methods but is not a torch.nn.Module; derive it from that",
    ),
    "an object where a class is needed": (
        lambda: routelearn.register(nn.Linear(1, 1), "x"),
        "an object of class Linear; register the class itself",
    ),
    "a class with arguments": (
        lambda: routelearn.register(NeedsArguments),
        "register an object: routelearn.register(NeedsArguments(...))",
    ),
    "no name": (
        lambda: routelearn.register(AttentionPolicy),
        'class AttentionPolicy has no name; say routelearn.register(..., name="mine")',
    ),
    "a name that does not fit": (
        lambda: routelearn.register(named("a b")),
        "the name 'a b' does not fit; use up to 40 letters, digits, dots, - and _",
    ),
    "two names": (
        lambda: routelearn.register(named("a"), name="b"),
        "class Other is called 'a' already, not 'b'; leave one of the names out",
    ),
    "a taken problem": (
        lambda: routelearn.register(named("cvrp")),
        "the problem name 'cvrp' is taken (by routelearn itself); choose another",
    ),
    "a taken baseline": (
        lambda: routelearn.register(type("Mine", (Baseline,), {"value": len}), "critic"),
        "the baseline name 'critic' is taken (by routelearn itself); choose another",
    ),
    "a taken policy": (
        lambda: routelearn.register(type("Mine", (AttentionPolicy,), {}), "pointer"),
        "the policy name 'pointer' is taken (by routelearn itself); choose another",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_registered_is_refused_in_a_line(case):
    call, words = REFUSED[case]
    before = list(PROBLEMS)
    with pytest.raises(InputError, match=re.escape(words)) as error:
        call()
    assert re.match(r"test_registering\.py, line \d+: ", str(error.value))
    assert "\n" not in str(error.value)
    assert list(PROBLEMS) == before


def test_a_name_taken_by_another_plugin_names_that_plugin(write):
    plugins.load(write("first.py", PROBLEM))
    write("second.py", PROBLEM)
    refused("second.py", "second.py, line 4: the problem name 'mini-tsp' is taken (by first.py); choose another")


def test_one_name_twice_in_one_file_is_refused(write):
    again = PROBLEM + "routelearn.register(Mini())\n"
    line = "twice.py, line 7: the problem name 'mini-tsp' is taken (by twice.py); choose another"
    refused(write("twice.py", again), line)
    assert "mini-tsp" not in PROBLEMS


def test_kinds_need_what_their_protocols_say():
    assert {"encode", "begin", "step", "choose", "score"} <= set(registering.POLICY.needs)
    assert {"sample", "features", "feasible", "cost", "check", "has_depot"} <= set(registering.PROBLEM.needs)
    assert {"solve", "unavailable", "problems"} <= set(registering.SOLVER.needs)
