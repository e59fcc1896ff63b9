"""CSV of stops: the spellings people use are read, and mistakes are named with their line."""

from fractions import Fraction

import numpy as np
import pytest

from routelearn.data.csv_file import first_line, parse
from routelearn.data.stops import MOST_STOPS
from routelearn.errors import InputError


def test_plain_coordinates_get_numbers_as_ids():
    stops = parse("x,y\n0,1\n2.5,-3e1\n", "stops.csv")
    assert stops.ids == (1, 2)
    assert stops.where == ("line 2", "line 3")
    assert stops.metric == "euclidean"
    np.testing.assert_array_equal(stops.xy, [[0, 1], [2.5, -30]])
    assert stops.depot is None


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("name,x,y\nhub,0,1\nshop,2,3\n", ("hub", "shop")),
        ("name,x,y\nshop,0,1\nshop,2,3\n", (1, 2)),  # names need not be unique, ids must be
        ("name,x,y\nhub,0,1\n,2,3\n", ("hub", 2)),  # one without a name does not cost the others theirs
        ("name,x,y\n2,0,1\n,2,3\n", (1, 2)),  # but a number must not be the name of another
        ("name,id,x,y\nhub,a,0,1\nshop,b,2,3\n", ("a", "b")),
    ],
)
def test_a_column_of_names_calls_the_stops_where_there_is_no_id(text, ids):
    assert parse(text, "stops.csv").ids == ids


@pytest.mark.parametrize("names", ["lat,lon", "lat,lng", "Latitude,Longitude", " LAT , Long ", "stop_lat,stop_lon"])
def test_the_names_of_degrees(names):
    stops = parse(f"{names}\n52.1,4.3\n52.2,4.4\n", "stops.csv")
    assert stops.metric == "great-circle"
    np.testing.assert_array_equal(stops.latlon, [[52.1, 4.3], [52.2, 4.4]])


def test_a_spreadsheet_with_semicolons_decimal_commas_quotes_and_line_ends():
    text = 'ID;X;Y;Demand;Depot;Remark\r\n"the ""hub""";0,5;1;;1;\r\n'
    text += '"b; c";2,25;3;0,1;;"two\r\nlines"\r\n\r\nd;4;5;7;0;\r\n'
    stops = parse(text, "stops.csv")
    assert stops.ids == ('the "hub"', "b; c", "d")
    assert stops.where == ("line 2", "line 3", "line 6")
    np.testing.assert_array_equal(stops.xy, [[0.5, 1], [2.25, 3], [4, 5]])
    assert stops.columns["demand"] == (0, Fraction(1, 10), 7)
    assert stops.depot == 0


def test_tabs_and_every_column():
    text = "id\tx\ty\tprize\tpenalty\treal_prize\tdepot\na\t1\t2\t3\t4\t5\tno\nb\t1\t2\t0\t0\t0\tyes\n"
    stops = parse(text, "stops.tsv")
    assert stops.depot == 1
    for column, value in (("prize", 3), ("penalty", 4), ("real_prize", 5)):
        assert stops.columns[column].tolist() == [value, 0]


def test_the_names_of_public_transport():
    stops = parse("stop_id,stop_name,stop_lat,stop_lon\nA,Dam,52.37,4.89\nB,Blaak,51.92,4.48\n", "stops.txt")
    assert stops.ids == ("A", "B")
    assert stops.latlon.tolist() == [[52.37, 4.89], [51.92, 4.48]]


@pytest.mark.parametrize(
    "text",
    [
        "id|x|y\na|1|2,5\nb|3|4\n",
        "id x y\na 1 2,5\n  b   3 4 \n",
        "sep=;\r\nid;x;y\r\na;1;2,5\r\nb;3;4\r\n",
        '"sep=|"\nid|x|y\na|1|2.5\nb|3|4\n',
        "SEP=\t\nid\tx\ty\na\t1\t2.5\nb\t3\t4\n",
    ],
)
def test_pipes_blanks_and_the_delimiter_that_excel_declares(text):
    stops = parse(text, "stops.csv")
    assert stops.ids == ("a", "b")
    assert stops.xy.tolist() == [[1, 2.5], [3, 4]]
    assert stops.where == (("line 3", "line 4") if "sep" in text.lower() else ("line 2", "line 3"))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("id,demand\nW,\nB,2\n", ("W", "B")),
        ("name\nW\nB\n", ("W", "B")),
        ("Address,City\nDam 1,Amsterdam\nBlaak 2,Rotterdam\n", (1, 2)),
    ],
)
def test_with_a_matrix_no_places_are_needed(text, ids):
    stops = parse(text, "stops.csv", np.array([[0.0, 1], [2, 0]]))
    assert (stops.ids, stops.xy, stops.latlon) == (ids, None, None)
    assert stops.matrix.tolist() == [[0, 1], [2, 0]]


WINDOW, SERVICE, SHIFT = "time windows are not supported", "service times are not supported", "working hours are not"
VEHICLE, SKILL, PICKUP = "all vehicles are alike", "every vehicle serves every stop", "stops are delivered to"
GERMAN = [
    "Zeitfenster_von",
    "Zeitfenster_bis",
    "Öffnungszeit",
    "Oeffnungszeiten",
    "Lieferzeit",
    "Frühestens",
    "spätestens",
    "Uhrzeit",
]
FRENCH = ("fenêtre horaire", "créneau", "Créneau horaire", "horaires", "heure d'ouverture", "heure_fin")
SPANISH = ("ventana", "ventana horaria", "Horario", "hora_inicio", "hora de entrega", "ventana_hasta")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        *((name, WINDOW) for name in ("tw", "tw_start", "TW End", "time_window", "timeWindows", "ready", "Ready Time")),
        *((name, WINDOW) for name in ("due", "due_date", "open", "close", "opening_hours", "earliest", "deadline")),
        *((name, SERVICE) for name in ("service_time", "Service Time (min)", "service", "unloading-time")),
        *((name, WINDOW) for name in (*GERMAN, *FRENCH, *SPANISH, "delivery slot")),
        *((name, SERVICE) for name in ("Servicezeit", "Standzeit (min)", "durée de service", "Tiempo de servicio")),
        *((name, SHIFT) for name in ("Schicht", "Schicht_von", "shift", "turno")),
        *((name, VEHICLE) for name in ("Fahrzeug", "Fahrzeugtyp", "LKW", "véhicule", "camión", "tipo de vehículo")),
        *((name, SKILL) for name in ("Fähigkeit", "Faehigkeiten", "compétence", "compétences", "habilidad")),
        *((name, PICKUP) for name in ("Abholung", "Abholmenge", "ramassage", "recogida")),
        *((name, "give it as an option") for name in ("Kapazität", "capacité", "capacidad")),
        *((name, "give it as an option") for name in ("capacity", "vehicle_capacity", "max_length", "min_prize")),
        *((name, "all vehicles are alike") for name in ("vehicle", "vehicles", "vehicle_id", "truck")),
        ("skills", "every vehicle serves every stop"),
        ("pickup", "stops are delivered to"),
    ],
)
def test_a_rule_that_would_be_passed_over_is_refused(name, message):
    with pytest.raises(InputError, match=message) as caught:
        parse(f"x,y,{name}\n1,2,\n3,4,7\n", "stops.csv")
    assert str(caught.value).startswith("stops.csv, line 3: ")
    parse(f"x,y,{name}\n1,2,\n3,4,0\n", "stops.csv")  # where nothing is asked for, nothing is passed over


@pytest.mark.parametrize("name", ["notes", "time", "opened by", "phone", "loaded", "weather", "route", "closest", ""])
def test_notes_are_left_alone(name):
    assert parse(f"x,y,{name}\n1,2,3\n4,5,6\n", "stops.csv").ids == (1, 2)


def test_beside_a_demand_a_weight_is_a_note():
    assert parse("x,y,demand,weight\n1,2,,\n4,5,6,7\n", "stops.csv").columns["demand"] == (0, 6)


BROKEN = {
    "no header": ("1,2\n3,4\n", "line 1: no header"),
    "delimiters only": (";;\n;\n", "line 1: no header"),
    "no header, ids": ("a,1,2\nb,3,4\n", "line 1: no header"),
    "other header": (
        "Street,City\na,b\n",
        "line 1: no coordinates; the columns are 'Street', 'City', and none is x,y or lat,lon .*geocoded.*--matrix",
    ),
    "many columns": ("a;b;c;d;e;f;g\n", "the columns are 'a', 'b', 'c', 'd', 'e', ..., and none is x,y"),
    "XML": ('<?xml version="1.0"?><gpx><wpt lat="1" lon="2"/></gpx>', "XML .as GPX and KML are.*convert it to CSV"),
    "no stops": ("x,y\n", "a header but no stops"),
    "only x": ("x,demand\n1,2\n", "a column x but no y"),
    "no place": ("id,demand\na,2\n", "no coordinates; the columns are 'id', 'demand', and .*--matrix"),
    "both": ("x,y,lat,lon\n1,2,3,4\n", "both x, y and lat, lon"),
    "text": ("x,y\n1,2\n3,here\n", "line 3: y is 'here', not a number"),
    "nan": ("x,y\n1,nan\n", "line 2: y is 'nan', not a finite number"),
    "infinity": ("x,y\n1,-inf\n", "line 2: y is '-inf', not a finite number"),
    "overflow": ("x,y\n1,1e400\n", r"line 2: y is larger than 1e\+15"),
    "underscore": ("x,y\n1,1_000\n", "'1_000', not a number"),
    "thousands": ('x,y\n1,"1.000,5"\n', "'1.000,5', not a number; write it with a decimal point .* as 1000.5"),
    "missing cell": ("x,y\n1,\n", "line 2: no y"),
    "missing demand": ("x,y,demand\n1,2,\n3,4,5\n6,7,\n", "line 4: no demand"),
    "ragged": ("x,y\n1,2\n\n3\n", "line 4: 1 cells; the header names 2 columns"),
    "too many": ("x,y\n1,2,3\n", "line 2: 3 cells"),
    "same id": ("id,x,y\na,1,2\nb,3,4\na,5,6\n", "line 4: the id 'a' is already used in line 2"),
    "missing id": ("id,x,y\na,1,2\n,3,4\n", "line 3: no id"),
    "same column": ("x,y,x\n1,2,3\n", "two columns are named 'x'"),
    "typing slip": ("x,y,demnad\n1,2,3\n", "'demnad' is not known; did you mean 'demand'"),
    "two depots": ("x,y,depot\n1,2,1\n3,4,1\n", "line 3: a second depot; the first is in line 2"),
    "odd depot": ("x,y,depot\n1,2,maybe\n", "depot is 'maybe'; write 1"),
    "swapped": ("lat,lon\n4.3,52.1\n152.1,4.3\n", "line 3: latitude 152.1, longitude 4.3"),
    "open quote": ('x,y\n1,"2\n3,4\n', "line 2: not CSV"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_mistake_is_named_with_its_line(case):
    text, message = BROKEN[case]
    with pytest.raises(InputError, match=message) as caught:
        parse(text, "stops.csv")
    assert str(caught.value).startswith("stops.csv")
    assert "\n" not in str(caught.value)


def test_a_table_of_more_stops_than_are_read_is_not_read_on():
    """It is refused at the first row too many: a damaged line further on is never seen."""
    text = "x,y\n" + "1,2\n" * (MOST_STOPS + 10) + '"cut off'
    with pytest.raises(InputError, match=rf"line {MOST_STOPS + 3}: at most 100,000 rows are read; split the file"):
        parse(text, "many.csv")


@pytest.mark.parametrize("text", ["x,y\n1,2", "\n \r\n\tx\ty\r1\t2", "  x,y", "\r\rx,y\r1,2\r"])
def test_the_first_line_is_the_one_that_a_list_of_lines_has(text):
    assert first_line(text) == next(line for line in text.splitlines() if line.strip())
