"""The Triton kernels against the generic code: on a GPU where there is one, else in Triton's interpreter.

The interpreter is chosen by an environment variable when Triton is imported, so that comparison runs in a process of
its own: this file, called as a script, prints how far the two are apart.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest
import torch

from routelearn.decoding.rollout import begin, look, rollout
from routelearn.policies.attention import AttentionPolicy
from routelearn.policies.base import map_seen, shape_of
from routelearn.policies.kernels import select
from routelearn.policies.kernels.cache import Cache
from routelearn.policies.kernels.gpu import decoder as decoder_kernels
from routelearn.policies.kernels.gpu import encoder as encoder_kernels
from routelearn.policies.kernels.select import backend
from routelearn.problems import Context, DeviceRng, get

CASES = [("tsp", 12), ("tsp", 17), ("cvrp", 9), ("sdvrp", 9), ("sdvrp", 15), ("pctsp", 15)]  # 16 is where a block ends
CASES += [("crowded", 9), ("crowded", 13)]
CHOICES = ("tsp", "cvrp", "sdvrp", "crowded")
MEASURES = ("score", "gradient", "few", "many", "encoder", "encoder gradient")


class Crowded:
    """SDVRP that shows a policy as much as the kernels take: four context nodes, scalars and step features."""

    context_nodes = context_scalars = step_dim = 4

    def __init__(self):
        self.inner = get("sdvrp")

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def context(self, x, s):
        nodes, scalars = self.inner.context(x, s)
        first = torch.where(nodes == 0, -1, nodes)  # a placeholder at the depot
        far = (x.xy.shape[1] - 1 - nodes).clamp(min=0)
        angles = torch.cat((scalars, scalars**2, (3 * scalars).sin(), 1 - scalars), -1)
        return Context(torch.cat((nodes, first, far, torch.zeros_like(nodes)), -1), angles)

    def step_features(self, x, s):
        own = self.inner.step_features(x, s)
        return torch.cat((own, own**2, (5 * own).cos(), own.roll(1, 2)), -1)


def problem_of(name):
    return Crowded() if name == "crowded" else get(name)


def relative(a, b):
    """Largest distance in a list of tensors, as a share of the tensor's own norm (at least 1 % of the list's)."""
    floor = 0.01 * torch.stack([part.double().norm() for part in a]).norm()
    pairs = ((x.double(), y.double()) for x, y in zip(a, b, strict=True))
    return max(float((x - y).norm() / torch.maximum(x.norm(), floor)) for x, y in pairs)


def gradients(policy):
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in policy.parameters()]


def measure(problem, policy, x, trajectory, weights, embedding_weights, precision):
    """Score, gradients, step logits for few and for many queries, node embeddings: by whatever path is on."""
    with torch.autocast(x.xy.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        policy.zero_grad()
        score = policy.score(policy.encode(problem.features(x)), trajectory)
        (score * weights).sum().backward()
        found = {"score": score.detach(), "gradient": gradients(policy)}
        with torch.no_grad():
            cache = policy.encode(problem.features(x))
            second = map_seen(lambda field: field[:, :, 1], trajectory.seen)
            every = map_seen(lambda field: field.flatten(1, 2), trajectory.seen)
            for name, seen in (("few", second), ("many", every)):
                found[name], _ = policy.step(cache, (), seen)
        policy.zero_grad()
        embedded = policy.encoder(problem.features(x))
        (embedded * embedding_weights).sum().backward()
        found["encoder"], found["encoder gradient"] = embedded.detach(), gradients(policy)
    return found


def compare(name, n, *, device="cpu", precision="float32", batch=2, solutions=3, width=32, heads=2):
    """How far the kernels are from the generic code, for each measure; and what generic bfloat16 loses itself."""
    torch.manual_seed(0)
    problem = problem_of(name)
    x = problem.sample(DeviceRng(device), batch, n)
    policy = AttentionPolicy(shape_of(problem), width, heads, layers=2, hidden=128, norm="instance").to(device)
    steps = problem.max_steps(x)
    with backend("reference"), torch.no_grad():
        cache = policy.encode(problem.features(x))
        trajectory = rollout(
            problem, policy, cache, x, solutions=solutions, steps=steps, temperature=1.0, record=True
        ).trajectory
    assert decoder_kernels.usable(cache), "the kernels do not take this case at all"
    given = (
        trajectory,
        torch.randn(batch, solutions, steps, device=device),
        torch.randn(*x.xy.shape[:2], width, device=device),
    )
    with backend("reference"):
        exact = measure(problem, policy, x, *given, "float32")
        plain = measure(problem, policy, x, *given, precision)
    ours = measure(problem, policy, x, *given, precision)
    result = {}
    for key in MEASURES:
        if "gradient" in key:
            result[key] = (relative(exact[key], ours[key]), relative(exact[key], plain[key]))
            continue
        finite = exact[key].isfinite()
        assert torch.equal(finite, ours[key].isfinite()), f"{key}: other nodes are feasible"
        result[key] = tuple(float((exact[key] - other[key])[finite].abs().max()) for other in (ours, plain))
    with torch.autocast(x.xy.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        first = policy.encoder.layers[0]
        result["expands"] = encoder_kernels.expands(torch.empty(batch, n, width, device=device), first.expand.weight)
    result["attends"] = encoder_kernels.attends(torch.empty(batch, n, 3 * width, device=device), heads)
    return result


def compare_kept(problem, policy, x, solutions):
    """Scores and gradients from what a rollout kept, against those that are computed for the same nodes."""
    with torch.no_grad():
        cache = policy.encode(problem.features(x))
        rolled = rollout(
            problem, policy, cache, x, solutions=solutions, steps=problem.max_steps(x), temperature=1.0, record=True
        )
    trajectory, found = rolled.trajectory, []
    assert len(trajectory.kept) == 4
    weights = torch.randn(trajectory.actions.shape, device=x.xy.device)
    for record in (trajectory, trajectory._replace(kept=())):
        with torch.enable_grad():
            policy.zero_grad()
            score = policy.score(policy.encode(problem.features(x)), record)
            (score * weights).sum().backward()
            found.append([score.detach(), *gradients(policy)])
    return relative(*found)


@torch.no_grad()
def compare_choices(name, n, *, device="cpu", draws=600, width=32, heads=2):
    """How far choices by the kernel are from the logits they stand for, few and many at a time."""
    torch.manual_seed(0)
    problem = problem_of(name)
    x = problem.sample(DeviceRng(device), 2, n)
    policy = AttentionPolicy(shape_of(problem), width, heads, layers=1, hidden=64, norm="instance").to(device)
    cache = policy.encode(problem.features(x))
    result = {}
    for kind, solutions in (("few", 3), ("many", 20), ("draws", draws)):
        seen = look(problem, x, begin(problem, policy, cache, x, solutions))
        logits = policy.logits(cache, seen)
        seeds = decoder_kernels.begin(cache, solutions)
        best, log_prob, same, _ = decoder_kernels.choose(cache, policy.clip, seeds, seen, 0.0)
        assert same is seeds, "nothing was drawn"
        expected = logits.log_softmax(-1)
        result[kind] = float((log_prob - expected.amax(-1)).abs().max())
        assert torch.equal(best, logits.argmax(-1))
        drawn, log_prob, next_seeds, _ = decoder_kernels.choose(cache, policy.clip, seeds, seen, 2.0)
        assert torch.equal(drawn, decoder_kernels.choose(cache, policy.clip, seeds, seen, 2.0)[0])
        assert (logits.gather(-1, drawn[..., None]) > -torch.inf).all(), "an infeasible node was drawn"
        taken = expected.gather(-1, drawn[..., None])[..., 0]
        result[kind] = max(result[kind], float((log_prob - taken).abs().max()))
        forced = torch.where(torch.arange(solutions, device=device) % 2 == 0, drawn, -1)
        given, log_prob, _, _ = decoder_kernels.choose(cache, policy.clip, seeds, seen, 0.0, forced)
        assert torch.equal(given, torch.where(forced >= 0, forced, best))
        assert (log_prob[forced >= 0] == 0).all()
        if kind == "draws":
            frequency = torch.nn.functional.one_hot(drawn, logits.shape[-1]).double().mean(1)
            result["frequency"] = float((frequency - (logits[:, 0] / 2).softmax(-1)).abs().max())
    result["kept"] = max(compare_kept(problem, policy, x, solutions) for solutions in (2, 9))
    again = decoder_kernels.choose(cache, policy.clip, next_seeds, seen, 2.0)[0]
    assert not torch.equal(drawn, again), "the same draws at the next step"
    return result


# ------------------------------------------------------------------------------------------- interpreter


@pytest.fixture(scope="module")
def interpreted():
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed (it comes with CUDA builds of torch)")
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if "only 0-dimensional arrays can be converted" in done.stderr:
        pytest.skip("this Triton's interpreter does not work with this numpy")
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.extra
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}{case[1]}")
@pytest.mark.parametrize("key", MEASURES)
def test_interpreted_kernels_are_the_generic_code(interpreted, case, key):
    result = interpreted[f"{case[0]}{case[1]}"]
    for name in ("attends", "expands"):
        assert result[name], "one of the encoder's kernels was not compared"
    distance, _ = result[key]
    assert distance < 1e-4


@pytest.mark.extra
@pytest.mark.parametrize("name", CHOICES)
def test_interpreted_choices_are_drawn_from_the_logits(interpreted, name):
    result = interpreted[f"{name} choices"]
    assert max(result[kind] for kind in ("few", "many", "draws")) < 1e-4
    assert result["kept"] < 1e-4
    assert result["frequency"] < 0.08  # four standard deviations of 600 draws


# --------------------------------------------------------------------------------------------------- GPU

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@needs_gpu
@pytest.mark.parametrize("name", ["tsp", "cvrp", "sdvrp", "pctsp", "crowded"])
@pytest.mark.parametrize("n", [20, 100])
def test_kernels_on_a_gpu_lose_no_more_than_bfloat16_does(name, n):
    """Against float32; the generic code under the same autocast is the measure of what rounding costs."""
    result = compare(name, n, device="cuda", precision="bfloat16", batch=4, solutions=16, width=128, heads=8)
    assert result["expands"], "the encoder's kernels were not compared"
    for key in MEASURES:
        ours, generic_loss = result[key]
        assert ours <= 2 * generic_loss + 0.05, f"{key}: {ours} from float32, the generic code {generic_loss}"


@needs_gpu
@pytest.mark.parametrize("name", ["tsp", "cvrp", "sdvrp", "pctsp", "crowded"])
def test_kernels_on_a_gpu_in_single_precision(name):
    torch.set_float32_matmul_precision("highest")
    result = compare(name, 50, device="cuda", batch=4, solutions=16, width=128, heads=8)
    for key in MEASURES:
        assert result[key][0] < 1e-3, key


@needs_gpu
@pytest.mark.parametrize("name", CHOICES)
def test_choices_on_a_gpu_are_drawn_from_the_logits(name):
    torch.set_float32_matmul_precision("highest")
    result = compare_choices(name, 50, device="cuda", draws=100_000, width=128, heads=8)
    assert max(result[kind] for kind in ("few", "many", "draws")) < 1e-3
    assert result["kept"] < 1e-3
    assert result["frequency"] < 0.0065  # four standard deviations


# ------------------------------------------------------------------------------------------ without Triton


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_the_generic_code_runs():
    problem = get("tsp")
    policy = AttentionPolicy(shape_of(problem), 32, 2, 1, 128)
    x = problem.sample(DeviceRng(), 2, 6)
    cache = policy.encode(problem.features(x))
    assert not decoder_kernels.usable(cache)
    assert not encoder_kernels.attends(torch.empty(2, 6, 96), 2)
    assert not encoder_kernels.expands(torch.empty(2, 6, 32), policy.encoder.layers[0].expand.weight)


@pytest.mark.parametrize(
    ("nodes", "slots", "scalars", "features", "words"),
    [
        (256, 4, 4, 0, None),
        (252, 4, 4, 4, None),
        (257, 1, 1, 0, "256 nodes and step features (here 257)"),
        (254, 1, 1, 3, "256 nodes and step features (here 257)"),
        (20, 5, 1, 0, "4 context nodes (here 5)"),
        (20, 1, 5, 0, "4 context scalars (here 5)"),
        (20, 1, 1, 5, "4 step features (here 5)"),
    ],
)
def test_the_kernels_say_which_of_their_limits_is_exceeded(nodes, slots, scalars, features, words):
    shapes = ((1, nodes, 8, 16), (1, nodes, 8, 16), (1, nodes, 128), (1, slots, nodes, 128), (1, slots, 128))
    cache = Cache(*(torch.empty(shape) for shape in (*shapes, (scalars, 128), (3, features, 128))))
    assert decoder_kernels.exceeded(cache) == words


def test_what_exceeds_the_kernels_is_said_once_in_one_line(monkeypatch, recwarn):
    """As on a GPU: the kernels are there, and this problem is too large for them."""
    monkeypatch.setattr(decoder_kernels, "present", lambda device: True)
    monkeypatch.setattr(select, "_told", set())
    problem = get("tsp")
    policy = AttentionPolicy(shape_of(problem), 32, 2, 1, 32).eval()
    with torch.no_grad():
        for _ in range(2):
            policy.begin(policy.encode(problem.features(problem.sample(DeviceRng(), 1, 300))), 2)
    assert [str(warning.message) for warning in recwarn] == [
        "the GPU's kernels take 256 nodes and step features (here 300): decoding runs by the policy's own methods, "
        "which is slower"
    ]


if __name__ == "__main__":
    found = {f"{name}{n}": compare(name, n) for name, n in CASES}
    print(json.dumps(found | {f"{name} choices": compare_choices(name, 12) for name in CHOICES}))
