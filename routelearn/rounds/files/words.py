"""Texts of numbers without names: lines into numbers, for the formats of Solomon, Cordeau, and Li and Lim."""

from __future__ import annotations

import re

from routelearn.data.numbers import real, shown
from routelearn.errors import InputError
from routelearn.rounds.files.lengths import check_count

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
MOST_VEHICLES = 100_000

Line = tuple[int, list[str]]  # its number, and its words


def lines_of(text: str) -> list[Line]:
    """The lines that are not blank."""
    return [(i, line.split()) for i, line in enumerate(text.splitlines(), 1) if line.strip()]


def all_numbers(words: list[str]) -> bool:
    return all(_NUMBER.fullmatch(word) for word in words)


def numbers_of(line: Line, source: str, count: int, what: str) -> list[float]:
    """The numbers of a line, of which `count` are needed at least."""
    at, words = line
    if len(words) < count:
        raise InputError(f"{source}, line {at}: {len(words)} numbers; {what} has {count}")
    return [real(word, f"{source}, line {at}", f"number {j}") for j, word in enumerate(words, 1)]


def whole(value: float, where: str, what: str, least: int = 0, most: int = MOST_VEHICLES) -> int:
    if value != int(value) or not least <= value <= most:
        raise InputError(f"{where}: {what} is {value:g}; a whole number from {least} to {most:,} is needed")
    return int(value)


def check_rows(rows: list[Line], source: str) -> None:
    """Refuse too many of them, and numbers of customers that come twice."""
    check_count(len(rows), source)
    first: dict[str, int] = {}
    for at, words in rows:
        if (other := first.setdefault(words[0], at)) != at:
            raise InputError(f"{source}, line {at}: customer {shown(words[0])} is already given in line {other}")
