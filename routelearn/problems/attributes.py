"""What a problem reads beyond places and lengths, declared once: readers, scaling and checks loop over it."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

from routelearn.errors import InputError

Of = Literal["stop", "vehicle", "instance", "leg", "depot"]  # "depot": one for each of the nodes before the customers
Unit = Literal["length", "time", "money", "amount", "prize"]
Sign = Literal["any", "not negative", "positive"]
OWNERS, UNITS, SIGNS = get_args(Of), get_args(Unit), get_args(Sign)
RESERVED = ("xy", "distances")  # fields that every instance has; they are not declared
# Columns, keys, options and arguments that mean something else.
TAKEN = frozenset(
    (
        *(*RESERVED, "x", "y", "lat", "lon", "id", "ids", "name", "coords", "latlon", "matrix", "metric", "depot"),
        *("problem", "stops", "instances", "limits", "given", "source", "notes", "seconds", "seed", "policy", "decode"),
        *("solver", "model", "backend", "device", "threads", "rounded", "out", "plot", "watch", "tell"),
        *("vehicles", "speed", "allow_unassigned", "keep", "until", "iterations", "round", "routes", "unassigned"),
        *("solution", "sample", "unclear", "help", "plugin", "copy", "dict", "json", "schema"),
    )
)


class Attribute(NamedTuple):
    """One thing that a problem reads: a field of its instances, a column or key of a user's file."""

    name: str  # of the field, and of the column
    of: Of
    unit: Unit | None = None  # decides how it is scaled for a policy: lengths and times with the places
    shape: tuple[int, ...] = ()  # () one number, (2,) a window
    whole: bool = False
    required: bool = False
    default: float | None = None  # of every stop (but the depot) or instance that gives none
    revealed_on_visit: bool = False
    unbounded: bool = False  # infinity is allowed: no limit
    also: tuple[str, ...] = ()  # what users' columns are called, in any language
    help: str = ""
    title: str = ""  # what messages and the page call it; otherwise the name
    sign: Sign = "any"  # which numbers are allowed
    at_depot: bool = True  # False: the depot has none, and its value is 0
    library: str = ""  # the section or keyword of TSPLIB files that gives it

    @property
    def called(self) -> str:
        return self.title or self.name.replace("_", " ")

    @property
    def of_file(self) -> bool:
        """Whether it holds for all stops: an option, or a key beside them."""
        return self.of in ("vehicle", "instance")

    @property
    def of_stops(self) -> bool:
        """Whether a file of stops can give it."""
        return self.of in ("stop", "vehicle", "instance")

    def reads_like(self, other: Attribute) -> bool:
        """Whether a file's column or key may be read as either of the two."""
        return (self.of == "stop", self.shape, self.whole) == (other.of == "stop", other.shape, other.whole)


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """The letters and digits of a name, without case and accents; what stands in brackets (a unit) is left out."""
    plain = unicodedata.normalize("NFKD", re.sub(r"[(\[].*", "", name, flags=re.DOTALL).casefold())
    return "".join(letter for letter in plain if letter.isalnum())


def check_attributes(attributes: Any, problem: str) -> tuple[Attribute, ...]:
    """The declarations as they are; raise InputError, in one line, for one that cannot be used."""
    if not isinstance(attributes, tuple) or not all(isinstance(one, Attribute) for one in attributes):
        raise InputError(f"{problem}: attributes must be a tuple of Attribute")
    owner: dict[str, str] = {}
    for one in attributes:
        if isinstance(one.name, str) and one.name in TAKEN:
            raise InputError(
                f"{problem}: an attribute cannot be named {one.name!r}, which has a meaning of its own; rename it"
            )
        if not isinstance(one.name, str) or not one.name.isidentifier():
            raise InputError(f"{problem}: an attribute cannot be named {one.name!r}; give the name of a field")
        if one.of not in OWNERS:
            raise InputError(f"{problem}: {one.name} is of {one.of!r}; the choices are {', '.join(OWNERS)}")
        if one.unit is not None and one.unit not in UNITS:
            raise InputError(f"{problem}: {one.name} has the unit {one.unit!r}; the choices are {', '.join(UNITS)}")
        if one.sign not in SIGNS:
            raise InputError(f"{problem}: {one.name} has the sign {one.sign!r}; the choices are {', '.join(SIGNS)}")
        if not isinstance(one.shape, tuple) or not all(isinstance(size, int) and size > 0 for size in one.shape):
            raise InputError(f"{problem}: {one.name} has the shape {one.shape!r}; a tuple of sizes is needed")
        if not isinstance(one.also, tuple) or not all(isinstance(name, str) and folded(name) for name in one.also):
            raise InputError(f"{problem}: the other names of {one.name} must be a tuple of words")
        if not all(isinstance(words, str) for words in (one.title, one.help, one.library)):
            raise InputError(f"{problem}: title, help and library of {one.name} must be text")
        if one.default is not None and not _allowed(one, one.default):
            kind = "whole number" if one.whole else "finite number"
            rule = "" if one.sign == "any" else f" that is {one.sign}"
            raise InputError(f"{problem}: {one.name} has the default {one.default!r}; a {kind}{rule} is needed")
        names = {folded(name): name for name in one.also} | {folded(one.name): one.name}
        for plain, name in names.items():
            if plain in owner:
                other = "two attributes" if owner[plain] == one.name else f"{owner[plain]} and {one.name}"
                raise InputError(f"{problem}: {other} are both named {name!r}; rename one")
            owner[plain] = one.name
    return attributes


def _allowed(one: Attribute, value: Any) -> bool:
    """Whether users could give this number themselves."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    low = {"any": -math.inf, "not negative": 0, "positive": math.ulp(0)}[one.sign]
    return value >= low and (not one.whole or one.unit == "amount" or value == int(value))


def declared(problem: Any) -> tuple[Attribute, ...] | None:
    """The attributes that a problem declares, checked; None for a plugin's problem that declares none."""
    attributes, name = getattr(problem, "attributes", None), getattr(problem, "name", "problem")
    if attributes is None:
        return None
    try:
        return _checked(attributes, name)
    except TypeError:  # a list, say, which the check refuses in words
        return check_attributes(attributes, name)


_checked = lru_cache(maxsize=256)(check_attributes)  # asked for many times in each answer


def first_customer(problem: Any, x: Any) -> int:
    """The number of the first node that is a customer: the depots come before, one where no attribute counts them."""
    counted = next((one.name for one in getattr(problem, "attributes", None) or () if one.of == "depot"), None)
    return int(problem.has_depot) if counted is None else int(getattr(x, counted).shape[1])


def of_unit(attributes: Iterable[Attribute], *units: str) -> tuple[str, ...]:
    """The names of the attributes in one of the units."""
    return tuple(one.name for one in attributes if one.unit in units)


def found(attributes: Iterable[Attribute], x: Any, of: Of, unit: Unit) -> Any:
    """The field of the instances of this kind and in this unit (the amounts of the stops, say); None if none is."""
    for one in attributes:
        if (one.of, one.unit, one.shape, one.revealed_on_visit) == (of, unit, (), False):
            return getattr(x, one.name)
    return None


# ------------------------------------------------------------------------------- those of the own problems

DEMAND = Attribute(
    "demand",
    "stop",
    "amount",
    whole=True,
    required=True,
    also=(
        *("quantity", "quantities", "qty", "amount", "weight", "load", "volume"),
        *("Menge", "Liefermenge", "Bestellmenge", "Bedarf", "Stückzahl", "Gewicht", "Ladung", "Volumen"),
        *("quantité", "qté", "demande", "poids"),
        *("cantidad", "demanda", "peso", "carga"),
    ),
    help="what is delivered there; fractions are counted exactly, to six decimals",
    sign="not negative",
    at_depot=False,
    library="DEMAND_SECTION",
)
CAPACITY = Attribute(
    "capacity",
    "vehicle",
    "amount",
    whole=True,
    required=True,
    also=(
        *("vehicle capacity", "truck capacity", "maximum capacity"),
        *("Kapazität", "Ladekapazität", "capacité", "capacidad"),
    ),
    help="what one vehicle holds",
    sign="positive",
    library="CAPACITY",
)
PRIZE = Attribute(
    "prize",
    "stop",
    "prize",
    required=True,
    also=("Gewinn", "Prämie", "récompense", "premio", "recompensa"),
    help="what a visit brings (where it is uncertain: what it brings on average)",
    sign="not negative",
    at_depot=False,
    library="NODE_SCORE_SECTION",
)
MAX_LENGTH = Attribute(
    "max_length",
    "instance",
    "length",
    required=True,
    also=("maximum length", "maximale Länge", "Höchstlänge", "longueur maximale", "longitud máxima"),
    help="the longest tour that is allowed",
    title="maximum length",
    sign="positive",
    library="COST_LIMIT",
)
PENALTY = Attribute(
    "penalty",
    "stop",
    "length",
    required=True,
    also=("Strafe", "pénalité", "penalización", "penalidad"),
    help="what it costs to leave the stop out, in units of length",
    sign="not negative",
    at_depot=False,
)
MIN_PRIZE = Attribute(
    "min_prize",
    "instance",
    "prize",
    required=True,
    also=("minimum prize", "Mindestgewinn", "récompense minimale", "premio mínimo"),
    help="the prize that a tour must collect",
    title="minimum prize",
    sign="not negative",
)
REAL_PRIZE = Attribute(
    "real_prize",
    "stop",
    "prize",
    revealed_on_visit=True,
    help="what a visit turns out to bring; kept from the solver",
    title="real_prize",
    sign="not negative",
    at_depot=False,
)
OWN = (DEMAND, CAPACITY, PRIZE, MAX_LENGTH, PENALTY, MIN_PRIZE, REAL_PRIZE)
