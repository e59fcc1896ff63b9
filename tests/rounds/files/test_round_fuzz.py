"""Whatever is in a file, a reader gives a round, says that it is none, or raises InputError in one line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from round_samples import (
    CORDEAU,
    EVERYTHING,
    LI_LIM,
    OSRM,
    OWN,
    SHIPMENTS,
    SOLOMON,
    STOPS_CSV,
    VEHICLES_CSV,
    VROOM,
    workbook,
)

from routelearn.errors import InputError
from routelearn.rounds.files import parse_round, round_from_document
from routelearn.rounds.model import Round

quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
CELLS = st.sampled_from(
    [
        *("", "0", "-1", "5", "2,5", "1e400", "nan", "inf", "x", "08:00", "8-10 Uhr", "08:00-10:00; 12:00-13:00"),
        *("25:99", "2026-11-16T08:00Z", "2026-13-45 08:00", "a, b", "3;5", "PT5M", "1h30", "\u00e4", "-", "999999999"),
        *("30:00", "10:00-08:00", "\u0660", "1_000", "1" * 90, "None", "1/2", "0:05", "d", "v"),
    ]
)
NAMES = st.sampled_from(
    [
        *(
            "id",
            "name",
            "x",
            "y",
            "lat",
            "lon",
            "depot",
            "Menge",
            "demand_1",
            "demand_2",
            "pickup",
            "window",
            "von",
            "bis",
        ),
        *("service", "Servicezeit (min)", "setup", "release", "penalty", "priority", "skills", "only", "shipment"),
        *("forbidden", "late_cost", "Fahrer", "place", "column 3", "deadline", "Breite", "L\u00e4nge", "open", "close"),
    ]
)
OF_VEHICLES = st.sampled_from(
    [
        *("id", "Fahrzeug", "count", "capacity", "capacity_1", "capacity_kg", "start", "end", "shift", "Schicht_von"),
        *(
            "break",
            "break_duration",
            "trips",
            "reloads",
            "kept",
            "profile",
            "skills",
            "max_duration",
            "overtime",
            "nombre",
        ),
    ]
)
OPTIONS = st.dictionaries(
    st.sampled_from(
        [
            "vehicles",
            "capacity",
            "shift",
            "speed",
            "round",
            "objective",
            "backhauls",
            "allow_unassigned",
            "depot",
            "trips",
        ]
    ),
    CELLS,
    max_size=3,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | CELLS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def survives(data: bytes, source: str, **arguments: Any) -> None:
    found, words = None, ""
    try:
        found = parse_round(data, source, **arguments)
    except InputError as error:
        words = str(error)
    assert "\n" not in words
    assert len(words) < 1500
    assert found is None or (isinstance(found, Round) and found.stops and found.vehicles)


def table(draw: st.DrawFn, names: st.SearchStrategy[str]) -> str:
    head = draw(st.lists(names, min_size=1, max_size=7))
    rows = draw(st.lists(st.lists(CELLS, min_size=len(head), max_size=len(head)), max_size=4))
    return "\n".join(";".join(f'"{cell}"' if ";" in cell else cell for cell in row) for row in [head, *rows])


@st.composite
def stops_text(draw: st.DrawFn) -> str:
    return table(draw, NAMES)


@st.composite
def vehicles_text(draw: st.DrawFn) -> str:
    return table(draw, OF_VEHICLES)


@quick
@given(stops_text(), st.none() | vehicles_text(), OPTIONS, st.sampled_from([None, "vrp"]))
def test_tables(stops: str, vehicles: str | None, options: dict[str, Any], problem: str | None):
    fleet = None if vehicles is None else (vehicles.encode(), "vans.csv")
    survives(stops.encode(), "a.csv", vehicles=fleet, options=options, problem=problem)


@st.composite
def changed_text(draw: st.DrawFn, text: str) -> bytes:
    """A good text with some of its words, characters or lines changed."""
    lines = text.splitlines()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        kind = draw(st.sampled_from(["word", "drop", "twice", "cut", "any"]))
        words = lines[at].replace(";", " ; ").split(" ")
        if kind == "word":
            words[draw(st.integers(0, len(words) - 1))] = draw(CELLS)
            lines[at] = " ".join(words).replace(" ; ", ";")
        elif kind == "drop" and len(lines) > 1:
            del lines[at]
        elif kind == "twice":
            lines.insert(at, lines[at])
        elif kind == "cut":
            lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
        else:
            lines[at] = draw(st.text(max_size=20))
    return "\n".join(lines).encode("utf-8", "replace")


@pytest.mark.parametrize(
    ("text", "source"),
    [
        *((SOLOMON, "a.txt"), (LI_LIM, "a.txt"), (CORDEAU, "a.txt"), (EVERYTHING, "a.vrp"), (SHIPMENTS, "a.vrp")),
        (STOPS_CSV, "a.csv"),
    ],
    ids=["solomon", "lilim", "cordeau", "dialect", "pairs", "csv"],
)
def test_changed_texts(text: str, source: str):
    @quick
    @given(changed_text(text), OPTIONS)
    def one(data: bytes, options: dict[str, Any]) -> None:
        survives(data, source, options={"speed": 30, **options} if source == "a.csv" else options)

    one()


@quick
@given(changed_text(VEHICLES_CSV))
def test_changed_vehicles(data: bytes):
    matrix = (OSRM.encode(), "m.json")
    survives(STOPS_CSV.encode(), "a.csv", vehicles=(data, "vans.csv"), matrix=matrix)


@quick
@given(changed_text(json.dumps(json.loads(OSRM), indent=0)))
def test_changed_matrices(data: bytes):
    survives(STOPS_CSV.encode(), "a.csv", matrix=(data, "m.json"), options={"capacity": 100})


@st.composite
def changed_document(draw: st.DrawFn, document: Any) -> Any:
    """A good document with one of its values, at any depth, replaced or taken away."""
    document = json.loads(json.dumps(document))
    inner = document
    while True:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        if not keys:
            return document
        key = draw(st.sampled_from(keys))
        if isinstance(inner[key], dict | list) and draw(st.integers(0, 3)):
            inner = inner[key]
            continue
        if draw(st.booleans()):
            inner[key] = draw(JSON)
        else:
            del inner[key]
        return document


@pytest.mark.parametrize("document", [OWN, VROOM], ids=["own", "vroom"])
def test_changed_documents(document: Any):
    @settings(quick, max_examples=150)
    @given(changed_document(document))
    def one(changed: Any) -> None:
        words = ""
        try:
            assert round_from_document(changed).stops
        except InputError as error:
            words = str(error)
        assert "\n" not in words

    one()


@quick
@given(JSON)
def test_any_document(document: Any):
    with pytest.raises(InputError):
        round_from_document(document)
    survives(json.dumps(document).encode(), "a.json", problem="vrp")


@quick
@given(st.binary(max_size=60), st.sampled_from(["a.csv", "a.json", "a.vrp", "a.txt", "a.xlsx", "a", "a.tsp"]))
def test_any_bytes(data: bytes, source: str):
    survives(data or b"x", source)
    survives(data or b"x", source, problem="vrp")


@settings(quick, max_examples=15)
@given(st.lists(st.lists(CELLS | st.integers() | st.floats(), min_size=4, max_size=4), max_size=4))
def test_workbooks(rows: list[list[Any]]):
    pytest.importorskip("openpyxl")
    survives(workbook(Stops=[["id", "x", "y", "window"], *rows]), "a.xlsx", options={"speed": 30})
