"""The command line as a function: arguments in; exit status, standard output and standard error out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from routelearn.cli import main


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def routelearn(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        return Outcome(int(end.value.code or 0), *capsys.readouterr())

    return call
