"""Refuse columns that state a rule this program does not support, or that belong elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from routelearn.data.names import table, zero
from routelearn.data.numbers import blank, shown
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS
from routelearn.problems.attributes import declared, folded

WINDOW = "states a time window, and time windows are not supported"
SERVICE = "states a service time, and service times are not supported"
SHIFT = "states a shift, and working hours are not supported"
VEHICLES = "is not supported: all vehicles are alike, and there are as many as it takes"
SKILLS = "is not supported: every vehicle serves every stop"
PICKUPS = "is not supported: stops are delivered to"
MINUTES = r"(in)?(min|minutes?|minuten|minutos?|sec|seconds?|secondes?|sek|sekunden|segundos?)?"
# What is wrong with a name, folded: letters and digits only, without accents. Other names are notes and left alone.
RULES = (
    (
        r"(tw|timewindow|window)s?(start|end|open|close|from|to|begin|min|max|early|late|earliest|latest|[0-9])?"
        r"|(ready|due|open|opening|close|closing|earliest|latest)(time|date|hour|hours|arrival|start|end)?"
        r"|(start|end|begin)time|opens|closes|deadline|businesshours|(delivery)?(time)?slots?"
        r"|(zeit|liefer|anliefer)?fenster(von|bis|ab|start|ende|beginn|anfang|[0-9])?"
        r"|oe?ffnung(szeit|szeiten)?(von|bis)?|geoe?ffnet(von|bis|ab)?|schliessung(szeit)?|schliesst"
        r"|(an)?lieferzeit(en|raum)?(von|bis|ab)?|(frue?h|spae?t)este(ns|r|s)?(ankunft|lieferung|zeit)?|uhrzeit(von|bis)?"
        r"|(fenetre|creneau)x?s?(de)?(horaires?|temps|livraison)?(debut|fin|de|a|[0-9])?"
        r"|horaires?(d|de)?(ouverture|fermeture|livraison|passage|debut|fin)?|ouverture|fermeture"
        r"|heures?(d|de|du|limite)?(ouverture|fermeture|livraison|debut|fin|passage|arrivee)?"
        r"|ventanas?(de)?(horarias?|tiempo|entrega)?(inicio|fin|desde|hasta|[0-9])?"
        r"|horarios?(de)?(apertura|cierre|entrega|inicio|fin|desde|hasta)?|apertura|cierre"
        r"|horas?(de)?(apertura|cierre|entrega|inicio|fin|desde|hasta|llegada|limite)?",
        WINDOW,
    ),
    (
        rf"service|(service|servicing|handling|loading|unloading|dwell|stop|visit)(time|duration|min|minute|sec|second)s?"
        rf"|(service|stand|halte|entlade|belade|lade|aufenthalts|verweil)(zeit|zeiten|dauer){MINUTES}"
        rf"|(duree|temps)(de|du|d)?(service|arret|livraison|dechargement|chargement|visite){MINUTES}"
        rf"|(tiempo|duracion)(de|del)?(servicio|parada|descarga|carga|entrega|visita){MINUTES}",
        SERVICE,
    ),
    (r"(schicht|arbeitszeit)(en)?(von|bis|start|ende|beginn)?|shifts?(start|end|from|to)?|turnos?(inicio|fin)?", SHIFT),
    (
        r"(max|num|no|n|number|numberof)?(vehicle|truck|van)s?(id|type|count|number|no|name)?s?"
        r"|(anzahl)?(fahrzeug|lkw)e?(typ|nr|nummer|id|art|klasse|zahl)?"
        r"|(nombre)?(de)?(vehicules?|camions?|camionnettes?)(type|id|no)?|type(de)?(vehicule|camion)"
        r"|(numero)?(de)?(vehiculos?|camion(es)?|furgonetas?)(tipo|id|no)?|tipo(de)?(vehiculo|camion)",
        VEHICLES,
    ),
    (
        r"(required)?skills?|(fae?higkeit|qualifikation|kenntnis)(en|se)?|competences?(requises?)?"
        r"|(habilidad|competencia)(es|s)?(requeridas?)?",
        SKILLS,
    ),
    (
        r"pickups?(demand|quantity|amount|load)?|backhauls?|abhol(ung|ungen|menge|mengen|auftrag|bedarf)"
        r"|(ramassage|enlevement|collecte)s?|recogidas?",
        PICKUPS,
    ),
)
_RULES = tuple((re.compile(pattern), wrong) for pattern, wrong in RULES)
_TIME = r"(?:\d{1,2}:[0-5]\d(?::[0-5]\d)?|\d{1,2} ?h ?(?:[0-5]\d)?)(?: ?(?:[ap]\.?m\.?|uhr|h))?"
_DATE = r"(?:\d{4}-\d\d-\d\d[t ]|\d{1,2}[./]\d{1,2}[./]\d{2,4} )?"
_CLOCK = re.compile(
    rf"{_DATE}{_TIME}z?(?: ?(?:-|\u2013|\u2014|/|,|;|to|bis|à|a) ?{_DATE}{_TIME}z?)*", re.IGNORECASE | re.ASCII
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d[t ]00:00(?::00)?", re.IGNORECASE | re.ASCII)  # a date, as workbooks have it
LOOKED_AT = 100  # values of a column that tell whether it holds clock times


def unsupported(name: str, problem: str | None = None) -> str | None:
    """What is wrong with a column or key of this name; None for one that is a note."""
    plain, names = folded(name), table(problem)
    if plain in names.keys:
        options = ", ".join(f"--{limit.replace('_', '-')}" for limit in names.limits)
        return f"holds for all stops at once; give it as an option ({options}) or beside the stops"
    return stated(name)


def stated(name: str) -> str | None:
    """As `unsupported`, of a name that is no attribute of the whole file."""
    return next((wrong for pattern, wrong in _RULES if pattern.fullmatch(folded(name))), None)


def clock(value: Any) -> bool:
    """Whether a value is a time of day (08:30, 8h30), or a stretch of it (08:00-10:00)."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(one, str) and clock(one) for one in value)
    return isinstance(value, str) and len(value) < 100 and _CLOCK.fullmatch(value.strip()) is not None


def dates(values: Iterable[Any]) -> bool:
    """Whether all values are midnights: days, then, and no times of day."""
    return all(isinstance(value, str) and _DAY.fullmatch(value.strip()) for value in values)


def check_rules(
    rows: Sequence[tuple[str, Mapping[str, Any]]],
    columns: Mapping[str, Sequence[Any]],
    names: Iterable[str],
    source: str,
    problem: str | None = None,
) -> None:
    """Refuse stops with a rule under one of the names, which nobody claimed; `columns` holds what is not blank.

    A column that is empty or 0 everywhere is allowed. Most values being clock times, it is a time window by any name.
    """
    wrong: dict[str, tuple[str, str]] = {}
    for name in names:
        looked = columns[name][:LOOKED_AT]
        if (rule := unsupported(name, problem)) is not None:
            wrong[name] = rule, RENAME + _taker() if rule == stated(name) else RENAME
        elif 2 * sum(map(clock, looked)) > len(looked) and not dates(looked):
            wrong[name] = f"holds clock times, so it {WINDOW}", REMOVE + _taker()
    if not wrong:
        return
    for place, row in rows:
        for name, value in row.items():
            if name in wrong and not blank(value) and not zero(value):
                raise refusal(f"{source}, {place}", name, *wrong[name])


RENAME, REMOVE = "rename it, or remove it to solve without", "remove it to solve without"


def _taker() -> str:
    """The end of a remedy: which problem has rules of this kind, told by its times."""
    timed = (name for name, one in PROBLEMS.items() if any(a.unit == "time" for a in declared(one) or ()))
    first = next(timed, None)
    return "" if first is None else f"; the problem {first} takes it"


def refusal(where: str, name: str, wrong: str, remedy: str = RENAME) -> InputError:
    return InputError(f"{where}: {shown(name)} {wrong}; {remedy}")
