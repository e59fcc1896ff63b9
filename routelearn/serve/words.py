"""What is wrong with a request's shape, in the words that the command line has for files: where, what was given, what
would be right. The checks are pydantic's; its own sentences speak of types that the user never sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routelearn.data.numbers import shown
from routelearn.serve.limits import Refused
from routelearn.serve.schemas import OF_ROUNDS

SOURCE = "the request"
PAIRS = ("coords", "latlon")
NOT = {  # kinds of error that ask for a type -> what the value is not
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    "int_parsing_size": "a whole number of usual size",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    **dict.fromkeys(("string_type", "string_unicode"), "text"),
    "list_type": "a list",
}
OBJECT = ("model_type", "model_attributes_type", "dict_type")


def refusal_of(errors: Sequence[Mapping[str, Any]], keys: Sequence[str], instance_keys: Sequence[str]) -> Refused:
    """The answer 422 for the first of pydantic's errors. `keys` are the request's fields, for one that is unknown."""
    first = next((one for one in errors if _of_round(one)), errors[0])
    path = [part for part in first["loc"] if part not in ("body", "query")]
    field = plain(".".join(map(str, _without_types(path)))) or None
    kind, context, given = first["type"], first.get("ctx") or {}, first.get("input")
    where, name, depth = _place(path)
    is_pair, whole = name in PAIRS and depth == 1, not path
    if kind == "json_invalid":
        position = next((part for part in path if isinstance(part, int)), 0)
        return Refused(422, f"{SOURCE}: not JSON ({context.get('error', 'unreadable')}, character {position})")
    if kind == "string_unicode" and whole:
        told = f"the key {shown(given)} is not Unicode text"
    elif name == "ids" and depth:
        told = _name_words(kind, context, given)
    elif kind in OBJECT or whole:
        there = instance_keys if name == "instances" else keys
        what = "the body is empty" if kind == "missing" else f"holds {shown(given)}"
        told = f"{what}; an object is needed, with the keys {', '.join(there)}"
    elif _of_round(first):
        told = f"{shown(name)} makes it a round, which is not possible here; /solve, /solve/stream and /jobs take one"
    elif kind == "extra_forbidden":
        known = instance_keys if where.startswith("instance ") else keys
        told = f"{shown(name)} is not known; the keys are {', '.join(known)}"
    elif kind == "missing":
        told = f"{name} is missing; it is needed"
    elif kind in ("too_long", "too_short") and is_pair:
        told = f"{name} has {context['actual_length']} numbers; 2 are needed"
    elif kind == "list_type" and is_pair:
        told = f"{name} is {shown(given)}; 2 numbers are needed"
    elif kind == "too_short":
        told = f"{name} is empty; at least {context['min_length']} is needed"
    elif kind == "greater_than_equal":
        told = f"{name} is {shown(given)}; {context['ge']:g} or more is needed"
    elif kind == "less_than_equal":
        told = f"{name} is {shown(given)}; at most {context['le']} is possible"
    elif kind == "string_too_long":
        told = f"{name} has {len(given or '')} characters; at most {context['max_length']} are allowed"
    elif kind in NOT:
        told = f"{name} is {shown(given)}, not {NOT[kind]}"
    else:
        told = f"{name} is {shown(given)}; {first['msg'][:1].lower()}{first['msg'][1:]}"
    return Refused(422, plain(f"{where}: {told}"), field=field)


def _of_round(error: Mapping[str, Any]) -> bool:
    """Whether a round was sent where only columns are taken: other errors of its fields would only mislead."""
    return error["type"] == "extra_forbidden" and error["loc"][-1] in OF_ROUNDS


def unknown_parameter(name: str, known: Sequence[str]) -> Refused:
    """The answer 422 for a parameter of the address that the path does not have."""
    possible = f"the parameters are {', '.join(known)}" if known else "this path has no parameters"
    return Refused(422, plain(f"{SOURCE}: {shown(name)} is not known; {possible}"), field=plain(name)[:40])


def unreadable(error: Exception) -> str | None:
    """What is wrong with a body that could not even be read as JSON; None if the error is about something else."""
    cause = error.__cause__
    if isinstance(cause, UnicodeDecodeError):
        return f"{SOURCE}: not UTF-8 at byte {cause.start}; send JSON in UTF-8"
    if isinstance(cause, RecursionError):
        return f"{SOURCE}: lists or objects are nested too deeply"
    if isinstance(cause, ValueError):
        return f"{SOURCE}: not JSON ({cause})"
    return None


def misdirected(status: int, method: str, path: str, allowed: str) -> str | None:
    """What is wrong with a request that no route takes; None if that is not what is wrong."""
    if status == 404:
        return plain(f"{path[:200]}: there is no such path; /docs shows those that are")
    if status == 405:
        return plain(f"{path[:200]}: {method[:20]} is not possible here; use {allowed}")
    return None


def _without_types(path: Sequence[Any]) -> list[Any]:
    """The path without the names pydantic gives the arms of a union, which follow the row of an id."""
    return list(path[: path.index("ids") + 2]) if "ids" in path else list(path)


def _place(path: Sequence[Any]) -> tuple[str, str, int]:
    """(where, the field's name, how far inside it): `the request, row 3`, `coords`, 2."""
    where, rest = SOURCE, list(path)
    if len(rest) > 1 and rest[0] == "instances":
        where, rest = f"instance {rest[1]}", rest[2:]
        if not rest:
            return where, "instances", 0
    name = str(rest[0]) if rest else ""
    if len(rest) > 1 and isinstance(rest[1], int):
        where = f"{where}, row {rest[1]}"
    return where, name, max(0, len(rest) - 1)


def _name_words(kind: str, context: Mapping[str, Any], given: Any) -> str:
    if kind == "string_too_long":
        return f"the id has {len(given)} characters; at most {context['max_length']} are allowed"
    if isinstance(given, int) and not isinstance(given, bool):
        return f"the id {shown(given)} is too large; text or a smaller number is needed"
    return f"the id is {shown(given)}; text or a whole number is needed"


def plain(text: str) -> str:
    """One line of ASCII where half a surrogate pair could not be sent."""
    return " ".join(text.encode("ascii", "backslashreplace").decode().split())
