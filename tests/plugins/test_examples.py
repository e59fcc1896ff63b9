"""The plugins in examples/plugins do what they say, in few lines."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from plugin_cases import ROOT, run

from routelearn import plugins, policies
from routelearn.data import generate
from routelearn.decoding.decode import decode
from routelearn.policies.base import shape_of
from routelearn.problems import get
from routelearn.problems.base import distance_matrix
from routelearn.training.losses import LOSSES

FOLDER = ROOT / "examples" / "plugins"
EXAMPLES = sorted(FOLDER.glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_loads_and_is_short(path):
    assert plugins.load(path).registered
    assert len(path.read_text().splitlines()) <= (125 if path.stem == "open_vrp" else 40)  # a whole problem takes more


def test_there_are_examples():
    assert {"distance_policy.py", "capped_loss.py", "open_vrp.py"} <= {path.name for path in EXAMPLES}


def test_the_capped_loss_is_a_policy_gradient_without_outliers():
    plugins.load(FOLDER / "capped_loss.py")
    loss = LOSSES["capped"]()
    cost = torch.cat((torch.randn(99, 1), torch.full((1, 1), 1e3)))
    log_prob = torch.randn(100, 1, 5, requires_grad=True)
    value = torch.zeros(())
    loss(SimpleNamespace(cost=cost, value=value, log_prob=log_prob)).backward()
    share = 100 * log_prob.grad[:, 0, 0]  # each solution's weight in the mean
    assert float(share[-1]) == pytest.approx(3.0)
    assert torch.equal(share.sign()[:99], ((cost / cost.std(unbiased=False))[:99, 0]).sign())
    one = SimpleNamespace(cost=torch.ones(1, 1), value=torch.ones(1, 1), log_prob=torch.zeros(1, 1, 3))
    assert float(loss(one)) == 0.0


@pytest.mark.parametrize("count", [1, 8, 64])
def test_with_a_large_weight_the_distance_policy_goes_to_the_nearest_node(count):
    plugins.load(FOLDER / "distance_policy.py")
    problem = get("tsp")
    policy = policies.build("distance", shape_of(problem), {"width": 16, "heads": 2, "layers": 1, "hidden": 16}).eval()
    policy.weight.data.fill_(1e4)
    x = generate("tsp", 12, count=count)
    tours, legs = decode(problem, policy, x).tour[:, 0], distance_matrix(x)
    for row in range(count):
        left = set(range(12))
        for here, there in zip(tours[row].tolist(), tours[row, 1:].tolist(), strict=False):
            left.discard(here)
            assert there == min(left, key=lambda node: float(legs[row, here, node]))


def test_the_examples_train(tmp_path):
    tiny = ("--width", 16, "--heads", 2, "--layers", 1, "--epochs", 1, "--epoch-steps", 2, "--batch", 8, "--quiet")
    tiny += ("--validation-instances", 4, "--evaluation-instances", 4, "--device", "cpu", "--out", "run")
    both = [f"--plugin={path}" for path in EXAMPLES]
    done = run("train", "tsp", 8, *tiny, "--policy", "distance", "--loss", "capped", *both, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "run" / "last.safetensors").is_file()
