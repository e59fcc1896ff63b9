"""The compiled decoding step on a CPU against the plain one: same logits, same nodes, and draws as they should be."""

import multiprocessing
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from routelearn import policies, problems
from routelearn.decoding import decode as decoding
from routelearn.decoding.decode import decode
from routelearn.decoding.rollout import advance, begin, finish, look, rollout
from routelearn.policies.base import map_seen, shape_of
from routelearn.policies.kernels.cpu import decoder as cpu_kernels
from routelearn.problems import PROBLEMS, DeviceRng

SHAPES = [
    {},
    {"width": 24, "heads": 3},
    {"width": 20, "heads": 1},
    {"width": 48, "heads": 16},
    {"width": 160, "heads": 10},
]


def prepared(name, batch, n, options=None, seed=0):
    problem = problems.get(name)
    torch.manual_seed(seed)
    policy = policies.build("attention", shape_of(problem), options or {}).eval()
    return problem, policy, problem.sample(DeviceRng(), batch, n)


@contextmanager
def processors(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@torch.no_grad()
def walk(problem, policy, x, solutions, steps=None):
    """What is seen along sampled solutions, with the cache."""
    cache = policy.encode(problem.features(x))
    rolled = rollout(
        problem,
        policy,
        cache,
        x,
        solutions=solutions,
        steps=steps or problem.max_steps(x),
        temperature=1.0,
        record=True,
    )
    seen = rolled.trajectory.seen
    return cache, [map_seen(lambda field: field[:, :, t], seen) for t in range(rolled.tour.shape[2])]  # noqa: B023


# ------------------------------------------------------------------------------------------------ one step


@pytest.mark.parametrize("options", SHAPES, ids=str)
@pytest.mark.parametrize("name", PROBLEMS)
@torch.no_grad()
def test_logits_are_those_of_the_plain_step(name, options):
    problem, policy, x = prepared(name, 3, 9, options)
    cache, steps = walk(problem, policy, x, 2)
    for seen in steps:
        plain = policy.logits(cache, seen)
        torch.testing.assert_close(cpu_kernels.logits(cache, policy.clip, seen), plain, atol=2e-5, rtol=0)


@pytest.mark.parametrize("count", [5, 16, 17, 33, 150, 500])
@torch.no_grad()
def test_every_size_gives_the_logits_of_the_plain_step(count):
    """Sixteen numbers are taken at a time: sizes on both sides of a full vector."""
    problem, policy, x = prepared("sdvrp", 2, count)
    cache, steps = walk(problem, policy, x, 1, steps=12)
    for seen in steps:
        plain = policy.logits(cache, seen)
        torch.testing.assert_close(cpu_kernels.logits(cache, policy.clip, seen), plain, atol=2e-5, rtol=0)


@torch.no_grad()
def test_weights_far_apart_neither_overflow_nor_vanish():
    """Compatibilities of thousands: the glimpse looks at one node, the pointer is at its clip."""
    problem, policy, x = prepared("tsp", 4, 20)
    for parameter in (policy.context.weight, policy.key.weight, policy.pointer.weight):
        parameter.mul_(60)
    cache, steps = walk(problem, policy, x, 2)
    for seen in steps:
        ours = cpu_kernels.logits(cache, policy.clip, seen)
        assert (ours[seen.feasible].abs() <= policy.clip * (1 + 1e-6)).all()
        torch.testing.assert_close(ours, policy.logits(cache, seen), atol=0.05, rtol=0)


@pytest.mark.parametrize("name", PROBLEMS)
@torch.no_grad()
def test_the_likeliest_node_is_chosen_with_its_log_probability(name):
    problem, policy, x = prepared(name, 5, 12)
    cache, steps = walk(problem, policy, x, 3)
    for seen in steps:
        likely = policy.logits(cache, seen).log_softmax(-1)
        nodes, log_prob, *_ = cpu_kernels.choose(cache, policy.clip, (), seen, 0.0, None)
        torch.testing.assert_close(log_prob, likely.max(-1).values, atol=2e-5, rtol=0)
        torch.testing.assert_close(likely.gather(-1, nodes[..., None])[..., 0], log_prob, atol=2e-5, rtol=0)


@torch.no_grad()
def test_the_first_of_equals_is_chosen():
    problem, policy, x = prepared("tsp", 1, 6)
    x.xy[:] = 0.5
    cache = policy.encode(problem.features(x))
    seen = look(problem, x, begin(problem, policy, cache, x, 2))
    assert cpu_kernels.choose(cache, policy.clip, (), seen, 0.0, None)[0].tolist() == [[0, 0]]


@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
@torch.no_grad()
def test_draws_are_as_frequent_as_their_probability(temperature):
    """20,000 draws of one step with 7 feasible nodes, by chi square; p = 0.001."""
    problem, policy, x = prepared("tsp", 1, 10)
    for parameter in policy.parameters():
        parameter.mul_(1.3)
    cache = policy.encode(problem.features(x))
    start = torch.tensor([[[4, 0, 7]]]).expand(1, 20_000, 3)
    live = rollout(problem, policy, cache, x, solutions=20_000, steps=3, prefix=start).live
    seen = look(problem, x, live)
    torch.manual_seed(3)
    nodes, log_prob, *_ = cpu_kernels.choose(cache, policy.clip, (), seen, temperature, None)
    logits = policy.logits(cache, seen)[0, 0]
    expected = 20_000 * (logits / temperature).softmax(-1)
    counts = nodes[0].bincount(minlength=10)
    assert counts[[4, 0, 7]].sum() == 0
    surprise = ((counts - expected) ** 2 / expected)[expected > 0].sum()
    assert float(surprise) < 22.46  # 6 degrees
    torch.testing.assert_close(log_prob[0], logits.log_softmax(-1)[nodes[0]], atol=2e-5, rtol=0)


@torch.no_grad()
def test_a_given_node_stands_and_the_others_are_chosen():
    problem, policy, x = prepared("cvrp", 4, 8)
    cache = policy.encode(problem.features(x))
    seen = look(problem, x, begin(problem, policy, cache, x, 3))
    free = cpu_kernels.choose(cache, policy.clip, (), seen, 0.0, None)
    forced = torch.full((4, 6), -1)[:, ::2]  # not contiguous
    forced[:, 1] = torch.tensor([3, 1, 8, 5])
    nodes, log_prob, *_ = cpu_kernels.choose(cache, policy.clip, (), seen, 0.0, forced)
    assert nodes[:, 1].tolist() == [3, 1, 8, 5]
    assert (log_prob[:, 1] == 0).all()
    assert torch.equal(nodes[:, ::2], free[0][:, ::2])
    assert torch.equal(log_prob[:, ::2], free[1][:, ::2])
    assert (forced[:, ::2] == -1).all()  # what was given is left as it was


@torch.no_grad()
def test_a_share_for_each_processor_gives_what_one_gives():
    problem, policy, x = prepared("op-dist", 40, 15)
    cache, steps = walk(problem, policy, x, 5)
    for seen in steps[:4]:
        answers = []
        for count in (1, 3):
            with processors(count):
                torch.manual_seed(1)
                answers.append(cpu_kernels.choose(cache, policy.clip, (), seen, 0.7, None))
        assert torch.equal(answers[0][0], answers[1][0])
        assert torch.equal(answers[0][1], answers[1][1])


# -------------------------------------------------------------------------------------------- whole solutions


@pytest.mark.parametrize("name", PROBLEMS)
@torch.no_grad()
def test_greedy_solutions_are_those_of_the_plain_step(name):
    problem, policy, x = prepared(name, 24, 30)
    cache = policy.encode(problem.features(x))
    ours = finish(problem, policy, cache, x)
    theirs = plainly(problem, policy, cache, x)
    assert torch.equal(ours.tour, theirs.tour)
    torch.testing.assert_close(ours.log_prob, theirs.log_prob, atol=1e-3, rtol=0)
    problem.check(x, ours.tour)


def plainly(problem, policy, cache, x):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_kernels, "usable", lambda cache, solutions: False)
        return finish(problem, policy, cache, x)


@pytest.mark.parametrize("name", PROBLEMS)
def test_chunks_side_by_side_give_what_one_chunk_gives(name):
    problem, policy, x = prepared(name, 70, 11)
    heard = []
    with processors(3):
        budget = 9 * decoding.row_bytes(policy, x.xy.shape[1], 1, 4)
        apart = decode(problem, policy, x, "greedy", budget=budget, progress=heard.append)
    with processors(1):
        whole = decode(problem, policy, x, "greedy")
    assert sum(heard) == 70
    assert len(heard) == 9  # eight would do, nine are as many for each
    assert max(heard) - min(heard[:-1]) == 0
    torch.testing.assert_close(apart.cost, whole.cost)
    problem.check(x, apart.tour)


def test_chunks_side_by_side_run_on_several_threads_without_gradients(monkeypatch):
    problem, policy, x = prepared("tsp", 64, 8)
    threads, gradients, encode = set(), set(), policy.encode
    both = threading.Barrier(2, timeout=20)  # neither goes on before the other has come

    def spy(features):
        both.wait()
        threads.add(threading.get_ident())
        gradients.add(torch.is_grad_enabled())
        return encode(features)

    monkeypatch.setattr(policy, "encode", spy, raising=False)
    with processors(2):
        decode(problem, policy, x, "greedy")
        assert torch.get_num_threads() == 2
    assert len(threads) == 2
    assert threading.get_ident() not in threads
    assert gradients == {False}


def test_an_error_in_one_chunk_reaches_the_caller_and_the_threads_are_given_back():
    def work(part):
        if part == 3:
            raise ValueError("three")
        return part

    with processors(2):
        with pytest.raises(ValueError, match="three"):
            list(cpu_kernels.side_by_side(work, range(6)))
        assert torch.get_num_threads() == 2
        assert list(cpu_kernels.side_by_side(work, range(3))) == [0, 1, 2]


def test_a_forked_process_has_threads_of_its_own():
    def work():
        return list(cpu_kernels.side_by_side(abs, [-1, -2, -3]))

    with processors(2):
        assert work() == [1, 2, 3]
        child = multiprocessing.get_context("fork").Process(target=work, daemon=True)
        child.start()
        child.join(30)  # a pool whose threads stayed behind would wait for ever
    assert child.exitcode == 0


def test_a_sampled_solution_is_a_checked_one_of_the_same_likelihood():
    problem, policy, x = prepared("cvrp", 6, 12)
    with torch.no_grad():
        cache = policy.encode(problem.features(x))
        torch.manual_seed(2)
        rolled = rollout(
            problem, policy, cache, x, solutions=4, steps=problem.max_steps(x), temperature=1.0, record=True
        )
        problem.check(x, rolled.tour)
        torch.testing.assert_close(policy.score(cache, rolled.trajectory).sum(-1), rolled.log_prob, atol=1e-3, rtol=0)


# ------------------------------------------------------------------------------------------------------ use


def test_it_is_left_alone_where_it_does_not_fit():
    problem, policy, x = prepared("tsp", 1, 6)
    assert not cpu_kernels.usable(policy.encode(problem.features(x)), 100)  # a gradient may be wanted
    with torch.no_grad():
        assert cpu_kernels.usable(policy.encode(problem.features(x)), 100)
        many = prepared("tsp", 1, 6, {"width": 32, "heads": 32})[1]
        assert not cpu_kernels.usable(many.encode(problem.features(x)), 100)
        double = policy.double()
        assert not cpu_kernels.usable(double.encode((x.xy.double(),)), 100)


def test_a_step_of_ones_own_is_not_replaced():
    problem, policy, x = prepared("tsp", 20, 6)
    taken = []

    def counted(*arguments):
        taken.append(advance(*arguments))
        return taken[-1]

    decode(problem, policy, x, "greedy", step=counted)
    assert len(taken) == 6


def test_the_layout_goes_when_the_cache_goes():
    problem, policy, x = prepared("tsp", 1, 6)
    before = len(cpu_kernels._kept)
    with torch.no_grad():
        cache = policy.encode(problem.features(x))
        cpu_kernels.choose(cache, 10.0, (), look(problem, x, begin(problem, policy, cache, x, 1)), 0.0, None)
        assert len(cpu_kernels._kept) == before + 1
        del cache
    assert len(cpu_kernels._kept) == before


def test_exponentials_are_precise():
    from numba import njit

    from routelearn.policies.kernels.cpu import vectors as cpu_vectors

    @njit
    def powers(values):
        for i in range(0, values.size, 16):
            cpu_vectors.store(values, i, cpu_vectors.exp(cpu_vectors.load(values, i)))

    x = -np.geomspace(1e-6, 80, 1024).astype(np.float32)
    found = x.copy()
    powers(found)
    np.testing.assert_allclose(found, np.exp(x.astype(np.float64)), rtol=8e-6)
    small = x > -1
    np.testing.assert_allclose(found[small], np.exp(x[small].astype(np.float64)), rtol=3e-7)
