"""Names of variants, and the public sets that they stand for."""

import json
from pathlib import Path

import pytest
from variant_cases import digest

from routelearn.errors import InputError
from routelearn.problems.variants import NAMES, RULES, Rules, joined, parse, parse_list

DIGESTS = json.loads((Path(__file__).parent / "variant_digests.json").read_text())
COSTS = Path(__file__).parents[3] / "shared" / "reference" / "variants" / "pyvrp-costs.npz"


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
