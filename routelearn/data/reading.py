"""Any file of stops: chosen by suffix, else by what the content looks like; folders, globs, standard input."""

from __future__ import annotations

import glob
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from routelearn.data import csv_file, excel_file, json_file, npz, tsplib
from routelearn.data.fields import attributes_of
from routelearn.data.files import STDIN, TEXT_LIMIT, check_not_workbook, decode, decode_table, display, read_bytes
from routelearn.data.matrix_file import read_matrix
from routelearn.data.stops import Stops, from_matrix
from routelearn.errors import InputError
from routelearn.problems import get
from routelearn.problems.base import take

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".geojson": "json",
    ".tsp": "tsplib",
    ".atsp": "tsplib",
    ".oplib": "tsplib",
    ".vrp": "cvrplib",
    ".npz": "npz",
    ".xlsx": "excel",
}
XML = (".gpx", ".kml", ".xml")
_INSTANCE = re.compile(r"(.+\.npz)\[(\d{1,9})\]", re.IGNORECASE | re.DOTALL)
_LIBRARY = re.compile(r"^[ \t]*(NODE_COORD_SECTION|EDGE_WEIGHT_(TYPE|SECTION)|DIMENSION)\b", re.MULTILINE)
_DEMANDS = re.compile(r"^[ \t]*DEMAND_SECTION\b", re.MULTILINE)


def read_stops(
    path: str | Path | None,
    *,
    matrix: str | Path | None = None,
    rounded: bool = True,
    problem: str | None = None,
) -> list[Stops]:
    """The stops of a file, of standard input (`-`), or of every file in a folder or glob.

    `matrix` is a file of lengths that replaces those of the coordinates; with no path it is all there is.
    `rounded=False` takes EUC_2D of a library file without its rounding. `problem`, if it is named, decides what columns
    mean.
    """
    lengths = None if matrix is None else read_matrix(matrix)
    if path is None:
        if lengths is None:
            raise InputError("no stops; give a file, a folder, or - for standard input")
        return [from_matrix(lengths.values, display(str(matrix)), lengths.labels)]
    if matrix is not None and str(matrix) == STDIN == str(path):
        raise InputError("standard input cannot be both the stops and the matrix; give one of them as a file")
    files = files_of(path)
    if lengths is None:
        return [stops for file in files for stops in _read(file, rounded, problem)]
    found = _read(files[0], rounded, problem, lengths.values) if len(files) == 1 else []
    if len(found) != 1:
        count = len(found) or len(files)
        raise InputError(f"{display(path)}: {count} sets of stops, but one matrix; give one file of stops")
    (stops,), file = found, display(str(matrix))
    return [replace(stops, matrix=lengths.in_order(stops.ids, file), matrix_file=file, metric="matrix")]


def is_there(path: str) -> bool:
    """Whether the name of a source is that of a file, or of an instance in one (`set.npz[3]`)."""
    return Path(path).is_file() or instance_in(path) is not None


def instance_in(path: str) -> tuple[str, int] | None:
    """The file and the number of the instance that `set.npz[3]` names, as solutions call their source; else None."""
    match = _INSTANCE.fullmatch(path)
    if match is None or Path(path).is_file() or not Path(match[1]).is_file():
        return None
    return match[1], int(match[2])


def files_of(path: str | Path) -> list[str]:
    """One file, or those of a folder (known suffixes only) or a glob (`**`: any depth), in order of name."""
    text = str(path)
    if not text.strip():
        raise InputError("no stops: the name of the file is empty; give a file, a folder, or - for standard input")
    if text == STDIN or is_there(text):
        return [text]
    if Path(text).is_dir():
        inside = sorted(str(file) for file in Path(text).iterdir() if file.is_file() and file.suffix.lower() in FORMATS)
        if not inside:
            raise InputError(f"{text}: no file in this folder ends in {', '.join(FORMATS)}")
        return inside
    if glob.has_magic(text):
        matches = sorted(match for match in glob.glob(text, recursive=True) if Path(match).is_file())
        if not matches:
            raise InputError(f"{text}: no file matches")
        return matches
    return [text]


def _read(path: str, rounded: bool, problem: str | None, lengths: np.ndarray | None = None) -> list[Stops]:
    """The stops of one file, or of one instance in it (`set.npz[3]`); where lengths are given they need no places."""
    if (named := instance_in(path)) is not None:
        batch = from_npz(read_bytes(named[0]), named[0])
        if named[1] >= len(batch):
            raise InputError(f"{path}: the file holds {len(batch)} instances, numbered from 0")
        return [batch[named[1]]]
    if Path(path).suffix.lower() == ".pkl":
        raise InputError(f"{path}: a .pkl holds a set of instances for evaluation, not stops")
    return parse(read_bytes(path), display(path), rounded, problem, lengths)


def parse(
    data: bytes,
    source: str,
    rounded: bool = True,
    problem: str | None = None,
    lengths: np.ndarray | None = None,
) -> list[Stops]:
    """The stops in the bytes of a file that messages call `source`."""
    suffix = Path(source).suffix.lower()
    if excel_file.is_workbook(data):
        return [csv_file.parse(excel_file.as_csv(data, source), source, lengths, problem)]
    check_not_workbook(data, source)
    if suffix in XML:
        raise csv_file.not_xml(source)
    kind = FORMATS.get(suffix) or ("npz" if data[:4] == b"PK\x03\x04" else None)
    if kind == "npz":
        return from_npz(data, source)
    text, notes = decode_table(data, source) if kind in ("csv", None) else (decode(data, source), ())
    kind = kind or sniff(text)
    if notes and kind != "csv":
        decode(data, source)  # raises: only tables come from spreadsheets
    if kind == "json":
        return [json_file.parse(text, source, lengths, problem)]
    if kind == "tsplib":
        return [tsplib.parse(text, source, rounded, problem)]
    if kind == "cvrplib":
        return [tsplib.parse_vrp(text, source, rounded, problem)]
    return [replace(csv_file.parse(text, source, lengths, problem), notes=notes)]


def sniff(text: str) -> str:
    """The format of a text without a telling name."""
    if text.lstrip()[:1] in ("{", "["):
        return "json"
    if _LIBRARY.search(text):
        return "cvrplib" if _DEMANDS.search(text) else "tsplib"
    return "csv"


def from_npz(data: bytes, source: str) -> list[Stops]:
    """Every instance of a batch as stops numbered by node, the depot being 0."""
    name, batch = npz.parse(data, source, limit=TEXT_LIMIT)
    return [_instance_stops(name, take(batch, row), f"{source}[{row}]") for row in range(batch.xy.shape[0])]


def _instance_stops(name: str, x: Any, source: str) -> Stops:
    """x: one instance without its batch axis."""
    problem, count = get(name), x.xy.shape[0]
    first = 0 if problem.has_depot else 1
    columns: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for one in attributes_of(problem):
        field = getattr(x, one.name)
        if field is None or not one.of_stops:
            continue
        exactly = one.whole and not one.shape
        values = field.tolist() if exactly else field.double().numpy()
        if one.of_file:
            limits[one.name] = Fraction(values) if exactly else float(values) if not one.shape else tuple(values)
        else:
            columns[one.name] = tuple(map(Fraction, values)) if exactly else values
    return Stops(
        source,
        tuple(range(first, count + first)),
        tuple(f"node {i}" for i in range(first, count + first)),
        xy=x.xy.double().numpy(),
        matrix=None if x.distances is None else x.distances.double().numpy(),
        columns=columns,
        limits=limits,
        depot=0 if problem.has_depot else None,
        problem=name,
        metric="euclidean" if x.distances is None else "matrix",
    )
