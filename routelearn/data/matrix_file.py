"""A matrix of lengths or times between stops, from a file of numbers (CSV or JSON), with or without labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from routelearn.data import json_file
from routelearn.data.csv_file import DELIMITERS, check_not_xml, declared_delimiter, first_line, rows_of, with_point
from routelearn.data.files import display, read_text
from routelearn.data.numbers import real, shown
from routelearn.data.stops import checked_matrix
from routelearn.errors import InputError

_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?", re.ASCII)


class Lengths(NamedTuple):
    """What a file of lengths holds."""

    values: np.ndarray  # [N, N] float64, from row to column
    labels: tuple[str, ...] | None = None  # what the file calls its rows and columns, if it does

    def in_order(self, ids: Sequence[str | int], source: str) -> np.ndarray:
        """The lengths in the order of the stops: by label if the labels are the ids, otherwise as in the file."""
        names = [str(name) for name in ids]
        if self.labels is None or len(names) != len(self.labels) or names == list(self.labels):
            return self.values
        if set(names) == set(self.labels):
            at = {label: i for i, label in enumerate(self.labels)}
            order = [at[name] for name in names]
            return self.values[np.ix_(order, order)]
        known = set() if list(ids) == list(range(1, len(ids) + 1)) else set(self.labels)
        for i, (name, label) in enumerate(zip(names, self.labels, strict=True), 1):
            if name != label and name in known:
                missing = next(name for name in names if name not in self.labels)
                raise InputError(
                    f"{source}: row {i} is labelled {shown(label)}, but stop {i} is {shown(name)}; "
                    f"labels in another order must be the ids of all stops, and {shown(missing)} is missing"
                )
        return self.values


def read_matrix(path: str | Path) -> Lengths:
    """The lengths of a file, row to column."""
    return parse(read_text(path), display(path))


def parse(text: str, source: str) -> Lengths:
    if text.lstrip()[:1] in ("[", "{"):
        data = json_file.decode(text, source)
        return Lengths(json_file.matrix_of(data.get("matrix") if isinstance(data, dict) else data, source))
    check_not_xml(text, source)
    lines = _cells(text, source)
    if all(len(cells) > 1 and not cells[-1] for _, cells in lines):
        lines = [(line, cells[:-1]) for line, cells in lines]  # a delimiter at the end of every line
    labels, lines, shift = _labelled(lines)
    rows = []
    for line, cells in lines:
        if len(cells) == len(lines) + 1 and not cells[-1]:
            cells = cells[:-1]
        if len(cells) != len(lines):
            raise InputError(
                f"{source}, line {line}: {len(cells)} numbers; a matrix of {len(lines)} rows needs as many"
            )
        rows.append([real(cell, f"{source}, line {line}", f"column {j + shift}") for j, cell in enumerate(cells, 1)])
    return Lengths(checked_matrix(np.array(rows), source), labels)


def _cells(text: str, source: str) -> list[tuple[int, list[str]]]:
    """(line, its cells) for every line that is not blank, decimal commas as points where commas do not delimit."""
    first = first_line(text)
    declared = declared_delimiter(first)
    words = first.split()
    blanks = len(words) > 1 and all(_NUMBER.fullmatch(word) for word in words)
    # A comma delimits only where nothing else does: 0;2,5 and 0 2,5 are two numbers.
    delimiter = declared or next((d for d in (*DELIMITERS[1:], *("," * (not blanks))) if d in first), None)
    if delimiter is None:
        lines = [(i, line.split()) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
    else:
        lines = list(rows_of(text, delimiter, source))[0 if declared is None else 1 :]
        lines = [(line, [cell.strip() for cell in cells]) for line, cells in lines]
    if delimiter == "," or "," not in text:
        return lines
    return [(line, [with_point(cell) for cell in cells]) for line, cells in lines]


def _labelled(
    lines: list[tuple[int, list[str]]],
) -> tuple[tuple[str, ...] | None, list[tuple[int, list[str]]], int]:
    """(labels, lines without them, columns taken away). Labels are a first row, a first column, or the same in both."""
    count = len(lines)
    top, body = (lines[0][1], lines[1:]) if lines else ([], [])
    if count > 1 and all(len(cells) == count for _, cells in body):  # a first row and a first column
        above = top[1:] if len(top) == count else top
        beside = [cells[0] for _, cells in body]
        corner = len(top) == count and _NUMBER.fullmatch(top[0])
        if not corner and len(above) == count - 1 == len(set(above)) and set(above) == set(beside) and all(above):
            at = {name: j for j, name in enumerate(above, 1)}
            order = [at[name] for name in beside]
            return tuple(beside), [(line, [cells[j] for j in order]) for line, cells in body], 1
    if body and all(len(cells) == count - 1 for _, cells in lines) and _are_names(top):
        return tuple(top), body, 0
    if all(len(cells) == count + 1 for _, cells in lines) and _are_names([cells[0] for _, cells in lines]):
        return tuple(cells[0] for _, cells in lines), [(line, cells[1:]) for line, cells in lines], 1
    return None, lines, 0


def _are_names(labels: list[str]) -> bool:
    """Whether the labels are all different, and not all numbers (which might be lengths)."""
    return all(labels) and len(set(labels)) == len(labels) and not all(_NUMBER.fullmatch(name) for name in labels)
