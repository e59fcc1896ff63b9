"""Files of instances: what is written reads back, and damaged files are refused in one clear line."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routelearn.data import npz, read_instances
from routelearn.data.generate import generate
from routelearn.data.reading import read_stops
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS, get


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_saved_loads_back_equal(name, tmp_path):
    x = generate(name, 7, 5, seed=3)
    npz.save(tmp_path / "set.npz", name, x)
    read, back = npz.load(tmp_path / "set.npz", name)
    assert read == name
    assert type(back) is type(x)
    for before, after in zip(x, back, strict=True):
        assert (before is None and after is None) or (before.dtype == after.dtype and torch.equal(before, after))


def test_a_distance_matrix_and_a_bare_file_name_survive(tmp_path):
    x = generate("tsp", 4, 2)
    x = x._replace(distances=torch.rand(2, 4, 4) * (1 - torch.eye(4)))
    npz.save(tmp_path / "no_suffix", "tsp", x)
    _, back = npz.load(tmp_path / "no_suffix")
    assert torch.equal(back.distances, x.distances)


def test_the_limit_keeps_the_first_instances(tmp_path):
    x = generate("cvrp", 6, 5)
    npz.save(tmp_path / "set.npz", "cvrp", x)
    name, part = read_instances(tmp_path / "set.npz", limit=2)
    assert name == "cvrp"
    assert torch.equal(part.demand, x.demand[:2])
    with pytest.raises(InputError, match="at least 1"):
        read_instances(tmp_path / "set.npz", limit=0)


def cvrp_arrays():
    return {
        "problem": np.array("cvrp"),
        "format_version": np.array(1),
        "xy": np.random.RandomState(0).uniform(size=(2, 4, 2)),
        "demand": np.array([[0, 1, 2, 3], [0, 3, 2, 1]]),
        "capacity": np.array([5, 5]),
    }


def nan_xy():
    xy = cvrp_arrays()["xy"]
    xy[1, 2, 0] = np.nan
    return xy


BROKEN = {
    "not of tsp": ({"problem": np.array("tsp")}, "'demand' is not a field of tsp"),
    "unknown problem": ({"problem": np.array("vrptw")}, "unknown problem 'vrptw'.*tsp, cvrp"),
    "no problem": ({"problem": None}, "no 'problem' entry"),
    "no version": ({"format_version": None}, "no 'format_version' entry"),
    "new version": ({"format_version": np.array(9)}, "format version 9; this program reads version 1"),
    "missing field": ({"demand": None}, "no demand; cvrp needs xy, demand, capacity"),
    "unknown field": ({"prize": np.zeros(3)}, "'prize' is not a field of cvrp"),
    "nan": ({"xy": nan_xy()}, r"xy has a value that is not a finite number \(instance 1\)"),
    "flat xy": ({"xy": np.zeros((4, 2))}, r"xy has shape \(4, 2\)"),
    "no instance": ({"xy": np.zeros((0, 4, 2))}, "holds no instance"),
    "wrong nodes": ({"demand": np.zeros((2, 5), int)}, r"demand has shape \(2, 5\); \(2, 4\)"),
    "wrong batch": ({"capacity": np.array([5, 5, 5])}, r"capacity has shape \(3,\); \(2,\)"),
    "negative demand": ({"demand": np.array([[0, 1, 2, 3], [0, -1, 2, 3]])}, r"a demand is negative \(instance 1\)"),
    "over capacity": ({"demand": np.array([[0, 1, 2, 6], [0, 1, 2, 3]])}, "node 3 demands 6, more than the capacity 5"),
    "fraction": ({"demand": np.array([[0, 1, 2, 2.5], [0, 1, 2, 3]])}, "demand has a fraction"),
    "text": ({"demand": np.full((2, 4), "one")}, "demand holds <U3 values"),
    "booleans": ({"demand": np.zeros((2, 4), bool)}, "demand holds bool values"),
    "overflow": ({"xy": np.full((2, 4, 2), 1e300)}, "too large for single precision"),
    "huge demand": ({"demand": np.full((2, 4), 2**63, np.uint64)}, "demand has a number beyond 1e"),
    "bad matrix": ({"distances": np.zeros((2, 3, 3))}, "the distance matrix has shape"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused_by_name_in_one_line(case, tmp_path):
    change, message = BROKEN[case]
    arrays = {name: value for name, value in (cvrp_arrays() | change).items() if value is not None}
    np.savez(tmp_path / "broken.npz", **arrays)
    with pytest.raises(InputError, match=message) as caught:
        npz.load(tmp_path / "broken.npz")
    assert "broken.npz: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_problem_than_asked_for_is_refused(tmp_path):
    npz.save(tmp_path / "set.npz", "cvrp", generate("cvrp", 5, 2))
    with pytest.raises(InputError, match="holds instances of cvrp, not of sdvrp"):
        npz.load(tmp_path / "set.npz", "sdvrp")


def test_missing_empty_foreign_and_pickled_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        npz.load(tmp_path / "none.npz")
    with pytest.raises(InputError, match="is a folder"):
        npz.load(tmp_path)
    (tmp_path / "empty.npz").write_bytes(b"")
    with pytest.raises(InputError, match="empty"):
        npz.load(tmp_path / "empty.npz")
    (tmp_path / "text.npz").write_text("x,y\n1,2\n")
    with pytest.raises(InputError, match="not an"):
        npz.load(tmp_path / "text.npz")
    np.savez(tmp_path / "objects.npz", **cvrp_arrays(), extra=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="plain arrays"):
        npz.load(tmp_path / "objects.npz")
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(InputError, match="plain arrays"):
        npz.load(tmp_path / "zip.npz")


def test_a_header_that_promises_terabytes_allocates_nothing(tmp_path):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        archive.writestr("xy.npy", buffer.getvalue())
    with pytest.raises(InputError, match="shorter than its header says"):
        npz.load(tmp_path / "bomb.npz")


def test_a_file_that_unpacks_beyond_the_limit_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "zeros.npz", xy=np.zeros(200_000))
    with pytest.raises(InputError, match="unpacks to more than"):
        npz.arrays_of((tmp_path / "zeros.npz").read_bytes(), "zeros.npz", limit=100_000)


def test_stops_are_not_unpacked_beyond_the_limit_of_a_file_of_stops(tmp_path):
    """Zeros pack a thousandfold: the file is small, and what comes out of it is not."""
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, problem="tsp", format_version=1, xy=np.zeros((1, 25_000_000, 2), np.float32))
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    try:
        for source in (path, f"{path}[0]"):
            with pytest.raises(InputError, match="unpacks to more than the 64 MB that are read"):
                read_stops(source)
        assert tracemalloc.get_traced_memory()[1] < 80 * 2**20  # the read itself reserves 64
    finally:
        tracemalloc.stop()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_cut_or_changed_bytes_raise_nothing_but_input_errors(tmp_path, data):
    path = tmp_path / "set.npz"
    npz.save(path, "cvrp", generate("cvrp", 5, 2))
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 6))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    try:
        name, x = npz.load(path)
    except InputError:
        return
    get(name).validate(x)
