"""One round as CSV, Excel, our JSON and VROOM's has equal stops, vehicles and legs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import time
from pathlib import Path

import numpy as np
import pytest
from round_samples import OSRM, OWN, STOPS_CSV, VEHICLES_CSV, VROOM, workbook

from routelearn.rounds.files import parse_round, read_round, round_from_document
from routelearn.rounds.model import ANY, Round

MATRIX = (OSRM.encode(), "osrm.json")


def from_csv(encoding: str = "utf-8") -> Round:
    stops, vehicles = (text.encode(encoding) for text in (STOPS_CSV, VEHICLES_CSV))
    found = parse_round(stops, "tour.csv", matrix=MATRIX, vehicles=(vehicles, "vans.csv"))
    assert found is not None
    return found


def from_windows_csv() -> Round:
    return from_csv("cp1252")


def from_excel() -> Round:
    pytest.importorskip("openpyxl")
    rows = [line.split(";") for line in STOPS_CSV.splitlines()]
    cells: list[list[object]] = [list(rows[0])]
    for row in rows[1:]:
        values: list[object] = [cell or None for cell in row]
        for j in (2, 3, 4, 7):
            values[j] = float(row[j].replace(",", ".")) if row[j] else None
        for j in (5, 6):
            values[j] = time.fromisoformat(row[j]) if row[j] else None
        cells.append(values)
    fleet: list[list[object]] = [list(line.split(";")) for line in VEHICLES_CSV.splitlines()]
    found = parse_round(workbook(Touren=cells, Fahrzeuge=fleet), "tour.xlsx", matrix=MATRIX)
    assert found is not None
    return found


def from_own() -> Round:
    return round_from_document(OWN)


def from_own_file() -> Round:
    found = parse_round(json.dumps(OWN).encode(), "round.json")
    assert found is not None
    return found


def from_vroom() -> Round:
    return round_from_document(VROOM)


def shape(found: Round) -> tuple[object, ...]:
    """What a plan depends on: not the user's other columns, notes and where things stand."""
    stops = tuple(replace(stop, columns={}) for stop in found.stops)
    vehicles = tuple(replace(vehicle, profile=ANY) for vehicle in found.vehicles)
    return stops, vehicles, found.shipments, found.objective, found.backhauls


@pytest.mark.parametrize("read", [from_windows_csv, from_excel, from_own_file, from_vroom, from_own])
def test_every_format_gives_the_same_round(read):
    first, other = from_csv(), read()
    assert shape(other) == shape(first)
    for vehicle, same in zip(first.vehicles, other.vehicles, strict=True):
        mine, theirs = first.legs_of(vehicle), other.legs_of(same)
        np.testing.assert_array_equal(mine.distance, theirs.distance)
        np.testing.assert_array_equal(mine.duration, theirs.duration)


def test_what_the_round_is():
    found = from_csv()
    baker, pharmacy, flowers = found.stops
    assert (baker.id, baker.place, baker.delivery, baker.service) == ("Bäcker", 1, (5.0,), 300.0)
    assert baker.windows == ((8 * 3600.0, 10 * 3600.0),)
    assert pharmacy.windows == ((9.5 * 3600.0, 12 * 3600.0),)
    assert pharmacy.skills == {"Kühlung"}
    assert flowers.delivery == (3.5,)
    assert flowers.windows == ((-np.inf, np.inf),)
    assert [v.shift for v in found.vehicles] == [(28800.0, 57600.0), (30600.0, 54000.0)]
    assert [v.capacity for v in found.vehicles] == [(100.0,), (60.0,)]
    assert found.legs[ANY].duration[1, 2] == 150
    assert found.legs[ANY].distance[2, 1] == 1600
    assert (found.day, found.rounding, found.length_unit) == ("", "none", "m")
    assert baker.columns == {"Straße": "Weg 1"}
    assert found.where == ("line 3", "line 4", "line 5")
    assert found.vehicles_where == ("vans.csv, line 2", "vans.csv, line 3")


def test_notes_say_how_it_was_read():
    assert from_csv().notes == (
        "the depot is 'Lager Nord' (line 2)",
        "in minutes, since times are clock times: Servicezeit",
        "not used: Straße",
    )


def test_files_on_disk(tmp_path: Path):
    for name, text in (("tour.csv", STOPS_CSV), ("vans.csv", VEHICLES_CSV), ("osrm.json", OSRM)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_round(tmp_path / "tour.csv", matrix=tmp_path / "osrm.json", vehicles=tmp_path / "vans.csv")
    assert found is not None
    assert shape(found) == shape(from_csv())
    same = read_round(
        tmp_path / "tour.csv",
        matrix=tmp_path / "osrm.json",
        options={"vehicles": "2", "capacity": "100,60", "shift": "8:00-15:00", "skills": "Kühlung"},
    )
    assert same is not None
    assert [(v.id, v.capacity, v.shift) for v in same.vehicles] == [
        ("1", (100.0,), (28800.0, 54000.0)),
        ("2", (60.0,), (28800.0, 54000.0)),
    ]
