"""Training on a mixture of variants: configured, recorded, validated by variant, resumed."""

import json

import pytest
import torch
from test_resume import check_resume
from train_cases import CPU, tiny

import routelearn
from routelearn.errors import InputError
from routelearn.problems.vrp import VRP
from routelearn.training import loop
from routelearn.training.config import TrainConfig
from routelearn.training.log import read


def test_the_configuration_knows_the_variants_by_one_spelling():
    assert tiny(problem="vrp").variants == "all"
    assert tiny(problem="vrp", variants="ovrptw, CVRP").variants == "cvrp,ovrptw"
    assert tiny(problem=VRP("vrpmb")).variants == "vrpmb"
    assert tiny(problem="tsp").variants == ""
    config = tiny(problem="vrp", variants="ovrp")
    assert config.chosen("problem").variants == "ovrp"
    assert TrainConfig.from_dict(json.loads(config.to_json())) == config


def test_what_is_no_variant_is_refused():
    with pytest.raises(InputError, match=r"unknown variant 'vrpbmb'; the choices are cvrp, vrptw, .*"):
        tiny(problem="vrp", variants="vrpbmb")
    with pytest.raises(InputError, match="tsp has no variants; leave them out"):
        tiny(problem="tsp", variants="all")


def test_a_run_on_a_mixture_resumes_bitwise_and_only_as_what_it_was(tmp_path):
    config = tiny(problem="vrp", variants="vrptw,mdovrpmbl,cvrp")
    check_resume(config, tmp_path, 2, 4)
    with pytest.raises(InputError, match=r"was trained with variants cvrp,vrptw,mdovrpmbl, not all"):
        loop.run(tiny(problem="vrp"), tmp_path / "parts", device=CPU, resume=True)


def test_variants_stand_in_the_log_the_configuration_and_the_card(tmp_path):
    result = routelearn.train(
        "vrp", 6, variants="cvrp,ovrp", out=tmp_path / "run", device="cpu", epochs=1, epoch_steps=2, batch=(4,),
        solutions=2, width=32, heads=2, hidden=32, layers=1, validation_instances=64,
    )  # fmt: skip
    assert result.model.card["config"]["variants"] == "cvrp,ovrp"
    assert json.loads((tmp_path / "run" / "config.json").read_text())["variants"] == "cvrp,ovrp"
    judged = [row for row in read(tmp_path / "run" / "metrics.jsonl") if row.get("validation")]
    means = judged[-1]["by_variant"]["6"]
    assert means.keys() == {"cvrp", "ovrp"}
    assert means["ovrp"] < means["cvrp"]  # no way back


def test_one_policy_solves_every_variant_with_any_number_of_depot_places():
    """The same weights take instances with one place for depots and with three."""
    torch.manual_seed(0)
    policy = routelearn.train(
        "vrp", 6, device="cpu", epochs=1, epoch_steps=1, batch=(4,), solutions=2, width=32, heads=2, hidden=32,
        layers=1, validation_instances=8,
    ).model  # fmt: skip
    for name in ("cvrp", "mdvrpbltw"):
        found = routelearn.evaluate(policy, (VRP(name), 20), "augment:2", limit=20)
        assert found.infeasible == 0


def test_every_size_is_drawn_with_unused_places_and_without(tmp_path, monkeypatch):
    drawn, sample = [], VRP.sample

    def watched(self, rng, batch, n):
        x = sample(self, rng, batch, n)
        if batch == 4:  # a training step's
            drawn.append((n, x.depots.shape[1]))
        return x

    monkeypatch.setattr(VRP, "sample", watched)
    routelearn.train(
        "vrp", (5, 6), variants="cvrp,mdcvrp", out=tmp_path / "run", device="cpu", epochs=1, epoch_steps=6, batch=(4,),
        width=16, heads=2, layers=1, hidden=16, norm="instance", solutions=2, baseline="shared", validation_instances=8,
    )  # fmt: skip
    assert drawn == [(5, 3), (6, 3), (5, 1), (6, 1), (5, 3), (6, 3)]
