"""Options for what problems and rounds declare of a whole file: `--capacity`, `--shift`, and those of plugins."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from routelearn.problems.attributes import Attribute

LIMITS = "limits"  # the parameter of a command that gets all of them, by name


def known_limits() -> dict[str, Attribute]:
    """Attributes of a whole file, of the problems first. How many vehicles there are, `--vehicles` says."""
    from routelearn.data.names import table
    from routelearn.rounds.model import Round, Vehicle, attributes_of

    rounds = {one.name: one for kind in (Vehicle, Round) for one in attributes_of(kind)}
    del rounds["number"], rounds["profile"], rounds["skills"]  # of one vehicle, not of all
    known = dict(table().limits)
    return known | {name: one._replace(help=f"rounds: {one.help}") for name, one in rounds.items() if name not in known}


def numeric() -> set[str]:
    """Options whose values are plain numbers; others are read by whoever knows their unit."""
    from routelearn.data.names import table

    return {name for name, one in table().limits.items() if not one.whole and not one.shape and one.unit != "time"}


def with_attributes(function: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each attribute of the loaded problems and of rounds, if it takes `limits`."""
    signature = inspect.signature(function, eval_str=True)
    if LIMITS not in signature.parameters:
        return function
    known = known_limits()
    default = signature.parameters[LIMITS].default
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=typer.Option(None, help=f"{one.help[:1].upper()}{one.help[1:] or one.called}.{default}"),
            annotation=float | None if name in numeric() else str | None,
        )
        for name, one in known.items()
    ]
    others = [one.replace(kind=one.KEYWORD_ONLY) for name, one in signature.parameters.items() if name != LIMITS]
    at = list(signature.parameters).index(LIMITS)
    parameters = [*others[:at], *options, *others[at:]]

    @functools.wraps(function)
    def command(**arguments: Any) -> None:
        limits = {name: arguments.pop(name) for name in known}
        function(**arguments, limits={name: value for name, value in limits.items() if value is not None})

    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    del command.__wrapped__  # or its signature would be read instead
    return command
