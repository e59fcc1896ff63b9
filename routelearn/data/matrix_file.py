"""A matrix of lengths or times between stops, from a file of numbers (CSV or JSON)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from routelearn.data import json_file
from routelearn.data.csv_file import DELIMITERS, rows_of
from routelearn.data.files import display, read_text
from routelearn.data.numbers import real
from routelearn.data.stops import checked_matrix
from routelearn.errors import InputError


def read_matrix(path: str | Path) -> np.ndarray:
    """[N, N] float64, row to column, in the order of the stops."""
    return parse(read_text(path), display(path))


def parse(text: str, source: str) -> np.ndarray:
    if text.lstrip()[:1] in ("[", "{"):
        data = json_file.decode(text, source)
        return json_file.matrix_of(data.get("matrix") if isinstance(data, dict) else data, source)
    first = next(line for line in text.splitlines() if line.strip())
    delimiter = max(DELIMITERS, key=first.count)
    if delimiter in first:
        lines = list(rows_of(text, delimiter, source))
    else:
        lines = [(i, line.split()) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
    rows = []
    for line, cells in lines:
        if len(cells) == len(lines) + 1 and not cells[-1].strip():
            cells = cells[:-1]  # a delimiter at the end of the line
        if len(cells) != len(lines):
            raise InputError(
                f"{source}, line {line}: {len(cells)} numbers; a matrix of {len(lines)} rows needs as many"
            )
        rows.append([real(cell, f"{source}, line {line}", f"column {j}") for j, cell in enumerate(cells, 1)])
    return checked_matrix(np.array(rows), source)
