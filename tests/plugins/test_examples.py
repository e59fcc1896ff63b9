"""The plugins in examples/plugins do what they say, in few lines."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
from plugin_cases import ROOT, run

import routelearn
from routelearn import plugins, policies, solvers
from routelearn.data import generate
from routelearn.decoding.decode import decode
from routelearn.errors import Infeasible, InputError
from routelearn.policies.base import shape_of
from routelearn.problems import NumpyRng, get, vrp
from routelearn.problems.base import distance_matrix, to_single
from routelearn.training.config import TrainConfig
from routelearn.training.losses import LOSSES
from routelearn.training.warm_start import start_from

FOLDER = ROOT / "examples" / "plugins"
WEIGHTS = ROOT / "routelearn" / "models" / "weights"
EXAMPLES = sorted(FOLDER.glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_loads_and_is_short(path):
    assert plugins.load(path).registered
    assert len(path.read_text().splitlines()) <= (140 if path.stem.endswith("_vrp") else 40)  # a problem takes more


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


TINY = ("--width", 16, "--heads", 2, "--layers", 1, "--epochs", 1, "--epoch-steps", 2, "--batch", 8, "--quiet")
TINY += ("--validation-instances", 4, "--evaluation-instances", 4, "--device", "cpu", "--out", "run")


def test_the_examples_train(tmp_path):
    both = [f"--plugin={path}" for path in EXAMPLES]
    done = run("train", "tsp", 8, *TINY, "--policy", "distance", "--loss", "capped", *both, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "run" / "last.safetensors").is_file()


# The same problem without a limit on lengths, for the commands that read stops.
UNLIMITED = """
import sys
sys.path.insert(0, {folder!r})
import torch
import routelearn
import open_vrp
from open_vrp import NamedTuple, Tensor

class Instance(NamedTuple):
    xy: Tensor
    demand: Tensor
    capacity: Tensor
    distances: Tensor | None = None

    def public(self):
        return self

    @property
    def max_length(self):
        return torch.full(self.capacity.shape, 1e9, dtype=self.xy.dtype, device=self.xy.device)

@routelearn.register
class Unlimited(open_vrp.OpenVRP):
    name = "open-unlimited"
    attributes = open_vrp.OpenVRP.attributes[:2]

    def sample(self, rng, batch, n):
        x = super().sample(rng, batch, n)
        return Instance(x.xy, x.demand, x.capacity)
"""
STOPS = "id,x,y,demand\ndepot,0,0,0\na,10,0,4\nb,20,0,4\nc,30,0,4\nd,0,10,5\ne,0,20,5\n"


def told(done):
    """What a command said beside its answer, but for the line of a search that was never compiled before."""
    return [line for line in done.stderr.splitlines() if not line.startswith("compiling the search")]


@pytest.fixture
def unlimited(tmp_path):
    (tmp_path / "unlimited.py").write_text(UNLIMITED.format(folder=str(FOLDER)))
    (tmp_path / "stops.csv").write_text(STOPS)
    return tmp_path


def test_open_routing_keeps_the_contract():
    plugins.load(FOLDER / "open_vrp.py")
    for n, seed in ((8, 0), (8, 1), (15, 2)):
        routelearn.check_problem(get("open-vrp"), n=n, seed=seed)


def test_open_routing_pays_no_way_back():
    plugins.load(FOLDER / "open_vrp.py")
    problem = get("open-vrp")
    x = problem.sample(NumpyRng(0), 1, 3)._replace(xy=torch.tensor([[[0.0, 0], [3, 4], [0, 1], [0, 2]]]))
    assert float(problem.cost(x, torch.tensor([[[1, 0, 2, 3]]]))) == pytest.approx(5 + 1 + 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"max_length": torch.tensor([1.5])}, "farther from the depot"), ({"capacity": torch.tensor([1])}, "exceeds")],
)
def test_open_routing_refuses_what_no_route_can_serve(change, words):
    plugins.load(FOLDER / "open_vrp.py")
    problem = get("open-vrp")
    x = problem.sample(NumpyRng(0), 1, 3)._replace(xy=torch.tensor([[[0.0, 0], [3, 4], [0, 1], [0, 2]]]))
    with pytest.raises(InputError, match=words):
        problem.validate(x._replace(**change))


def test_open_routing_is_solved_and_improved_from_a_file(unlimited):
    options = ("--plugin", "unlimited.py", "--problem", "open-unlimited", "--capacity", 12)
    for seconds in (0, 0.3):
        done = run("solve", "stops.csv", *options, "--seconds", seconds, "--out", f"{seconds}.json", folder=unlimited)
        assert (done.returncode, told(done)) == (0, [])
    first, better = (json.loads((unlimited / f"{seconds}.json").read_text()) for seconds in (0, 0.3))
    assert better["cost"] == pytest.approx(50)  # a, b, c and d, e; no way back
    assert better["cost"] <= first["cost"]
    done = run("improve", "0.json", "--plugin", "unlimited.py", "--seconds", 0.3, "--out", "i.json", folder=unlimited)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((unlimited / "i.json").read_text())["cost"] == pytest.approx(50)


def test_open_routing_trains_and_its_model_evaluates_and_solves(unlimited):
    done = run("train", "open-unlimited", 8, *TINY, "--plugin", "unlimited.py", folder=unlimited)
    assert (done.returncode, done.stderr) == (0, "")
    model = ("--model", "run/best.safetensors", "--plugin", "unlimited.py")
    generated = run("generate", "open-unlimited", 8, "--count", 6, "--out", "x.npz", *model[2:], folder=unlimited)
    assert generated.returncode == 0, generated.stderr
    for strategy in ("greedy", "greedy+improve"):
        done = run("evaluate", "x.npz", *model, "--decode", strategy, "--device", "cpu", folder=unlimited)
        assert done.returncode == 0, done.stderr
    options = ("--problem", "open-unlimited", "--capacity", 12, "--seconds", 0.5)
    done = run("solve", "stops.csv", *options, *model, "--out", "s.json", folder=unlimited)
    assert done.returncode == 0, done.stderr
    assert json.loads((unlimited / "s.json").read_text())["cost"] == pytest.approx(50)


def test_the_search_as_a_solver_takes_problems_of_plugins_whenever_they_come():
    class Early(type(get("tsp"))):  # a subclass inherits no engine, so the general one searches it
        name = "early"

    before = solvers.get("search").problems
    routelearn.register(Early())
    assert solvers.get("search").problems == before | {"early"}
    assert routelearn.evaluate("search", ("early", 6), seconds=0.01, limit=2).infeasible == 0


def test_many_open_routings_are_solved_at_once(unlimited):
    plugins.load(unlimited / "unlimited.py")
    x = get("open-unlimited").sample(NumpyRng(1), 4, 10)
    rows = {"coords": list(x.xy), "demand": list(x.demand), "capacity": x.capacity.tolist()}
    at_once = routelearn.solve_many(**rows, problem="open-unlimited", seconds=0)
    searched = routelearn.solve_many(**rows, problem="open-unlimited", seconds=2)
    assert sum(one.cost for one in searched) < sum(one.cost for one in at_once)


def test_a_limit_on_lengths_is_read_with_the_stops(unlimited):
    options = ("--plugin", FOLDER / "open_vrp.py", "--problem", "open-vrp", "--capacity", 12, "--max-length", 30)
    done = run("solve", "stops.csv", *options, "--seconds", 0.3, "--out", "s.json", folder=unlimited)
    assert (done.returncode, told(done)) == (0, [])
    assert json.loads((unlimited / "s.json").read_text())["cost"] == pytest.approx(50)
    document = json.loads((unlimited / "s.json").read_text())
    assert (document["length"], document["limits"]) == (pytest.approx(50), {"capacity": 12, "max_length": 30})


def test_what_is_declared_says_which_problem_it_is(unlimited):
    """With its plugin, a file with demands is open routing as soon as a longest route is given, and CVRP before."""
    plugin = ("--plugin", FOLDER / "open_vrp.py", "--capacity", 12, "--seconds", 0)
    for options, problem in (((), "cvrp"), (("--max-length", 30), "open-vrp")):
        done = run("solve", "stops.csv", *plugin, *options, "--out", "s.json", folder=unlimited)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads((unlimited / "s.json").read_text())["problem"] == problem
    done = run("improve", "s.json", "--plugin", FOLDER / "open_vrp.py", "--seconds", 0.2, folder=unlimited)
    assert (done.returncode, done.stderr) == (0, "")
    done = run("solve", "stops.csv", *plugin, "--problem", "open-vrp", folder=unlimited)
    assert done.stderr == "error: stops.csv: open-vrp needs a maximum length; give max_length\n"
    shape = [(0, 0), (3, 4), (6, 8)]
    plugins.load(FOLDER / "open_vrp.py")
    solution = routelearn.solve(shape, demand=[0, 1, 1], capacity=2, max_length=12, problem="open-vrp", seconds=0.1)
    assert (solution.lengths, solution.returns) == ([10], False)
    assert [line.split(",")[2] for line in solution.to_csv().splitlines()] == [
        "id",
        "0",
        "1",
        "2",
    ]
    assert routelearn.solve(shape, demand=[0, 1, 1], capacity=2, seconds=0).returns


def test_barred_customers_are_never_visited_and_their_visit_is_refused():
    plugins.load(FOLDER / "barred_vrp.py")
    problem = get("barred-vrp")
    x = to_single(problem.sample(NumpyRng(1), 48, 12))
    problem.validate(x)
    assert 0.4 < float((x.allowed[:, 3:] > 0).float().mean()) < 0.8
    policy = policies.build("attention", shape_of(problem), {"width": 16, "heads": 2, "layers": 1, "hidden": 16}).eval()
    problem.check(x, decode(problem, policy, x, "sample:4").tour)
    free = x._replace(allowed=torch.ones_like(x.allowed))
    with pytest.raises(Infeasible, match="barred"):
        problem.check(x, decode(problem, policy, free).tour)


def test_a_model_of_vrp_is_a_start_for_its_variant():
    """Where nobody is barred, the first weights decide as the model does that they come from."""
    plugins.load(FOLDER / "barred_vrp.py")
    problem, model = get("barred-vrp"), routelearn.load_model("vrp")
    config = TrainConfig(problem="barred-vrp", variants="mdvrptw", layers=6, norm="instance", sizes=(20,))
    policy = policies.build("attention", shape_of(problem), config.policy_options()).eval()
    with torch.no_grad():
        _, notes = start_from(policy, config, WEIGHTS / "vrp.safetensors")
    assert "inputs are added, which begin without effect: encoder.embed.1.weight" in notes
    x = to_single(problem.with_variants("mdvrptw").sample(NumpyRng(2), 4, 20))
    free = x._replace(allowed=torch.ones_like(x.allowed))
    theirs = decode(get("vrp"), model.policy, vrp.Instance(*free[:10]), precision="float32").tour
    assert torch.equal(decode(problem, policy, free, precision="float32").tour, theirs)
