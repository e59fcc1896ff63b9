"""What columns and keys of users' files are called, in English, German, French and Spanish.

One table: the names of places and ids, and what the problems' attributes are called (problems/attributes.py).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple

from routelearn.data.numbers import shown
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS
from routelearn.problems.attributes import OWN, Attribute, declared, folded

PLACES = ("x", "y", "lat", "lon")
COLUMNS = tuple(one.name for one in OWN if one.of == "stop")  # that a stop may have beside its place
LIMITS = tuple(one.name for one in OWN if one.of in ("vehicle", "instance"))  # of the whole file
NAMES = ("id", *PLACES, *COLUMNS, "depot")
NUMERIC = frozenset((*PLACES, *COLUMNS))
# Other spellings of the same word; the last ones are those of public transport.
SPELLINGS = {"latitude": "lat", "longitude": "lon", "lng": "lon", "long": "lon"}
SPELLINGS |= {"stop_id": "id", "stop_name": "name", "stop_lat": "lat", "stop_lon": "lon"}
# Other words, which count only where the name itself is not there.
WORDS: dict[str, tuple[str, ...]] = {
    "id": ("Kennung", "identifiant", "identificador"),
    "name": ("Kunde", "Kundenname", "customer", "customer name", "nom", "client", "nombre", "cliente"),
    "x": ("x coordinate", "x coord", "X-Koordinate", "coordonnée x", "coordenada x"),
    "y": ("y coordinate", "y coord", "Y-Koordinate", "coordonnée y", "coordenada y"),
    "lat": ("Breitengrad", "latitud"),
    "lon": ("Längengrad", "Laengengrad", "longitud"),
    "depot": ("Lager", "entrepôt", "almacén", "depósito"),
}
BESIDE = {"breite": "lat", "lange": "lon", "laenge": "lon"}  # degrees if both are there and neither
NOT_BESIDE = {"hohe", "hoehe", "x", "y"}  # of these: then they are a parcel's width and length
MARKED = {"1", "true", "yes", "y", "x", "depot", "ja", "wahr", "oui", "vrai", "si", "sí", "verdadero"}
UNMARKED = {"", "0", "false", "no", "n", "nein", "falsch", "non", "faux", "falso"}
TYPOS = 200  # unknown names that are compared with the known ones, which takes long
LISTED = 12  # names in one note
_ZERO = re.compile(r"(0+([.,]0*)?|false|no|n|nein|non|\[\]|\{\})", re.ASCII)


class Table(NamedTuple):
    """Folded names, and what this program calls them."""

    spellings: Mapping[str, str]
    words: Mapping[str, str]
    limits: Mapping[str, str]
    amounts: re.Pattern[str]


_made: list[tuple[list[Any], Table]] = []  # the last table, and the problems it was made for


def table() -> Table:
    """The names of all problems that are registered now."""
    problems = list(PROBLEMS.values())
    if not _made or not (len(_made[0][0]) == len(problems) and all(map(is_, _made[0][0], problems))):
        _made[:] = [(problems, _table(problems))]
    return _made[0][1]


def _table(problems: list[Any]) -> Table:
    spellings = {folded(name): name for name in (*NAMES, "name")}
    spellings |= {folded(name): ours for name, ours in SPELLINGS.items()}
    words = {folded(name): ours for ours, names in WORDS.items() for name in names}
    limits = {folded(name): name for name in LIMITS}
    known: list[Attribute] = [*OWN, *(one for problem in problems for one in declared(problem) or ())]
    for one in known:  # the own problems' first: a plugin's words do not take another's place
        if one.name in COLUMNS or one.name in LIMITS:
            for name in one.also:
                (words if one.name in COLUMNS else limits).setdefault(folded(name), one.name)
    amounts = "|".join(sorted(name for name, ours in words.items() if ours == "demand"))
    pattern = rf"(?:total|order|gesamt)?({amounts})s?(?:(?:in)?(?:kg|t|tons?|lbs?|g|m3|l|stk|pcs))?"
    return Table(spellings, words, limits, re.compile(pattern))


def spelled(name: str) -> str | None:
    """What this program calls a column that is named by the word itself, in any case and spelling."""
    return table().spellings.get(folded(name))


def candidate(name: str) -> str | None:
    """What a column of this name may be: `understand` decides."""
    names, plain = table(), folded(name)
    found = names.spellings.get(plain) or names.words.get(plain) or BESIDE.get(plain)
    return found or ("demand" if names.amounts.fullmatch(plain) else None)


def limit(key: str) -> str:
    """A key beside the stops by its canonical name, if it is one of the limits; any other as it is."""
    return table().limits.get(folded(key), key)


def zero(value: Any) -> bool:
    """Nothing is asked for: 0, no, or an empty list."""
    return _ZERO.fullmatch(str(value).strip().lower()) is not None


def understand(columns: Mapping[str, Sequence[Any]], source: str) -> dict[str, str]:
    """Which columns are used, and as what. `columns` holds the values that are not blank, by the user's names."""
    names = table()
    claims = {name: ours for name in columns if (ours := names.spellings.get(folded(name)))}
    taken = {ours for name, ours in claims.items() if columns[name]}
    words: dict[str, list[str]] = {}
    plain = {name: folded(name) for name in columns if name not in claims}
    pair = {BESIDE[word] for word in plain.values() if word in BESIDE}
    degrees = pair == {"lat", "lon"} and NOT_BESIDE.isdisjoint((*plain.values(), *taken))
    for name, word in plain.items():
        ours = names.words.get(word) or (BESIDE.get(word) if degrees else None)
        ours = ours or ("demand" if names.amounts.fullmatch(word) else None)
        if ours is not None and ours not in taken and _fits(ours, columns[name]):
            words.setdefault(ours, []).append(name)
    for ours, found in words.items():
        if len(found) > 1 and ours in NUMERIC:
            both = " and ".join(shown(name) for name in found[:2])
            raise InputError(f"{source}: {both} could both be the {ours}; name the one that counts {ours!r}")
        claims = {name: claimed for name, claimed in claims.items() if claimed != ours} | {found[0]: ours}
    return claims


def _fits(ours: str, values: Sequence[Any]) -> bool:
    """Whether a column has values that another word may stand for."""
    if ours == "depot":  # a column that names the warehouse of each stop marks none
        return bool(values) and all(str(value).strip().lower() in MARKED | UNMARKED for value in values)
    return not all(map(zero, values)) if ours in COLUMNS else bool(values)


def check_names(names: Iterable[str], where: str) -> None:
    """Refuse a name that looks like a typing error of a known one; the rest are rules (data/rules.py) or notes."""
    unknown = [name for name in names if candidate(name) is None]
    for name in unknown[:TYPOS]:
        plain = name.strip().lower().replace(" ", "_")
        if close := difflib.get_close_matches(plain, NAMES, 1, 0.82):
            raise InputError(f"{where}: {name[:40]!r} is not known; did you mean {close[0]!r}? Otherwise rename it")


def not_used(names: Sequence[str]) -> str:
    """The note about columns and keys that nobody claimed."""
    clean = ("".join(letter if letter.isprintable() else " " for letter in name) for name in names[:LISTED])
    short = [" ".join(name.split())[:40] or "(no name)" for name in clean]
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"not used: {', '.join(short)}{more}"
