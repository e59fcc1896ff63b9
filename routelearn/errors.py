"""What people hear of: bad input, a solution that breaks the rules, and what they should know besides."""

from __future__ import annotations


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
