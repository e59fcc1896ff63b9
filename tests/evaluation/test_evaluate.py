"""Evaluation: honest costs in double precision, every broken rule counted, gaps paired, sets that are what they say."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from routelearn import policies
from routelearn.commands.evaluate import read_costs, write_costs
from routelearn.data import generate, npz, read_instances
from routelearn.data.fields import fingerprints
from routelearn.errors import InputError
from routelearn.evaluation import evaluate as evaluation
from routelearn.evaluation.evaluate import Evaluation, evaluate, paired_gap
from routelearn.evaluation.referee import judge
from routelearn.models import load_model
from routelearn.policies.base import shape_of
from routelearn.problems import NumpyRng, get
from routelearn.problems.base import take, to_single

CPU = torch.device("cpu")
BATCH = 6


def small_policy(problem):
    return policies.build("attention", shape_of(problem), {"width": 16, "heads": 2, "layers": 1, "hidden": 16})


def evaluated(problem, strategy="greedy", batch=BATCH, **options):
    x = to_single(problem.sample(NumpyRng(5), batch, 8))
    return x, evaluate(problem, small_policy(problem), x, strategy, device=CPU, **options)


def result_with(costs):
    return Evaluation(
        torch.zeros(len(costs), 1, 2).long(), torch.tensor(costs, dtype=torch.float64), 0, 1.0, "greedy", "cpu"
    )


# ------------------------------------------------------------------------------------------------ costs


def test_costs_are_the_referees_in_double_precision(problem):
    x, result = evaluated(problem)
    problem.check(x, result.tours)
    exact = type(x)(*(None if f is None else f.double() if f.is_floating_point() else f for f in x))
    assert result.costs.dtype == torch.float64
    assert torch.equal(result.costs, problem.cost(exact, result.tours)[:, 0])
    assert not torch.equal(result.costs, problem.cost(x, result.tours)[:, 0].double()) or problem.maximise
    assert result.infeasible == 0
    assert result.mean == pytest.approx(sum(result.costs.tolist()) / BATCH)
    assert result.standard_error == pytest.approx(float(np.std(result.costs.numpy(), ddof=1)) / math.sqrt(BATCH))


@pytest.mark.parametrize("name", ["tsp", "cvrp", "op-dist", "pctsp"])
def test_own_data_in_kilometres_is_solved_as_well_as_in_the_unit_square(name):
    problem, x = get(name), generate(name, 20, count=20)
    lengths = {field: getattr(x, field) * 100 for field in ("max_length", "penalty") if field in x._fields}
    prizes = {"prize": x.prize * 100} if "max_length" in lengths else {}
    far = x._replace(xy=x.xy * 100 + 4_000, **lengths, **prizes)
    policy = load_model(name, 20).policy
    near, there = (evaluate(problem, policy, one, device=CPU) for one in (x, far))
    assert there.infeasible == 0
    assert there.mean == pytest.approx(100 * near.mean, rel=0.03)


def test_the_result_in_words_has_every_field():
    x, result = evaluated(get("cvrp"), "sample:3", seed=4)
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain.keys() == {"mean_cost", "standard_error", "costs", "infeasible", "seconds", "decode", "device"}
    assert plain["costs"] == result.costs.tolist()
    assert plain["mean_cost"] == pytest.approx(sum(plain["costs"]) / len(plain["costs"]))
    assert (plain["decode"], plain["device"], plain["infeasible"]) == ("sample:3", "cpu", 0)
    assert plain["seconds"] > 0
    assert len(plain["costs"]) == x.xy.shape[0]


def test_the_strategy_seed_and_progress_are_passed_on():
    problem = get("tsp")
    heard = []
    torch.manual_seed(1)
    _, first = evaluated(problem, "sample:2", seed=1, progress=heard.append)
    assert sum(heard) == BATCH
    torch.manual_seed(1)
    assert torch.equal(evaluated(problem, "sample:2", seed=1)[1].tours, first.tours)
    torch.manual_seed(1)
    assert not torch.equal(evaluated(problem, "sample:2", seed=2)[1].tours, first.tours)


def test_a_policy_in_training_is_evaluated_in_evaluation_mode():
    problem = get("tsp")
    policy = small_policy(problem).train()
    statistics = policy.encoder.layers[0].norm_attention.running_mean.clone()
    x = to_single(problem.sample(NumpyRng(5), 4, 8))
    evaluate(problem, policy, x, device=CPU)
    assert torch.equal(policy.encoder.layers[0].norm_attention.running_mean, statistics)


def test_unknown_strategies_and_hindsight_are_refused():
    with pytest.raises(InputError, match="unknown decoding strategy 'best'"):
        evaluated(get("tsp"), "best")
    with pytest.raises(InputError, match="hindsight"):
        evaluated(get("spctsp"), "sample:8")


# ------------------------------------------------------------------------------------------ broken rules


@pytest.mark.parametrize("broken", [[], [0], [2, 5], list(range(BATCH))])
def test_tours_that_break_a_rule_are_counted_one_by_one(broken, monkeypatch):
    problem = get("cvrp")
    honest = evaluation.decoding.decode

    def cheating(*arguments, **options):
        decoded = honest(*arguments, **options)
        decoded.tour[broken, :, :] = 0  # never leaves the depot
        return decoded

    monkeypatch.setattr(evaluation.decoding, "decode", cheating)
    _, result = evaluated(problem)
    assert result.infeasible == len(broken)
    assert result.to_dict()["infeasible"] == len(broken)
    assert all(result.costs[row] == 0 for row in broken)


def test_a_policy_that_ignores_the_mask_is_found_out(monkeypatch):
    """It goes back to node 1 again and again."""
    problem = get("tsp")
    policy = small_policy(problem)

    def stubborn(cache, carry, seen):
        return torch.zeros(seen.feasible.shape).index_fill(-1, torch.tensor([1]), 5.0), carry

    monkeypatch.setattr(policy, "step", stubborn)
    x = to_single(problem.sample(NumpyRng(5), BATCH, 8))
    assert evaluate(problem, policy, x, device=CPU, compile=False).infeasible == BATCH


def test_one_bad_tour_among_many_is_one():
    problem = get("tsp")
    x = to_single(problem.sample(NumpyRng(5), 3, 5))
    tours = torch.arange(5).expand(3, 1, 5).clone()
    assert int(judge(problem, x, tours).isnan().sum()) == 0
    tours[1, 0, 0] = 4
    assert judge(problem, x, tours).isnan().tolist() == [False, True, False]


# -------------------------------------------------------------------------------------------------- gaps


def test_the_gap_is_paired_with_its_standard_error():
    """By hand: differences 1, 0 and 2 over a mean of 20, so 5 % with a deviation of 5 %, over sqrt(3)."""
    gap, error = result_with([11.0, 20.0, 32.0]).gap(torch.tensor([10.0, 20.0, 30.0]))
    assert gap == pytest.approx(0.05)
    assert error == pytest.approx(0.05 / math.sqrt(3))


def test_a_gap_of_prizes_is_positive_where_less_is_collected():
    gap, _ = result_with([-9.0, -9.0]).gap(torch.tensor([-10.0, -10.0]))
    assert gap == pytest.approx(0.1)


def test_instances_that_a_solver_failed_on_are_left_out_of_the_gap():
    gap, error = paired_gap(torch.tensor([11.0, math.nan, 22.0]), torch.tensor([10.0, 1.0, 20.0]))
    assert gap == pytest.approx(0.1)
    assert error == pytest.approx((2 * (1 / 30) ** 2) ** 0.5 / math.sqrt(2))
    assert all(map(math.isnan, paired_gap(torch.tensor([math.nan]), torch.ones(1))))


def test_a_gap_needs_a_reference_for_every_instance_and_may_have_more():
    result = result_with([1.0, 2.0])
    with pytest.raises(InputError, match="1 reference costs for 2 instances"):
        result.gap(torch.ones(1))
    assert result.gap(torch.tensor([1.0, 2.0, 9.0])) == (0.0, 0.0)


def test_one_instance_has_no_standard_error():
    assert result_with([2.0]).standard_error == 0.0
    assert result_with([2.0]).gap(torch.tensor([1.0])) == (1.0, 0.0)


# -------------------------------------------------------------------------------------- reference files


def test_reference_costs_are_found_by_name(tmp_path):
    path = tmp_path / "r.npz"
    np.savez(path, costs=[1.0, 2.0], tsp20=[3.0])
    assert read_costs(path, "tsp", 20).tolist() == [1, 2]
    np.savez(path, tsp20=[3, 4], tsp50=[5, 6])
    assert read_costs(path, "tsp", 50).tolist() == [5, 6]
    np.savez(path, anything=[7.0])
    assert read_costs(path, "cvrp", 50).tolist() == [7]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"tsp20": [1.0], "tsp50": [1.0]}, r"no array `costs` or `cvrp20`; it holds tsp20, tsp50"),
        ({"costs": [[1.0]]}, "no array"),
        ({"costs": ["a"]}, "no array"),
        ({"costs": [1.0, math.inf]}, "finite"),
        ({"costs": [math.nan, math.nan]}, "no finite numbers, or only 0"),
        ({"costs": [0.0, 0.0]}, "only 0"),
        ({"costs": [1.0]}, "1 costs for 2 instances; give one for each"),
    ],
)
def test_other_arrays_are_refused(arrays, message, tmp_path):
    path = tmp_path / "r.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=message):
        read_costs(path, "cvrp", 20, 2)


def test_files_that_hold_no_costs_are_refused(tmp_path):
    path = tmp_path / "r.npz"
    with pytest.raises(InputError, match="no such file"):
        read_costs(path, "tsp", 20)
    np.savez(path, costs=np.ones(1000))
    whole = path.read_bytes()
    np.save(tmp_path / "r.npy", np.ones(3))
    for content in (b"", b"text", whole[:50], whole[:-30], (tmp_path / "r.npy").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"r\.npz"):
            read_costs(path, "tsp", 20)
    np.savez(path, costs=np.array([{}], dtype=object))
    with pytest.raises(InputError, match=r"r\.npz"):
        read_costs(path, "tsp", 20)


def test_costs_are_refused_for_instances_they_are_not_of(tmp_path):
    path, x = tmp_path / "r.npz", generate("tsp", 8, count=6)
    write_costs(path, "tsp", 8, [1.0] * 6, x)
    assert len(read_costs(path, "tsp", 8, 6, instances=x)) == 6
    assert len(read_costs(path, "tsp", 8, 2, instances=take(x, slice(2)))) == 6, "the first instances of the set"
    with pytest.raises(InputError, match=r"costs of tsp, n = 8; give those of cvrp, n = 7"):
        read_costs(path, "cvrp", 7, 6, instances=generate("cvrp", 7, count=6))
    with pytest.raises(InputError, match=r"costs of another set \(instance 0 is not the same\)"):
        read_costs(path, "tsp", 8, 6, instances=generate("tsp", 8, count=6, seed=1))
    moved = x._replace(xy=x.xy.clone())
    moved.xy[3, 0, 0] += 1e-3
    with pytest.raises(InputError, match="instance 3"):
        read_costs(path, "tsp", 8, 6, instances=moved)


def test_costs_without_marks_are_taken_at_their_word(tmp_path):
    np.savez(tmp_path / "r.npz", costs=np.ones(6))
    assert len(read_costs(tmp_path / "r.npz", "tsp", 8, 6, instances=generate("tsp", 8, count=6))) == 6


def test_several_sizes_need_an_array_each(tmp_path):
    path = tmp_path / "r.npz"
    np.savez(path, tsp20=[3, 4], tsp50=[5, 6])
    assert read_costs(path, "tsp", 50, several=True).tolist() == [5, 6]
    np.savez(path, costs=[3, 4])
    with pytest.raises(InputError, match="no array `tsp20`, and several sizes need one each; it holds costs"):
        read_costs(path, "tsp", 20, several=True)


@pytest.mark.parametrize("name", ["tsp", "cvrp", "spctsp"])
def test_an_instance_has_one_fingerprint_in_any_precision(name):
    x = generate(name, 9, count=5)
    doubled = type(x)(*(f.double() if f is not None and f.is_floating_point() else f for f in x))
    assert fingerprints(x).tolist() == fingerprints(doubled).tolist()
    assert len(set(fingerprints(x).tolist())) == 5


# --------------------------------------------------------------------------------------------------- sets


def test_a_limit_keeps_the_first_instances(tmp_path):
    x = generate("cvrp", 8, count=10)
    npz.save(tmp_path / "x.npz", "cvrp", x)
    name, first = read_instances(tmp_path / "x.npz", limit=3)
    assert name == "cvrp"
    assert all(torch.equal(a, b) for a, b in zip(first, take(x, slice(3)), strict=True) if a is not None)
    policy = small_policy(get("cvrp"))
    whole, part = (evaluate(get("cvrp"), policy, each, device=CPU).costs for each in (x, first))
    torch.testing.assert_close(part, whole[:3])


@pytest.mark.parametrize("name", ["cvrp", "op-unif", "pctsp"])
def test_a_set_of_100_is_not_the_first_100_of_10_000(name):
    small, large = generate(name, 20, count=100), take(generate(name, 20), slice(100))
    assert small.xy.shape == large.xy.shape
    assert not torch.equal(small.xy, large.xy)


@pytest.mark.slow
def test_compiled_and_plain_evaluation_agree():
    problem = get("tsp")
    policy = small_policy(problem)
    x = to_single(problem.sample(NumpyRng(5), 64, 8))
    plain, fast = (evaluate(problem, policy, x, device=CPU, compile=compile).costs for compile in (False, True))
    torch.testing.assert_close(fast, plain)


def test_local_search_after_decoding_never_makes_it_worse():
    problem = get("tsp")
    x = take(to_single(problem.sample(NumpyRng(1), 20, 12)), slice(0, 20))
    policy = small_policy(problem)
    plain = evaluate(problem, policy, x, "greedy", device=CPU)
    better = evaluate(problem, policy, x, "greedy+improve", device=CPU)
    assert better.infeasible == 0
    assert (better.costs <= plain.costs + 1e-6).all()
    assert better.mean < plain.mean


def test_local_search_of_solutions_as_they_come_gives_what_it_gives_of_all_at_once():
    problem = get("cvrp")
    x = problem.sample(NumpyRng(3), 5, 12)
    policy = small_policy(problem).eval()
    decoded = evaluation.decoding.decode(problem, policy, to_single(x))
    with evaluation._Improving(problem, x, None, 0, None) as improving:
        for low, rows in ((0, slice(0, 2)), (2, slice(2, 5))):
            improving.hear(low, evaluation.decoding.Decoded(decoded.tour[rows], decoded.cost[rows]))
        tours = improving.tours()
    together = evaluate(problem, policy, x, "greedy+improve", device=CPU)
    assert torch.equal(problem.cost(x, tours), problem.cost(x, together.tours))
    assert (problem.cost(x, tours) < problem.cost(x, decoded.tour)).any()


def test_the_search_goes_on_from_decoded_solutions_for_its_seconds():
    problem = get("cvrp")
    x = problem.sample(NumpyRng(3), 4, 30)
    policy = small_policy(problem).eval()
    local = evaluate(problem, policy, x, "greedy+improve", device=CPU)
    told: list[int] = []
    searched = evaluate(problem, policy, x, "greedy+improve:0.1", device=CPU, progress=told.append)
    assert searched.infeasible == 0
    assert searched.mean < local.mean
    assert searched.seconds >= 0.1
    assert sum(told) == len(x.xy)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("improve:1+greedy", "stands once, at the end"),
        ("greedy+improve+improve:1", "stands once, at the end"),
        ("greedy+improve:0", "must be above 0"),
        ("greedy+improve:4000", "at most 3600"),
        ("greedy+improve:x", "stands once, at the end"),
    ],
)
def test_seconds_of_search_that_cannot_be_are_refused(text, told):
    with pytest.raises(InputError, match=told):
        evaluation.parse(text)
