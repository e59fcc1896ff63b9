"""The configuration refuses what cannot work, naming it, and survives being saved; recipes are what they claim."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from paper_problems import PAPER

from routelearn.errors import InputError
from routelearn.problems import PROBLEMS
from routelearn.training import recipes
from routelearn.training.config import TrainConfig

INVALID = {
    "problem": ["tps", "", 3],
    "sizes": [(), (1,), (20, 0), 20, "20", (20.5,), ("20",)],
    "variants": [3, None, "all", "cvrp"],  # the default problem has none
    "policy": ["transformer", None],
    "width": [0, -8, 12.5, "128", 100],  # 100 is no multiple of 8 heads
    "heads": [0, -1, 3, True],
    "layers": [-1, 1.5],
    "hidden": [0, "many"],
    "norm": ["group", ""],
    "clip": [0, -1.0, math.nan, "10"],
    "neighbours": [-1, 2.5],
    "baseline": ["rollouts", None],
    "solutions": [0, -1, 1.5],
    "multistart": [1, "yes"],
    "relative": [1, "yes"],
    "loss": ["ppo", "preference"],  # preferences need the shared baseline
    "preference_scale": [0.0, -1.0, math.nan],
    "entropy_weight": [0.0, -1.0, math.nan, "much"],
    "tours": [3, "t.npz"],  # the policy gradient draws its own
    "beta": [-0.1, 1.1, math.nan],
    "warmup_epochs": [-1, 0.5],
    "significance": [-0.1, 1.5, "low"],
    "evaluation_instances": [0, 1, -5],
    "batch": [(), (0,), (512, 512), 512, (-1,)],
    "epochs": [0, -1, 2.5, "100"],
    "epoch_steps": [0, -1],
    "minutes": [-1.0, math.nan, math.inf, "ten"],
    "optimiser": ["sgd", None],
    "rate": [0.0, -1e-4, math.nan, math.inf, "1e-4"],
    "schedule": ["step", ""],
    "decay": [-0.1, 1.01],
    "hold": [-0.1, 1.1],
    "ramp_steps": [-1, 1.5],
    "ramp": [-0.1, 1.5, "slow"],
    "gradient_norm": [0.0, -1.0, math.nan],
    "explosion": [0.0, math.nan],
    "precision": ["float16", "double"],
    "seed": [-1, 2**32, 1.5],
    "validation_instances": [0, -1],
    "validation_seed": [-1, 2**32],
    "rollback": [0.0, -0.1, math.nan],
    "settings": [3, {"mine": None}, {"mine": 1.0}],
}


def test_every_field_has_invalid_values_to_try():
    assert set(INVALID) == set(TrainConfig.names())


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in INVALID.items() for value in values])
def test_an_invalid_value_is_refused_by_name_in_one_line(name, value):
    with pytest.raises(InputError) as caught:
        TrainConfig(**{name: value})
    message = str(caught.value)
    assert name in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"baseline": "shared"}, "solutions"),
        ({"baseline": "exponential", "loss": "preference", "solutions": 4}, "baseline"),
        ({"multistart": True, "solutions": 21}, "smallest size"),
        ({"sizes": (20, 50), "batch": (1, 2, 3)}, "batch"),
        ({"policy": "ean", "problem": "cvrp"}, "policy 'ean' cannot take cvrp; it can take tsp$"),
        ({"policy": "dai", "problem": "op-dist"}, "policy 'dai' cannot take op-dist; it can take tsp$"),
        ({"loss": "q-learning", "baseline": "none"}, "asks what each step adds, which only these policies tell: dai"),
        (
            {"policy": "dai", "loss": "supervised", "baseline": "none", "tours": "t.npz"},
            "policy 'dai' does not choose nodes in a tour's order; it cannot follow tours",
        ),
        ({"policy": "pointer", "problem": "sdvrp"}, "policy 'pointer' cannot take sdvrp; it can take tsp$"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        TrainConfig(**changes)


def test_a_config_survives_being_saved():
    config = TrainConfig(problem="cvrp", sizes=(20, 50), batch=(512, 256), rate=1, multistart=True, solutions=4)
    assert TrainConfig.from_dict(json.loads(config.to_json())) == config


def test_an_unknown_setting_is_named():
    with pytest.raises(InputError, match="unknown setting learning_rate, momentum; known are baseline"):
        TrainConfig.from_dict({"learning_rate": 1.0, "momentum": 0.9, "rate": 1e-4})


def test_the_batch_of_a_size():
    assert TrainConfig(sizes=(20, 50), batch=(8,)).batch_of(50) == 8
    assert TrainConfig(sizes=(20, 50), batch=(8, 4)).batch_of(50) == 4


# ----------------------------------------------------------------------------------------------- recipes


@pytest.mark.parametrize("n", [20, 50, 100])
@pytest.mark.parametrize("name", PAPER)
def test_the_paper_recipe_is_the_paper(name, n):
    """Section 5 and appendices C to E."""
    config = recipes.paper(name, n)
    assert (config.problem, config.sizes) == (name, (n,))
    assert config.batch == ((256,) if name in ("cvrp", "sdvrp") and n == 100 else (512,))
    assert (config.epochs, config.epoch_steps) == (100, 2_500)
    assert (config.rate, config.schedule, config.ramp_steps) == (1e-4, "constant", 0)
    assert (config.width, config.heads, config.layers, config.hidden, config.clip) == (128, 8, 3, 512, 10.0)
    assert (config.policy, config.norm, config.neighbours) == ("attention", "batch", 0)
    assert (config.baseline, config.solutions, config.multistart, config.loss) == ("rollout", 1, False, "reinforce")
    assert (config.warmup_epochs, config.beta, config.significance) == (1, 0.8, 0.05)
    assert (config.evaluation_instances, config.validation_instances) == (10_000, 10_000)
    assert config.minutes == 0


def test_the_papers_decaying_rate():
    config = recipes.paper("tsp", 20, decaying=True)
    assert (config.rate, config.schedule, config.decay) == (1e-3, "decay", 0.96)
    assert dataclasses.replace(config, rate=1e-4, schedule="constant") == recipes.paper("tsp", 20)


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_the_fast_recipe_is_valid_for_every_problem(name):
    for sizes in ((10,), (20,), (100,), (20, 50, 100)):
        config = recipes.fast(name, sizes, minutes=3.0)
        assert (config.problem, config.sizes, config.minutes) == (name, sizes, 3.0)
        assert len(config.batch) == len(sizes)


def test_recipes_by_name():
    assert recipes.make("paper", "cvrp", (100,)) == recipes.paper("cvrp", 100)
    assert recipes.make("fast", "tsp", (20, 50)) == recipes.fast("tsp", (20, 50))
    with pytest.raises(InputError, match="one size at a time"):
        recipes.make("paper", "tsp", (20, 50))
    with pytest.raises(InputError, match="unknown recipe 'quick'; the choices are paper, fast, cpu"):
        recipes.make("quick", "tsp", (20,))
    with pytest.raises(InputError, match="unknown problem 'tps'"):
        recipes.make("fast", "tps", (20,))
