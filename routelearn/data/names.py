"""What columns and keys of users' files are called, in English, German, French and Spanish.

One table: the names of places and ids, and what the problems' attributes are called (problems/attributes.py).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple

from routelearn.data.fields import attributes_of, unfilled
from routelearn.data.numbers import shown
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS
from routelearn.problems.attributes import Attribute, declared, folded

PLACES = ("x", "y", "lat", "lon")
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
LONGEST_NAME = 200  # characters of a name that may be a known one, with its unit
MOST_COLUMNS = 1000  # columns, or keys of stops, in one file
_ZERO = re.compile(r"(0+([.,]0*)?|false|no|n|nein|non|\[\]|\{\})", re.ASCII)
# The two columns of a stretch, such as a window; numbers from 1 do for any shape.
ENDS = (
    *(("start", "end"), ("from", "to"), ("open", "close"), ("begin", "end"), ("min", "max"), ("earliest", "latest")),
    *(("von", "bis"), ("beginn", "ende"), ("debut", "fin"), ("de", "a"), ("inicio", "fin"), ("desde", "hasta")),
)


class Table(NamedTuple):
    """Folded names, and what this program calls them."""

    columns: Mapping[str, Attribute]  # that a stop may have beside its place, by name
    limits: Mapping[str, Attribute]  # that hold for the whole file, by name
    spellings: Mapping[str, str]
    words: Mapping[str, str]
    keys: Mapping[str, str]  # of the limits
    parts: Mapping[str, str]  # a column that is one number of several -> the attribute
    amounts: re.Pattern[str]
    disputed: Mapping[str, str]  # attributes that two problems declare differently, and which ones do
    own: frozenset[str] | None  # attributes of the problem that is named; None if none is
    guessed: dict[frozenset[str], str]  # problems by the attributes given (data/guess.py)

    @property
    def names(self) -> tuple[str, ...]:
        """What a table of stops may have as its columns."""
        return ("id", *PLACES, *self.columns, "depot")

    def numeric(self, ours: str | None) -> bool:
        return ours in PLACES or ours in self.columns or ours in self.parts

    def idle(self, ours: str) -> bool:
        """Whether it is an attribute that the named problem does not have."""
        name = self.parts.get(ours, ours)
        return self.own is not None and name in self.columns and name not in self.own

    def undisputed(self, ours: str, source: str) -> None:
        """Refuse a name with values that means two things."""
        if (both := self.disputed.get(self.parts.get(ours, ours))) is not None:
            raise InputError(f"{source}: {ours} is not the same thing for {both}; name the problem")


_made: list[tuple[list[Any], dict[str | None, Table]]] = []  # the last tables, and the problems they were made for


def table(problem: str | None = None) -> Table:
    """The names of all problems that are registered now; those of the named one come first."""
    problems = list(PROBLEMS.values())
    if not _made or not (len(_made[0][0]) == len(problems) and all(map(is_, _made[0][0], problems))):
        _made[:] = [(problems, {})]
    tables = _made[0][1]
    problem = problem if problem in PROBLEMS else None
    if problem not in tables:
        tables[problem] = _table(problems, problem)
    return tables[problem]


def _table(problems: list[Any], named: str | None) -> Table:
    known: dict[str, tuple[Attribute, str]] = {}
    disputed: dict[str, str] = {}
    words = {folded(name): ours for ours, names in WORDS.items() for name in names}
    spellings = {folded(name): name for name in ("id", *PLACES, "depot", "name")}
    spellings |= {folded(name): ours for name, ours in SPELLINGS.items()}
    keys: dict[str, str] = {}
    parts: dict[str, str] = {}
    own: frozenset[str] | None = None
    for problem in sorted(problems, key=lambda one: one.name != named):  # else as registered: the own problems first
        if problem.name != named and unfilled(problem):  # no file of stops can be meant
            continue
        attributes = declared(problem)
        if problem.name == named:
            attributes = attributes_of(problem)
            own = frozenset(one.name for one in attributes)
        for one in (one for one in attributes or () if one.of_stops):
            first, owner = known.setdefault(one.name, (one, problem.name))
            if not first.reads_like(one):
                if named is None:
                    disputed.setdefault(one.name, f"{owner} and {problem.name}")
                continue
            for name in (one.name, *one.also):  # what is taken stays: a plugin's words do not take another's place
                if one.of_file:
                    keys.setdefault(folded(name), one.name)
                    continue
                meanings = spellings if name == one.name else words
                meanings.setdefault(folded(name), one.name)
                for i, ends in enumerate(_ends(one)):
                    parts[f"{one.name}_{i + 1}"] = one.name
                    for end in ends:
                        meanings.setdefault(folded(name) + end, f"{one.name}_{i + 1}")
    columns = {name: one for name, (one, _) in known.items() if not one.of_file}
    amounts = "|".join(
        sorted(name for name, ours in words.items() if ours in columns and columns[ours].unit == "amount")
    )
    pattern = rf"(?:total|order|gesamt)?({amounts})s?(?:(?:in)?(?:kg|t|tons?|lbs?|g|m3|l|stk|pcs))?"
    limits = {name: one for name, (one, _) in known.items() if one.of_file}
    return Table(columns, limits, spellings, words, keys, parts, re.compile(pattern), disputed, own, {})


def _ends(one: Attribute) -> list[tuple[str, ...]]:
    """What the names of the columns end in, of each number of an attribute that has several."""
    if len(one.shape) != 1:
        return []
    named = zip(*ENDS, strict=True) if one.shape == (2,) else ((),) * one.shape[0]
    return [(str(i), *ends) for i, ends in enumerate(named, 1)]


def spelled(name: str, problem: str | None = None) -> str | None:
    """What this program calls a column that is named by the word itself, in any case and spelling."""
    return table(problem).spellings.get(folded(name))


def candidate(name: str, problem: str | None = None) -> str | None:
    """What a column of this name may be: `understand` decides."""
    if len(name) > LONGEST_NAME:
        return None
    names, plain = table(problem), folded(name)
    return names.spellings.get(plain) or _word(names, plain) or BESIDE.get(plain)


def _word(names: Table, plain: str) -> str | None:
    """What another word stands for, alone or with a unit behind it."""
    if (ours := names.words.get(plain)) is not None:
        return ours
    match = names.amounts.fullmatch(plain)
    return None if match is None else names.words[match[1]]


def limit(key: str, problem: str | None = None) -> str:
    """A key beside the stops by its canonical name, if it is one of the limits; any other as it is."""
    return table(problem).keys.get(folded(key), key)


def zero(value: Any) -> bool:
    """Nothing is asked for: 0, no, or an empty list."""
    return _ZERO.fullmatch(str(value).strip().lower()) is not None


def understand(columns: Mapping[str, Sequence[Any]], source: str, problem: str | None = None) -> dict[str, str]:
    """Which columns are used, and as what. `columns` holds the values that are not blank, by the user's names."""
    names = table(problem)
    claims = {name: ours for name in columns if (ours := names.spellings.get(folded(name)))}
    taken = {ours for name, ours in claims.items() if columns[name]}
    words: dict[str, list[str]] = {}
    zeros: dict[str, str] = {}  # of the named problem, where no other column stands for it
    plain = {name: folded(name) for name in columns if name not in claims}
    pair = {BESIDE[word] for word in plain.values() if word in BESIDE}
    degrees = pair == {"lat", "lon"} and NOT_BESIDE.isdisjoint((*plain.values(), *taken))
    for name, word in plain.items():
        ours = _word(names, word) or (BESIDE.get(word) if degrees else None)
        if ours is None or ours in taken or not columns[name]:
            continue
        if _fits(names, ours, columns[name]):
            words.setdefault(ours, []).append(name)
        elif ours in (names.own or ()):
            zeros.setdefault(ours, name)
    words = {ours: [name] for ours, name in zeros.items()} | words
    for ours, found in words.items():
        if len(found) > 1 and names.numeric(ours):
            both = " and ".join(shown(name) for name in found[:2])
            raise InputError(f"{source}: {both} could both be the {ours}; name the one that counts {ours!r}")
        claims = {name: claimed for name, claimed in claims.items() if claimed != ours} | {found[0]: ours}
    for name, ours in claims.items():
        if columns[name]:
            names.undisputed(ours, source)
    return claims


def _fits(names: Table, ours: str, values: Sequence[Any]) -> bool:
    """Whether a column has values that another word may stand for."""
    if ours == "depot":  # a column that names the warehouse of each stop marks none
        return all(str(value).strip().lower() in MARKED | UNMARKED for value in values)
    return ours not in names.columns or not all(map(zero, values))


def check_width(count: int, where: str) -> None:
    """Refuse a table with more columns than people have: each name is compared with all known ones."""
    if count > MOST_COLUMNS:
        raise InputError(f"{where}: {count:,} columns; at most {MOST_COLUMNS:,} are read, so remove those not needed")


def check_names(names: Iterable[str], where: str, problem: str | None = None) -> None:
    """Refuse a name that looks like a typing error of a known one; the rest are rules (data/rules.py) or notes."""
    unknown = [name for name in names if candidate(name, problem) is None]
    for name in unknown[:TYPOS]:
        refuse_typo(name, table(problem).names, where)


def refuse_typo(name: str, known: Sequence[str], where: str) -> None:
    """Refuse an unknown name if it is nearly a known one."""
    plain = name.strip().lower().replace(" ", "_")
    if close := difflib.get_close_matches(plain, known, 1, 0.82):
        raise InputError(f"{where}: {name[:40]!r} is not known; did you mean {close[0]!r}? Otherwise rename it")


def not_used(names: Sequence[str]) -> str:
    """The note about columns and keys that nobody claimed."""
    clean = ("".join(letter if letter.isprintable() else " " for letter in name) for name in names[:LISTED])
    short = [" ".join(name.split())[:40] or "(no name)" for name in clean]
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"not used: {', '.join(short)}{more}"
