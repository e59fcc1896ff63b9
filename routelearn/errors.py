"""What people hear of: bad input, a solution that breaks the rules, and what they should know besides."""

from __future__ import annotations

import re
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class InputError(ValueError):
    """Something the user gave is wrong. The message is one line: what, where, and what would be right."""


class OutOfSpace(InputError):
    """The disk is full, or what may be written to it. Nothing that the user gave is wrong."""


class Notice(UserWarning):
    """Something that the user should know and that does not stop the work: one line."""


class Infeasible(ValueError):
    """A solution breaks a rule of its problem.

    `row` is the instance, `solution` which of its S solutions, `reason` the rule.
    """

    def __init__(self, row: int, reason: str, solution: int = 0):
        self.row, self.solution, self.reason = row, solution, reason
        super().__init__(f"instance {row}, solution {solution}: {reason}")


@contextmanager
def about(source: object) -> Iterator[None]:
    """Tell what is wrong within as wrong with this source: a file, or an instance of a batch."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def is_own(kind: type) -> bool:
    """Whether a class is this package's, and not a plugin's or a script's."""
    return re.match(r"routelearn\.(?!plugins\.)", kind.__module__) is not None


def place(error: BaseException, files: Collection[str | None]) -> str:
    """`my_variant.py, line 12`: the innermost line in one of these files that led to the error; "" if none did."""
    lines = [entry for entry in traceback.extract_tb(error.__traceback__) if entry.filename in files]
    return f"{Path(lines[-1].filename).name}, line {lines[-1].lineno}" if lines else ""


def in_short(error: Exception) -> str:
    """What another library says, in short; its errors may have many lines, or none."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def first_few(words: Sequence[str], most: int) -> str:
    """`a, b and 3 more`."""
    return ", ".join(words[:most]) + (f" and {len(words) - most:,} more" if len(words) > most else "")


def fault(error: BaseException, kind: type) -> str:
    """`my_variant.py, line 12: ValueError: oh`: an error in one line, with the line of the class's own author."""
    theirs = [one for one in kind.__mro__[:-1] if not is_own(one) and not one.__module__.startswith("torch.")]
    codes = [getattr(function, "__code__", None) for one in theirs for function in vars(one).values()]
    where = place(error, {code.co_filename for code in codes if code is not None})
    words = " ".join(f"{type(error).__name__}: {error}".split())[:400]
    return f"{where}: {words}" if where else words
