"""Names of vehicle routing variants, `[md][o]vrp[b|mb][l][tw]`, and the rules that they stand for.

The 48 variants and their names are those of RouteFinder (Berto et al. 2024), which extends MVMoE (Zhou et al. 2024).
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from routelearn.errors import InputError

ALL = "all"


class Rules(NamedTuple):
    """What a variant has beyond deliveries and a capacity."""

    several: bool = False  # depots
    open: bool = False  # no way back is driven
    backhauls: str = ""  # pickups: "b" after all deliveries of the route, "mb" mixed with them
    limited: bool = False  # the length of each route
    timed: bool = False  # windows and service times

    @property
    def name(self) -> str:
        plain = not any(self[1:])  # `vrp` is the family, so the variant without more rules is `cvrp`
        parts = (self.several, "md"), (plain, "c"), (self.open, "o"), (True, "vrp"), (True, self.backhauls)
        return "".join(part for there, part in (*parts, (self.limited, "l"), (self.timed, "tw")) if there)


# In this order a variant's number is that of its rules, read as digits; `VRP.variant_of` counts on it.
RULES = {rules.name: rules for rules in (Rules(*flags) for flags in product(
    (False, True), (False, True), ("", "b", "mb"), (False, True), (False, True)
))}  # fmt: skip
NAMES = tuple(RULES)


def parse(name: str) -> Rules:
    """The rules of a variant's name, in any case; a name that is none raises and lists the choices."""
    rules = RULES.get(name.strip().lower())
    if rules is None:
        raise InputError(f"unknown variant {name!r}; the choices are {', '.join(NAMES)}")
    return rules


def parse_list(text: str) -> tuple[str, ...]:
    """`all`, or names joined by commas -> canonical names, each once, in the order of NAMES."""
    if text.strip().lower() == ALL:
        return NAMES
    wanted = {parse(name).name for name in text.split(",")}
    return tuple(name for name in NAMES if name in wanted)


def joined(names: tuple[str, ...]) -> str:
    """The shortest text that `parse_list` reads as these names."""
    return ALL if names == NAMES else ",".join(names)
