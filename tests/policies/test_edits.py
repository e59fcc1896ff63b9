"""An edit of a policy or a layer takes effect at every batch size, precision and device, in decoding and in training.

Compiled kernels stand for the methods as they are in the package. Each edit here must give what the edited methods
give when kernels are switched off, and not what the unedited policy gives.
"""

from __future__ import annotations

import threading
import types
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from routelearn.decoding.decode import decode
from routelearn.decoding.rollout import begin, look, rollout
from routelearn.errors import InputError
from routelearn.models import load_model
from routelearn.policies import base
from routelearn.policies.attention import AttentionPolicy
from routelearn.policies.base import shape_of
from routelearn.policies.kernels import select
from routelearn.policies.layers import AttentionLayer, BatchNorm, Encoder
from routelearn.problems import DeviceRng, get
from routelearn.problems.base import legs_from
from routelearn.runtime import compiling
from routelearn.runtime.compiling import autocast

NODES, SOLUTIONS = 21, 4  # so that 64 instances are enough for every kernel
ON_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
DEVICES = ["cpu", pytest.param("cuda", marks=ON_GPU)]
CASES = [  # batch, precision, device; bfloat16 is slow on processors, and no kernel for them takes it
    *((batch, "float32", "cpu") for batch in (1, 8, 64)), (8, "bfloat16", "cpu"),
    *(pytest.param(batch, kind, "cuda", marks=ON_GPU) for batch in (1, 8, 64, 200) for kind in ("float32", "bfloat16")),
]  # fmt: skip


class Negated(AttentionPolicy):
    """Prefers what the model likes least."""

    def logits(self, cache, seen):
        return torch.where(seen.feasible, -super().logits(cache, seen), -torch.inf)


class Tilted(AttentionPolicy):
    """Another query."""

    def query(self, cache, nodes, scalars):
        return super().query(cache, nodes, scalars) * -1


class Stepped(AttentionPolicy):
    """Changes what a step returns, not the logits themselves."""

    def step(self, cache, carry, seen):
        logits, carry = super().step(cache, carry, seen)
        return logits * 0.1, carry


class Wider(AttentionPolicy):
    """Another encoding."""

    def encode(self, features, adjacent=None):
        return super().encode(tuple(1 - 3 * group for group in features), adjacent)


class Recorded(AttentionPolicy):
    """Another score of a record."""

    def recorded_logits(self, cache, trajectory):
        return 0.1 * super().recorded_logits(cache, trajectory)


class Called(AttentionLayer):
    def __call__(self, *given):
        return super().__call__(*given).flip(-1)


class CalledPolicy(AttentionPolicy):
    layer = Called


class LowRank(nn.Linear):
    """A linear part with something added to its product."""

    def forward(self, h):
        return super().forward(h) + 3 * h.flip(-1)


def low_rank_key(policy):
    key = LowRank(policy.width, policy.width, bias=False)
    key.weight = policy.key.weight
    policy.key = key


def hooked_pointer(policy):
    policy.pointer.register_forward_hook(lambda module, given, result: -result)


class Prepared(AttentionPolicy):
    """Another projection of the embeddings."""

    def prepare(self, h):
        return super().prepare(h.flip(-1))


class TanhLayer(AttentionLayer):
    def feed_forward(self, h):
        return self.contract(torch.tanh(self.expand(h)))


class TanhPolicy(AttentionPolicy):
    layer = TanhLayer


class Squared(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, h):
        return self.inner(h).square()


class FlippedNorm(BatchNorm):
    def forward(self, h):
        return super().forward(h).flip(-1)


def patched_logits(policy):
    own = policy.logits
    policy.logits = types.MethodType(lambda self, cache, seen: own(cache, seen) * 0.2, policy)


def patched_layer(policy):
    layer = policy.encoder.layers[0]
    layer.feed_forward = lambda h: layer.contract(-F.silu(layer.expand(h)))


def replaced_part(policy):
    policy.encoder.layers[0].expand = Squared(policy.encoder.layers[0].expand)


def biased_part(policy):
    old = policy.encoder.layers[0].qkv
    new = nn.Linear(old.in_features, old.out_features)
    new.weight = old.weight
    nn.init.normal_(new.bias, std=10.0)
    policy.encoder.layers[0].qkv = new


def hooked_part(policy):
    policy.encoder.layers[0].contract.register_forward_hook(lambda module, given, result: -3 * result)


def hooked_layer(policy):
    policy.encoder.layers[0].register_forward_hook(lambda module, given, result: result.flip(-1))


def patched_part(policy):
    part = policy.encoder.layers[1].out
    part.forward = lambda h: -F.linear(h, part.weight)


def other_norm(policy):
    layer = policy.encoder.layers[0]
    norm = FlippedNorm(policy.width)
    norm.load_state_dict(layer.norm_attention.state_dict())
    layer.norm_attention = norm


def other_layer(policy):
    mine = nn.TransformerEncoderLayer(policy.width, 4, 64, dropout=0.0, batch_first=True)

    class Adapter(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = mine

        def forward(self, h, adjacent=None):
            return self.inner(h)

    policy.encoder.layers[1] = Adapter()


CLASSES = [Negated, Tilted, Stepped, Recorded, Wider, Prepared, TanhPolicy, CalledPolicy]
CHANGES = [
    *(patched_logits, patched_layer, patched_part, replaced_part, biased_part),
    *(hooked_part, hooked_layer, other_norm, other_layer, low_rank_key, hooked_pointer),
]


def made(edit, device):
    """The edited policy, and the same weights without the edit."""
    model = load_model(path="tsp-20-paper")  # batch norm; a trained policy decides clearly, whatever the rounding
    mine = (edit if isinstance(edit, type) else AttentionPolicy)(shape_of(get("tsp")), **model.options)
    mine.load_state_dict(model.policy.state_dict())
    if not isinstance(edit, type):
        torch.manual_seed(1)
        edit(mine)
    return mine.to(device), model.policy.to(device)


def greedy_cost(policy, x, precision):
    return float(decode(get("tsp"), policy.eval(), x, "greedy", precision=precision).cost.mean())


def training_loss(policy, x, record, precision):
    """The policy gradient's loss on a record, and the norm of its gradient, as in training."""
    policy.train()
    policy.zero_grad()
    with autocast(x.xy.device, precision):
        log_prob = policy.score(policy.encode(get("tsp").features(x)), record).sum(-1)
    weights = torch.linspace(0.2, 1, SOLUTIONS, device=x.xy.device)
    loss = (weights * log_prob).mean()
    loss.backward()
    slopes = [p.grad.norm() for p in policy.parameters() if p.grad is not None]
    return float(loss.detach()), float(torch.stack(slopes).norm())


@pytest.mark.parametrize(("batch", "precision", "device"), CASES)
@pytest.mark.parametrize("edit", [*CLASSES, *CHANGES], ids=lambda edit: edit.__name__)
def test_an_edit_takes_effect(edit, batch, precision, device):
    problem = get("tsp")
    mine, plain = made(edit, device)
    torch.manual_seed(2)
    x = problem.sample(DeviceRng(device), batch, NODES)
    with torch.no_grad(), select.backend("reference"):
        cache = plain.eval().encode(problem.features(x))
        record = rollout(
            problem, plain, cache, x, solutions=SOLUTIONS, steps=NODES, temperature=1.0, record=True
        ).trajectory
    cost, (loss, slope) = greedy_cost(mine, x, precision), training_loss(mine, x, record, precision)
    with select.backend("reference"):
        right_loss, right_slope = training_loss(mine, x, record, precision)
        other_loss, _ = training_loss(plain, x, record, precision)
    mine, plain = made(edit, device)  # training moved the running statistics
    with select.backend("reference"):
        right_cost, other_cost = greedy_cost(mine, x, precision), greedy_cost(plain, x, precision)
    close = 1e-3 if precision == "float32" else 0.05
    assert (loss, slope) == pytest.approx((right_loss, right_slope), rel=close, abs=1e-4)
    if batch >= 64:  # logits at their clip are equal but for rounding, and few tours are no mean
        assert cost == pytest.approx(right_cost, rel=0.03)
    assert abs(loss - right_loss) < 0.25 * abs(right_loss - other_loss), "the loss is the unedited policy's"
    if batch >= 8 and edit not in (Stepped, Recorded, patched_logits):  # smaller logits order the nodes as before
        assert abs(cost - right_cost) < 0.25 * abs(right_cost - other_cost), "the cost is the unedited policy's"


@pytest.mark.parametrize("batch", [64, 200])
def test_the_unedited_policy_runs_by_kernels(batch):
    """Else the test above would hold without any kernel."""
    plain, _ = made(AttentionPolicy, "cpu")
    x = get("tsp").sample(DeviceRng(), batch, NODES)
    features = get("tsp").features(x)
    with torch.no_grad():
        assert select.decoder(plain, plain.eval().encode(features), batch) is select.cpu_decoder
        h = torch.randn(batch, NODES, 128)
        kernel = select._layer_kernel(plain.encoder.layers[0], h, None)
        assert kernel is select.cpu_inference.layer_forward
    plain.train()
    assert select.scorer(plain, plain.encode(features), batch * SOLUTIONS * NODES**2) is select.cpu_score


def test_a_method_that_is_replaced_on_the_class_runs(monkeypatch):
    plain, _ = made(AttentionPolicy, "cpu")
    assert select.edit_of(plain) is None
    own = AttentionPolicy.logits
    monkeypatch.setattr(AttentionPolicy, "logits", lambda self, cache, seen: own(self, cache, seen) * 0.5)
    assert select.edit_of(plain) == "AttentionPolicy.logits"
    with torch.no_grad():
        cache = plain.eval().encode(get("tsp").features(get("tsp").sample(DeviceRng(), 64, NODES)))
        assert select.decoder(plain, cache, 64) is None


# ------------------------------------------------------------------------------- methods edited in their file


def test_kernels_implement_the_methods_as_they_are():
    """If this fails, a method was edited: compare the kernels with it (the other tests here), then write down the
    digests that `python -m routelearn.policies.kernels` prints."""
    assert select.changed_digests() == {}


def test_a_method_edited_in_its_file_runs_without_kernels():
    class Thing:
        def compute(self, x):
            return x + 1

    digest = select.digest(Thing.compute)
    try:
        select.implemented_by_kernels(compute=digest)(Thing)
        assert select.edit_of(Thing()) is None
        select.implemented_by_kernels(compute="0" * 12)(Thing)
        assert select.edit_of(Thing()) == "Thing.compute"
        assert select.changed_digests() == {"Thing.compute": digest}
    finally:
        del select._references[Thing]
        select._edited.pop(Thing, None)


def test_a_digest_sees_code_and_nothing_else():
    def first(x):
        """Adds."""
        return x + 1  # one

    def second(x):
        return (x + 1)  # fmt: skip

    def third(x):
        return x + 2

    first.__name__ = second.__name__ = third.__name__
    digests = [select.digest(f) for f in (first, second, third)]
    assert digests[0] != digests[2]
    assert select.digest(len) is None


# ------------------------------------------------------------------------------------------------ the backend


def test_the_reference_backend_uses_no_kernel():
    plain, _ = made(AttentionPolicy, "cpu")
    features = get("tsp").features(get("tsp").sample(DeviceRng(), 200, NODES))
    with torch.no_grad(), select.backend("reference"):
        cache = plain.eval().encode(features)
        assert select.decoder(plain, cache, 200) is None
        assert select._layer_kernel(plain.encoder.layers[0], torch.randn(200, NODES, 128), None) is None
    assert not select._without_kernels


def test_an_unknown_backend_is_refused_with_the_choices():
    with (
        pytest.raises(InputError, match="unknown backend 'fast'; the choices are auto, reference"),
        select.backend("fast"),
    ):
        pass


# --------------------------------------------------------------------------------- what a policy may look at


class Near(AttentionPolicy):
    """Likes near nodes: minus the leg from the last node, times a weight."""

    weight = 50.0

    def logits(self, cache, seen):
        legs = legs_from(seen.instance, seen.last.clamp(min=0))
        return super().logits(cache, seen) - self.weight * torch.where(seen.last[..., None] < 0, 0.0, legs)


@pytest.mark.parametrize("device", DEVICES)
def test_a_policy_sees_the_instance_and_the_last_node(device):
    """With a large weight it is the nearest neighbour's tour."""
    problem = get("tsp")
    near, _ = made(Near, device)
    x = problem.sample(DeviceRng(device), 40, NODES)
    tours = decode(problem, near.eval(), x, "greedy").tour[:, 0]
    distances = (x.xy[:, :, None] - x.xy[:, None]).norm(dim=-1)
    for row, tour in enumerate(tours.tolist()):
        left = set(range(NODES))
        for here, there in pairwise(tour):
            left.discard(here)
            nearest = min(left, key=lambda node: float(distances[row, here, node]))
            assert float(distances[row, here, there]) <= float(distances[row, here, nearest]) + 0.4  # 20 / 50


def test_what_is_revealed_on_a_visit_is_not_in_the_instance_that_a_policy_sees():
    problem = get("spctsp")
    seen_prizes = []

    class Curious(AttentionPolicy):
        def logits(self, cache, seen):
            seen_prizes.append(seen.instance.real_prize)
            return super().logits(cache, seen)

    x = problem.sample(DeviceRng(), 3, 6)
    assert x.real_prize is not None
    decode(problem, Curious(shape_of(problem), 32, 2, 1, 32).eval(), x, "greedy")
    assert seen_prizes
    assert all(prize is None for prize in seen_prizes)


@pytest.mark.parametrize("edit", ["policy", "encoder", "object", "class"])
def test_an_edited_encoder_is_compiled_as_it_is(edit, monkeypatch):
    """Only parts of `encode` are compiled; `encode` itself, and the encoder's `forward`, run as they are."""
    policy, _ = made(Wider if edit == "policy" else AttentionPolicy, "cpu")
    forward, encode = Encoder.forward, AttentionPolicy.encode
    if edit == "encoder":
        monkeypatch.setattr(Encoder, "forward", lambda self, *given: 2 * forward(self, *given))
    elif edit == "object":
        policy.prepare = lambda h: AttentionPolicy.prepare(policy, 2 * h)
    elif edit == "class":
        monkeypatch.setattr(AttentionPolicy, "encode", lambda self, features: encode(self, (3 * features[0],)))
    own, taken = dict(vars(policy)), []
    monkeypatch.setattr(compiling, "compiled", lambda fn, device: lambda *given: taken.append(fn) or fn(*given))
    features = (torch.rand(4, NODES, 2),)
    with torch.no_grad():
        found = compiling.compiled_encoder(policy, torch.device("cpu"))(features)
        assert len(taken) == 3
        assert all(torch.equal(a, b) for a, b in zip(found, policy.encode(features), strict=True))
    assert vars(policy) == own, "the compiled parts are gone again"


@pytest.mark.parametrize("name", ["likeliest", "drawn", "picked", "choose_by_logits"])
def test_an_edited_way_to_choose_takes_effect(name, monkeypatch):
    plain, _ = made(AttentionPolicy, "cpu")
    x = get("tsp").sample(DeviceRng(), 64, NODES)
    with torch.no_grad():
        cache = plain.eval().encode(get("tsp").features(x))
        assert select.decoder(plain, cache, 64) is select.cpu_decoder
        own = getattr(base, name)
        monkeypatch.setattr(base, name, lambda *given: own(*given))
        assert select.decoder(plain, cache, 64) is None


def test_a_clip_that_learns_gets_a_gradient():
    problem = get("tsp")
    policy, _ = made(AttentionPolicy, "cpu")
    policy.clip = nn.Parameter(torch.tensor(5.0))
    x = problem.sample(DeviceRng(), 200, NODES)
    with torch.no_grad():
        cache = policy.encode(problem.features(x))
        record = rollout(
            problem, policy, cache, x, solutions=SOLUTIONS, steps=NODES, temperature=1.0, record=True
        ).trajectory
    policy.score(policy.encode(problem.features(x)), record).sum().backward()
    assert policy.clip.grad != 0


def test_a_cache_that_was_changed_is_read_anew():
    problem = get("tsp")
    plain, _ = made(AttentionPolicy, "cpu")
    x = problem.sample(DeviceRng(), 64, NODES)
    with torch.no_grad():
        cache = plain.eval().encode(problem.features(x))
        seen = look(problem, x, begin(problem, plain, cache, x, 1))
        before, _ = plain.step(cache, (), seen)
        for changed in (cache._replace(pointer=-cache.pointer), cache):
            if changed is cache:
                cache.pointer.mul_(-1)
            found, _ = plain.step(changed, (), seen)
            torch.testing.assert_close(found, plain.logits(changed, seen), atol=2e-5, rtol=0)
            assert not torch.equal(found, before)


def test_an_edit_between_two_rollouts_takes_effect():
    """Which implementation runs is decided once a rollout, not once a cache."""
    problem = get("tsp")
    plain, _ = made(AttentionPolicy, "cpu")
    x = problem.sample(DeviceRng(), 64, NODES)
    with torch.no_grad():
        cache = plain.eval().encode(problem.features(x))
        before = rollout(problem, plain, cache, x, steps=NODES).tour
        plain.logits = lambda cache, seen: (
            AttentionPolicy.logits(plain, cache, seen).neg().masked_fill(~seen.feasible, -torch.inf)
        )
        edited = rollout(problem, plain, cache, x, steps=NODES).tour
        del plain.logits
        assert torch.equal(rollout(problem, plain, cache, x, steps=NODES).tour, before)
    assert not torch.equal(edited, before)


def test_threads_that_ask_for_different_backends_leave_none_behind():
    entered, left = threading.Event(), threading.Event()

    def other():
        with select.backend("auto"):
            entered.set()
            left.wait(10)

    thread = threading.Thread(target=other)
    with select.backend("reference"):
        thread.start()
        assert entered.wait(10)
        assert select._without_kernels
    left.set()
    thread.join()
    assert not select._without_kernels
