"""The authors' checkpoints: imported weight for weight, answering as their code does; anything else is refused."""

from __future__ import annotations

import json
import os
import pickle

import pytest
import torch
from paper_problems import PAPER

from routelearn.data.generate import generate
from routelearn.decoding.decode import decode
from routelearn.decoding.rollout import Live, begin, look
from routelearn.errors import InputError
from routelearn.models.import_authors import import_checkpoint
from routelearn.problems import NumpyRng, get
from routelearn.problems.base import is_node, take
from routelearn.problems.cvrp import CVRP
from routelearn.problems.cvrp import State as WholeLoads
from routelearn.problems.sdvrp import SDVRP
from routelearn.problems.sdvrp import State as SplitLoads

THEIR_NAME = {"pctsp": "pctsp_det", "spctsp": "pctsp_stoch"}
WIDTH, HEADS, HIDDEN = 16, 4, 24

# ------------------------------------------------------------------- their float loads, for the comparison


def shares(x):
    """[B, N] demands as their data sets hold them: single precision, of a capacity of 1."""
    return x.demand.float() / x.capacity[:, None].float()


class FloatCVRP(CVRP):
    """Loads added up in single precision, `room` being what is used: an exact fill may seem to be too much."""

    def initial(self, x, solutions):
        state = super().initial(x, solutions)
        return state._replace(room=torch.zeros(state.room.shape))

    def feasible(self, x, s):
        customers = ~s.visited & ~(shares(x)[:, None] + s.room[..., None] > 1.0)
        depot = (s.last != 0) | self.done(x, s)
        return torch.where(torch.arange(x.demand.shape[1]) == 0, depot[..., None], customers)

    def step(self, x, s, action):
        used = (s.room + shares(x).gather(1, action)) * (action != 0)
        visited = s.visited | is_node(action, x.demand.shape[1])
        return WholeLoads(action, used, visited, s.remaining - (action != 0).long())

    def context(self, x, s):
        return super().context(x, s)._replace(scalars=(1.0 - s.room)[..., None])


class FloatSDVRP(SDVRP):
    """Deliveries subtracted in single precision: a rest of 1e-8 is served by a visit of its own."""

    def max_steps(self, x):
        return 2 * super().max_steps(x)

    def initial(self, x, solutions):
        state = super().initial(x, solutions)
        owed = shares(x)[:, None].expand(state.owed.shape).contiguous()
        return SplitLoads(state.last, torch.zeros(state.room.shape), owed, (owed > 0).sum(-1))

    def feasible(self, x, s):
        customers = ~((s.owed == 0) | (s.room >= 1.0)[..., None])
        depot = (s.last != 0) | self.done(x, s)
        return torch.where(torch.arange(x.demand.shape[1]) == 0, depot[..., None], customers)

    def step(self, x, s, action):
        delivered = torch.minimum(s.owed.gather(-1, action[..., None])[..., 0], 1.0 - s.room)
        used = (s.room + delivered) * (action != 0)
        owed = s.owed.scatter_add(-1, action[..., None], -delivered[..., None])
        return SplitLoads(action, used, owed, (owed > 0).sum(-1))

    def context(self, x, s):
        return super().context(x, s)._replace(scalars=(1.0 - s.room)[..., None])

    def step_features(self, x, s):
        return s.owed[..., None]


def imported(folder, name):
    return import_checkpoint(folder / "authors-n20" / f"{THEIR_NAME.get(name, name.replace('-', '_'))}.pt", name)


def golden(folder, name):
    answers = json.loads((folder / "golden-n20.json").read_text())
    found = answers[f"{THEIR_NAME.get(name, name.replace('-', '_'))}_20"]
    return found["cost_first_20"], found["mean_cost_first_1000"]


@pytest.mark.parametrize("name", PAPER)
def test_greedy_costs_are_those_of_the_authors_code(name, authors_answers):
    """The first 1,000 of the paper's test set; for the vehicles with their float loads."""
    problem = {"cvrp": FloatCVRP(), "sdvrp": FloatSDVRP()}.get(name, get(name))
    costs, mean = golden(authors_answers, name)
    x = take(generate(name, 20), slice(1000))
    decoded = decode(problem, imported(authors_answers, name).policy, x)
    assert decoded.cost[:20].tolist() == pytest.approx(costs, abs=1e-4)
    assert float(decoded.cost.mean()) == pytest.approx(mean, abs=1e-4)


@pytest.mark.parametrize(("name", "mean"), [("cvrp", 6.4142), ("sdvrp", 6.3775)])
def test_whole_numbers_make_the_vehicles_routes_shorter(name, mean, authors_answers):
    problem = get(name)
    x = take(generate(name, 20), slice(1000))
    decoded = decode(problem, imported(authors_answers, name).policy, x)
    problem.check(x, decoded.tour)
    assert float(decoded.cost.mean()) == pytest.approx(mean, abs=2e-3)
    assert float(decoded.cost.mean()) < golden(authors_answers, name)[1]


@pytest.mark.parametrize("wrong", ["tsp", "sdvrp", "pctsp"])
def test_their_model_of_another_problem_is_refused(wrong, authors_answers):
    with pytest.raises(InputError, match=f"does not fit {wrong}"):
        import_checkpoint(authors_answers / "authors-n20" / "cvrp.pt", wrong)


# -------------------------------------------------------------------------- checkpoints in their layout


def their_weights(problem, layers=3):
    """Random weights under the authors' names, in their shapes."""
    d = WIDTH // HEADS
    groups = ("init_embed_depot", "init_embed") if problem.has_depot else ("init_embed",)
    weights = {}
    for group, columns in zip(groups, problem.feature_dims, strict=True):
        weights |= {f"{group}.weight": torch.randn(WIDTH, columns), f"{group}.bias": torch.randn(WIDTH)}
    for i in range(layers):
        layer = f"embedder.layers.{i}"
        weights |= {f"{layer}.0.module.W_{part}": torch.randn(HEADS, WIDTH, d) / 4 for part in ("query", "key", "val")}
        weights[f"{layer}.0.module.W_out"] = torch.randn(HEADS, d, WIDTH) / 4
        for place in (1, 3):
            norm = f"{layer}.{place}.normalizer"
            weights |= {f"{norm}.{part}": torch.rand(WIDTH) + 0.5 for part in ("weight", "running_var")}
            weights |= {f"{norm}.{part}": torch.randn(WIDTH) / 4 for part in ("bias", "running_mean")}
            weights[f"{norm}.num_batches_tracked"] = torch.tensor(7)
        for place, shape in ((0, (HIDDEN, WIDTH)), (2, (WIDTH, HIDDEN))):
            weights[f"{layer}.2.module.{place}.weight"] = torch.randn(shape) / 4
            weights[f"{layer}.2.module.{place}.bias"] = torch.randn(shape[0]) / 4
    context = problem.context_nodes * WIDTH + problem.context_scalars
    weights["project_node_embeddings.weight"] = torch.randn(3 * WIDTH, WIDTH) / 4
    weights["project_fixed_context.weight"] = torch.randn(WIDTH, WIDTH) / 4
    weights["project_step_context.weight"] = torch.randn(WIDTH, context) / 4
    weights["project_out.weight"] = torch.randn(WIDTH, WIDTH) / 4
    if not problem.has_depot:
        weights["W_placeholder"] = torch.randn(problem.context_nodes * WIDTH)
    if problem.step_dim:
        weights["project_node_step.weight"] = torch.randn(3 * WIDTH, problem.step_dim) / 4
    return weights


def their_first_logits(w, problem, x, layers):
    """[B, N] at the first step, from their weights as they lie: head by head, nothing folded (section 3)."""
    d = WIDTH // HEADS
    groups = ("init_embed_depot", "init_embed") if problem.has_depot else ("init_embed",)
    features = zip(groups, problem.features(x), strict=True)
    h = torch.cat([group @ w[f"{name}.weight"].T + w[f"{name}.bias"] for name, group in features], 1)

    def norm(h, name):
        scaled = (h - w[f"{name}.running_mean"]) / (w[f"{name}.running_var"] + 1e-5).sqrt()
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    for i in range(layers):
        layer = f"embedder.layers.{i}"
        total = h
        for m in range(HEADS):
            q, k, v = (h @ w[f"{layer}.0.module.W_{part}"][m] for part in ("query", "key", "val"))
            total = total + (q @ k.transpose(1, 2) / d**0.5).softmax(-1) @ v @ w[f"{layer}.0.module.W_out"][m]
        h = norm(total, f"{layer}.1.normalizer")
        inner = (h @ w[f"{layer}.2.module.0.weight"].T + w[f"{layer}.2.module.0.bias"]).relu()
        h = norm(h + inner @ w[f"{layer}.2.module.2.weight"].T + w[f"{layer}.2.module.2.bias"], f"{layer}.3.normalizer")
    seen = look(problem, x, Live(problem.initial(x, 1), (), torch.full((x.xy.shape[0], 1), -1)))
    keys, values, pointers = (h @ w["project_node_embeddings.weight"].T).chunk(3, -1)
    if problem.step_dim:
        more = (seen.step_features[:, 0] @ w["project_node_step.weight"].T).chunk(3, -1)
        keys, values, pointers = keys + more[0], values + more[1], pointers + more[2]
    batch = h.shape[0]
    context = (
        torch.cat((h[:, 0], seen.scalars[:, 0]), -1) if problem.has_depot else w["W_placeholder"].expand(batch, -1)
    )
    query = h.mean(1) @ w["project_fixed_context.weight"].T + context @ w["project_step_context.weight"].T
    closed = ~seen.feasible[:, 0]
    glimpses = []
    for m in range(HEADS):
        part = slice(m * d, (m + 1) * d)
        u = torch.einsum("bd,bnd->bn", query[:, part], keys[..., part]) / d**0.5
        weight = u.masked_fill(closed, -torch.inf).softmax(-1)
        glimpses.append(torch.einsum("bn,bnd->bd", weight, values[..., part]))
    glimpse = torch.cat(glimpses, -1) @ w["project_out.weight"].T
    u = 10 * torch.tanh(torch.einsum("bd,bnd->bn", glimpse, pointers) / WIDTH**0.5)
    return u.masked_fill(closed, -torch.inf)


@pytest.mark.parametrize(("layers", "prefix"), [(3, ""), (3, "module."), (5, ""), (5, "module.")])
@pytest.mark.parametrize("problem", [get(name) for name in PAPER], ids=PAPER)
def test_a_checkpoint_is_imported_weight_for_weight(problem, layers, prefix, tmp_path):
    weights = their_weights(problem, layers)
    path = tmp_path / "epoch-99.pt"
    torch.save({"model": {prefix + name: tensor for name, tensor in weights.items()}, "optimizer": {}}, path)
    model = import_checkpoint(path, problem.name)
    assert (model.problem, model.kind, model.options["layers"]) == (problem.name, "attention", layers)
    assert (model.options["width"], model.options["heads"], model.options["hidden"]) == (WIDTH, HEADS, HIDDEN)
    assert model.card["file"] == "epoch-99.pt"
    assert not model.policy.training
    x, policy = problem.sample(NumpyRng(4), 5, 7), model.policy.double()
    cache = policy.encode(problem.features(x))
    live = begin(problem, policy, cache, x, 1)
    ours, _ = policy.step(cache, live.carry, look(problem, x, live))
    exact = {name: tensor.double() for name, tensor in weights.items()}
    torch.testing.assert_close(ours[:, 0], their_first_logits(exact, problem, x, layers), rtol=0, atol=1e-9)


# ------------------------------------------------------------------------------------ what is refused


def refused(path, name, message):
    with pytest.raises(InputError, match=message) as error:
        import_checkpoint(path, name)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("theirs", "asked"),
    [
        ("tsp", "cvrp"),
        ("cvrp", "tsp"),
        ("cvrp", "sdvrp"),
        ("sdvrp", "cvrp"),
        ("pctsp", "op-unif"),
        ("op-unif", "pctsp"),
    ],
)
def test_a_checkpoint_of_another_problem_is_refused(theirs, asked, tmp_path):
    path = tmp_path / "c.pt"
    torch.save({"model": their_weights(get(theirs))}, path)
    refused(path, asked, f"does not fit {asked}")


@pytest.mark.parametrize(
    "missing",
    ["embedder.layers.0.0.module.W_query", "embedder.layers.1.0.module.W_out", "embedder.layers.0.2.module.0.weight",
     "embedder.layers.2.3.normalizer.running_mean", "project_out.weight", "W_placeholder", "init_embed.bias",
     "project_node_embeddings.weight"],
)  # fmt: skip
def test_a_checkpoint_with_a_gap_is_refused(missing, tmp_path):
    weights = their_weights(get("tsp"))
    del weights[missing]
    torch.save({"model": weights}, tmp_path / "c.pt")
    refused(tmp_path / "c.pt", "tsp", "checkpoint of the authors' attention model|does not fit tsp")


@pytest.mark.parametrize(
    "content",
    [{}, [], 3, {"model": 3}, {"model": {}}, {"model": {"a": torch.zeros(2)}}, {"model": {3: torch.zeros(2)}},
     {"model": {"embedder.layers.0.0.module.W_query": "text"}},
     {"model": {"embedder.layers.0.0.module.W_query": torch.zeros(3), "embedder.layers.0.2.module.0.weight":
                torch.zeros(3), "project_out.weight": torch.zeros(3)}}],
)  # fmt: skip
def test_other_content_is_refused(content, tmp_path):
    torch.save(content, tmp_path / "c.pt")
    refused(tmp_path / "c.pt", "tsp", "checkpoint of the authors")


def test_a_weight_of_another_shape_is_refused(tmp_path):
    for name in ("project_step_context.weight", "W_placeholder", "embedder.layers.1.0.module.W_val"):
        weights = their_weights(get("tsp"))
        weights[name] = torch.zeros(3, 5, 2)
        torch.save({"model": weights}, tmp_path / "c.pt")
        refused(tmp_path / "c.pt", "tsp", "does not fit tsp")


def test_a_missing_or_damaged_file_is_refused(tmp_path):
    path = tmp_path / "c.pt"
    refused(path, "tsp", "no such checkpoint")
    torch.save({"model": their_weights(get("tsp"))}, path)
    whole = path.read_bytes()
    for damaged in (b"", b"\x80", b"text", whole[:100], whole[: len(whole) // 2], whole[:-10], os.urandom(1000)):
        path.write_bytes(damaged)
        refused(path, "tsp", "not a checkpoint that can be read safely")


def test_an_unknown_problem_is_refused_with_the_choices(tmp_path):
    with pytest.raises(InputError, match="unknown problem 'tsps'; the choices are tsp, cvrp"):
        import_checkpoint(tmp_path / "c.pt", "tsps")


def test_a_hostile_pickle_is_refused_and_not_run(tmp_path):
    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "run"),)

    path = tmp_path / "c.pt"
    torch.save({"model": their_weights(get("tsp")), "more": Hostile()}, path)
    refused(path, "tsp", "not a checkpoint that can be read safely")
    path.write_bytes(pickle.dumps({"model": Hostile()}, protocol=2))
    refused(path, "tsp", "not a checkpoint that can be read safely")
    assert not (tmp_path / "run").exists()
