"""Options for what the problems declare of a whole file: `--capacity`, `--max-length`, and those of plugins."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import typer

LIMITS = "limits"  # the parameter of a command that gets all of them, by name


def with_attributes(function: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each attribute of the problems that are loaded, where it takes `limits`."""
    signature = inspect.signature(function, eval_str=True)
    if LIMITS not in signature.parameters:
        return function
    from routelearn.data.names import table

    known = table().limits
    default = signature.parameters[LIMITS].default
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=typer.Option(None, help=f"{one.help[:1].upper()}{one.help[1:] or one.called}.{default}"),
            annotation=float | None if not one.whole and not one.shape and one.unit != "time" else str | None,
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
