"""Bad tables and documents: one line each, with file, row and remedy."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from round_samples import DISTANCES, DURATIONS, OWN, VROOM, workbook

from routelearn.errors import InputError
from routelearn.rounds.files import parse_round, read_round, round_from_document

HEAD = "id;x;y;Menge;von;bis;service;skills\n"
DEPOT = "d;0;0;;;;;\n"
GOOD = "a;3;4;5;08:00;10:00;5;\n"
TABLES = [
    (
        "a;3;4;5;10:00;08:00;5;\n",
        None,
        "a.csv, line 3: von runs backwards, from 10:00 to 08:00; swap them, or write 32:00",
    ),
    ("a;3;4;5;08:00;25:99;5;\n", None, "a.csv, line 3: bis is '25:99', not a time of day; write it as 08:30"),
    ("a;3;4;5;8:00;480;5;\n", None, "a.csv, line 3: bis is '480', but other times are clock times; write it as 08:30"),
    ("a;3;4;5;8:00;10:75;5;\n", None, "a.csv, line 3: bis is '10:75', not a time of day"),
    (
        "a;3;4;200;;;5;\n",
        None,
        "a.csv, line 3: 'a' has an amount of 200, more than any vehicle that may serve it holds",
    ),
    ("a;3;4;5;;;5;cold\n", None, "a.csv, line 3: 'a' needs the skill 'cold', which no vehicle has"),
    (
        "a;3;4;5;08:00;08:01;5;\n",
        "id;shift\nv;8-16 Uhr\n",
        "a.csv, line 3: 'a' cannot be reached and left in time by any vehicle",
    ),
    ("a;3;4;5;;;-5;\n", None, "a.csv, line 3: service is -5; it cannot be negative"),
    ("a;3;4;-5;;;5;\n", None, "a.csv, line 3: delivery is -5; it cannot be negative"),
    ("a;3;4;nan;;;5;\n", None, "a.csv, line 3: Menge is 'nan', not a finite number"),
    (
        "a;3,5;4;1.000;;;5;\n",
        None,
        "a.csv, line 3: Menge is '1.000', but other numbers have a decimal comma; write 1000",
    ),
    (
        "a;3;4;1.200;;;5;\n",
        None,
        "a.csv, line 3: Menge is '1.200', which may be a thousand or less; write 1200 or 1,200",
    ),
    ("a;3;4;2 kg;;;5;\n", None, "a.csv, line 3: Menge is '2 kg'; write the number alone, its unit in the header"),
    ("a;3;4;many;;;5;\n", None, "a.csv, line 3: Menge is 'many', not a number"),
    ("a;3;;5;;;5;\n", None, "a.csv, line 3: no y"),
    ("a;3;4;5;;;5;\n" * 2, None, "a.csv, line 4: the id 'a' is already used in line 3"),
    ("a;3;4;5;;;long;\n", None, "a.csv, line 3: service is 'long', not a number"),
    ("a;3;4;5\n", None, "a.csv, line 3: 4 cells; the header names 8 columns"),
    (";3;4;5;;;5;\n", None, "a.csv, line 3: no id, though other stops have one"),
    ("a;3;4;1/2/3;;;5;\n", "id;capacity\nv;10/20\n", "vans.csv, line 2: a capacity in 2 dimensions, but amounts in 3"),
    (GOOD, "id;shift\nv;08:00-08:05\n", "vans.csv, line 2: the shift of 5 min is too short for a trip to any stop"),
    (GOOD, "id;shift\nv;16:00-08:00\n", "vans.csv, line 2: shift runs backwards, from 16:00 to 08:00"),
    (GOOD, "id;shift\nv;8:00\n", "vans.csv, line 2: shift is '8:00'; a stretch as 08:00-10:00 is needed"),
    (
        GOOD,
        "id;shift\nv;8-8:01\n",
        "vans.csv, line 2: the shift of 60 s is too short for a trip to any stop",
    ),
    (
        GOOD,
        "id;capacity_1;capacity_2\nv;10;20\n",
        "vans.csv, line 2: a capacity in 2 dimensions, but amounts in 1; give one number for each",
    ),
    (GOOD, "id;Mittag\nv;12:00-13:00\n", "vans.csv: 'Mittag' holds clock times, and nothing says what they are"),
    (GOOD, "id;Geschwindigkeit (km/h)\nv;30\n", "vans.csv: 'Geschwindigkeit (km/h)' differs between vehicles only"),
    (GOOD, "id;start\nv;nowhere\n", "vans.csv, line 2: start is 'nowhere', not the id or name of a depot or stop"),
    (
        GOOD,
        "id;Pause\nv;12:00-13:00\n",
        "vans.csv, line 2: a break, but not how long it is; add a column break_duration",
    ),
    (GOOD, "id;count\nv;2.5\n", "vans.csv, line 2: count is '2.5'; a whole number is needed"),
    (GOOD, "id;capcity\nv;5\n", "vans.csv: 'capcity' is not known; did you mean 'capacity'?"),
    (GOOD, "id;capacity\nv;5\nv;6\n", "vans.csv, line 3: the id 'v' is already used in vans.csv, line 2"),
    (GOOD, "1;2\n3;4\n", "vans.csv, line 1: no header that names vehicles"),
    (GOOD, "id;capacity\n", "vans.csv: a header but no vehicles"),
]


@pytest.mark.parametrize(("row", "vehicles", "words"), TABLES, ids=[words[:60] for _, _, words in TABLES])
def test_tables(row: str, vehicles: str | None, words: str):
    fleet = ("id;capacity\nv;100\n" if vehicles is None else vehicles).encode()
    with pytest.raises(InputError) as raised:
        parse_round((HEAD + DEPOT + row).encode(), "a.csv", vehicles=(fleet, "vans.csv"), options={"speed": 50})
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vehicles": "3", "capacity": "1,2"}, "--capacity has 2 numbers, but there are 3 vehicles; give one for each"),
        (
            {"vehicles": "1", "capacity": "2,5"},
            "--capacity has 2 numbers, but there is one vehicle; give one, a fraction",
        ),
        ({"vehicles": "0"}, "--vehicles '0'; between 1 and"),
        ({"round": "up"}, "--round 'up'; the choices are nearest, dimacs, exact, none"),
        ({"speed": "0"}, "the speed is 0; it must be positive"),
        ({"shift": "8:00"}, "--shift: the shift is '8:00'; a stretch as 08:00-10:00 is needed"),
        ({"objective": "fast"}, "objective is 'fast'; the choices are cost, vehicles"),
        ({"backhauls": "first"}, "backhauls is 'first'; the choices are mixed, last"),
        ({"allow_unassigned": "perhaps"}, "allow_unassigned is 'perhaps'; write true or false"),
        ({"colour": "red"}, "'colour' is not an option of rounds"),
        ({"depot": "z"}, "the depot 'z' is not the id or name of one of the stops"),
        ({}, "a.csv: stops have amounts, but nothing says what a vehicle holds; give a capacity"),
    ],
)
def test_options(options: dict[str, Any], words: str):
    given = {"speed": 50, "capacity": "100", **options} if options else {"speed": 50}
    with pytest.raises(InputError) as raised:
        parse_round((HEAD + DEPOT + GOOD).encode(), "a.csv", options=given)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0, 1], [1, 0]], None),
        ([[0, 1, 2], [1, 0, 2], [2, 2, 0]], "2 places, but the matrix has 3 rows and columns; one for each row of the"),
        ([[0, 1], [1]], "m.json: row 2 of durations has 1 numbers; 2 rows need as many"),
        ([[0, None], [1, 0]], "m.json: row 1, column 2 of durations is empty: no way there"),
        ([[0, -1], [1, 0]], "m.json: row 1, column 2 of the matrix is negative"),
        ("x", "m.json: durations must be a list of lists of numbers"),
    ],
)
def test_matrices(matrix: Any, words: str | None):
    data = (json.dumps({"code": "Ok", "durations": matrix}).encode(), "m.json")
    arguments: dict[str, Any] = {"matrix": data, "options": {"capacity": 100}}
    if words is None:
        assert parse_round((HEAD + DEPOT + GOOD).encode(), "a.csv", **arguments) is not None
        return
    with pytest.raises(InputError) as raised:
        parse_round((HEAD + DEPOT + GOOD).encode(), "a.csv", **arguments)
    assert words in str(raised.value)


@pytest.mark.parametrize("number", ["1.5", "-1", "2,5"])
def test_a_number_of_vehicles_that_is_none(tmp_path: Path, number: str):
    (tmp_path / "a.csv").write_text(HEAD + DEPOT + GOOD)
    with pytest.raises(InputError, match=f"--vehicles {number}: a whole number of vehicles, or a file of them, is"):
        read_round(tmp_path / "a.csv", vehicles=number, options={"speed": 50})


def test_a_matrix_beside_matrices_of_the_file():
    data = (json.dumps({"durations": DURATIONS}).encode(), "m.json")
    with pytest.raises(InputError, match=r"v\.json: the file gives its matrices; leave --matrix out"):
        parse_round(json.dumps(VROOM).encode(), "v.json", matrix=data)
    lengths = {"durations": DURATIONS, "distances": DISTANCES}
    own = {key: value for key, value in OWN.items() if key not in lengths} | {"profiles": {"any": lengths}}
    with pytest.raises(InputError, match=r"o\.json: gives the legs of its profiles; leave --matrix out"):
        parse_round(json.dumps(own).encode(), "o.json", matrix=data)


def test_osrm_that_found_nothing():
    data = (b'{"code": "NoTable", "durations": null, "message": "no way"}', "m.json")
    with pytest.raises(InputError, match=r"m\.json: OSRM answered 'NoTable': 'no way'"):
        parse_round((HEAD + DEPOT + GOOD).encode(), "a.csv", matrix=data)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,x,y,service,Schicht\nd,0,0,,\na,1,1,5,8:00-9:00\n", "'Schicht' is a vehicle's; give it with the vehicles"),
        (
            "id,x,y,service,Wunsch\nd,0,0,,\na,1,1,5,8:00\n",
            "'Wunsch' holds clock times, and nothing says what they are",
        ),
        ("id,x,y,service,Uhrzeit\nd,0,0,,\na,1,1,5,8:00\n", "'Uhrzeit' seems to be a time window; write stretches"),
        ("id,x,y,windws,service\nd,0,0,,\na,1,1,,5\n", None),
        ("id,x,y,servce,skills\nd,0,0,,\na,1,1,5,a\n", "'servce' is not known; did you mean 'service'? Otherwise"),
        (
            "id,x,y,Gewicht,Volumen,service\nd,0,0,,,\na,1,1,5,6,7\n",
            "'Gewicht' and 'Volumen' could both be the delivery",
        ),
        (
            "id,x,y,weight_kg,volume,service\nd,0,0,,,\na,1,1,5,6,7\n",
            "'weight_kg' and 'volume' could both be the delivery",
        ),
        ("id,x,y,service,Camión\nd,0,0,,\na,1,1,5,grande\n", "'Camión' seems to name vehicles; call it 'only'"),
        (
            "id,x,y,service,Kapazität\nd,0,0,,\na,1,1,5,12\n",
            "'Kapazität' holds for all stops at once; give it as an opt",
        ),
        ("id,x,y,lat,lon,service\nd,0,0,1,1,\na,1,1,2,2,5\n", "both x, y and lat, lon"),
        ("id,lat,lon,service\nd,0,0,\na,100,1,5\n", "line 3: latitude 100, longitude 1"),
        ("id,x,service\nd,0,\na,1,5\n", "a column x but no y"),
        ("id,service\nd,\na,5\n", "no coordinates and no matrix"),
        ("id,x,y,shipment,pickup\nd,0,0,,\na,1,1,s,5\n", "line 3: the shipment 's' has no other half"),
        ("id,x,y,shipment,pickup\nd,0,0,,\na,1,1,s,5\nb,1,2,s,5\n", "both rows of the shipment 's' are pickups"),
        ("id,x,y,window\nd,0,0,\na,1,1,9:00-\n", "is needed, or one end of it (from 08:00, until 10:00); write ;"),
        ("id,x,y,only\nd,0,0,\na,1,1,truck\n", "line 3: no vehicle is called 'truck'; there are 'vehicle'"),
    ],
)
def test_columns(text: str, words: str | None):
    if words is None:  # an empty column is no typing error
        assert parse_round(text.encode(), "a.csv") is not None
        return
    with pytest.raises(InputError) as raised:
        parse_round(text.encode(), "a.csv", options={"capacity": 100})
    assert words in str(raised.value)


def changed(*path: Any, to: Any) -> dict[str, Any]:
    document = copy.deepcopy(OWN)
    inner: Any = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return document


@pytest.mark.parametrize(
    ("path", "to", "words"),
    [
        (("lunch",), 1, "request: 'lunch' is not known; the keys are stops"),
        (("stops",), [], "request: 'stops' is empty; a list of stops is needed"),
        (("stops", 0), 7, "request, stop 1: 7; an object with x and y, or lat and lon, is needed"),
        (("stops", 0, "windows"), ["10:00", "08:00"], "request, stop 1: windows runs backwards"),
        (("stops", 0, "windows"), [[5]], "request, stop 1: windows is a list; a stretch"),
        (("stops", 0, "service"), -1, "request, stop 1: service is -1"),
        (("stops", 0, "id"), "Apotheke", "request, stop 2: the id 'Apotheke' is already used in stop 1"),
        (("stops", 1, "skills"), ["lift"], "request, stop 2: 'Apotheke' needs the skill 'lift', which no vehicle has"),
        (("stops", 0, "servce"), 5, "request: 'servce' is not known; did you mean 'service'?"),
        (("vehicles", 0), 3, "request, vehicle 1: 3; an object is needed"),
        (("vehicles", 0, "kept"), ["nobody"], "request, vehicle 1: keeps 'nobody', which is not the id of a stop"),
        (("vehicles", 0, "breaks"), [{"id": 1, "load": 3}], "request, vehicle 1, break 1: 'load' is not known"),
        (("shipments",), [["Bäcker"]], "request, shipment 1: the ids of pickup and delivery are needed"),
        (("shipments",), [["Bäcker", "Nobody"]], "request, shipment 1: its half 'Nobody' is not the id of a stop"),
        (("shipments",), [["Bäcker", None]], "request, shipment 1: its other half is missing"),
        (("durations",), [[0, 1], [1, 0]], "request: 2 rows of durations, but 4 of distances"),
        (("profiles",), {"car": {}}, "request, profile 'car': neither durations nor distances"),
    ],
)
def test_documents(path: tuple[Any, ...], to: Any, words: str):
    with pytest.raises(InputError) as raised:
        round_from_document(changed(*path, to=to))
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("document", [[], 3, None, "x", {}, {"jobs": []}, {"jobs": 1, "vehicles": 2}, {"stops": {}}])
def test_what_is_no_document(document: Any):
    with pytest.raises(InputError):
        round_from_document(document)


def test_broken_workbooks():
    pytest.importorskip("openpyxl")
    good = workbook(Stops=[["id", "x", "y", "service"], ["d", 0, 0, 0], ["a", 1, 1, 5]])
    for data in (good[:200], good[:-40], b"PK\x03\x04xl/workbook.xml"):
        with pytest.raises(InputError, match="an Excel workbook that cannot be read"):
            parse_round(data, "a.xlsx")
    with pytest.raises(InputError, match="no sheet of stops"):
        parse_round(workbook(Fahrzeuge=[["id"], ["v"]]), "a.xlsx")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("demnad", "demand"), ("servcie_time", "service_time"), ("window_strat", "window_start"), ("delivry", "delivery")],
)
def test_typing_errors_in_names_of_columns_are_refused(typed: str, meant: str) -> None:
    text = f"id,lat,lon,{typed},window\nd,52,5,,\na,52.1,5,3,08:00-10:00\n"
    with pytest.raises(InputError, match=f"'{typed}' is not known; did you mean '{meant}'"):
        parse_round(text.encode(), "tour.csv", options={"vehicles": "2", "capacity": "10", "speed": "30"})


def test_a_shipment_whose_pickup_is_given_as_a_delivery():
    text = "id,x,y,load,shipment\nd,0,0,,\na,3,4,5,S\nb,1,1,5,S\n"
    with pytest.raises(InputError, match=r"line 3: 'a' is where a shipment begins.*; give its 5 as pickup"):
        parse_round(text.encode(), "a.csv", options={"capacity": 9})


def test_a_file_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(InputError, match=r"nope\.csv: no such file"):
        read_round(tmp_path / "nope.csv")


def test_a_window_beside_one_of_its_ends():
    text = "id,x,y,window,window_end\nd,0,0,,\na,3,4,08:00-10:00,12:00\n"
    with pytest.raises(
        InputError, match=r"a\.csv, line 3: 'window' and 'window_end' both say when; leave one of them out"
    ):
        parse_round(text.encode(), "a.csv", options={"speed": 30})
