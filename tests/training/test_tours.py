"""Tours to learn from: made, stored, refused where they do not fit, and followed by a training step."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from test_resume import check_resume
from test_two_pass import step_by_step
from train_cases import CPU, make_step, run, tiny

from routelearn import policies, solvers
from routelearn.decoding.rollout import follow, rollout
from routelearn.errors import InputError
from routelearn.policies.base import shape_of
from routelearn.problems import DeviceRng, get
from routelearn.problems.base import to_single
from routelearn.training import tours as storing
from routelearn.training.tours import Lessons, from_first

SUPERVISED = {"loss": "supervised", "baseline": "none", "solutions": 1}


def made(path, name="tsp", n=6, count=400, seed=7, solver="farthest-insertion"):
    problem = get(name)
    x = storing.instances(problem, n, count, seed)
    found = solvers.get(solver).solve(problem, x, seconds=1.0)
    storing.write(path, problem, n, seed, x, found)
    return x, found


def changed(path, **changes):
    """The same file with other arrays."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez_compressed(path, **arrays | changes)
    return arrays


# -------------------------------------------------------------------------------------------- on disk


def test_tours_come_back_with_their_instances_and_cost_what_they_did(tmp_path):
    x, found = made(tmp_path / "t.npz", count=50)
    lessons = storing.read(tmp_path / "t.npz", get("tsp"), 6, CPU)
    assert torch.equal(lessons.x.xy, x.xy)
    costs = [get("tsp").cost(x, tours) for tours in (found, lessons.tours[:, None].long())]
    torch.testing.assert_close(*costs)
    assert (tmp_path / "t.npz").stat().st_size < 50 * 6 * 2 + 2000


def test_every_order_of_a_closed_tour_becomes_the_same_one():
    x = to_single(get("tsp").sample(DeviceRng(), 5, 8))
    tours = torch.stack([torch.randperm(8) for _ in range(5)])
    plain = from_first(x, tours)
    assert (plain[:, 0] == 0).all()
    for turned in (tours.roll(3, 1), tours.flip(1), tours.flip(1).roll(5, 1)):
        assert torch.equal(from_first(x, turned), plain)
    torch.testing.assert_close(*(get("tsp").cost(x, t[:, None]) for t in (tours, plain)))


def test_a_square_is_walked_anticlockwise():
    x = get("tsp").sample(DeviceRng(), 1, 4)._replace(xy=torch.tensor([[[0.0, 0], [1, 0], [1, 1], [0, 1]]]))
    assert from_first(x, torch.tensor([[2, 1, 0, 3]])).tolist() == [[0, 1, 2, 3]]


def test_the_test_set_is_nothing_to_learn_from():
    with pytest.raises(InputError, match="seed 4321 draws the test set or the validation set"):
        storing.instances(get("tsp"), 6, 10_000, 4321)


def test_tours_that_do_not_fit_are_refused_in_one_line(tmp_path):
    path, tsp = tmp_path / "t.npz", get("tsp")
    made(path, count=30)

    def refused(words, problem=tsp, n=6):
        with pytest.raises(InputError, match=words) as caught:
            storing.read(path, problem, n, CPU)
        assert str(caught.value).startswith(str(path))
        assert "\n" not in str(caught.value)

    refused("tours of tsp, n = 6; this run needs those of tsp, n = 7", n=7)
    refused("tours of tsp, n = 6; this run needs those of cvrp, n = 6", problem=get("cvrp"))
    arrays = changed(path, seed=8)
    refused("tours of another set than seed 8 draws here")
    twice = arrays["orders"].copy()
    twice[4, 2] = twice[4, 1]
    changed(path, seed=7, orders=twice)
    refused(r"the tour of instance 4 breaks a rule \(node \d is never visited\)")
    changed(path, orders=arrays["orders"].astype(np.float32))
    refused("damaged")
    changed(path, format="something")
    refused("not a file of tours")
    path.write_bytes(b"nothing")
    refused("not an .npz file")


def test_a_tour_against_the_mask_is_refused_though_it_breaks_no_rule(tmp_path):
    """Two visits to the depot in a row cost nothing, but no policy could choose them."""
    path, problem = tmp_path / "t.npz", get("cvrp")
    x = storing.instances(problem, 3, 2, 7)
    tours = torch.tensor([[1, 0, 2, 0, 3, 0], [1, 0, 0, 2, 0, 3]])[:, None]
    problem.check(x, tours)
    storing.write(path, problem, 3, 7, x, tours)
    with pytest.raises(InputError, match=r"the tour of instance 1 goes to node 0, which is masked \(step 2\)"):
        storing.read(path, problem, 3, CPU)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tours": ""}, "loss 'supervised' learns from tours, but it has none; name them: --tours FILE.npz"),
        ({"tours": "a,b"}, "but 2 files of tours for 1 sizes"),
        ({"solutions": 2}, "follows one tour of each instance; set solutions to 1"),
        ({"loss": "reinforce"}, "tours are given, but loss 'reinforce' draws its own; set loss to supervised"),
        ({"baseline": "exponential"}, "has no use for baseline 'exponential'; use none"),
    ],
)
def test_a_run_that_contradicts_itself_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        tiny(**{**SUPERVISED, "tours": "t.npz", **changes})


# ------------------------------------------------------------------------------------------ in a step


@pytest.mark.parametrize(
    ("name", "kind"), [("tsp", "pointer"), ("tsp", "ean"), ("cvrp", "nazari"), ("sdvrp", "attention")]
)
def test_a_followed_tour_is_recorded_as_one_that_was_chosen(name, kind):
    problem = get(name)
    policy = policies.build(kind, shape_of(problem), {"width": 16}).eval()
    x = problem.sample(DeviceRng(), 4, 5)
    cache = policy.encode(problem.features(x))
    rolled = rollout(problem, policy, cache, x, solutions=2, steps=problem.max_steps(x), temperature=1.0, record=True)
    followed = follow(problem, x, rolled.tour)
    assert followed.done.all()
    for mine, theirs in zip(followed.trajectory.seen[:-1], rolled.trajectory.seen[:-1], strict=True):
        assert mine is theirs is None or torch.equal(mine, theirs)
    log_prob = policy.score(cache, followed.trajectory).sum(-1)
    torch.testing.assert_close(log_prob, rolled.log_prob, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["attention", "pointer", "ean", "nowak"])
def test_the_gradient_is_that_of_the_tours_likelihood(monkeypatch, kind):
    problem = get("tsp")
    x = problem.sample(DeviceRng(dtype=torch.float64), 8, 6)
    tours = torch.stack([torch.randperm(6) for _ in range(8)])
    step = make_step(tiny(**SUPERVISED, tours="t.npz", policy=kind, gradient_norm=1e9), dtype=torch.float64)
    step.lessons = Lessons(x, tours.short())
    monkeypatch.setattr(Lessons, "draw", lambda self, batch: (self.x, self.tours[:, None].long()))
    before = copy.deepcopy(step.policy)
    step()
    (-step_by_step(problem, before, x, tours[:, None], None).mean() / 6).backward()
    for (name, mine), reference in zip(step.policy.named_parameters(), before.parameters(), strict=True):
        wanted = torch.zeros_like(mine) if reference.grad is None else reference.grad
        assert (mine.grad - wanted).abs().max() <= 1e-9, name


@pytest.mark.parametrize("kind", ["attention", "pointer", "nowak"])
def test_who_imitates_good_tours_gets_better(tmp_path, kind):
    made(tmp_path / "t.npz", n=6, count=2000)
    config = tiny(**SUPERVISED, tours=str(tmp_path / "t.npz"), policy=kind, batch=(64,), epoch_steps=40, rate=3e-3)
    still = run(tiny(**SUPERVISED, tours=config.tours, policy=kind, rate=1e-12, epochs=1), tmp_path / "still")
    assert run(config, tmp_path / "moving").validation[6] < still.validation[6] - 0.1


def test_a_supervised_run_resumes_as_if_never_stopped(tmp_path):
    made(tmp_path / "t.npz", count=100)
    check_resume(tiny(**SUPERVISED, tours=str(tmp_path / "t.npz"), epochs=3, epoch_steps=4), tmp_path, 5)
