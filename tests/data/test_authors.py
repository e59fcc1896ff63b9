"""The authors' pickles: read right, and hostile ones refused before anything runs."""

import contextlib
import os
import pickle
import time
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_problems import PAPER

from routelearn.data import authors, read_instances
from routelearn.data.generate import generate
from routelearn.errors import InputError


def as_the_authors_write(name, x):
    """An Instance as their generate_data.py lays it out."""
    rows = [field.double().tolist() if field is not None else None for field in x]
    columns = dict(zip(x._fields, rows, strict=True))
    xy = columns["xy"]
    if name == "tsp":
        return xy
    depot, loc = [row[0] for row in xy], [row[1:] for row in xy]
    customers = {
        field: [row[1:] for row in columns[field]]
        for field in ("demand", "prize", "penalty", "real_prize")
        if columns.get(field)
    }
    if "demand" in customers:
        whole = [[int(value) for value in row] for row in customers["demand"]]
        return list(zip(depot, loc, whole, columns["capacity"], strict=True))
    if "penalty" in customers:
        real = customers.get("real_prize") or [[0.5 for _ in row] for row in customers["prize"]]
        return list(zip(depot, loc, customers["penalty"], customers["prize"], real, strict=True))
    return list(zip(depot, loc, customers["prize"], columns["max_length"], strict=True))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", PAPER)
def test_every_problem_reads_back_in_every_pickle_protocol(name, protocol, tmp_path):
    x = generate(name, 6, 4, seed=5)
    path = tmp_path / "set.pkl"
    path.write_bytes(pickle.dumps(as_the_authors_write(name, x), protocol))
    read, back = read_instances(path, name)
    assert read == name
    for before, after in zip(x, back, strict=True):
        assert (before is None and after is None) or torch.equal(before, after)


def test_the_problem_must_be_named(tmp_path):
    (tmp_path / "set.pkl").write_bytes(pickle.dumps([[[0.1, 0.2], [0.3, 0.4]]]))
    with pytest.raises(InputError, match="does not say which problem"):
        read_instances(tmp_path / "set.pkl")


class Shell:
    """Unpickled, it would run a command."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("nested", [False, True])
def test_a_pickle_that_runs_a_command_is_refused_and_runs_nothing(protocol, nested, tmp_path):
    witness = tmp_path / "ran"
    hostile = Shell(f"touch {witness}")
    data = pickle.dumps([[[0.1, 0.2], [0.3, hostile]]] if nested else hostile, protocol)
    (tmp_path / "set.pkl").write_bytes(data)
    with pytest.raises(InputError, match="only lists, tuples and numbers") as caught:
        authors.load(tmp_path / "set.pkl", "tsp")
    assert "\n" not in str(caught.value)
    assert not witness.exists()
    pickle.loads(data)  # the attack is real: the standard reader runs it
    assert witness.exists()


HOSTILE = {  # ways to run something that Python's own pickler does not write
    "GLOBAL and REDUCE": b"cos\nsystem\n(V{}\ntR.",
    "INST": b"(V{}\nios\nsystem\n.",
    "OBJ": b"(cos\nsystem\nV{}\no.",
    "STACK_GLOBAL": b"\x80\x04\x8c\x02os\x8c\x06system\x93(V{}\ntR.",
    "NEWOBJ": b"\x80\x02cos\nsystem\n(V{}\nt\x81.",
    "PERSID": b"P{}\n.",
    "EXT1": b"\x80\x02\x82\x01.",
    "within a list": b"\x80\x04]G?\xe0\x00\x00\x00\x00\x00\x00acos\nsystem\n(V{}\ntRa.",
}


@pytest.mark.parametrize("way", HOSTILE)
def test_no_instruction_runs_anything(way, tmp_path):
    witness = tmp_path / "ran"
    command = f"touch {witness}".encode()
    with pytest.raises(
        InputError, match=r"^set.pkl: byte \d+ is the instruction [A-Z0-9_]+; only lists, tuples and num"
    ):
        authors.parse(HOSTILE[way].replace(b"{}", command), "set.pkl")
    assert not witness.exists()


def test_the_compiled_reader_would_have_been_run_by_these(tmp_path):
    for number, way in enumerate(("GLOBAL and REDUCE", "INST", "OBJ", "STACK_GLOBAL", "within a list")):
        witness = tmp_path / str(number)
        pickle.loads(HOSTILE[way].replace(b"{}", f"touch {witness}".encode()))
        assert witness.exists(), way


def test_an_index_of_the_memo_takes_no_memory():
    tracemalloc.start()
    assert authors.parse(b"\x80\x04]r\xff\xff\xff\x7f.", "set.pkl") == []
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**20


@pytest.mark.parametrize(
    "value", [np.zeros((2, 3, 2)), np.float64(1.5), "text", b"bytes", {"a": 1}, {1, 2}, None, True, 1 + 2j]
)
def test_anything_but_lists_tuples_and_numbers_is_refused(value, tmp_path):
    (tmp_path / "set.pkl").write_bytes(pickle.dumps([value]))
    with pytest.raises(InputError, match="only lists, tuples and numbers"):
        authors.load(tmp_path / "set.pkl", "tsp")


def test_a_memo_bomb_is_refused_at_once(tmp_path):
    bomb = [0.5]
    for _ in range(60):
        bomb = [bomb] * 10  # 10^60 numbers once followed
    (tmp_path / "set.pkl").write_bytes(pickle.dumps(bomb))
    start = time.perf_counter()
    with pytest.raises(InputError, match="GET, one object used twice; only lists"):
        authors.load(tmp_path / "set.pkl", "tsp")
    assert time.perf_counter() - start < 5  # following it would take for ever


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04](0e.",  # POP
        b"\x80\x04]2e.",  # DUP: the other way to grow without bytes
        b"\x80\x04e.",  # nothing to append to
        b"\x80\x04K\x01a.",  # append to nothing
        b"\x80\x04(K\x01",  # no end
        b"\x80\x04(K\x01.",  # an open mark at the end
        b"\x80\x04]r\xff\xff\xff\x7f.",  # a memo index of two thousand million, and an empty list
        b"\x80\x04\x8b\xff\xff\xff\x7f.",  # a number of two gigabytes
        b"\x80\x04\x8a\x09\x01",  # a number cut short
        b"F" + b"9" * 500 + b"\n.",
        b"Fninety\n.",
        b"K\x01.",
        b"]" * 100_000 + b"a" * 99_999 + b".",  # nested a hundred thousand deep
        b"\x00\x01\x02",
        b"x,y\n1,2\n",
    ],
)
def test_malformed_pickles_are_refused(data, tmp_path):
    (tmp_path / "set.pkl").write_bytes(data)
    with pytest.raises(InputError):
        authors.load(tmp_path / "set.pkl", "tsp")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_cut_or_changed_pickles_raise_nothing_but_input_errors(data):
    content = bytearray(pickle.dumps([([0.1, 0.2], [[0.3, 0.4], [0.5, 0.6]], [3, 4], 9.0)], 4))
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    for _ in range(data.draw(st.integers(0, 8))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        authors.parse(bytes(content), "set.pkl")


@pytest.mark.parametrize(
    ("problem", "rows", "message"),
    [
        ("tsp", [], "at least one"),
        ("tsp", 3.0, "must hold a list"),
        ("tsp", [[[0.1, 0.2]], [[0.1, 0.2], [0.3, 0.4]]], "different sizes"),
        ("tsp", [[[0.1, 0.2, 0.3] for _ in range(4)]], r"xy has shape \(1, 4, 3\)"),
        ("tsp", [[[0.1, float("nan")] for _ in range(3)]], "not a finite number"),
        ("cvrp", [[[0.1, 0.2], [0.3, 0.4]]], "instance 0 of cvrp must be a tuple of 4"),
        ("cvrp", [([0.1, 0.2], [[0.3, 0.4]], [2.5], 9.0)], "demand has a fraction"),
        ("cvrp", [([0.1, 0.2], [[0.3, 0.4]], [20], 9.0)], "more than the capacity 9"),
        ("cvrp", [([0.1, 0.2], [[0.3, 0.4]], [2, 3], 9.0)], "2 values of demand for 1 places"),
        ("cvrp", [([0.1], [[0.3, 0.4]], [2], 9.0)], "each place is one x and one y"),
        ("op-unif", [([0.1, 0.2], [[0.3, 0.4]], [-0.5], 2.0)], "a prize is negative"),
        ("pctsp", [([0.1, 0.2], [[0.3, 0.4]], [0.5], 2.0)], "must be a tuple of 5"),
    ],
)
def test_wrong_contents_are_refused_in_one_line(problem, rows, message, tmp_path):
    (tmp_path / "set.pkl").write_bytes(pickle.dumps(rows))
    with pytest.raises(InputError, match=message) as caught:
        authors.load(tmp_path / "set.pkl", problem)
    assert "set.pkl: " in str(caught.value)
    assert "\n" not in str(caught.value)
