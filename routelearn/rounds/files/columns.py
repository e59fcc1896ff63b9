"""What columns of stops and vehicles are called, in English, German, French and Spanish: names into attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from routelearn.data.names import (
    BESIDE,
    ENDS,
    LONGEST_NAME,
    MOST_COLUMNS,
    NOT_BESIDE,
    PLACES,
    SPELLINGS,
    TYPOS,
    WORDS,
    refuse_typo,
    zero,
)
from routelearn.data.numbers import shown
from routelearn.data.rules import PICKUPS, SERVICE, SHIFT, SKILLS, VEHICLES, WINDOW, dates, stated, unsupported
from routelearn.errors import InputError
from routelearn.problems.attributes import CAPACITY, DEMAND, Attribute, folded
from routelearn.rounds.files.clock import clock_like
from routelearn.rounds.model import Stop, Vehicle, attributes_of
from routelearn.rounds.units import METRES

STRETCHES = ("windows", "shift", "breaks")  # two columns may give them, or one
# What only one of the two kinds of tables has, beside the declared attributes; the first word is the name.
MORE: dict[type, dict[str, tuple[str, ...]]] = {
    Stop: {
        "id": ("id", *WORDS["id"], "stop"),
        "name": ("name", *WORDS["name"]),
        "depot": ("depot", *WORDS["depot"]),
        "shipment": ("shipment", "Sendung", "Sendungsnummer", "envoi", "expédition", "envío"),
        "place": ("place",),
    },
    Vehicle: {
        "id": (
            *("id", "name", "vehicle", "vehicle id", "van", "truck", "plate", *WORDS["id"]),
            *("Fahrzeug", "LKW", "Wagen", "Kennzeichen", "véhicule", "camion", "vehículo", "camión", "furgoneta"),
        ),
        "start": (
            *(
                "start",
                "start place",
                "start depot",
                "start location",
                "depot",
                "Startort",
                "Startdepot",
                "Lager",
            ),
            *("départ", "entrepôt", "origen", "almacén"),
        ),
        "end": (
            *("end", "end place", "end depot", "end location", "Ende", "Endort", "Enddepot", "Zielort", "arrivée"),
            *("destino",),
        ),
        "breaks": ("breaks", "break", "break window", "Pause", "Pausenfenster", "Pausenzeit", "pausa", "descanso"),
        "break_duration": (
            *("break_duration", "break time", "break length", "Pausendauer", "durée de pause", "duración de la pausa"),
        ),
        "reloads": ("reloads", "reload", "reload place", "Ladeort", "Nachladeort"),
        "kept": ("kept",),
    },
}
ALSO = {(Stop, "delivery"): DEMAND.also, (Vehicle, "capacity"): CAPACITY.also}
ALSO[Stop, "service"] = (
    *("unload time", "unloading time", "drop time", "handling time", "dwell time", "time on site", "stop time"),
    *("Dauer", "Entladezeit", "Entladedauer", "Verweildauer", "Aufenthalt", "Aufenthaltsdauer", "Bearbeitungszeit"),
    *("durée", "temps d'arrêt", "temps sur place", "duración", "tiempo de parada", "tiempo de descarga"),
    *("on-site time", "Bedienzeit", "Lieferdauer", "Be- und Entladezeit", "Be-/Entladezeit", "servicio"),
)
ALSO[Vehicle, "fixed_cost"] = ("fixed costs", "fixe Kosten", "coûts fixes", "costes fijos")
ALSO[Vehicle, "max_duration"] = ("max Arbeitszeit", "Höchstarbeitszeit", "max working time")
ALSO[Vehicle, "max_stops"] = ("max Stopps", "maximum stops")
ALSO[Vehicle, "trips"] = ("max trips", "trips per day", "Touren pro Tag")
ALSO[Vehicle, "capacity"] += (
    "payload",
    "max load",
    "maximum load",
    "Nutzlast",
    "Zuladung",
    "charge utile",
    "carga útil",
)
ALSO[Vehicle, "shift"] = (
    *("working hours", "working time", "Dienstzeit", "Einsatzzeit", "horaires", "horario", "jornada"),
)
ALSO[Stop, "only"] = ("vehicle", "vehicles", "Fahrzeug", "véhicule", "vehículo")
# The two ends without a word before them; those that are clear may stand alone.
BARE = (
    *ENDS,
    *(
        ("from", "until"),
        ("ab", "bis"),
        ("ready", "due"),
        ("readytime", "duedate"),
        ("readytime", "duetime"),
        ("starttime", "endtime"),
    ),
    *(("startzeit", "endzeit"), ("fruhestens", "spatestens"), ("fruehestens", "spaetestens"), ("opens", "closes")),
    *(("opening", "closing"), ("openingtime", "closingtime"), ("heuredebut", "heurefin"), ("ouverture", "fermeture")),
    *(("heureouverture", "heurefermeture"), ("horainicio", "horafin"), ("apertura", "cierre")),
    *(("earlieststart", "latestend"), ("earliestarrival", "latestarrival"), ("fruhesteankunft", "spatesteankunft")),
)
ALONE = {"deadline": 2, "due": 2, "duedate": 2, "duetime": 2, "latest": 2, "bis": 2, "spatestens": 2, "spaetestens": 2}
ALONE |= {"latestarrival": 2, "earliest": 1, "ab": 1, "fruhestens": 1, "fruehestens": 1, "readytime": 1}
_FIRST = re.compile(r".*(von|start|open|from|begin|beginn|min|early|earliest|ab|anfang|debut|inicio|desde|apertura|1)")
_LAST = re.compile(r".*(bis|end|close|to|max|late|latest|ende|fin|hasta|cierre|fermeture|2)")
_WINDOWISH = re.compile(r"window|fenster|creneau|fenetre|ventana|horari|slot|offnung|oeffnung|opening|hours|uhrzeit")
TIME_UNITS = {
    60.0: ("inminuten", "minuten", "minutes", "minutos", "minute", "inmin", "mins", "min"),
    1.0: ("insekunden", "sekunden", "seconds", "secondes", "segundos", "insec", "sec", "sek"),
    3600.0: ("instunden", "stunden", "hours", "heures", "horas", "std"),
}
_BRACKET = {"min": 60.0, "m": 60.0, "s": 1.0, "sec": 1.0, "sek": 1.0, "h": 3600.0, "std": 3600.0}
_BRACKET |= {word: unit for unit, words in TIME_UNITS.items() for word in words}
_BRACKET |= dict.fromkeys(("hour", "hr", "hrs", "stunde", "heure", "hora"), 3600.0)
_BRACKET |= dict.fromkeys(("second", "secs", "sekunde", "seconde", "segundo"), 1.0) | {"minuto": 60.0}
_BRACKET |= dict.fromkeys(("d", "day", "days", "tag", "tage", "jour", "jours", "d\u00eda", "d\u00edas"), 86_400.0)
DISTANCES = METRES | dict.fromkeys(("mi", "mile", "miles", "meilen", "millas"), 1609.344)  # in metres
DISTANCES |= dict.fromkeys(("kilometers", "kilometer", "kilometres", "kilometre", "kms"), 1000.0)
# What prices are for, beside what the whole vehicle or stop costs.
BY_TIME, BY_DISTANCE = ("driving_cost", "time_cost", "overtime_cost", "late_cost"), ("distance_cost",)
_RATE = re.compile(r"(?:/|\b(?:per|pro|par|por|je)\s)\s*([^\W\d]+)")  # in a bracket: \u20ac/h, per hour
_PER = re.compile(r"(.+?)(?:per|pro|par|por|je)([^\W\d]+)")  # folded: overtimecostperhour

_SPEED = re.compile(r"(average|avg|max|mean)?(speed|geschwindigkeit|tempo|vitesse|velocidad)(in)?(kmh|kmph|kph|mph)?")
_AMOUNT = re.compile(r"(?:in)?(kg|t|tons?|lbs?|g|m3|l|stk|pcs|\d{1,2}|pallets?|paletten|palettes|cajas|kisten|boxes)")
# What makes a table of stops a round; with other attributes alone it is one of the older problems.
BEYOND = ("pickup", "windows", "setup", "service", "release", "skills", "only", "forbidden", "late_cost", "shipment")
# Words that are a round's only beside something else.
BETWEEN_NAMES = ("duration", "dauer", "duree", "duracion", "vehicle", "vehicles")


class Column(NamedTuple):
    """What a column of a user's file holds."""

    attribute: str
    part: str = ""  # "1" or "2": an end of a stretch; of an amount, the dimension
    unit: float | None = None  # seconds (of a length: metres) that a bare number counts, where the name says so
    own: bool = False  # it is called by the name of the attribute itself


_BY_HOUR = (
    *("costperhour", "hourlycost", "kostenprostunde", "stundensatz"),
    *("coutparheure", "tauxhoraire", "costeporhora", "hourlyrate", "costh", "kostenh", "kostenjestunde"),
)
_BY_KM = (
    *("costperkm", "kostenprokm", "kilometerkosten", "coutparkm", "coutkilometrique", "costeporkm"),
    *("costkm", "kostenkm", "kostenjekm", "coutkm"),
)
_MOST_KM = ("maxkm", "maxkilometers", "maxkilometer", "maximalekilometer", "kmmax", "kilometresmax")
IN_UNITS = {name: Column("time_cost", unit=3600.0) for name in _BY_HOUR}  # of vehicles, as people have them
IN_UNITS |= {name: Column("distance_cost", unit=1000.0) for name in _BY_KM}
IN_UNITS |= {name: Column("max_distance", unit=1000.0) for name in _MOST_KM}
IN_UNITS |= {
    "maxmiles": Column("max_distance", unit=DISTANCES["miles"]),
    "costpermile": Column("distance_cost", unit=DISTANCES["mile"]),
    "costperminute": Column("time_cost", unit=60.0),
    "maxhours": Column("max_duration", unit=3600.0),
}


@lru_cache
def index(kind: type) -> dict[str, Column]:
    """Folded names without endings."""
    found: dict[str, Column] = {}
    for one in attributes_of(kind):
        found.setdefault(folded(one.name), Column(one.name, own=True))
    for ours, words in MORE[kind].items():
        found.setdefault(folded(words[0]), Column(ours, own=True))
    if kind is Stop:
        found.setdefault("demand", Column("delivery", own=True))  # as the older problems call it
        found |= {name: Column(name, own=True) for name in PLACES}
        found |= {folded(name): Column(ours, own=True) for name, ours in SPELLINGS.items()}
        for place in PLACES:
            for word in WORDS[place]:
                found.setdefault(folded(word), Column(place))
    for one in attributes_of(kind):
        for name in (*one.also, *ALSO.get((kind, one.name), ())):
            found.setdefault(folded(name), Column(one.name))
    for ours, words in MORE[kind].items():
        for word in words:
            found.setdefault(folded(word), Column(ours))
    return found


@lru_cache
def declared(kind: type) -> Mapping[str, Attribute]:
    return {one.name: one for one in attributes_of(kind)}


def column_of(name: str, kind: type) -> Column | None:
    """What a column of this name holds, taken alone."""
    return None if len(name) > LONGEST_NAME else _column_of(name, kind)


@lru_cache(4 * MOST_COLUMNS)  # a header is looked at several times
def _column_of(name: str, kind: type) -> Column | None:
    plain, names = folded(name), index(kind)
    if (found := names.get(plain)) is not None:
        return found._replace(unit=_bracketed(name, found.attribute, kind))
    for first, last in ENDS:
        for part, end in (("1", first), ("2", last)):
            if plain.endswith(end) and (base := names.get(plain.removesuffix(end))) and base.attribute in STRETCHES:
                return Column(base.attribute, part, own=base.own)
    for part in ("1", "2"):
        if plain.endswith(part) and (base := names.get(plain[:-1])) and base.attribute in STRETCHES:
            return Column(base.attribute, part, own=base.own)
    if (found := _numbered(plain, names, kind)) is not None:
        return found
    if kind is Vehicle and plain in IN_UNITS:
        return IN_UNITS[plain]
    if (match := _PER.fullmatch(plain)) and (base := names.get(match[1])) is not None:
        units = _rates(base.attribute)
        if match[2] in units:
            return base._replace(unit=units[match[2]], own=False)
    for word, metres in DISTANCES.items():
        base = names.get(plain.removesuffix(word).removesuffix("in")) if plain.endswith(word) else None
        if base is not None and _is_distance(base.attribute, kind):
            return base._replace(unit=metres, own=False)
    for seconds, words in TIME_UNITS.items():
        for word in words:
            base = names.get(plain.removesuffix(word)) if plain.endswith(word) else None
            if base is not None and _is_length(base.attribute, kind):
                return base._replace(unit=seconds, own=False)
    for prefix in ("", "total", "order", "gesamt"):
        rest = plain.removeprefix(prefix)
        for cut in range(len(rest), 1, -1):
            base = names.get(rest[:cut]) or names.get(rest[:cut].removesuffix("s"))
            if base is None or not _is_amount(base.attribute, kind):
                continue
            if cut == len(rest):
                return Column(base.attribute)
            if match := _AMOUNT.fullmatch(rest[cut:]):
                return Column(base.attribute, match[1], own=base.own and match[1].isdigit())
    return None


def _bracketed(name: str, attribute: str, kind: type) -> float | None:
    """The unit that a name has in brackets: (min), (km), of a price (\u20ac/h)."""
    inside = re.search(r"[(\[]\s*([^)\]]+)", name)
    if inside is None:
        return None
    if rates := _rates(attribute):
        rate = _RATE.search(inside[1].lower())
        return rates.get(rate[1] if rate else inside[1].lower().strip(" ."))
    word = re.match(r"[^\s.]+", inside[1])
    return None if word is None else (DISTANCES if _is_distance(attribute, kind) else _BRACKET).get(word[0].lower())


def _rates(attribute: str) -> Mapping[str, float]:
    """What a price may be for, in seconds or metres; empty where it is for the whole."""
    return _BRACKET if attribute in BY_TIME else DISTANCES if attribute in BY_DISTANCE else {}


def _numbered(plain: str, names: Mapping[str, Column], kind: type) -> Column | None:
    """An end of one window of several: Zeitfenster2_von, window_end_2, bis2."""
    for ends in ENDS:
        for end, word in enumerate(ends, 1):
            match = re.fullmatch(rf"(.*?)(?:([1-9]){word}|{word}([1-9]))", plain)
            if match is None:
                continue
            base = names.get(match[1]) or (Column("windows") if not match[1] and kind is Stop else None)
            if base is not None and base.attribute == "windows":
                return Column("windows", f"{end}/{match[2] or match[3]}")
    return None


def _is_amount(name: str, kind: type) -> bool:
    one = declared(kind).get(name)
    return one is not None and one.unit == "amount"


def _is_length(name: str, kind: type) -> bool:
    """Whether an attribute is how long something takes."""
    one = declared(kind).get(name)
    return name == "break_duration" or (one is not None and one.unit == "time" and one.sign != "any")


def _is_distance(name: str, kind: type) -> bool:
    one = declared(kind).get(name)
    return one is not None and one.unit == "length"


def understood(columns: Mapping[str, Sequence[Any]], kind: type, source: str) -> dict[str, Column]:
    """{the user's name: what it holds}; `columns` has the values that are not blank. Two for one thing are refused."""
    claims: dict[str, Column] = {}
    plain = {name: folded(name) for name in columns}
    for name, values in columns.items():
        if values and (found := column_of(name, kind)) is not None:
            claims[name] = found
    stretch = "windows" if kind is Stop else "shift"
    if kind is Vehicle:
        ends = [name for name, one in claims.items() if one.attribute in ("start", "end") and _clocks(columns[name])]
        for name in ends:  # times, not places
            claims[name] = Column(stretch, "1" if claims[name].attribute == "start" else "2")
        for name, one in claims.items():  # nombre is a number in French and a name in Spanish
            counts = all(str(value).strip()[:1].isdigit() for value in columns[name])
            if one.attribute == "number" and not one.own and not counts:
                claims[name] = Column("id")
    if not any(one.attribute == stretch for one in claims.values()):
        _bare(columns, plain, claims, stretch)
    if kind is Stop:
        _beside(plain, claims)
        _stated(columns, claims)
    return _one_each(claims, kind, source)


def _clocks(values: Sequence[Any]) -> bool:
    looked = values[:100]
    return 2 * sum(map(clock_like, looked)) > len(looked) and not dates(looked)


def _bare(
    columns: Mapping[str, Sequence[Any]], plain: Mapping[str, str], claims: dict[str, Column], stretch: str
) -> None:
    """Two ends without a word before them, or one that is clear."""
    free = {word: name for name, word in plain.items() if name not in claims and columns[name]}
    for first, last in BARE:
        if first in free and last in free:
            claims[free[first]], claims[free[last]] = Column(stretch, "1"), Column(stretch, "2")
            return
    for word, part in ALONE.items():
        if word in free:
            claims[free[word]] = Column(stretch, str(part))
            return


def _beside(plain: Mapping[str, str], claims: dict[str, Column]) -> None:
    """Breite and Länge are degrees if both are there."""
    found = {BESIDE[word]: name for name, word in plain.items() if word in BESIDE and name not in claims}
    taken = {one.attribute for one in claims.values()} | set(plain.values())
    if set(found) == {"lat", "lon"} and NOT_BESIDE.isdisjoint(taken) and not taken & {"lat", "lon"}:
        claims |= {name: Column(ours) for ours, name in found.items()}


def _stated(columns: Mapping[str, Sequence[Any]], claims: dict[str, Column]) -> None:
    """Columns whose names state a rule in other words (data/rules.py)."""
    for name, values in columns.items():
        wrong = stated(name) if values and name not in claims else None
        taken = {(one.attribute, one.part) for one in claims.values()}
        if name not in claims and _WINDOWISH.search(folded(name)) and any(map(clock_like, values)):
            wrong = WINDOW  # a delivery window, say
        if wrong == WINDOW and ("windows", "") not in taken:
            plain = folded(name)
            part = "1" if _FIRST.fullmatch(plain) else "2" if _LAST.fullmatch(plain) else ""
            if part or any("-" in str(value) or isinstance(value, list) for value in values[:100]):
                claims[name] = Column("windows", part)
        elif wrong in (SERVICE, SKILLS, PICKUPS):
            ours = {SERVICE: "service", SKILLS: "skills", PICKUPS: "pickup"}[str(wrong)]
            if not any(attribute == ours for attribute, _ in taken):
                unit = next((u for u, words in TIME_UNITS.items() for w in words if folded(name).endswith(w)), None)
                claims[name] = Column(ours, unit=unit if ours == "service" else None)


def _one_each(claims: dict[str, Column], kind: type, source: str) -> dict[str, Column]:
    """One column for each thing: that of its own name, if there is one."""
    _amounts(claims, kind, source)
    groups: dict[tuple[str, str], list[str]] = {}
    for name, one in claims.items():
        groups.setdefault((one.attribute, one.part), []).append(name)
    for (ours, part), names in groups.items():
        if len(names) == 1:
            continue
        first = [name for name in names if claims[name].own]
        if not first and ours in ("id", "name", "start", "end", "depot", "shipment"):
            first = names[:1]
        if len(first) != 1:
            both = " and ".join(shown(name) for name in names[:2])
            remedy = f"; for two dimensions name them {ours}_1 and {ours}_2" if _is_amount(ours, kind) else ""
            what = f"{ours}_{part}" if part else ours
            raise InputError(f"{source}: {both} could both be the {what}; name the one that counts {what!r}{remedy}")
        for name in names:
            if name != first[0]:
                del claims[name]
    return claims


def _amounts(claims: dict[str, Column], kind: type, source: str) -> None:
    """A column of amounts without a dimension beside others with one: it counts alone if it has the name itself."""
    for ours in ("delivery", "pickup", "capacity"):
        names = [name for name, one in claims.items() if one.attribute == ours and _is_amount(ours, kind)]
        plain = [name for name in names if not claims[name].part]
        if not plain or len(plain) == len(names):
            continue
        own = [name for name in plain if claims[name].own]
        if not own:
            both = " and ".join(shown(name) for name in names[:2])
            raise InputError(
                f"{source}: {both} could both be the {ours}; name the one that counts {ours!r}, or for two dimensions "
                f"{ours}_1 and {ours}_2"
            )
        for name in names:
            if name not in own:
                del claims[name]


def check_typos(names: Sequence[str], kind: type, where: str) -> None:
    """Refuse a name that looks like a typing error of a known one, of stops also of the first other word for each."""
    known = [*declared(kind), *(words[0] for words in MORE[kind].values())]
    if kind is Stop:  # what is dropped there changes the plan: demnad, servcie_time, window_strat
        known += PLACES
        known += [one.also[0].lower().replace(" ", "_") for one in attributes_of(Stop) if one.also]
        known += ["window_start", "window_end"]
    for name in names[:TYPOS]:
        if column_of(name, kind) is None:  # otherwise another column gives the same
            refuse_typo(name, known, where)


def check_rules(columns: Mapping[str, Sequence[Any]], claims: Mapping[str, Column], where: str) -> None:
    """Refuse a column of stops that states a rule and that nobody claimed: nothing binding is dropped in silence."""
    windows = any(one.attribute == "windows" for one in claims.values())
    for name, values in columns.items():
        if name in claims or not values:
            continue
        wrong = stated(name)
        if wrong == WINDOW and not windows:
            raise InputError(
                f"{where}: {shown(name)} seems to be a time window; write stretches as 08:00-10:00, or name the "
                "columns window_start and window_end"
            )
        if wrong is None and (whole := unsupported(name)) is not None:
            raise InputError(f"{where}: {shown(name)} {whole}; or give it with the vehicles")
        if wrong == VEHICLES and not all(map(zero, values)):
            raise InputError(
                f"{where}: {shown(name)} seems to name vehicles; call it 'only' if none but these may serve the stop, "
                "or rename it"
            )
        if wrong == SHIFT:
            raise InputError(f"{where}: {shown(name)} is a vehicle's; give it with the vehicles, or as --shift")
        if wrong is None and not windows and _clocks(values):
            raise InputError(
                f"{where}: {shown(name)} holds clock times, and nothing says what they are; name it 'window' "
                "or window_start and window_end, or remove it"
            )


def check_fleet(columns: Mapping[str, Sequence[Any]], claims: Mapping[str, Column], where: str) -> None:
    """Refuse a column of vehicles that would bind them and that nobody claimed."""
    for name in (name for name, values in columns.items() if values and name not in claims):
        if _SPEED.fullmatch(folded(name)):
            raise InputError(
                f"{where}: {shown(name)} differs between vehicles only as durations of their own (profiles of a JSON); "
                "give one for all as --speed, and remove the column"
            )
        if _clocks(columns[name]):
            raise InputError(
                f"{where}: {shown(name)} holds clock times, and nothing says what they are; name it 'shift' or "
                "'break', or remove it"
            )
