"""A model's card names the plugins that it needs; without them it is refused in a line, and nothing is run."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from plugin_cases import POLICY, PROBLEM
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import routelearn
from routelearn import plugins, policies
from routelearn.errors import InputError, Notice
from routelearn.models import model_file
from routelearn.models.model_file import Model
from routelearn.policies.base import shape_of
from routelearn.problems import get

OPTIONS = {"width": 16, "heads": 2, "layers": 1, "hidden": 16}
CARD = {"sizes": [8]}


def save(problem, kind="attention", card=CARD):
    policy = policies.build(kind, shape_of(get(problem)), OPTIONS)
    model_file.save("m.safetensors", Model(policy, problem, kind, OPTIONS, card))


def header():
    with safe_open("m.safetensors", framework="pt") as file:
        return file.metadata()


def rewrite(**changes):
    card = json.loads(header()["card"]) | changes
    save_file(load_file("m.safetensors"), "m.safetensors", metadata={**header(), "card": json.dumps(card)})


def refused(line):
    with pytest.raises(InputError) as error:
        routelearn.load_model(path="m.safetensors")
    assert str(error.value) == line


def test_the_card_records_the_plugin_of_the_problem(write, tmp_path):
    plugins.load(write("distance.py", PROBLEM))
    save("mini-tsp")
    model = routelearn.load_model(path="m.safetensors")
    text = (tmp_path / "distance.py").read_bytes()
    [record] = model.card["plugins"]
    assert re.fullmatch(r"routelearn\.plugins\.distance_[0-9a-f]{12}", record.pop("module"))
    assert record == {
        "file": "distance.py",
        "path": str(tmp_path / "distance.py"),
        "sha256": hashlib.sha256(text).hexdigest(),
        "for": ["problem"],
    }
    assert model.card["sizes"] == [8]


def test_one_plugin_for_both_is_recorded_once_and_two_are_two(write):
    plugins.load(write("both.py", PROBLEM + POLICY))
    save("mini-tsp", "mini-attention")
    [record] = routelearn.load_model(path="m.safetensors").card["plugins"]
    assert (record["file"], record["for"]) == ("both.py", ["problem", "policy"])
    for plugin in plugins.loaded():
        plugins.forget(plugin)
    plugins.load(write("a.py", PROBLEM))
    plugins.load(write("b.py", POLICY))
    save("mini-tsp", "mini-attention")
    cards = routelearn.load_model(path="m.safetensors").card["plugins"]
    assert [(record["file"], record["for"]) for record in cards] == [("a.py", ["problem"]), ("b.py", ["policy"])]


def test_a_model_that_needs_none_records_none(write):
    write("x.py", "")
    save("tsp", card={**CARD, "plugins": [{"file": "old.py"}]})
    assert routelearn.load_model(path="m.safetensors").card == CARD


@pytest.mark.parametrize(("problem", "kind"), [("mini-tsp", "attention"), ("tsp", "mini-attention")])
def test_a_missing_plugin_is_named_with_the_remedy(write, problem, kind):
    plugin = plugins.load(write("distance.py", PROBLEM + POLICY))
    save(problem, kind)
    plugins.forget(plugin)
    refused("m.safetensors: needs the plugin distance.py (not loaded); add --plugin distance.py, or import it before")
    plugins.load("distance.py")
    assert routelearn.load_model(path="m.safetensors").problem == problem


def test_two_missing_plugins_are_named_together(write):
    both = plugins.load(write("a.py", PROBLEM)), plugins.load(write("b.py", POLICY))
    save("mini-tsp", "mini-attention")
    for plugin in both:
        plugins.forget(plugin)
    refused(
        "m.safetensors: needs the plugins a.py and b.py (not loaded); add --plugin a.py --plugin b.py, "
        "or import them before"
    )


def test_what_a_notebook_registered_is_told_apart(write):
    write("x.py", "")
    exec(PROBLEM, {"__name__": "__main__"})
    save("mini-tsp")
    for plugin in plugins.loaded():
        plugins.forget(plugin)
    refused("m.safetensors: needs the problem 'mini-tsp' of a notebook; run what registers it before")


def test_another_version_of_the_plugin_is_noted_not_refused(write):
    plugin = plugins.load(write("distance.py", PROBLEM))
    save("mini-tsp")
    plugins.forget(plugin)
    plugins.load(write("distance.py", PROBLEM + "# changed\n"))
    with pytest.warns(Notice) as heard:
        routelearn.load_model(path="m.safetensors")
    assert [str(one.message) for one in heard] == [
        "m.safetensors: was made with another version of the plugin distance.py; results may differ"
    ]


@pytest.mark.parametrize(
    "records", [3, "x", [3], [{}], [{"for": "problem"}], [{"for": ["problem"]}], [{"for": ["problem"], "file": {}}]]
)
def test_a_card_that_somebody_forged_runs_nothing_and_breaks_nothing(write, records):
    plugin = plugins.load(write("distance.py", PROBLEM))
    save("mini-tsp")
    plugins.forget(plugin)
    rewrite(plugins=records)
    with pytest.raises(InputError) as error:
        routelearn.load_model(path="m.safetensors")
    assert str(error.value).startswith("m.safetensors: ")
    assert plugins.loaded() == []


def test_an_unknown_problem_without_a_record_is_named(write):
    plugin = plugins.load(write("distance.py", PROBLEM))
    save("mini-tsp")
    plugins.forget(plugin)
    rewrite(plugins=None)
    with pytest.raises(InputError, match=r"needs the problem 'mini-tsp', which nobody registered"):
        routelearn.load_model(path="m.safetensors")
