"""Bad input: one line on standard error that says what was wrong and what would be right, status 2, no traceback."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
import torch

from routelearn import policies
from routelearn.commands.evaluate import write_costs
from routelearn.data import generate, npz
from routelearn.models import model_file
from routelearn.models.model_file import Model
from routelearn.policies.base import shape_of
from routelearn.problems import get
from routelearn.training import tours

OPTIONS = {"width": 16, "heads": 2, "layers": 1, "hidden": 16}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Good files and bad ones."""
    path = tmp_path_factory.mktemp("bad")
    for name in ("tsp", "cvrp", "spctsp"):
        npz.save(path / f"{name}.npz", name, generate(name, 6, count=5))
        policy = policies.build("attention", shape_of(get(name)), OPTIONS)
        model_file.save(path / f"{name}.safetensors", Model(policy, name, "attention", OPTIONS))
    (path / "text.txt").write_text("stops\n")
    (path / "empty.npz").write_bytes(b"")
    (path / "damaged.npz").write_bytes((path / "tsp.npz").read_bytes()[:100])
    (path / "damaged.safetensors").write_bytes((path / "tsp.safetensors").read_bytes()[:1000])
    (path / "set.pkl").write_bytes(pickle.dumps([[[0.1, 0.2], [0.3, 0.4]]]))
    np.savez(path / "few.npz", costs=[1.0, 2.0])
    np.savez(path / "other.npz", a=[1.0], b=[2.0])
    np.savez(path / "costs.npz", costs=np.ones(9))
    write_costs(path / "marked.npz", "cvrp", 6, [1.0] * 5, generate("cvrp", 6, count=5))
    problem, x = get("tsp"), tours.instances(get("tsp"), 6, 5, 7)
    tours.write(path / "tours.npz", problem, 6, 7, x, torch.arange(6).expand(5, 1, 6))
    stored = dict(np.load(path / "tours.npz"))
    np.savez(path / "tours-elsewhere.npz", **stored | {"seed": 8})
    stored["orders"][3, 2] = stored["orders"][3, 1]
    np.savez(path / "tours-twice.npz", **stored)
    torch.save({"weights": 3}, path / "foreign.pt")
    (path / "broken" / "run").mkdir(parents=True)
    (path / "broken" / "run" / "config.json").write_text("{")
    (path / "deep.json").write_text("[" * 100_000)
    (path / "listed").mkdir()
    (path / "listed" / "config.json").write_text("[1]")
    (path / "strange").mkdir()
    (path / "strange" / "config.json").write_text('{"colour": "red"}')
    return path


MODEL = "--model {}/tsp.safetensors"
TRAIN = "--out {}/never --device cpu"
SUPERVISED = "tsp 6 --loss supervised --baseline none --solutions 1 --out {}/r"
BAD = [
    # command
    ("slove", "unknown command 'slove'", "solve, improve, check, train"),
    ("--colour", "unknown command '--colour'", "the commands are"),
    # tours
    ("tours tsp 20", "Missing option '--out'", "--help"),
    ("tours tps 20 --out {}/t.npz", "unknown problem 'tps'", "the choices are tsp, cvrp"),
    ("tours tsp 20 --seed 1234 --out {}/t.npz", "seed 1234 draws the test set", "choose another"),
    ("tours tsp 20 --seconds 1 --out {}/t.npz", "--seconds has no meaning without --solver", "leave it out"),
    ("tours tsp 20 --solver elkai --decode greedy --out {}/t.npz", "--decode has no meaning beside", "leave it out"),
    ("tours tsp 20 --count 0 --out {}/t.npz", "count = 0", "1 or more"),
    ("tours tsp 20 --out {}/t.txt", "t.txt", ".npz"),
    ("train cvrp 6 --policy ean --out {}/r", "policy 'ean' cannot take cvrp", "it can take tsp"),
    ("train tsp 6 --loss supervised --baseline none --solutions 1 --out {}/r", "learns from tours", "--tours FILE"),
    (f"train {SUPERVISED} --tours {{}}/tours-elsewhere.npz", "tours of another set than seed 8", "make them anew"),
    (f"train {SUPERVISED} --tours {{}}/tours-twice.npz", "the tour of instance 3 breaks a rule", "is never visited"),
    (f"train {SUPERVISED} --tours {{}}/tsp.npz", "tsp.npz: not a file of tours", "`routelearn tours` writes one"),
    (f"train {SUPERVISED} --tours {{}}/tours.npz --policy dai", "not choose nodes in a tour's order", "follow tours"),
    ("train tsp 6 --loss q-learning --baseline none --out {}/r", "asks what each step adds", "policies tell: dai"),
    (
        "train tsp 6 --loss supervised --baseline none --solutions 1 --tours {}/tsp.npz --device cpu --out {}/r",
        "tsp.npz: not a file of tours", "`routelearn tours` writes one",
    ),
    # generate
    ("generate", "Missing argument", "routelearn generate --help"),
    ("generate tsp 20", "Missing option '--out'", "--help"),
    ("generate tsp twenty --out {}/x.npz", "Invalid value for 'n'|Invalid value for 'N'", "valid int"),
    ("generate tps 20 --out {}/x.npz", "unknown problem 'tps'", "the choices are tsp, cvrp, sdvrp"),
    ("generate tsp 1 --out {}/x.npz", "n = 1", "n must be 2 or more"),
    ("generate tsp 20 --count 0 --out {}/x.npz", "count = 0", "1 or more"),
    ("generate tsp 20 --limit -1 --out {}/x.npz", "limit = -1", "1 or more"),
    ("generate tsp 20 --seed -1 --out {}/x.npz", "seed -1", "from 0 to 4294967295"),
    ("generate tsp 20 --seed 5000000000 --out {}/x.npz", "seed 5000000000", "from 0 to 4294967295"),
    ("generate tsp 20 --count 10 --out {}/x.txt", "x.txt", ".npz"),
    ("generate tsp 20 --count 10 --out {}/no/such/x.npz", "no/such/x.npz", "No such file or directory"),
    ("generate tsp 1000000 --count 1000000 --out {}/x.npz", "too many for one draw", "generate several files"),
    ("generate tsp 20 --out {}/x.npz --colour red", "--colour", "routelearn generate --help"),
    # evaluate: data
    ("evaluate {}/nothing.npz", "nothing.npz", "no such file"),
    ("evaluate {}/text.txt", "text.txt", ".npz or a .pkl"),
    ("evaluate {}", "set of instances", ".npz or a .pkl"),
    ("evaluate {}/empty.npz", "empty.npz", "npz"),
    ("evaluate {}/damaged.npz", "damaged.npz", "npz"),
    ("evaluate {}/few.npz", "few.npz", "docs/reference/formats.md"),
    ("evaluate {}/set.pkl", "does not say which problem", "name it"),
    ("evaluate {}/set.pkl --problem vrpx", "unknown problem 'vrpx'", "the choices are"),
    ("evaluate {}/tsp.npz --problem cvrp", "instances of tsp", "not of cvrp"),
    ("evaluate {}/tsp.npz --limit 0 " + MODEL, "limit of 0", "at least 1"),
    ("evaluate {}/tsp.npz --limit some " + MODEL, "Invalid value for '--limit'", "valid int"),
    # evaluate: model and strategy
    ("evaluate {}/tsp.npz --model nobody", "nobody: no such model file", "the choices are"),
    ("evaluate {}/tsp.npz --model {}/listed", "listed: a folder; name the model in it", "best.safetensors"),
    ("evaluate {}/tsp.npz --model {}/damaged.safetensors", "damaged.safetensors", "not a safetensors file"),
    ("evaluate {}/tsp.npz --model {}/text.txt", "text.txt", "not a safetensors file"),
    ("evaluate {}/cvrp.npz " + MODEL, "a model for tsp", "not for cvrp"),
    ("evaluate {}/tsp.npz --decode gready " + MODEL, "'gready'", "greedy, sample:K"),
    ("evaluate {}/tsp.npz --decode sample:0 " + MODEL, "'sample:0'", "1 or more"),
    ("evaluate {}/tsp.npz --decode beam:3+sample:4 " + MODEL, "beam:3+sample:4", "augment only"),
    ("evaluate {}/spctsp.npz --decode sample:8 --model {}/spctsp.safetensors", "hindsight", "use greedy or sample:1"),
    ("evaluate {}/tsp.npz --device gpu " + MODEL, "unknown device 'gpu'", "auto, cpu and cuda"),
    ("evaluate {}/tsp.npz --device cuda:64 " + MODEL, "cuda:64", "use cpu or auto"),
    ("evaluate {}/tsp.npz --precision half " + MODEL, "unknown precision 'half'", "auto, float32, bfloat16"),
    ("evaluate {}/tsp.npz --seed -1 " + MODEL, "seed -1", "between 0 and"),
    ("evaluate {}/tsp.npz --seed 99999999999999999999 " + MODEL, "seed 9999", "between 0 and"),
    # evaluate: solver
    ("evaluate {}/tsp.npz --solver genius", "unknown solver 'genius'", "nearest-neighbour"),
    ("evaluate {}/tsp.npz --solver nearest-neighbour --seconds 0", "0 seconds", "more than 0"),
    ("evaluate {}/tsp.npz --solver nearest-neighbour --on steam", "unknown place 'steam' to run on", "local"),
    ("evaluate {}/tsp.npz --seconds 5 " + MODEL, "--seconds has no meaning for a model", "give --solver"),
    ("evaluate {}/tsp.npz --on foo", "--on has no meaning for a model", "give --solver"),
    ("evaluate {}/tsp.npz --store {}/st", "--store has no meaning for a model", "give --solver"),
    ("evaluate {}/tsp.npz --solver nearest-neighbour --decode sample:3", "--decode has no meaning", "leave one"),
    ("evaluate {}/tsp.npz --solver nearest-neighbour " + MODEL, "--model has no meaning", "leave one"),
    ("evaluate {}/tsp.npz --solver nearest-neighbour --device cpu", "--device has no meaning", "leave one"),
    ("evaluate {}/tsp.npz --solver nearest-neighbour --precision auto", "--precision has no meaning", "leave one"),
    # evaluate: other files
    ("evaluate {}/tsp.npz --reference {}/marked.npz " + MODEL, "costs of cvrp, n = 6", "those of tsp, n = 6"),
    ("evaluate {}/tsp.npz --reference {}/nothing.npz " + MODEL, "nothing.npz", "no such file"),
    ("evaluate {}/tsp.npz --reference {}/text.txt " + MODEL, "text.txt", "npz"),
    ("evaluate {}/tsp.npz --reference {}/few.npz " + MODEL, "2 costs for 5 instances", "one for each"),
    ("evaluate {}/tsp.npz --reference {}/other.npz " + MODEL, "it holds a, b", "`costs` or `tsp6`"),
    ("evaluate {}/tsp.npz --json {}/no/r.json " + MODEL, "no/r.json", "there is no folder"),
    ("evaluate {}/tsp.npz --costs {}/no/c.npz " + MODEL, "no/c.npz", "there is no folder"),
    ("evaluate {}/tsp.npz --json {} " + MODEL, "{}", "Is a directory"),
    # import-authors
    ("import-authors {}/nothing.pt --problem tsp --out {}/m.safetensors", "nothing.pt", "no such checkpoint"),
    ("import-authors {}/text.txt --problem tsp --out {}/m.safetensors", "text.txt", "can be read safely"),
    ("import-authors {}/foreign.pt --problem tsp --out {}/m.safetensors", "foreign.pt", '"model"'),
    ("import-authors {}/foreign.pt --problem tps --out {}/m.safetensors", "unknown problem 'tps'", "the choices are"),
    ("import-authors {}/foreign.pt --out {}/m.safetensors", "Missing option '--problem'", "--help"),
    # train
    ("train tps 20 " + TRAIN, "unknown problem 'tps'", "the choices are"),
    ("train --config {}/deep.json " + TRAIN, "deep.json: not a run's configuration", "recursion"),
    ("train tsp 20 --batch 1000000000000 " + TRAIN, "batch 1,000,000,000,000 of size 20", "a smaller batch"),
    ("train tsp 20 --width 1000000000 " + TRAIN, "width is 1000000000", "or less"),
    ("train tsp 20 --width 1000000 --heads 1 " + TRAIN, "width 1,000,000", "needs less"),
    ("train tsp 20 --layers 1000000000 " + TRAIN, "layers is 1000000000", "1,000 or less"),
    ("train tsp 20 --hidden 1000000000000 " + TRAIN, "hidden is 1000000000000", "or less"),
    ("train tsp 20 --solutions 1000000000000 " + TRAIN, "1,000,000,000,000 solutions", "needs less"),
    ("train tsp 1000000000000 " + TRAIN, "of size 1,000,000,000,000", "needs less"),
    ("train tsp 20 --validation-instances 1000000000000 " + TRAIN, "1,000,000,000,000 validation", "needs less"),
    ("train tsp 20;50 " + TRAIN, "sizes is '20;50'", "such as 20,50,100"),
    ("train tsp 1 " + TRAIN, "sizes are (1,)", "each 2 or more"),
    ("train tsp 20 --batch some " + TRAIN, "batch is 'some'", "joined by commas"),
    ("train tsp 20 --batch 8,8 " + TRAIN, "batch is (8, 8)", "one for each of the 1 sizes"),
    ("train tsp 20 --recipe slow " + TRAIN, "unknown recipe 'slow'", "paper, fast"),
    ("train tsp 20,50 --recipe paper " + TRAIN, "one size at a time", "2 were given"),
    ("train tsp 20 --width 30 --heads 4 " + TRAIN, "width 30", "multiple of 4 heads"),
    ("train tsp 20 --baseline guess " + TRAIN, "baseline is 'guess'", "none, exponential, critic"),
    ("train tsp 20 --epochs 0 " + TRAIN, "epochs is 0", "1 or more"),
    ("train tsp 20 --rate 0 " + TRAIN, "rate is 0", "above 0"),
    ("train tsp 20 --rate fast " + TRAIN, "Invalid value for '--rate'", "valid number|valid float"),
    ("train tsp 20 --colour red " + TRAIN, "--colour", "--help"),
    ("train tsp 20 --out {}/never --device gpu", "unknown device 'gpu'", "auto, cpu and cuda"),
    ("train tsp 20 --warm-start nobody " + TRAIN, "nobody", "no such model file"),
    ("train tsp 20 --reference {}/nothing.npz " + TRAIN, "nothing.npz", "no such file"),
    ("train tsp 5,6 --reference {}/costs.npz " + TRAIN, "no array `tsp5`", "several sizes need one each"),
    ("train tsp 6 --reference {}/marked.npz " + TRAIN, "costs of cvrp, n = 6", "those of tsp, n = 6"),
    ("train --resume --out {}/nowhere --device cpu", "nowhere", "no run to resume there"),
    ("train --resume --recipe fast --out {}/nowhere --device cpu", "--recipe has no meaning", "leave one out"),
    ("train --resume --warm-start tsp --out {}/nowhere --device cpu", "--warm-start has no meaning", "leave one out"),
    ("train --resume --out {}/broken/run --device cpu", "broken/run/config.json", "not a run's configuration"),
    ("train --resume --out {}/listed --device cpu", "listed/config.json", "must be an object"),
    ("train --resume --out {}/strange --device cpu", "unknown setting colour", "known are"),
    ("train tsp 6 --out {}/text.txt --device cpu", "text.txt", "Not a directory|File exists"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "wrong", "right"), BAD, ids=[line for line, *_ in BAD])
def test_bad_input_is_one_line_that_says_what_is_wrong_and_what_is_right(routelearn, folder, line, wrong, right):
    status, _, err = routelearn(*line.replace("{}", str(folder)).split(" "))
    assert status == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    for wanted in (wrong, right):
        assert any(words in err for words in wanted.replace("{}", str(folder)).split("|"))


@pytest.mark.parametrize(
    ("options", "wrong", "right"),
    [
        (("--decode", ""), "unknown decoding strategy ''", "greedy, sample:K"),
        (("--device", ""), "unknown device ''", "auto, cpu and cuda"),
        (("--precision", ""), "unknown precision ''", "auto, float32, bfloat16"),
        (("--problem", ""), "unknown problem ''", "the choices are"),
        (("--model", ""), "no such model file", "the choices are"),
        (("--solver", ""), "unknown solver ''", "nearest-neighbour"),
        (("--solver", "nearest-neighbour", "--on", ""), "unknown place '' to run on", "local"),
    ],
    ids=lambda value: value[-2] if isinstance(value, tuple) else None,
)
def test_an_empty_text_is_not_the_default(routelearn, folder, options, wrong, right):
    rest = () if {"--model", "--solver"} & set(options) else ("--model", folder / "tsp.safetensors")
    status, _, err = routelearn("evaluate", folder / "tsp.npz", *options, *rest)
    assert (status, err.count("\n")) == (2, 1)
    assert wrong in err
    assert right in err


def test_nothing_is_left_behind_by_bad_input(routelearn, folder):
    before = sorted(os.listdir(folder))
    routelearn("train", "tsp", "20", "--width", "30", "--heads", "4", "--out", folder / "never")
    routelearn("generate", "tps", "20", "--out", folder / "x.npz")
    routelearn("import-authors", folder / "foreign.pt", "--problem", "tsp", "--out", folder / "m.safetensors")
    assert sorted(os.listdir(folder)) == before


def test_an_interruption_is_one_line_too(routelearn, monkeypatch):
    import routelearn.commands.models as command

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "models", interrupted)
    status, _, err = routelearn("models")
    assert (status, err) == (130, "error: interrupted\n")
