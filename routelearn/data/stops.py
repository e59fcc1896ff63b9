"""Stops: what a person's file says, in one neutral form that every reader fills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from routelearn.errors import InputError

MOST_STOPS = 100_000  # in one file
MATRIX_STOPS = 8_000  # a matrix of more stops would not fit an ordinary machine's memory twice


@dataclass(frozen=True)
class Stops:
    """N places in the order of the file, in the units of the file.

    At least one of `xy`, `latlon` and `matrix` is there; `matrix` decides the lengths if it is.
    """

    source: str  # the file, for messages
    ids: tuple[str | int, ...]  # as the user wrote them, or 1..N
    where: tuple[str, ...]  # "line 7", "stop 3": where each stop stands in the source
    xy: np.ndarray | None = None  # [N, 2] float64
    latlon: np.ndarray | None = None  # [N, 2] float64, degrees
    matrix: np.ndarray | None = None  # [N, N] float64, from row to column
    columns: Mapping[str, Any] = field(default_factory=dict)  # by attribute: [N] float64, or a tuple of exact numbers
    limits: Mapping[str, Any] = field(default_factory=dict)  # by attribute: one number, of the whole file
    defaults: frozenset[str] = frozenset()  # attributes that nobody gave, once the problem is known
    depot: int | None = None  # index into ids; None = the file names none
    problem: str | None = None  # where the file says it
    matrix_file: str | None = None  # where the matrix came from, if from a file of its own
    rounded: bool = True  # False: the file's library would round its lengths, and the user chose that they are not
    metric: str = "euclidean"  # how lengths arise: "euclidean", "great-circle", "matrix", or a TSPLIB edge weight type
    said: Mapping[str, str] = field(default_factory=dict)  # the file's own words for columns, by canonical name
    unused: tuple[str, ...] = ()  # columns and keys of the file that nobody claimed
    notes: tuple[str, ...] = ()  # what the user should know of the file, one line each
    field_where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # for columns that stand elsewhere

    def __post_init__(self) -> None:
        count = len(self.ids)
        if self.xy is None and self.latlon is None and self.matrix is None:
            raise InputError(f"{self.source}: no coordinates and no matrix; give x and y, lat and lon, or a matrix")
        if count > MOST_STOPS:
            raise InputError(f"{self.source}: {count:,} stops; at most {MOST_STOPS:,} are read, split the file")
        first: dict[str, int] = {}
        for i, name in enumerate(self.ids):
            if (other := first.setdefault(str(name), i)) != i:
                raise InputError(f"{self.at(i)}: the id {str(name)[:40]!r} is already used in {self.where[other]}")
        if self.matrix is not None and self.matrix.shape != (count, count):
            rows, columns = self.matrix.shape
            raise InputError(f"{self.source}: {count} stops, but the matrix has {rows} rows and {columns} columns")

    def at(self, stop: int, name: str | None = None) -> str:
        """Where the file gives a stop (or one of its attributes), to begin a message with."""
        return f"{self.source}, {self.field_where.get(name or '', self.where)[stop]}"

    def called(self, stop: int) -> str:
        """A stop's id, for a message."""
        return repr(str(self.ids[stop])[:40])


def checked_matrix(matrix: np.ndarray, source: str) -> np.ndarray:
    """A square matrix of lengths, from row to column; its diagonal, which no tour uses, becomes 0."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or 0 in matrix.shape:
        raise InputError(f"{source}: the matrix has shape {matrix.shape}; it must have as many columns as rows")
    if matrix.shape[0] > MATRIX_STOPS:
        raise InputError(f"{source}: a matrix of {matrix.shape[0]} stops; at most {MATRIX_STOPS} are allowed")
    matrix = np.array(matrix, dtype=np.float64)
    np.fill_diagonal(matrix, 0.0)
    bad = ~(np.isfinite(matrix) & (matrix >= 0))
    if bad.any():
        row, column = np.argwhere(bad)[0] + 1
        raise InputError(f"{source}: row {row}, column {column} of the matrix is negative or not a finite number")
    return matrix


def from_matrix(matrix: np.ndarray, source: str, labels: tuple[str, ...] | None = None) -> Stops:
    """Stops known only by their distances, named by the labels of the matrix or numbered from 1."""
    numbers = range(1, len(matrix) + 1)
    where = tuple(f"row {i}" for i in numbers)
    return Stops(source, labels or tuple(numbers), where, matrix=matrix, matrix_file=source, metric="matrix")
