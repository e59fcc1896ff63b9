"""Any file of a round: chosen by suffix, else by what the content looks like; and what options change about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from routelearn.data import geojson, json_file
from routelearn.data.excel_file import SUFFIXES, is_workbook
from routelearn.data.files import STDIN, TEXT_LIMIT, check_not_workbook, decode, decode_table, display, read_bytes
from routelearn.data.numbers import from_torch, real, shown
from routelearn.data.reading import FORMATS, XML, instance_in, sniff
from routelearn.errors import InputError
from routelearn.problems.attributes import folded
from routelearn.rounds.files import clock, cordeau, document, lilim, solomon, tables, vroom, vrplib
from routelearn.rounds.files.build import Builder
from routelearn.rounds.files.columns import BETWEEN_NAMES, BEYOND, column_of, declared
from routelearn.rounds.files.fleet import MOST_VEHICLES
from routelearn.rounds.files.lengths import Given, measured, parse_lengths
from routelearn.rounds.files.table import VEHICLE_OPTIONS, Table, beyond, check_options, options_beyond, settings_of
from routelearn.rounds.model import ANY, PROBLEM, Round, Stop, Vehicle
from routelearn.rounds.validate import checked

_NUMBER = re.compile(r"\s*\d+\s*", re.ASCII)
_SIGNED = re.compile(r"\s*[-+]?[\d.,]+\s*", re.ASCII)  # a number that cannot be one of vehicles


def read_round(
    path: str | Path,
    *,
    matrix: str | Path | None = None,
    vehicles: str | int | Path | None = None,
    options: Mapping[str, Any] | None = None,
    problem: str | None = None,
    limit: int = TEXT_LIMIT,
) -> Round | None:
    """The round in a file (`-`: standard input); None where it holds one of the older problems.

    `matrix` is a file of durations or distances, `vehicles` a file of vehicles or their number. `options` are those of
    the command line (`table.OPTIONS`). With the problem "vrp" any file of stops is a round, with another none is.
    """
    if problem not in (None, PROBLEM):
        return None
    options = dict(options or {})
    if vehicles is not None:
        options["vehicles"] = vehicles
    if instance_in(str(path)) is not None and problem is None:
        return None
    if matrix is not None and str(matrix) == STDIN == str(path):
        raise InputError("standard input cannot be both the stops and the matrix; give one of them as a file")
    data = read_bytes(path, limit)
    lengths = None if matrix is None else read_bytes(matrix, limit)
    fleet = options.get("vehicles")
    table: tuple[bytes, str] | None = None
    if fleet is not None and not isinstance(fleet, int) and not _NUMBER.fullmatch(str(fleet)):
        if _SIGNED.fullmatch(str(fleet)) and not Path(str(fleet)).exists():
            raise InputError(f"--vehicles {fleet}: a whole number of vehicles, or a file of them, is needed")
        table = read_bytes(str(fleet), limit), display(str(fleet))
        del options["vehicles"]
    return parse_round(
        data,
        display(path),
        matrix=None if lengths is None else (lengths, display(str(matrix))),
        vehicles=table,
        options=options,
        problem=problem,
    )


def parse_round(
    data: bytes,
    source: str,
    *,
    matrix: tuple[bytes, str] | None = None,
    vehicles: tuple[bytes, str] | None = None,
    options: Mapping[str, Any] | None = None,
    problem: str | None = None,
) -> Round | None:
    """The round in the bytes of a file that messages call `source`; matrix and vehicles are files, too."""
    if problem not in (None, PROBLEM):
        return None
    options = {name: _listed(value) for name, value in (options or {}).items() if value is not None}
    check_options(options)
    must = problem == PROBLEM or vehicles is not None or options_beyond(options)
    given = None if matrix is None else parse_lengths(decode(*matrix), matrix[1], options)
    fleet = None if vehicles is None else _vehicles(*vehicles)
    suffix = Path(source).suffix.lower()
    if suffix in XML:
        return None
    if is_workbook(data) or suffix in SUFFIXES:
        stops, own, more = tables.excel_tables(data, source)
        return _of_table(stops, fleet or own, options, given, must or own is not None, more)
    if suffix in (".npz", ".pkl") or data[:4] == b"PK\x03\x04":
        if must:
            raise InputError(f"{source}: holds instances of other problems, not a round")
        return None
    if not must:
        check_not_workbook(data, source)
    kind = FORMATS.get(suffix)
    text, notes = decode_table(data, source) if kind in ("csv", None) else (decode(data, source), ())
    for reader in (solomon, lilim, cordeau):
        if kind in ("csv", None, "cvrplib") and reader.is_like(text):
            found = reader.parse(text, source, options)
            return checked(_with_options(found, options, fleet, given))
    kind = kind or sniff(text)
    if kind in ("cvrplib", "tsplib"):
        return _of_library(text, source, options, fleet, given, must)
    if kind == "json":
        return _of_json(json_file.decode(text, source), source, options, fleet, given, must)
    try:
        stops = tables.csv_table(text, source, Stop)
    except InputError:
        if must:
            raise
        return None  # the older reader says what is wrong
    return _of_table(stops, fleet, options, given, must, notes)


def round_from_document(document_: Mapping[str, Any], source: str = "request") -> Round:
    """The round of a decoded JSON document: our own (`stops`), or VROOM's (`jobs`, `shipments`)."""
    if not isinstance(document_, Mapping):
        raise InputError(f"{source}: {shown(document_)}; an object with 'stops', or with 'jobs', is needed")
    if (said := document_.get("problem")) not in (None, PROBLEM):
        raise InputError(
            f"{source}: the problem is {shown(said)}, but stops as objects are a round, whose problem is {PROBLEM}; "
            "leave the problem out, or give the places as coords, latlon or matrix"
        )
    found = _of_json(dict(document_), source, {}, None, None, True)
    assert found is not None
    return found


def _listed(value: Any) -> Any:
    """An array or a tensor that Python callers give as a list; anything else as it is."""
    return from_torch(value).tolist() if getattr(value, "shape", None) else value


def _vehicles(data: bytes, source: str) -> Table:
    if is_workbook(data) or Path(source).suffix.lower() in SUFFIXES:
        return tables.excel_vehicles(data, source)
    text, _ = decode_table(data, source)
    if text.lstrip()[:1] in ("[", "{"):
        raw = json_file.decode(text, source)
        rows = raw.get("vehicles") if isinstance(raw, dict) else raw
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise InputError(f"{source}: a list of vehicles is needed")
        return Table(source, [(f"vehicle {k}", row) for k, row in enumerate(rows, 1)], document=True)
    return tables.csv_table(text, source, Vehicle)


def _of_table(
    stops: Table,
    vehicles: Table | None,
    options: Mapping[str, Any],
    given: Given | None,
    must: bool,
    notes: Sequence[str] = (),
) -> Round | None:
    try:
        stops.understand(Stop)
    except InputError:
        if must or _names_beyond(stops):
            raise
        return None
    if not must and not beyond(stops, options):
        return None
    return Builder(stops, vehicles, options, given, notes=tuple(notes)).build()


def _names_beyond(stops: Table) -> bool:
    """Whether a column is named as only rounds have them."""
    found = ((name, column_of(name, Stop)) for name, values in stops.columns.items() if values)
    return any(one is not None and one.attribute in BEYOND and folded(name) not in BETWEEN_NAMES for name, one in found)


def _of_json(
    data: Any, source: str, options: Mapping[str, Any], fleet: Table | None, given: Given | None, must: bool
) -> Round | None:
    if isinstance(data, list):
        data = {"stops": data}
    if not isinstance(data, dict):
        if must:
            raise InputError(f"{source}: holds {shown(data)}; an object with 'stops' or 'jobs' is needed")
        return None
    said = data.get("problem")
    if said not in (None, PROBLEM) and not must:
        return None
    must = must or said == PROBLEM
    if vroom.is_like(data):
        found = vroom.parse(data, source, options, given)
        return checked(_with_options(found, {k: v for k, v in options.items() if k != "speed"}, fleet, None))
    if data.get("type") in ("FeatureCollection", "Feature"):
        try:
            rows = geojson.rows_of(data, source, None)
        except InputError:
            if must:
                raise
            return None
        return _of_table(Table(source, rows), fleet, options, given, must)
    if not must and not isinstance(data.get("stops"), list):
        return None
    try:
        found_or_none = document.parse(data, source, options, given, must)
    except InputError:
        if must or document.seems_round(data):
            raise
        return None
    if found_or_none is not None and fleet is not None:
        raise InputError(f"{source}: a file of vehicles goes with a table of stops; put them into the document")
    return found_or_none


def _of_library(
    text: str, source: str, options: Mapping[str, Any], fleet: Table | None, given: Given | None, must: bool
) -> Round | None:
    try:
        parts = vrplib.document_of(text, source)
    except InputError:
        if must or Path(source).suffix.lower() == ".vrp":
            raise
        return None
    if not must and not vrplib.beyond_cvrp(parts):
        return None
    return checked(_with_options(vrplib.parse(parts, options), options, fleet, given))


def _with_options(found: Round, options: Mapping[str, Any], fleet: Table | None, given: Given | None) -> Round:
    """A round of a format with vehicles of its own, changed as the command line says."""
    source = found.source
    if fleet is not None:
        raise InputError(f"{source}: the file gives its vehicles; a table of vehicles goes with a table of stops")
    if options.get("speed") is not None:
        raise InputError(f"{source}: durations are lengths in this format; leave --speed out")
    changes: dict[str, Any] = settings_of(options, source)
    if given is not None:
        if given.size != len(found.places):
            raise InputError(f"{source}: {len(found.places)} places, but the matrix has {given.size} rows and columns")
        legs = measured(source, given, None, None, speed=None, timed="durations are needed", clock=False)
        changes |= {"legs": {ANY: legs.legs}, "length_unit": legs.unit, "notes": (*found.notes, *legs.notes)}
    vehicles = list(found.vehicles)
    if (raw := options.get("vehicles")) is not None:
        count = real(raw, "--vehicles", "the number")
        if count != int(count) or not 0 < count <= MOST_VEHICLES:
            raise InputError(f"--vehicles {shown(raw)}; a whole number between 1 and {MOST_VEHICLES:,} is needed")
        if len(vehicles) > 1:
            kinds = f"the file gives {len(vehicles)} kinds of vehicles, and how many there are of each"
            raise InputError(f"{source}: {kinds}; leave --vehicles out")
        vehicles = [replace(vehicles[0], number=int(count))]
    if (raw := options.get("capacity")) is not None:
        words = raw.split(",") if isinstance(raw, str) else raw if isinstance(raw, list | tuple) else [raw]
        holds = [real(word, "--capacity", "the capacity") for word in words]
        if len(holds) not in (1, len(vehicles)):
            kinds = "one kind" if len(vehicles) == 1 else f"{len(vehicles)} kinds"
            each = "" if len(vehicles) == 1 else ", or one for each kind"
            told = f"--capacity has {len(holds)} numbers, but the file has {kinds} of vehicles; give one{each}"
            raise InputError(f"{source}: {told}")
        holds = holds * (len(vehicles) if len(holds) == 1 else 1)
        vehicles = [replace(one, capacity=(hold,)) for one, hold in zip(vehicles, holds, strict=True)]
    if (raw := options.get("shift")) is not None:
        times = clock.Times(source)
        times.look([0, raw])  # numbers, as its own are: 0-20 is no stretch of hours
        times.settle()
        shift = times.windows(raw, "--shift", "the shift")[0]
        if times.clock:
            raise InputError(f"{source}: its times are numbers; give --shift as numbers, too, such as 0-1000")
        vehicles = [replace(one, shift=shift) for one in vehicles]
    for name in VEHICLE_OPTIONS:
        if (raw := options.get(name)) is not None:
            vehicles = [replace(one, **{name: _value(name, raw)}) for one in vehicles]
    vehicles = [
        replace(v, reloads=(v.start,)) if v.trips > 1 and not v.reloads and v.start is not None else v for v in vehicles
    ]
    return replace(found, vehicles=tuple(vehicles), **changes)


def _value(name: str, raw: Any) -> Any:
    """An option for all vehicles."""
    one, where = declared(Vehicle)[name], f"--{name.replace('_', '-')}"
    if name == "skills":
        return frozenset(part.strip() for part in str(raw).split(",") if part.strip())
    if name == "profile":
        return str(raw)
    value = clock.length(raw, 1.0, where, "it") if one.unit == "time" else real(raw, where, "it")
    if one.whole:
        if value != int(value):
            raise InputError(f"{where}: {shown(raw)}; a whole number is needed")
        return int(value)
    return value
