"""Decoding: names and what they stand for, the best of many, memory, symmetries, beams, and one answer per seed."""

from __future__ import annotations

import itertools

import brute_force
import pytest
import torch
from decoding_cases import BATCH, CHOOSING, CUSTOMERS, OTHERS, judged, prepared, same
from paper_problems import PAPER

from routelearn.decoding import decode as decoding
from routelearn.decoding.active import Best
from routelearn.decoding.decode import (
    Repeated,
    Strategy,
    augmented,
    beam_search,
    cut,
    decode,
    first_nodes,
    parse,
    row_bytes,
    symmetry,
)
from routelearn.decoding.rollout import advance, rollout
from routelearn.errors import InputError
from routelearn.policies.attention import AttentionPolicy
from routelearn.policies.kernels.select import backend
from routelearn.problems import PROBLEMS, NumpyRng
from routelearn.problems.base import distance_matrix, to_single
from routelearn.problems.contract.host_sync import no_host_sync

EVERY = ("greedy", "sample:6", "sample:6@0.8", "multistart:5", "augment:8", "beam:4", "guided:3", "active:2")
EVERY += ("augment:3+sample:2", "multistart:5+sample:3", "augment:8+multistart:2", "augment:2+beam:3")
EVERY += ("augment:2+multistart:2+sample:2",)


@pytest.fixture
def rolled(monkeypatch):
    """All that is rolled out while the test decodes: (instances, solutions) of every piece."""
    parts = []
    whole = decoding.finish

    def spy(problem, policy, cache, x, **options):
        parts.append((x, whole(problem, policy, cache, x, **options)))
        return parts[-1][1]

    monkeypatch.setattr(decoding, "finish", spy)
    return parts


@pytest.fixture
def encoded(monkeypatch):
    """How many instances each run of the encoder sees while the test decodes."""
    rows = []
    whole = AttentionPolicy.encode

    def spy(policy, features, *more):
        rows.append(features[0].shape[0])
        assert {group.shape[0] for group in features} == {rows[-1]}
        return whole(policy, features, *more)

    monkeypatch.setattr(AttentionPolicy, "encode", spy)
    return rows


# ----------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("text", "fields", "rollouts"),
    [
        ("greedy", {}, 1),
        ("sample:1280", {"samples": 1280}, 1280),
        ("sample:16@0.8", {"samples": 16, "temperature": 0.8}, 16),
        ("sample:16@.5", {"samples": 16, "temperature": 0.5}, 16),
        ("sample:16@2", {"samples": 16, "temperature": 2.0}, 16),
        ("multistart:5", {"starts": 5}, 5),
        ("augment:8", {"augment": 8}, 8),
        ("beam:10", {"beam": 10}, 10),
        ("guided:4", {"guided": 4}, 16),
        ("retrain:7+sample:2", {"retrain": 7, "samples": 2}, 14),
        ("augment:8+guided:4", {"augment": 8, "guided": 4}, 128),
        ("active:5", {"active": 5, "samples": 16}, 80),
        ("augment:8+active:5+sample:3", {"augment": 8, "active": 5, "samples": 3}, 120),
        ("active:5+guided:2+multistart:2", {"active": 5, "samples": 16, "guided": 2, "starts": 2}, 160),
        ("augment:8+sample:16", {"augment": 8, "samples": 16}, 128),
        ("sample:16+augment:8", {"augment": 8, "samples": 16}, 128),
        ("multistart:5+sample:3", {"starts": 5, "samples": 3}, 15),
        ("augment:8+beam:4", {"augment": 8, "beam": 4}, 32),
        ("augment:2 + multistart:5 + sample:3@0.7", {"augment": 2, "starts": 5, "samples": 3, "temperature": 0.7}, 30),
        ("augment:8+greedy", {"augment": 8}, 8),
    ],
)
def test_a_name_stands_for_a_strategy(text, fields, rollouts):
    parsed = parse(text)
    drawn = {"temperature": 1.0} if "samples" in fields else {}
    assert parsed == Strategy(text, **(drawn | fields))
    assert parsed.rollouts == rollouts
    assert parsed.solutions * parsed.augment * max(1, parsed.learning_steps) == rollouts


@pytest.mark.parametrize(
    "text", ["", "gredy", "sample", "sample:", "sample:-3", "sample:1.5", "sampling:5", "beam:x", "augment:8+",
             "guided:-3", "guided", "active:1.5", "active:3@2", "+greedy", "greedy:3",
             "multistart:5@0.8", "beam:3@0.5", "sample:3@", "sample:3@-1", "GREEDY"],
)  # fmt: skip
def test_an_unknown_name_is_refused_with_the_choices(text):
    with pytest.raises(InputError, match="unknown decoding strategy") as error:
        parse(text)
    for choice in (
        "greedy",
        "sample:K",
        "multistart:K",
        "augment:K",
        "beam:K",
        "guided:K",
        "active:STEPS",
        "joined by +",
    ):
        assert choice in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sample:0", "must be 1 or more"),
        ("augment:0+sample:3", "must be 1 or more"),
        ("sample:3@0", "between 0.001 and 1000"),
        ("sample:3@0.0000001", "between 0.001 and 1000"),
        ("sample:3@" + 400 * "9", "between 0.001 and 1000"),
        ("sample:3+sample:4", "stands twice"),
        ("augment:8+augment:8", "stands twice"),
        ("active:0", "must be 1 or more"),
        ("guided:0", "must be 1 or more"),
        ("guided:3+sample:4", "augment or active only"),
        ("active:3+beam:4", "augment only"),
        ("active:3+retrain:4", "leave one out"),
        ("retrain:0", "must be 1 or more"),
        ("greedy+active:4", "greedy contradicts"),
        ("beam:3+sample:4", "augment only"),
        ("multistart:3+beam:4", "augment only"),
        ("greedy+sample:4", "greedy contradicts"),
        ("beam:4+greedy", "greedy contradicts"),
    ],
)
def test_combinations_that_make_no_sense_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [("greedy", 1), ("augment:8+sample:16", 128), ("guided:4", 800), ("active:5+sample:3", 15), ("imagine:3", 600)],
)
def test_a_limit_on_constructions_counts_those_of_every_step(text, count):
    assert parse(text).constructions(50) == count


@pytest.mark.parametrize("text", ["sample:2", "multistart:3", "augment:8", "beam:2", "guided:1", "active:1"])
def test_the_best_of_many_is_refused_where_costs_are_hidden_and_it_says_why(text):
    problem, policy, x = prepared("spctsp")
    with pytest.raises(InputError, match="reveals its real cost only on the way: choosing afterwards is hindsight"):
        decode(problem, policy, x, text)


@pytest.mark.parametrize("text", ["greedy", "sample:1", "sample:1@0.5", "beam:1", "multistart:1"])
def test_a_single_solution_is_fine_where_costs_are_hidden(text):
    problem, policy, x = prepared("spctsp")
    judged(problem, x, decode(problem, policy, x, text))


# ---------------------------------------------------------------------------------------- whole answers


@pytest.mark.parametrize("text", EVERY)
@pytest.mark.parametrize("name", CHOOSING)
def test_every_strategy_gives_checked_solutions_of_every_problem(name, text):
    problem, policy, x = prepared(name)
    judged(problem, x, decode(problem, policy, x, text))


@pytest.mark.parametrize("text", ["greedy", "augment:2+sample:2", "multistart:3", "beam:3"])
@pytest.mark.parametrize(("name", "kind"), OTHERS)
def test_the_other_policies_decode_too(name, kind, text):
    problem, policy, x = prepared(name, kind=kind)
    judged(problem, x, decode(problem, policy, x, text))


@pytest.mark.parametrize("text", ["greedy", "augment:2+sample:4", "multistart:3", "beam:3"])
@pytest.mark.parametrize("name", [name for name in CHOOSING if name in PAPER])  # any matrix will do
def test_the_cost_is_that_of_the_matrix_where_there_is_one(name, text):
    problem, policy, x = prepared(name)
    nodes = x.xy.shape[1]
    matrix = torch.rand(BATCH, nodes, nodes) * (1 - torch.eye(nodes))  # not symmetric, no triangle inequality
    x = x._replace(distances=matrix)
    decoded = judged(problem, x, decode(problem, policy, x, text))
    if name == "tsp":
        tour = decoded.tour[:, 0]
        by_hand = [sum(float(matrix[b, tour[b, i - 1], tour[b, i]]) for i in range(nodes)) for b in range(BATCH)]
        assert decoded.cost.tolist() == pytest.approx(by_hand, abs=1e-5)


def test_an_instance_alone_is_decoded_as_in_company():
    problem, policy, x = prepared("cvrp")
    together = decode(problem, policy, x)
    for row in range(BATCH):
        alone = decode(problem, policy, type(x)(*(None if f is None else f[row : row + 1] for f in x)))
        assert float(alone.cost) == pytest.approx(float(together.cost[row]), abs=1e-5)


OPTIMUM = {
    "tsp": lambda x, legs: brute_force.tsp(legs),
    "cvrp": lambda x, legs: brute_force.cvrp(legs, x.demand[0].tolist(), int(x.capacity)),
    "sdvrp": lambda x, legs: brute_force.sdvrp(legs, x.demand[0].tolist(), int(x.capacity)),
    "op-const": lambda x, legs: brute_force.op(legs, x.prize[0].tolist(), float(x.max_length)),
    "op-unif": lambda x, legs: brute_force.op(legs, x.prize[0].tolist(), float(x.max_length)),
    "op-dist": lambda x, legs: brute_force.op(legs, x.prize[0].tolist(), float(x.max_length)),
    "pctsp": lambda x, legs: brute_force.pctsp(legs, x.prize[0].tolist(), x.penalty[0].tolist(), float(x.min_prize)),
}


@pytest.mark.parametrize("name", [name for name in CHOOSING if name in PAPER])
def test_enough_samples_hold_the_optimum_of_tiny_instances(name):
    problem, policy, x = prepared(name, batch=3, n=4)
    found = judged(problem, x, decode(problem, policy, x, "sample:600@4")).cost
    for row in range(3):
        one = type(x)(*(None if field is None else field[row : row + 1] for field in x))
        best = OPTIMUM[name](one, distance_matrix(one)[0].double().tolist())
        assert float(found[row]) == pytest.approx(best, abs=1e-5)


# ------------------------------------------------------------------------------------------- best of many


@pytest.mark.parametrize("text", [text for text in EVERY if parse(text).of_known_length])
@pytest.mark.parametrize("name", ["tsp", "cvrp", "op-unif", "pctsp"])
def test_the_answer_is_the_cheapest_of_all_that_were_rolled_out(name, text, rolled):
    problem, policy, x = prepared(name)
    decoded = decode(problem, policy, x, text)
    costs = torch.cat([problem.cost(many, part.tour).view(BATCH, -1) for many, part in rolled], 1)
    assert costs.shape == (BATCH, parse(text).rollouts)
    assert torch.equal(decoded.cost, costs.min(1).values)


@pytest.mark.parametrize("name", CHOOSING)
def test_symmetries_never_make_it_worse(name):
    problem, policy, x = prepared(name, batch=16)
    plain, more = decode(problem, policy, x).cost, decode(problem, policy, x, "augment:8").cost
    assert (more <= plain + 1e-6).all()
    assert (more < plain - 1e-6).any()


def test_an_unfinished_solution_is_never_kept(rolled):
    problem, policy, x = prepared("cvrp")
    complete = decode(problem, policy, x, "sample:8", seed=3)
    short = rolled[0][1]
    unfinished = torch.zeros_like(short.done)
    unfinished[:, problem.cost(x, short.tour).argmin(1)] = True
    kept = Best(problem, short.tour[:, :1])
    kept.hear(x, short._replace(done=~unfinished))
    assert (kept.cost > complete.cost).any()
    assert kept.cost.isfinite().all()


# ------------------------------------------------------------------------------------------------- seeds


@pytest.mark.parametrize("text", ["sample:4", "augment:12", "multistart:3+sample:2", "augment:2+sample:2"])
def test_the_same_seed_gives_the_same_answer_and_another_seed_another(text):
    problem, policy, x = prepared("cvrp", batch=8, n=12)
    answers = [decode(problem, policy, x, text, seed=seed) for seed in (5, 5, 6)]
    assert torch.equal(answers[0].tour, answers[1].tour)
    assert not same(problem, answers[0], answers[2])


def test_a_strategy_again_and_again_turns_instances_by_its_own_seed():
    problem, policy, x = prepared("tsp", batch=6, n=9)
    strategy = parse("augment:12")
    for seed in (0, 5):
        again = Repeated(problem, policy, x, strategy, seed=seed)(x)
        assert torch.equal(again.cost, decode(problem, policy, x, strategy, seed=seed).cost)
    assert not torch.equal(again.cost, Repeated(problem, policy, x, strategy, seed=0)(x).cost)


def test_decoding_leaves_the_random_state_as_it_was():
    problem, policy, x = prepared("tsp")
    before = torch.get_rng_state()
    decode(problem, policy, x, "augment:12+sample:4")
    assert torch.equal(torch.get_rng_state(), before)


def test_draws_do_not_depend_on_the_state_before():
    problem, policy, x = prepared("tsp", n=12)
    first = decode(problem, policy, x, "sample:2", seed=1)
    torch.rand(17)
    assert torch.equal(decode(problem, policy, x, "sample:2", seed=1).tour, first.tour)


def test_a_low_temperature_is_nearly_greedy():
    problem, policy, x = prepared("tsp", batch=64)
    best = decode(problem, policy, x).tour[:, 0, 0]
    agreed = [
        float((decode(problem, policy, x, f"sample:1@{t}").tour[:, 0, 0] == best).float().mean()) for t in (0.001, 1)
    ]
    assert agreed[0] > 0.9
    assert agreed[1] < 0.5


# ------------------------------------------------------------------------------------- memory and chunks


@pytest.mark.parametrize("text", ["greedy", "multistart:3", "augment:8", "beam:3", "guided:2"])
@pytest.mark.parametrize("name", CHOOSING)
def test_one_by_one_gives_the_answer_of_all_at_once(name, text):
    problem, policy, x = prepared(name)
    heard = []
    whole = decode(problem, policy, x, text, budget=2**40)
    chunked = judged(problem, x, decode(problem, policy, x, text, budget=1, progress=heard.append))
    assert heard == [1] * BATCH
    assert same(problem, whole, chunked)
    torch.testing.assert_close(whole.cost, chunked.cost)


@pytest.mark.parametrize("text", ["greedy", "sample:9", "augment:8+sample:5", "augment:8+multistart:3", "beam:7"])
@pytest.mark.parametrize("instances", [1.0, 2.5, 100.0])
def test_a_chunk_keeps_within_the_budget_and_fills_it(text, instances, encoded):
    problem, policy, x = prepared("tsp", batch=7)
    strategy = parse(text)
    one = strategy.augment * row_bytes(policy, CUSTOMERS, strategy.solutions, 4)
    budget = int(one * instances)

    decode(problem, policy, x, text, budget=budget)
    assert sum(encoded) == 7 * strategy.augment
    assert max(encoded) // strategy.augment * one <= budget
    assert max(encoded) == min(7, int(instances)) * strategy.augment


@pytest.mark.parametrize("text", ["sample:1280", "augment:8+sample:100", "multistart:20+sample:7", "sample:1"])
@pytest.mark.parametrize("budget", [10**5, 10**6, 10**7, 10**8, 10**9])
def test_an_instance_too_large_for_the_budget_has_its_draws_cut(text, budget):
    policy, strategy = prepared("tsp")[1], parse(text)
    chunk, pieces = cut(policy, 50, strategy, 4, budget, 10)
    draws = -(-strategy.samples // pieces)
    used = chunk * strategy.augment * row_bytes(policy, 50, max(1, strategy.starts) * draws, 4)
    assert used <= budget or (chunk, draws) == (1, 1)
    assert pieces == 1 or chunk == 1


def test_draws_that_are_cut_are_as_many_and_share_one_encoding(rolled, encoded):
    problem, policy, x = prepared("cvrp", batch=2)
    nodes = x.xy.shape[1]
    five_draws = 2 * row_bytes(policy, nodes, 5, 4)
    decoded = judged(problem, x, decode(problem, policy, x, "augment:2+sample:23", budget=five_draws))
    assert encoded == [2, 2]  # once per instance and symmetry
    assert [part.tour.shape[1] for _, part in rolled] == [5, 5, 5, 4, 4] * 2
    costs = [problem.cost(many, part.tour).min() for many, part in rolled]
    assert float(decoded.cost.min()) == pytest.approx(float(min(costs)))


@pytest.mark.parametrize("text", [text for text in EVERY if not parse(text).active])  # that one asks what a cache holds
def test_the_encoder_runs_once_per_instance_and_symmetry(text, encoded):
    problem, policy, x = prepared("pctsp")
    decode(problem, policy, x, text)
    assert encoded == [BATCH * parse(text).augment]


# ------------------------------------------------------------------------------------------ symmetries


def pairwise(xy):
    return (xy[:, None] - xy[None]).norm(dim=-1)


def test_the_eight_symmetries_are_isometries_of_the_square_and_distinct():
    xy = torch.rand(20, 2, dtype=torch.float64)
    images = [symmetry(xy, which, turn=1.0) for which in range(8)]
    assert torch.equal(images[0], xy)
    for image in images:
        torch.testing.assert_close(pairwise(image), pairwise(xy))
        assert ((image >= 0) & (image <= 1)).all()
    for a, b in itertools.combinations(images, 2):
        assert (a - b).abs().max() > 0.1
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    for which in range(8):
        assert sorted(symmetry(corners, which, 0.0).tolist()) == sorted(corners.tolist())


def test_beyond_eight_the_square_is_turned_at_random_about_its_middle():
    features = (torch.rand(3, 9, 2, dtype=torch.float64),)
    (first,), (again,), (other,) = (augmented(features, 12, seed) for seed in (1, 1, 2))
    first, again, other = (versions.view(3, 12, 9, 2) for versions in (first, again, other))
    assert torch.equal(first, again)
    assert torch.equal(first[:, :8], other[:, :8])
    for version in range(8, 12):
        assert not torch.allclose(first[:, version], other[:, version])
        for row in range(3):
            torch.testing.assert_close(pairwise(first[row, version]), pairwise(features[0][row]))
        middle = (first[:, version] - 0.5).norm(dim=-1)
        torch.testing.assert_close(middle, (features[0] - 0.5).norm(dim=-1))
    for a, b in itertools.combinations(range(12), 2):
        assert not torch.allclose(first[:, a], first[:, b])


def test_only_coordinates_change_and_versions_of_an_instance_are_neighbours(problem):
    x = to_single(problem.sample(NumpyRng(2), 3, 6))
    features = problem.features(x)
    for plain, versions in zip(features, augmented(features, 10, seed=0), strict=True):
        assert versions.shape == (30, *plain.shape[1:])
        versions = versions.unflatten(0, (3, 10))
        assert torch.equal(versions[:, 0], plain)
        assert torch.equal(versions[..., 2:], plain[:, None, :, 2:].expand(3, 10, -1, -1))
        assert not torch.equal(versions[:, 1, :, :2], plain[..., :2])


# ------------------------------------------------------------------------------------------ forced starts


def test_multistart_covers_all_starts(rolled):
    problem, policy, x = prepared("tsp")
    decode(problem, policy, x, f"multistart:{CUSTOMERS}+sample:2")
    starts = rolled[0][1].tour[:, :, 0]
    assert torch.equal(starts.sort(1).values, torch.arange(CUSTOMERS).repeat_interleave(2).expand(BATCH, -1))


def test_no_start_is_forced_twice_or_illegal(problem):
    x = to_single(problem.sample(NumpyRng(3), 5, 6))
    legal, nodes = problem.starts(x), x.xy.shape[1]
    for count in (1, 3, nodes, nodes + 2):
        starts = first_nodes(problem, x, count)
        assert starts.shape == (5, count)
        for row in range(5):
            forced = [node for node in starts[row].tolist() if node >= 0]
            assert len(set(forced)) == len(forced) == min(count, int(legal[row].sum()))
            assert legal[row, forced].all()


# --------------------------------------------------------------------------------------------------- beam


def beam(problem, policy, x, width):
    cache = policy.encode(problem.features(x))
    with torch.no_grad():
        return cache, beam_search(problem, policy, cache, x, width)


@pytest.mark.parametrize(("name", "kind"), [*((name, "attention") for name in PROBLEMS), *OTHERS])
def test_a_beam_of_one_is_greedy(name, kind):
    problem, policy, x = prepared(name, kind=kind)
    assert same(problem, decode(problem, policy, x, "beam:1"), decode(problem, policy, x, "greedy"))


@pytest.mark.parametrize("kind", ["attention", "pointer", "ean", "nazari", "nowak", "dai"])
def test_a_wide_beam_holds_all_tours_with_their_probabilities(kind):
    problem, policy, x = prepared("tsp", n=4, kind=kind, double=True)
    cache, found = beam(problem, policy, x, 24)
    for row in range(BATCH):
        assert {tuple(tour) for tour in found.tour[row].tolist()} == set(itertools.permutations(range(4)))
    assert (found.log_prob.diff(dim=1) <= 0).all()
    torch.testing.assert_close(found.log_prob.exp().sum(1), torch.ones(BATCH, dtype=torch.float64))
    again = rollout(problem, policy, cache, x, solutions=24, steps=4, prefix=found.tour, record=True)
    scored = policy.score(cache, again.trajectory._replace(given=None)).sum(-1)
    torch.testing.assert_close(found.log_prob, scored)
    best = [brute_force.tsp(legs) for legs in distance_matrix(x).tolist()]
    assert decode(problem, policy, x, "beam:24").cost.tolist() == pytest.approx(best)


def test_a_beam_wider_than_there_are_tours_stays_legal():
    problem, policy, x = prepared("tsp", n=3)
    _, found = beam(problem, policy, x, 20)
    problem.check(x, found.tour)
    assert found.done.all()
    assert (found.log_prob[:, :6] > -torch.inf).all()
    assert (found.log_prob[:, 6:] == -torch.inf).all()


def test_every_solution_in_a_beam_keeps_the_rules_and_the_likeliest_come_first(problem):
    problem, policy, x = prepared(problem.name)
    _, found = beam(problem, policy, x, 6)
    assert found.done.all()
    problem.check(x, found.tour)
    assert (found.log_prob[:, :-1] >= found.log_prob[:, 1:]).all()
    assert (found.log_prob[:, 0] > -torch.inf).all()


def test_a_beam_finds_likelier_tours_than_greedy():
    problem, policy, x = prepared("tsp", batch=32, n=10)
    cache, wide = beam(problem, policy, x, 16)
    alone = rollout(problem, policy, cache, x, steps=10).log_prob[:, 0]
    assert wide.log_prob[:, 0].mean() > alone.mean()


# ------------------------------------------------------------------------------------------ on the device


@pytest.fixture
def _as_on_a_device():
    """The step without what is for CPUs only."""
    with backend("reference"):
        yield


@pytest.mark.usefixtures("_as_on_a_device")
@pytest.mark.parametrize("text", ["greedy", "sample:3", "sample:3@0.5", "multistart:2"])
def test_no_step_waits_for_the_host(problem, text):
    if problem.reveals_on_visit:
        text = "sample:1" if "sample" in text else "greedy"
    problem, policy, x = prepared(problem.name)
    taken = []

    def guarded(*arguments):
        with no_host_sync():
            taken.append(advance(*arguments))
        return taken[-1]

    judged(problem, x, decode(problem, policy, x, text, step=guarded))
    assert len(taken) >= CUSTOMERS - 1


@pytest.mark.usefixtures("_as_on_a_device")
@pytest.mark.parametrize("text", ["greedy", "sample:4"])
def test_a_tour_of_known_length_is_decoded_without_any_wait(text):
    problem, policy, x = prepared("tsp")
    with no_host_sync():
        decode(problem, policy, x, text)


def test_bfloat16_gives_checked_solutions():
    problem, policy, x = prepared("cvrp")
    judged(problem, x, decode(problem, policy, x, "augment:2+sample:2", precision="bfloat16"))
