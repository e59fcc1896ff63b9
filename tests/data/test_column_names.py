"""Names of columns and keys in four languages: what they are taken for, what is noted, and what cannot be told."""

import json
import time

import pytest

from routelearn.data import csv_file, json_file, to_instance
from routelearn.data.names import MOST_COLUMNS, candidate, check_names, not_used, understand
from routelearn.errors import InputError
from routelearn.problems import PROBLEMS
from routelearn.problems.attributes import DEMAND
from routelearn.problems.cvrp import CVRP
from routelearn.solving import solve_stops

AMOUNTS = (
    *("quantity", "Qty", "amount", "weight", "Weight (kg)", "weight_kg", "load", "volume", "order quantity"),
    *("Liefermenge in kg", "Menge", "Liefermenge", "BEDARF", "Gewicht", "Stückzahl", "Gesamtmenge", "Menge [Stk]"),
    *("quantité", "QUANTITE", "Demande", "poids", "cantidad", "demanda", "Peso (kg)"),
)


@pytest.mark.parametrize("name", AMOUNTS)
def test_an_amount_is_the_demand_where_there_is_no_other(name):
    stops = csv_file.parse(f"x;y;{name}\n0;0;\n1;2;2,5\n", "a.csv")
    assert (stops.columns["demand"][1], stops.unused) == (2.5, ())
    stops = csv_file.parse(f"x;y;{name};Demand\n0;0;;0\n1;2;2,5;7\n", "a.csv")
    assert (stops.columns["demand"][1], stops.unused) == (7, (name,))
    stops = csv_file.parse(f"x;y;{name};demand\n0;0;;\n1;2;2,5;\n", "a.csv")  # an empty column is no other
    assert (stops.columns["demand"][1], stops.unused) == (2.5, ())
    with pytest.raises(InputError, match=r"a\.csv, line 3: .* is 'much', not a number") as caught:
        csv_file.parse(f"x;y;{name}\n0;0;\n1;2;much\n", "a.csv")
    assert name.split()[0] in str(caught.value)  # by the user's own word


def test_two_amounts_are_refused_in_one_line():
    told = "a.csv: 'Menge' and 'Gewicht' could both be the demand; name the one that counts 'demand'"
    with pytest.raises(InputError, match=told):
        csv_file.parse("x;y;Menge;Gewicht\n0;0;0;0\n1;2;3;4\n", "a.csv")
    assert csv_file.parse("x;y;Menge;Gewicht\n0;0;0;0\n1;2;3;0\n", "a.csv").columns["demand"] == (0, 3)


@pytest.mark.parametrize(
    "names",
    ["Breite;Länge", "Laenge;BREITE", "Breitengrad;Längengrad", "latitud;longitud", "Latitude;Longitude", "LAT.;LNG"],
)
def test_degrees_in_four_languages(names):
    north = names.upper().startswith("L") and "BREITE" in names
    values = "10,1;53,5\n10,2;53,6" if north else "53,5;10,1\n53,6;10,2"
    stops = csv_file.parse(f"{names}\n{values}\n", "a.csv")
    assert stops.latlon.tolist() == [[53.5, 10.1], [53.6, 10.2]]
    assert stops.unused == ()


@pytest.mark.parametrize("names", ["Länge;Gewicht", "Breite;Höhe", "Länge;Breite;Höhe", "Länge;Breite"])
def test_width_and_length_of_a_parcel_are_no_degrees(names):
    count = names.count(";") + 1
    stops = csv_file.parse(f"x;y;{names}\n0;0{';' * count}\n1;2{';4' * count}\n", "a.csv")
    assert stops.latlon is None
    assert set(stops.unused) == set(names.split(";")) - {"Gewicht"}


@pytest.mark.parametrize("name", ["Name", "Kunde", "nom", "Nombre", "client", "Customer Name"])
def test_names_of_stops(name):
    assert csv_file.parse(f"{name},x,y\nA,0,0\nB,1,2\n", "a.csv").ids == ("A", "B")


@pytest.mark.parametrize("name", ["ID", "Kennung", "identifiant", "Stop ID"])
def test_ids_of_stops(name):
    with pytest.raises(InputError, match="the id 'A' is already used"):
        csv_file.parse(f"{name},x,y\nA,0,0\nA,1,2\n", "a.csv")


@pytest.mark.parametrize(("name", "mark"), [("Depot", "ja"), ("Lager", "1"), ("dépôt", "oui"), ("almacén", "sí")])
def test_the_depot_is_marked(name, mark):
    assert csv_file.parse(f"x,y,{name}\n0,0,\n1,2,{mark}\n", "a.csv").depot == 1


def test_a_column_that_names_a_warehouse_marks_none():
    stops = csv_file.parse("x,y,Lager\n0,0,Nord\n1,2,Nord\n", "a.csv")
    assert (stops.depot, stops.unused) == (None, ("Lager",))


@pytest.mark.parametrize(
    ("name", "ours"), [("Gewinn", "prize"), ("premio", "prize"), ("Strafe", "penalty"), ("pénalité", "penalty")]
)
def test_prizes_and_penalties(name, ours):
    assert csv_file.parse(f"x,y,{name}\n0,0,0\n1,2,5\n", "a.csv").columns[ours].tolist() == [0, 5]


def test_what_nobody_claims_is_noted_and_what_the_problem_lacks():
    text = "Name;Fahrer;Straße;Lat;Lon;Menge;Leer\nA;Jo;Weg 1;53,5;10,0;;\nB;Al;Weg 2;53,6;10,1;4;\nC;;;53,7;10,3;2;\n"
    stops = csv_file.parse(text, "a.csv")
    assert stops.unused == ("Fahrer", "Straße")
    assert to_instance(stops, capacity=9).notes == ("not used: Fahrer, Straße",)
    assert to_instance(stops, "tsp").notes == ("not used: Menge, Fahrer, Straße",)
    assert solve_stops(stops, capacity=9, seconds=0).notes == ("not used: Fahrer, Straße",)


def test_keys_of_json_and_geojson_are_understood_and_noted():
    stops = json_file.parse(
        '{"Kapazität": 9, "depot": {"Breite": 53, "Länge": 10, "Tor": 4}, "stops": '
        '[{"Kunde": "A", "Breite": 53.1, "Länge": 10.1, "Menge": 3}, {"Breite": 53.2, "Länge": 10.2, "Menge": 4}]}',
        "a.json",
    )
    assert (stops.ids, stops.limits["capacity"], stops.columns["demand"]) == (("depot", "A", 2), 9, (0, 3, 4))
    assert stops.unused == ("Tor",)
    point = {"type": "Point", "coordinates": [10, 53]}
    features = [{"type": "Feature", "geometry": point, "properties": {"Menge": n, "color": "red"}} for n in (0, 3)]
    collection = {"type": "FeatureCollection", "name": "round", "style": "x", "features": features}
    assert json_file.parse(json.dumps(collection), "a.geojson").unused == ("style", "color")
    with pytest.raises(InputError, match="'capacity' is given twice, under two spellings"):
        json_file.parse('{"capacity": 3, "Kapazität": 4, "stops": [[1, 2]]}', "a.json")


CLOCKS = (
    "08:30",
    "8h30",
    "08:30:00",
    "08:00-10:00",
    "8:00 \u2013 10:00",
    "08:00 bis 10:00",
    "2026-05-04T08:30",
    "9 h",
    "8:30 Uhr",
)


@pytest.mark.parametrize("value", CLOCKS)
def test_clock_times_are_a_time_window_by_any_name(value):
    told = (
        r"a\.csv, line 3: 'Wunsch' holds clock times, so it states a time window, and time windows are not supported;"
    )
    with pytest.raises(InputError, match=told + " remove it to solve without"):
        csv_file.parse(f"x;y;Wunsch\n0;0;\n1;2;{value}\n3;4;{value}\n5;6;egal\n", "a.csv")
    with pytest.raises(InputError, match="stop 1: 'Wunsch' holds clock times"):
        json_file.parse(json.dumps([{"x": 1, "y": 2, "Wunsch": [value, value]}]), "a.json")


@pytest.mark.parametrize("value", ["8.30", "3", "A:30", "12:75", "1:100", "08", "Tor 08:30 klingeln"])
def test_other_values_are_no_clock_times(value):
    assert csv_file.parse(f"x;y;Wunsch\n0;0;\n1;2;{value}\n", "a.csv").unused == ("Wunsch",)


def test_many_columns_take_no_longer_than_they_must():
    def table(count):
        names = ",".join(f"note {i}" for i in range(count))
        return f"x,y,{names}\n" + "\n".join("1,2" + ",a" * count for _ in range(3))

    began = time.perf_counter()
    stops = csv_file.parse(table(MOST_COLUMNS - 2), "a.csv")
    assert not_used(stops.unused).endswith(f"note 11 and {MOST_COLUMNS - 14} more")
    with pytest.raises(InputError, match=r"line 1: 20,002 columns; at most 1,000 are read"):
        csv_file.parse(table(20_000), "a.csv")
    assert time.perf_counter() - began < 10
    check_names([f"note {i}" for i in range(20_000)], "a.csv")


class Crates(CVRP):
    name = "crates"
    attributes = (DEMAND._replace(also=("Kisten", "Gewinn")), *CVRP.attributes[1:])
    __hash__ = None  # as a dataclass has none


def test_the_words_of_a_plugin_are_understood_where_nobody_else_has_them(monkeypatch):
    text = "x,y,Kisten,Gewinn\n0,0,0,0\n1,2,3,4\n"
    assert csv_file.parse(text, "a.csv").unused == ("Kisten",)
    monkeypatch.setitem(PROBLEMS, "crates", Crates())
    stops = csv_file.parse(text, "a.csv")
    assert (stops.columns["demand"], stops.columns["prize"].tolist(), stops.unused) == ((0, 3), [0, 4], ())


@pytest.mark.parametrize("names", ["X-Koordinate;Y-Koordinate", "XCOORD.;YCOORD.", "coordonnée x;Coordonnée Y"])
def test_coordinates_in_the_plane(names):
    assert csv_file.parse(f"{names}\n1;2,5\n3;4\n", "a.csv").xy.tolist() == [[1, 2.5], [3, 4]]
    with pytest.raises(InputError, match=f"a.csv: a column {names.split(';')[0]} but no y"):
        csv_file.parse(f"{names.split(';')[0]};Ort\n1;A\n3;B\n", "a.csv")


def test_notes_stay_on_one_line():
    assert not_used(("",)) == "not used: (no name)"
    assert not_used(("a\nb", "c" * 99)) == f"not used: a b, {'c' * 40}"
    assert understand({}, "a") == {}
    assert candidate("Bemerkung") is None
