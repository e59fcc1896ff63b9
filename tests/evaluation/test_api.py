"""`routelearn.evaluate` and `routelearn.decode`: models by object, file or name, data in every form, small results."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
import torch

import routelearn
from routelearn import policies, solvers
from routelearn.api import Solutions
from routelearn.data import generate, npz
from routelearn.errors import InputError
from routelearn.evaluation.evaluate import Evaluation
from routelearn.models import load_model
from routelearn.models.model_file import Model, save
from routelearn.policies.base import shape_of
from routelearn.problems import get
from routelearn.problems.op import OP
from routelearn.problems.tsp import TSP

OPTIONS = {"width": 16, "heads": 2, "layers": 1, "hidden": 16}


def small(problem="tsp"):
    return policies.build("attention", shape_of(get(problem)), OPTIONS).eval()


@pytest.fixture(scope="module")
def x():
    return generate("tsp", 8, count=6)


@pytest.fixture
def policy():
    torch.manual_seed(1)
    return small()


# ------------------------------------------------------------------------------------------- ways to say it


def test_model_file_and_name_give_what_the_policy_gives(x, policy, tmp_path):
    path = tmp_path / "m.safetensors"
    save(path, Model(policy, "tsp", "attention", OPTIONS))
    npz.save(tmp_path / "x.npz", "tsp", x)
    wanted = routelearn.evaluate(policy, x, problem="tsp", device="cpu").costs
    for model in (Model(policy, "tsp", "attention", OPTIONS), path, str(path)):
        assert torch.equal(routelearn.evaluate(model, x, device="cpu").costs, wanted)
        assert torch.equal(routelearn.evaluate(model, tmp_path / "x.npz", device="cpu").costs, wanted)
    shipped = routelearn.evaluate("tsp-20", x, device="cpu").costs
    assert torch.equal(routelearn.evaluate(load_model(path="tsp-20"), x, device="cpu").costs, shipped)
    assert torch.equal(routelearn.evaluate(None, x, problem="tsp", device="cpu").costs, shipped)


def test_a_problem_and_a_size_are_the_test_set(policy):
    found = routelearn.decode(policy, ("tsp", 6), limit=3, device="cpu")
    assert torch.equal(found.instances.xy, generate("tsp", 6).xy[:3])
    for problem in (TSP(), TSP):
        assert torch.equal(routelearn.decode(policy, (problem, 6), limit=3, device="cpu").tours, found.tours)


def test_a_problem_that_nobody_registered_works_as_an_object(policy):
    class Doubled(TSP):
        name = "doubled"

        def cost(self, x, tour):
            return 2 * super().cost(x, tour)

    twice = routelearn.evaluate(policy, (Doubled(), 6), limit=4, device="cpu")
    once = routelearn.evaluate(policy, ("tsp", 6), limit=4, device="cpu")
    assert torch.allclose(twice.costs, 2 * once.costs)
    assert routelearn.decode(policy, (Doubled(), 6), limit=1, device="cpu").plot(0) is not None


def test_what_an_unregistered_problem_maximises_is_told_without_a_unit_of_length():
    class Halved(OP):
        name = "halved"

        def cost(self, x, tour):
            return super().cost(x, tour) / 2

    found = routelearn.decode(small("op-const"), (Halved("const"), 6), "multistart:6", limit=1, device="cpu").solution(
        0
    )
    assert found.objective == pytest.approx(found.prize / 2)
    assert found.gap_to(2 * found.objective) == pytest.approx(0.5)
    assert f"prize {found.prize:.6g}, value {found.objective:.6g}" in repr(replace(found, unit="km"))
    assert found.to_html().startswith("<!")


def test_a_solver_by_name_or_object_and_its_options(x, tmp_path):
    by_name = routelearn.evaluate("nearest-neighbour", x, problem="tsp", seconds=0.5, store=tmp_path / "kept.jsonl")
    by_object = routelearn.evaluate(solvers.get("nearest-neighbour"), x, problem=get("tsp"))
    assert torch.equal(by_name.costs, by_object.costs)
    assert (by_name.decode, by_name.infeasible, by_name.problem, by_name.nodes) == ("nearest-neighbour", 0, "tsp", 8)
    assert (tmp_path / "kept.jsonl").is_file()


def test_seed_strategy_and_progress_reach_the_decoder(x, policy):
    def sampled(seed):
        return routelearn.evaluate(policy, x, "sample:2", problem="tsp", seed=seed, device="cpu").tours

    assert torch.equal(sampled(1), sampled(1))
    assert not torch.equal(sampled(1), sampled(2))
    heard = []
    routelearn.evaluate(policy, x, problem="tsp", device="cpu", backend="reference", progress=heard.append)
    assert sum(heard) == 6


# ------------------------------------------------------------------------------------------------ results


def test_an_evaluation_tells_its_numbers(x, policy):
    found = routelearn.evaluate(policy, x, problem="tsp", device="cpu")
    mean, error = float(found.costs.mean()), float(found.costs.std()) / math.sqrt(6)
    low, high = found.interval
    assert (low, high) == (pytest.approx(mean - 1.96 * error), pytest.approx(mean + 1.96 * error))
    wanted = (
        rf"Evaluation\(greedy, 6 instances of tsp: mean cost {mean:.5f} \(95 % interval {low:.5f} to {high:.5f}\), "
        r"infeasible 0, \d+\.\d\d s on cpu\)"
    )
    assert re.fullmatch(wanted, repr(found))


def test_means_leave_out_what_was_not_solved():
    costs = torch.tensor([1.0, math.nan, 3.0], dtype=torch.float64)
    found = Evaluation(torch.zeros(3, 1, 2).long(), costs, 1, 0.1, "x", "cpu")
    assert (found.mean, found.infeasible) == (2.0, 1)
    assert found.standard_error == pytest.approx(1.0)
    assert "infeasible 1" in repr(found)


def test_evaluations_are_drawn_as_costs_or_gaps(x, policy, tmp_path):
    found = routelearn.evaluate(policy, x, problem="tsp", device="cpu")
    assert found.plot().axes[0].get_xlabel() == "cost"
    assert found.plot(reference=0.9 * found.costs).axes[0].get_xlabel() == "gap to the reference, %"
    assert found.plot(tmp_path / "costs.png") is None
    assert (tmp_path / "costs.png").stat().st_size > 1000
    with pytest.raises(InputError, match=r"costs\.txt: a picture ends in \.png, \.svg, \.pdf"):
        found.plot(tmp_path / "costs.txt")


@pytest.mark.parametrize("problem", ["tsp", "cvrp", "op-dist", "pctsp"])
def test_solutions_have_tours_costs_routes_and_pictures(problem, tmp_path):
    found = routelearn.decode(small(problem), (problem, 6), limit=3, device="cpu")
    assert isinstance(found, Solutions)
    assert (len(found), found.tours.shape[:2], found.costs.shape) == (3, (3, 1), (3,))
    one = found.solution(1)
    assert (one.problem, one.source) == (problem, "instance 1")
    assert one.cost == pytest.approx(float(found.costs[1]))
    assert found.solution(-1).source == "instance 2"
    found.plot(2, tmp_path / "routes.png")
    assert (tmp_path / "routes.png").stat().st_size > 1000
    assert re.match(rf"Solutions\(greedy, 3 instances of {problem}: mean cost ", repr(found))
    with pytest.raises(InputError, match="solution 3; there are 3, numbered from 0"):
        found.plot(3)


# ---------------------------------------------------------------------------------------------- bad input

BAD = {
    "a device that is not there": (
        lambda p, x: routelearn.evaluate(p, x, problem="tsp", device="cuda:99"),
        "device 'cuda:99': .* GPU.s. to be found here; use cpu or auto",
    ),
    "a device that is none": (
        lambda p, x: routelearn.decode(p, x, problem="tsp", device="tpu"),
        "unknown device 'tpu'; the choices are auto, cpu and cuda",
    ),
    "an unknown backend": (
        lambda p, x: routelearn.decode(p, x, problem="tsp", device="cpu", backend="fast"),
        "unknown backend 'fast'; the choices are auto, reference",
    ),
    "an unknown precision": (
        lambda p, x: routelearn.decode(p, x, problem="tsp", device="cpu", precision="half"),
        "unknown precision 'half'; the choices are auto, float32, bfloat16",
    ),
    "an unknown strategy": (
        lambda p, x: routelearn.decode(p, x, "luck", problem="tsp", device="cpu"),
        "unknown decoding strategy 'luck'; the choices are",
    ),
    "instances of what": (
        lambda p, x: routelearn.evaluate(p, x, device="cpu"),
        "instances do not say which problem they are of; name it",
    ),
    "no data": (
        lambda p, x: routelearn.evaluate(p, [1, 2], problem="tsp", device="cpu"),
        "data is of type list; give instances, a file of them, or a problem and a size",
    ),
    "two problems": (
        lambda p, x: routelearn.evaluate(p, ("cvrp", 6), problem="tsp", device="cpu"),
        "data of cvrp for the problem tsp; name one of them",
    ),
    "a model for another problem": (
        lambda p, x: routelearn.evaluate(Model(p, "tsp", "attention", OPTIONS), ("cvrp", 6), limit=2, device="cpu"),
        "a model for tsp, not for cvrp",
    ),
    "local search before the end": (
        lambda p, x: routelearn.decode(p, x, "improve+greedy", problem="tsp", device="cpu"),
        "improve stands once, at the end: greedy.improve, or greedy.improve:0.5",
    ),
    "what training gives back, instead of its model": (
        lambda p, x: routelearn.evaluate(object(), x, problem="tsp", device="cpu"),
        "the model is of type object; give a Model .such as `train",
    ),
    "a policy's class": (
        lambda p, x: routelearn.decode(type(p), x, problem="tsp", device="cpu"),
        "the model is of type type; give a Model",
    ),
    "no such model": (
        lambda p, x: routelearn.evaluate("nope", x, problem="tsp", device="cpu"),
        "nope: no such model file, and no shipped model has that name",
    ),
    "a strategy for a solver": (
        lambda p, x: routelearn.evaluate("nearest-neighbour", x, "augment:8", problem="tsp"),
        "decode is 'augment:8', but nearest-neighbour is a solver; leave one of them out",
    ),
    "seconds for a model": (
        lambda p, x: routelearn.evaluate(p, x, problem="tsp", seconds=3),
        "seconds has no meaning for a model; it is for a solver",
    ),
    "hindsight": (
        lambda p, x: routelearn.decode(p, ("spctsp", 6), "augment:8", limit=2, device="cpu"),
        "choosing afterwards is hindsight",
    ),
    "a limit of none": (
        lambda p, x: routelearn.decode(p, x, problem="tsp", limit=0, device="cpu"),
        "a limit of 0 instances; it must be at least 1",
    ),
    "a limit of a half": (
        lambda p, x: routelearn.decode(p, x, problem="tsp", limit=2.5, device="cpu"),
        "limit is 2.5; it must be a whole number",
    ),
    "a number for a strategy": (
        lambda p, x: routelearn.decode(p, x, 8, problem="tsp", device="cpu"),
        "the decoding strategy is 8; give its name, such as 'augment:8'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case, policy, x):
    call, words = BAD[case]
    with pytest.raises(InputError, match=words) as error:
        call(policy, x)
    assert "\n" not in str(error.value)
