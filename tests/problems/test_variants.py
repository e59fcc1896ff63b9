"""Names of variants, and the public sets that they stand for."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from variant_cases import digest

from routelearn.data import npz
from routelearn.data.generate import generate, of_set
from routelearn.errors import InputError
from routelearn.evaluation.evaluate import means_by_variant
from routelearn.problems import NumpyRng, get
from routelearn.problems.variants import NAMES, RULES, Rules, joined, parse, parse_list
from routelearn.problems.vrp import VRP

DIGESTS = json.loads((Path(__file__).parent / "variant_digests.json").read_text())
COSTS = os.environ.get("ROUTELEARN_VARIANT_COSTS", "")  # an .npz with arrays such as ovrptw100


def test_there_are_48_names_and_each_reads_back():
    assert len(NAMES) == 48
    assert {"cvrp", "mdcvrp", "ovrptw", "vrpmbl", "mdovrpmbltw"} <= set(NAMES)
    for name in NAMES:
        assert parse(name).name == name
        assert parse(name.upper()) == RULES[name]
    assert parse("mdovrpbtw") == Rules(several=True, open=True, backhauls="b", timed=True)


@pytest.mark.parametrize("name", ["", "vrp", "mdvrp", "vrpbmb", "vrptwl", "ocvrp", "cvrptw", "tsp", "ovrp50"])
def test_a_name_that_is_none_is_refused_with_the_choices(name):
    with pytest.raises(InputError, match=r"unknown variant .*; the choices are cvrp, vrptw, .*, mdovrpmbltw$"):
        parse(name)


def test_a_list_of_names_has_one_spelling():
    assert parse_list("all") == parse_list("ALL ") == parse_list(",".join(NAMES[::-1])) == NAMES
    assert parse_list("ovrp, CVRP,ovrp") == ("cvrp", "ovrp")
    assert joined(parse_list("ovrp,cvrp")) == "cvrp,ovrp"
    assert joined(NAMES) == "all"
    with pytest.raises(InputError, match="unknown variant ''"):
        parse_list("ovrp,")


@pytest.mark.parametrize("n", [50, 100])
def test_the_public_test_sets_are_drawn_to_the_last_bit(n):
    assert {name: digest(name, n) for name in NAMES} == DIGESTS[str(n)]


def test_a_name_generates_its_public_set():
    x, paper, public = generate("ovrptw", 50), generate("cvrp", 20), generate(of_set("cvrp", "routefinder"), 20)
    assert (x.xy.shape, paper.xy.shape, public.xy.shape) == ((1000, 51, 2), (10_000, 21, 2), (1000, 21, 2))
    assert (x.open == 1).all()
    assert of_set("cvrp").name == "cvrp"
    assert of_set("cvrp", "routefinder").name == of_set("MDCVRP").name == "vrp"
    assert generate("vrp", 10).xy.shape == (1000, 13, 2)


@pytest.mark.parametrize(
    ("name", "collection", "message"),
    [
        ("vrpbmb", None, r"unknown problem 'vrpbmb'; the choices are tsp, .*; and, for variants, cvrp, .*mdovrpmbltw$"),
        ("tsp", "routefinder", r"unknown variant 'tsp'; the choices are cvrp, .*"),
        ("ovrp", "paper", r"the set 'paper' has no ovrp; leave the set out$"),
        ("cvrp", "solomon", r"unknown set 'solomon'; the choices are paper, routefinder$"),
    ],
)
def test_a_set_that_is_none_is_refused(name, collection, message):
    with pytest.raises(InputError, match=message):
        of_set(name, collection)


@pytest.mark.parametrize("name", ["vrptw", "ovrpbl", "mdcvrp", "vrp"])
def test_a_file_keeps_what_is_absent(name, tmp_path):
    x = generate(name, 10, count=20)
    npz.save(tmp_path / "set.npz", "vrp", x)
    read, again = npz.load(tmp_path / "set.npz")
    assert read == "vrp"
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(x, again, strict=True))


def test_costs_are_told_by_variant():
    x = generate(VRP("cvrp,ovrp"), 10, count=50)
    means = means_by_variant(VRP(), x, VRP().variant_of(x).double())
    assert means == {"cvrp": NAMES.index("cvrp"), "ovrp": NAMES.index("ovrp")}
    assert means_by_variant(get("tsp"), x, torch.zeros(50)) == {}


@pytest.mark.parametrize("n", [50, 100])
def test_stored_costs_of_pyvrp_belong_to_these_instances(n):
    """None is below a lower bound of its instance: the nearest depot to the farthest customer, and back."""
    if not os.path.isfile(COSTS):
        pytest.skip("PyVRP's costs of the public sets are not here; ROUTELEARN_VARIANT_COSTS names their .npz")
    stored = np.load(COSTS)
    names = [name for name in NAMES if f"{name}{n}" in stored]
    assert len(names) == 32
    for name in names:
        x = generate(VRP(name), n)
        depots, customers = x.xy[:, : x.depots.shape[1]], x.xy[:, x.depots.shape[1] :]
        farthest = torch.cdist(customers, depots).amin(2).amax(1) * (2 - x.open)
        costs = torch.from_numpy(stored[f"{name}{n}"])
        assert costs.shape == (1000,)
        assert (costs >= farthest - 1e-3).all(), name
        assert torch.corrcoef(torch.stack((costs, customers.std(1).norm(dim=-1))))[0, 1] > 0.1, name


def test_training_meets_single_depots_without_unused_places():
    turns = VRP("cvrp,mdovrp").turns()
    assert [one.variants for one in turns] == ["cvrp,mdovrp", "cvrp"]
    assert [one.sample(NumpyRng(0), 4, 5).depots.shape[1] for one in turns] == [3, 1]
    assert [len(VRP(names).turns()) for names in ("cvrp,ovrp", "mdcvrp", "all")] == [1, 1, 2]
