"""Refuse columns that state a rule this program does not support, or that belong elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from routelearn.data.numbers import blank, shown
from routelearn.errors import InputError

AMOUNT = "is not known; what is delivered to a stop is named 'demand'"
WHOLE = "holds for all stops at once; give it as an option (--capacity, --max-length, --min-prize) or beside the stops"
VEHICLES = "is not supported: all vehicles are alike, and there are as many as it takes"
# What is wrong with a name, its letters and digits only. Other names are notes and are left alone.
RULES = (
    (
        r"(tw|timewindow|window)s?(start|end|open|close|from|to|begin|min|max|early|late|earliest|latest|[0-9])?"
        r"|(ready|due|open|opening|close|closing|earliest|latest)(time|date|hour|hours|arrival|start|end)?"
        r"|(start|end|begin)time|opens|closes|deadline|businesshours",
        "states a time window, and time windows are not supported",
    ),
    (
        r"service|(service|servicing|handling|loading|unloading|dwell|stop|visit)(time|duration|min|minute|sec|second)s?",
        "states a service time, and service times are not supported",
    ),
    (r"(total|order)?(weight|quantity|quantities|qty|load|volume)s?(kg|t|tons?|lbs?|g|m3|l)?", AMOUNT),
    (r"((vehicle|truck|max|maximum)?capacity|capacities|maxlength|minprize)", WHOLE),
    (r"(max|num|no|n|number|numberof)?(vehicle|truck)s?(id|type|count|number|no|name)?s?", VEHICLES),
    (r"(required)?skills?", "is not supported: every vehicle serves every stop"),
    (r"pickups?(demand|quantity|amount|load)?|backhauls?", "is not supported: stops are delivered to"),
)
_ZERO = re.compile(r"(0+([.,]0*)?|false|no|n|\[\]|\{\})", re.ASCII)


def unsupported(name: str) -> str | None:
    """What is wrong with a column or key of this name; None for one that is a note."""
    letters = re.sub(r"[(\[].*|[^a-z0-9]", "", name.lower(), flags=re.DOTALL)  # a unit in brackets is left out
    return next((wrong for pattern, wrong in RULES if re.fullmatch(pattern, letters)), None)


def check_rules(rows: Sequence[tuple[str, Mapping[str, Any]]], source: str) -> None:
    """Refuse stops with a value under such a name. A column that is empty or 0 everywhere is allowed."""
    names = {name: wrong for name in {name for _, row in rows for name in row} if (wrong := unsupported(name))}
    if any(not blank(row.get("demand")) for _, row in rows):  # then a weight is a note
        names = {name: wrong for name, wrong in names.items() if wrong != AMOUNT}
    if not names:
        return
    for place, row in rows:
        for name, value in row.items():
            if name in names and not blank(value) and not _ZERO.fullmatch(str(value).strip().lower()):
                raise refusal(f"{source}, {place}", name, names[name])


def refusal(where: str, name: str, wrong: str) -> InputError:
    return InputError(f"{where}: {shown(name)} {wrong}; rename it, or remove it to solve without")
