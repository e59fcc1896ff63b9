"""Model files: what is written comes back, nothing else is accepted, and the models that ship are sound."""

from __future__ import annotations

import json
import math
import os
import pickle
import struct

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from routelearn import models, policies
from routelearn.decoding.decode import decode
from routelearn.errors import InputError
from routelearn.models import model_file
from routelearn.models.model_file import Model
from routelearn.policies.base import shape_of
from routelearn.problems import PROBLEMS, NumpyRng, get
from routelearn.problems.base import to_single

OPTIONS = {"width": 16, "heads": 2, "layers": 1, "hidden": 16, "norm": "batch", "clip": 8.0, "neighbours": 0}
OPTIONS_OF = {
    "pointer": {"width": 16, "clip": 10.0},
    "nazari": {"width": 16, "clip": 10.0},
    "dai": {"width": 16, "layers": 2, "neighbours": 4, "sharpness": 20.0},
    "nowak": {"width": 16, "layers": 2, "norm": "batch", "clip": 10.0},
    "ean": {"width": 16, "heads": 2, "layers": 1, "hidden": 16, "norm": "batch", "query_width": 24},
}
OTHERS = [("tsp", "pointer"), ("tsp", "ean"), ("cvrp", "nazari"), ("sdvrp", "nazari"), ("tsp", "nowak"), ("tsp", "dai")]
CARD = {"sizes": [20], "minutes": 1.5, "measured": {"20": {"greedy": 3.9}}, "name": "Größe"}


def made(problem="tsp", kind="attention", options=None, card=CARD):
    options = OPTIONS_OF.get(kind, OPTIONS) if options is None else options
    return Model(policies.build(kind, shape_of(get(problem)), options).eval(), problem, kind, options, card)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    model_file.save(path, made())
    return path


def header_of(path):
    with safe_open(path, framework="pt") as file:
        return file.metadata()


def tensors_of(path):
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)


def refused(path, message):
    """The file is refused in one line that names it."""
    with pytest.raises(InputError, match=message) as error:
        model_file.load(path)
    text = str(error.value)
    assert "\n" not in text
    assert text.startswith(str(path))


# ------------------------------------------------------------------------------------------ there and back


@pytest.mark.parametrize(("name", "kind"), [*((name, "attention") for name in PROBLEMS), *OTHERS])
def test_a_model_comes_back_as_it_was(tmp_path, name, kind):
    before = made(name, kind)
    model_file.save(tmp_path / "m.safetensors", before)
    after = model_file.load(tmp_path / "m.safetensors")
    assert (after.problem, after.kind, after.options, after.card) == (name, kind, before.options, CARD)
    ours, theirs = before.policy.state_dict(), after.policy.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    problem = get(name)
    x = to_single(problem.sample(NumpyRng(1), 5, 8))
    assert torch.equal(decode(problem, before.policy, x).tour, decode(problem, after.policy, x).tour)


def test_a_loaded_model_evaluates_and_can_be_trained_on(saved):
    policy = model_file.load(saved).policy
    assert not policy.training
    assert all(parameter.requires_grad and not parameter.is_meta for parameter in policy.parameters())
    assert not any(buffer.is_meta for buffer in policy.buffers())
    x = to_single(get("tsp").sample(NumpyRng(1), 2, 5))
    policy.encode((x.xy,)).keys.sum().backward()
    assert policy.key.weight.grad is not None


def test_half_precision_on_disk_is_single_precision_in_memory(tmp_path):
    model, path = made(), tmp_path / "half.safetensors"
    model_file.save(path, model, half=True)
    model_file.save(tmp_path / "single.safetensors", model)
    assert {t.dtype for t in tensors_of(path).values()} == {torch.float16, torch.int64}  # batches are counted
    after = model_file.load(path).policy.state_dict()
    assert {tensor.dtype for tensor in after.values()} == {torch.float32, torch.int64}
    for name, tensor in model.policy.state_dict().items():
        torch.testing.assert_close(after[name], tensor, rtol=2**-11, atol=1e-7)
    assert path.stat().st_size < 0.65 * (tmp_path / "single.safetensors").stat().st_size
    assert {tensor.dtype for tensor in model.policy.state_dict().values()} == {torch.float32, torch.int64}


def test_the_header_says_what_the_file_is(saved):
    header = header_of(saved)
    assert header.keys() == {"format", "problem", "policy", "options", "card"}
    assert (header["format"], header["problem"], header["policy"]) == ("routelearn-model-1", "tsp", "attention")
    assert json.loads(header["options"]) == OPTIONS
    assert json.loads(header["card"]) == CARD


def test_folders_are_made_and_an_old_file_is_replaced(tmp_path):
    path = tmp_path / "runs" / "a" / "m.safetensors"
    model_file.save(path, made(card={"run": 1}))
    model_file.save(path, made(card={"run": 2}))
    assert model_file.load(path).card == {"run": 2}
    assert os.listdir(path.parent) == ["m.safetensors"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(saved, monkeypatch):
    before = saved.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
        model_file.save(saved, made())
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        model_file.save(tmp_path / "file" / "m.safetensors", made())


# ---------------------------------------------------------------------------------------- what is refused


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    refused(tmp_path / "nothing.safetensors", "no such model file")
    refused(tmp_path, "no such model file")


@pytest.mark.parametrize(
    "content", [b"", b"x", b"not a model at all, only text", b"\xff" * 64, struct.pack("<Q", 2**62)]
)
def test_foreign_bytes_are_refused(tmp_path, content):
    (tmp_path / "m.safetensors").write_bytes(content)
    refused(tmp_path / "m.safetensors", "not a safetensors file, or damaged")


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.5, 0.999])
def test_a_truncated_file_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * share)])
    refused(saved, "not a safetensors file, or damaged")


def test_a_pickle_is_refused_and_not_run(tmp_path):
    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "run"),)

    path = tmp_path / "m.safetensors"
    path.write_bytes(pickle.dumps(Hostile()))
    refused(path, "not a safetensors file")
    torch.save({"model": Hostile()}, path)
    refused(path, "not a safetensors file")
    assert not (tmp_path / "run").exists()


def test_someone_elses_safetensors_are_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    for metadata in (None, {"format": "pt"}, {"format": "routelearn-model-99"}):
        save_file({"weight": torch.zeros(3)}, path, metadata=metadata)
        refused(path, "not a routelearn model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problem": "knapsack"}, "needs the problem 'knapsack', which nobody registered"),
        ({"problem": "cvrp"}, "damaged"),
        ({"policy": "oracle"}, "needs the policy 'oracle', which nobody registered"),
        ({"policy": "pointer"}, "damaged"),
        ({"options": "{"}, "damaged"),
        ({"options": "[]"}, "damaged"),
        ({"options": "7"}, "damaged"),
        ({"options": "[" * 100_000}, "damaged"),
        ({"card": "nonsense"}, "damaged"),
        ({"card": "[]"}, "does not fit"),
        ({"options": {"layers": 2}}, "Missing key"),
        ({"options": {"layers": 0}}, "Unexpected key"),
        ({"options": {"layers": "many"}}, "damaged"),
        ({"options": {"layers": 10**9}}, "does not fit its weights"),
        ({"options": {"heads": 3}}, "not a multiple of 3 heads"),
        ({"options": {"heads": 0}}, "damaged"),
        ({"options": {"width": 10**6}}, "size mismatch"),
        ({"options": {"width": -16}}, "damaged"),
        ({"options": {"hidden": 10**12}}, "damaged"),
        ({"options": {"norm": "none"}}, "unknown normalisation 'none'"),
        ({"options": {"colour": "red"}}, "colour"),
        ({"options": {"clip": "abc"}}, "clip is 'abc'; it must be a finite number"),
        ({"options": {"clip": math.nan}}, "clip is nan; it must be a finite number"),
        ({"options": {"clip": 10**400}}, "clip is 1000.*; it must be a finite number"),
        ({"options": {"clip": -1.0}}, "clip is -1.0; it must be above 0"),
        ({"options": {"neighbours": -1}}, "neighbours is -1; it must be 0 or more"),
        ({"options": {"neighbours": 1.5}}, "neighbours is 1.5; it must be a whole number"),
        ({"options": {"heads": 2.0}}, "heads is 2.0; it must be a whole number"),
        ({"options": {"norm": ["batch"]}}, "it must be a word"),
    ],
)
def test_a_header_that_does_not_fit_is_refused_before_it_costs_memory(saved, changes, message):
    header = header_of(saved)
    for key, value in changes.items():
        header[key] = json.dumps({**OPTIONS, **value}) if isinstance(value, dict) else value
    save_file(tensors_of(saved), saved, metadata=header)
    refused(saved, message)


@pytest.mark.parametrize("key", ["problem", "policy", "options", "card"])
def test_a_header_with_a_gap_is_refused(saved, key):
    header = header_of(saved)
    del header[key]
    save_file(tensors_of(saved), saved, metadata=header)
    refused(saved, key)


def test_weights_that_are_missing_or_too_many_are_refused(saved):
    header, tensors = header_of(saved), tensors_of(saved)
    save_file({**tensors, "more": torch.zeros(1)}, saved, metadata=header)
    refused(saved, "more")
    del tensors["out.weight"]
    save_file(tensors, saved, metadata=header)
    refused(saved, r"out\.weight")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["out.weight", "encoder.layers.0.norm_attention.running_var"])
def test_weights_that_are_not_finite_are_refused_by_name(saved, name, value):
    header, tensors = header_of(saved), tensors_of(saved)
    tensors[name].view(-1)[-1] = value
    save_file(tensors, saved, metadata=header)
    refused(saved, f"{name} is not finite")


# -------------------------------------------------------------------------------------- choosing a model


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A package that ships three small models."""
    measured = {"near": {"20": 3.9}, "far": {"20": 4.1, "100": 7.9}, "boat": {"50": 10.0}}
    for name, costs in measured.items():
        card = {"validated": costs}
        model_file.save(
            tmp_path / f"{name}.safetensors", made("cvrp" if name == "boat" else "tsp", card=card), half=True
        )
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    return tmp_path


def test_a_model_is_found_by_path_by_name_and_by_problem(folder, saved):
    assert models.load_model(path=saved).card == CARD
    assert models.load_model("tsp", path=str(saved)).card == CARD
    assert models.load_model(path="boat").problem == "cvrp"
    assert models.load_model("cvrp").problem == "cvrp"


def test_the_best_model_near_the_size_is_chosen(folder):
    by_size = {n: models.load_model("tsp", n).card["validated"].keys() for n in (10, 20, 100, 500)}
    assert [len(sizes) for sizes in by_size.values()] == [1, 1, 2, 2]


def test_costs_at_other_sizes_decide_between_models(folder):
    assert models.which("tsp", 40) == "near", "20 is the nearest size that was validated"
    for name, cost in (("near", 5.3), ("far", 5.2)):
        model = models.load_model(path=name)
        model.card["validated"]["40"] = cost
        model_file.save(folder / f"{name}.safetensors", model, half=True)
    assert models.which("tsp", 40) == "far"
    assert models.which("tsp", 25) == "near"
    assert models.which("tsp") == "far", "without a size the largest decides"


def test_a_model_without_a_measurement_comes_last(folder):
    model_file.save(folder / "aaa.safetensors", made(card={}))
    assert models.load_model("tsp", 20).card["validated"].keys() == {"20"}


def test_results_on_test_sets_choose_nothing(folder):
    card = {"measured": {"20": {"greedy": 0.1}}, "validated": {"20": 5.0}}
    model_file.save(folder / "overfitted.safetensors", made(card=card))
    assert models.which("tsp", 20) == "near"


def test_the_wrong_or_no_model_is_an_error_that_says_what_there_is(folder, saved):
    with pytest.raises(InputError, match=r"no trained model ships for op-dist yet \(models ship for: cvrp, tsp\)"):
        models.load_model("op-dist")
    with pytest.raises(InputError, match="a model for tsp, not for cvrp"):
        models.load_model("cvrp", path=saved)
    with pytest.raises(InputError, match=r"ship: no such model file, and no shipped .* boat, far, model, near"):
        models.load_model(path="ship")


def test_a_package_without_models_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    assert models.shipped() == {}
    with pytest.raises(InputError, match="models ship for: none"):
        models.load_model("tsp")


# ---------------------------------------------------------------------------------------- what ships


def test_the_shipped_models_load_solve_and_are_small():
    found = models.shipped()
    files = sorted(models.FOLDER.glob("*.safetensors"))
    assert [file.stem for file in files] == list(found)
    assert sum(file.stat().st_size for file in files) < 45e6
    for file in files:
        floats = {t.dtype for t in tensors_of(file).values() if t.is_floating_point()}
        assert floats == {torch.float16}
        model = models.load_model(path=file.stem)
        problem = get(model.problem)
        x = to_single(problem.sample(NumpyRng(1), 3, 10))
        decoded = decode(problem, model.policy, x)
        problem.check(x, decoded.tour)
        assert model.card["sizes"]
        assert found[file.stem]["problem"] == model.problem
