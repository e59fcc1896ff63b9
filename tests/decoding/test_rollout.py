"""The decoding loop: prefixes, continuation, reproducible draws, honest probabilities, no wait for the host."""

from __future__ import annotations

import math

import pytest
import torch

from routelearn.decoding.rollout import advance, begin, finish, look, rollout
from routelearn.policies.attention import AttentionPolicy
from routelearn.policies.base import drawn, likeliest, shape_of
from routelearn.policies.kernels.select import backend
from routelearn.problems import PROBLEMS, NumpyRng, get
from routelearn.problems.base import to_single
from routelearn.problems.contract.host_sync import no_host_sync

BATCH, CITIES, SOLUTIONS = 4, 7, 3


def prepared(name, *, batch=BATCH, n=CITIES, double=False):
    """A problem, a small random policy in evaluation mode, instances, and their encoding."""
    problem = get(name)
    policy = AttentionPolicy(shape_of(problem), width=16, heads=2, layers=1, hidden=16).eval()
    x = problem.sample(NumpyRng(9), batch, n)
    if double:
        policy = policy.double()
    else:
        x = to_single(x)
    with torch.no_grad():
        return problem, policy, x, policy.encode(problem.features(x))


@pytest.fixture(autouse=True)
def _no_grad():
    with torch.no_grad():
        yield


# ------------------------------------------------------------------------------------ whole solutions


@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.5, 3.0])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_rollout_of_the_bound_is_a_checked_solution(name, temperature):
    problem, policy, x, cache = prepared(name)
    steps = problem.max_steps(x)
    rolled = rollout(problem, policy, cache, x, solutions=SOLUTIONS, steps=steps, temperature=temperature)
    assert rolled.tour.shape == (BATCH, SOLUTIONS, steps)
    assert rolled.done.all()
    assert rolled.trajectory is None
    problem.check(x, rolled.tour)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_record_holds_what_was_seen(name):
    problem, policy, x, cache = prepared(name)
    steps = problem.max_steps(x)
    rolled = rollout(problem, policy, cache, x, solutions=SOLUTIONS, steps=steps, temperature=1.0, record=True)
    actions, seen, given, kept = rolled.trajectory
    assert given is None
    assert kept == ()
    assert torch.equal(actions, rolled.tour)
    state = problem.initial(x, SOLUTIONS)
    for t in range(steps):
        context = problem.context(x, state)
        assert torch.equal(seen.nodes[:, :, t], context.nodes)
        assert torch.equal(seen.scalars[:, :, t], context.scalars)
        assert torch.equal(seen.feasible[:, :, t], problem.feasible(x, state))
        extra = problem.step_features(x, state)
        assert seen.step_features is extra is None or torch.equal(seen.step_features[:, :, t], extra)
        state = problem.step(x, state, actions[:, :, t])
    assert seen.feasible.gather(-1, actions[..., None]).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_log_probability_is_the_score_of_the_record(name):
    problem, policy, x, cache = prepared(name, double=True)
    for prefix in (
        None,
        torch.ones(BATCH, SOLUTIONS, 1, dtype=torch.long) * (problem.starts(x).long().argmax(1)[:, None, None]),
    ):
        rolled = rollout(
            problem,
            policy,
            cache,
            x,
            solutions=SOLUTIONS,
            steps=problem.max_steps(x),
            temperature=1.0,
            prefix=prefix,
            record=True,
        )
        assert (rolled.trajectory.given is None) == (prefix is None)
        scored = policy.score(cache, rolled.trajectory)
        assert scored.shape[2] == problem.max_steps(x)
        if prefix is not None:
            assert not scored[..., 0].any()  # a step that was given is no choice of the policy's
        torch.testing.assert_close(rolled.log_prob, scored.sum(-1), rtol=0, atol=1e-10)
        assert (scored <= 0).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_steps_after_the_end_have_log_probability_zero(name):
    problem, policy, x, cache = prepared(name)
    steps = problem.max_steps(x)
    torch.manual_seed(3)
    exact = rollout(problem, policy, cache, x, solutions=2, steps=steps, temperature=1.0)
    more = rollout(problem, policy, cache, x, steps=4, temperature=1.0, live=exact.live)
    assert more.log_prob.eq(0).all()
    torch.testing.assert_close(problem.cost(x, torch.cat((exact.tour, more.tour), -1)), problem.cost(x, exact.tour))


# ------------------------------------------------------------------------- prefixes and continuation


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_prefix_of_a_greedy_solution_leads_to_the_same_solution(name):
    problem, policy, x, cache = prepared(name)
    steps = problem.max_steps(x)
    whole = rollout(problem, policy, cache, x, solutions=1, steps=steps)
    for length in (1, steps // 2, steps):
        prefix = whole.tour[:, :, :length]
        again = rollout(problem, policy, cache, x, solutions=1, steps=steps, prefix=prefix)
        assert torch.equal(again.tour, whole.tour)


@pytest.mark.parametrize("name", PROBLEMS)
def test_forced_starts_stand_first_and_minus_one_leaves_the_choice(name):
    problem, policy, x, cache = prepared(name)
    steps = problem.max_steps(x)
    free = rollout(problem, policy, cache, x, solutions=2, steps=steps).tour
    start = problem.starts(x).long().argmax(1)  # the first legal start of every instance
    prefix = torch.stack((start, torch.full_like(start, -1)), 1)[..., None]
    mixed = rollout(problem, policy, cache, x, solutions=2, steps=steps, prefix=prefix).tour
    legal = problem.starts(x).any(1)
    assert torch.equal(mixed[legal, 0, 0], start[legal])
    assert torch.equal(mixed[:, 1], free[:, 1])
    problem.check(x, mixed)


def test_a_choice_left_open_by_the_prefix_has_its_log_probability():
    problem, policy, x, cache = prepared("tsp")
    free = rollout(problem, policy, cache, x, solutions=1, steps=CITIES)
    open_start = torch.full((BATCH, 1, 1), -1)
    same = rollout(problem, policy, cache, x, solutions=1, steps=CITIES, prefix=open_start)
    torch.testing.assert_close(same.log_prob, free.log_prob)


@pytest.mark.parametrize("name", PROBLEMS)
def test_two_halves_make_the_whole(name):
    problem, policy, x, cache = prepared(name)
    steps, half = problem.max_steps(x), problem.max_steps(x) // 2
    torch.manual_seed(5)
    whole = rollout(problem, policy, cache, x, solutions=SOLUTIONS, steps=steps, temperature=1.0)
    torch.manual_seed(5)
    first = rollout(problem, policy, cache, x, solutions=SOLUTIONS, steps=half, temperature=1.0)
    second = rollout(problem, policy, cache, x, steps=steps - half, temperature=1.0, live=first.live)
    assert torch.equal(torch.cat((first.tour, second.tour), -1), whole.tour)
    assert torch.equal(second.done, whole.done)
    torch.testing.assert_close(first.log_prob + second.log_prob, whole.log_prob)


@pytest.mark.parametrize("segment", [None, 1])
@pytest.mark.parametrize("name", PROBLEMS)
def test_finish_gives_what_a_rollout_of_the_bound_gives(name, segment):
    problem, policy, x, cache = prepared(name)
    torch.manual_seed(6)
    whole = rollout(problem, policy, cache, x, solutions=SOLUTIONS, steps=problem.max_steps(x), temperature=1.0)
    torch.manual_seed(6)
    done = finish(problem, policy, cache, x, solutions=SOLUTIONS, temperature=1.0, segment=segment)
    taken = done.tour.shape[2]
    assert taken <= whole.tour.shape[2]
    assert done.done.all()
    assert torch.equal(done.tour, whole.tour[..., :taken])
    torch.testing.assert_close(done.log_prob, whole.log_prob)
    torch.testing.assert_close(problem.cost(x, done.tour), problem.cost(x, whole.tour))


def test_finish_stops_early_where_solutions_are_short():
    problem, policy, x, cache = prepared("cvrp", n=40)
    done = finish(problem, policy, cache, x, segment=1)
    assert done.done.all()
    assert done.tour.shape[2] < problem.max_steps(x)


def test_finish_says_when_the_bound_cut_solutions_short():
    problem, policy, x, cache = prepared("tsp")
    done = finish(problem, policy, cache, x, bound=CITIES - 2)
    assert done.tour.shape[2] == CITIES - 2
    assert not done.done.any()


def test_finish_takes_a_prefix():
    problem, policy, x, cache = prepared("tsp")
    prefix = torch.arange(CITIES).expand(BATCH, CITIES)[..., None]
    done = finish(problem, policy, cache, x, solutions=CITIES, prefix=prefix)
    assert torch.equal(done.tour[..., 0], prefix[..., 0])
    problem.check(x, done.tour)


# --------------------------------------------------------------------------------------------- choices


def test_a_seed_gives_the_same_solutions_and_another_seed_others():
    problem, policy, x, cache = prepared("cvrp")
    tours = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        tours.append(rollout(problem, policy, cache, x, solutions=8, steps=problem.max_steps(x), temperature=1.0).tour)
    assert torch.equal(tours[0], tours[1])
    assert not torch.equal(tours[0], tours[2])


def test_greedy_takes_the_first_of_equals():
    logits = torch.tensor([[[1.0, 3.0, 3.0, -math.inf], [-math.inf, 0.0, 0.0, 0.0], [2.0, 2.0, 2.0, 2.0]]])
    assert likeliest(logits).tolist() == [[1, 1, 0]]


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_sampling_frequencies_are_the_probabilities(temperature):
    """Chi-square over 40,000 draws from five nodes, one of them infeasible; 3 degrees, p = 0.001."""
    logits = torch.tensor([1.0, 0.0, -math.inf, -1.0, 0.5], dtype=torch.float64)
    draws = drawn(logits.expand(1, 40_000, 5), temperature).flatten()
    counts = draws.bincount(minlength=5).double()
    expected = (logits / temperature).softmax(0) * 40_000
    assert counts[2] == 0
    feasible = expected > 0
    assert float(((counts - expected)[feasible] ** 2 / expected[feasible]).sum()) < 16.27


def test_whole_tours_are_sampled_as_often_as_their_probability_says():
    """All 24 tours of four nodes: the policy's own log-probability against 20,000 rollouts; p = 0.001."""
    problem, policy, x, cache = prepared("tsp", batch=1, n=4, double=True)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.mul_(2)
    cache = policy.encode(problem.features(x))
    tours = rollout(problem, policy, cache, x, solutions=20_000, steps=4, temperature=1.0)
    codes = (tours.tour[0] * torch.tensor([64, 16, 4, 1])).sum(-1)
    probability = {}
    for code, log_prob in zip(codes.tolist(), tours.log_prob[0].tolist(), strict=True):
        assert probability.setdefault(code, log_prob) == pytest.approx(log_prob, abs=1e-9)
    assert sum(map(math.exp, probability.values())) == pytest.approx(1, abs=2e-3)
    counts = codes.bincount(minlength=256)
    surprise = sum(
        (float(counts[c]) - 20_000 * math.exp(p)) ** 2 / (20_000 * math.exp(p)) for c, p in probability.items()
    )
    assert surprise < 49.7  # 23 degrees


# --------------------------------------------------------------------------------- on the device, compiled


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_loop_never_waits_for_the_host(name):
    problem, policy, x, cache = prepared(name)
    steps = problem.max_steps(x)
    prefix = torch.full((BATCH, 2, 1), -1)
    with backend("reference"), no_host_sync():  # the kernels here are for CPUs only
        cache = policy.encode(problem.features(x))
        rolled = rollout(
            problem, policy, cache, x, solutions=2, steps=steps, temperature=1.0, prefix=prefix, record=True
        )
        policy.score(cache, rolled.trajectory)
        problem.cost(x, rolled.tour)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_step_compiles_into_one_graph_and_once(name):
    problem, policy, x, cache = prepared(name)
    steps = problem.max_steps(x)
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    compiled = torch.compile(advance, backend=keep, fullgraph=True, dynamic=False)
    plain = rollout(problem, policy, cache, x, solutions=2, steps=steps)
    fast = rollout(problem, policy, cache, x, solutions=2, steps=steps, step=compiled)
    torch.compiler.reset()
    assert torch.equal(plain.tour, fast.tour)
    torch.testing.assert_close(plain.log_prob, fast.log_prob)
    assert len(graphs) == 1


def test_a_step_changes_nothing_it_was_given():
    problem, policy, x, cache = prepared("sdvrp")
    live = begin(problem, policy, cache, x, 2)
    before = [field.clone() for field in (*live.state, live.last)]
    advance(problem, policy, cache, x, live, look(problem, x, live))
    assert all(torch.equal(old, new) for old, new in zip(before, (*live.state, live.last), strict=True))
