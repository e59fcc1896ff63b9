"""Files as dispatchers have them, in four languages: what is read, what is noted, and what is refused."""

import pytest

from routelearn.data import read_stops
from routelearn.errors import InputError
from routelearn.solving import solve_stops

TOUR = (
    "Name;Straße;Lat;Lon;Menge;Zeitfenster_von;Zeitfenster_bis;Servicezeit\r\n"
    "Lager Hamburg;Billstraße 12;53,5389;10,0367;;08:00;16:00;\r\n"
    "Blumen Özgür 1;Hauptstraße 1;53,53721;10,04603;5;08:00;10:00;5\r\n"
    "Bäckerei Müller 2;Hauptstraße 2;53,53851;10,02325;4;08:00;10:00;8\r\n"
    "Café Größe 3;Am Markt 3;53,55011;10,01525;3;09:00;12:00;5\r\n"
)
CP1252 = "read as Windows text (cp1252), since it is not UTF-8"
NO_WINDOWS = "time windows are not supported; rename it, or remove it to solve without"


def without(text, count):
    """The text without its last columns."""
    return "\r\n".join(";".join(line.split(";")[:-count]) for line in text.splitlines()) + "\r\n"


# name: (content, encoding, options, routes' stops or None, notes)
SOLVED = {
    "German": (without(TOUR, 3), "utf-8", {"capacity": 12}, 3, ("not used: Straße",)),
    "German, with BOM": (without(TOUR, 3), "utf-8-sig", {"capacity": 12}, 3, ("not used: Straße",)),
    "German, cp1252": (without(TOUR, 3), "cp1252", {"capacity": 12}, 3, (CP1252, "not used: Straße")),
    "German, degrees by their other names": (
        "Kunde;Fahrer;Breite;Länge;Gewicht (kg)\nLager;;53,54;10,03;\nA;Jo;53,55;10,02;12,5\nB;Jo;53,53;10,01;80\n",
        "utf-8", {"capacity": 100}, 2, ("not used: Fahrer",),
    ),
    "French": (
        "Nom;Adresse;Latitude;Longitude;Quantité;Dépôt\nEntrepôt;1 rue A;48,85;2,35;;oui\n"
        "Été;2 rue B;48,86;2,36;4;non\nNoël;3 rue C;48,87;2,31;2;non\n",
        "cp1252", {"capacity": 5}, 2, (CP1252, "not used: Adresse"),
    ),
    "Spanish": (
        "Nombre,Dirección,Latitud,Longitud,Cantidad,Almacén\nBase,Calle 1,40.41,-3.70,,sí\n"
        "Niño,Calle 2,40.42,-3.71,4,no\nPeña,Calle 3,40.43,-3.69,2,no\n",
        "utf-8", {"capacity": 10}, 2, ("not used: Dirección",),
    ),
    "English": (
        "Customer Name,Phone,Postcode,Lat,Lng,Qty\nHub,,N1,51.50,-0.12,\nAnn,123,N2,51.51,-0.13,4\n"
        "Bob,456,N3,51.52,-0.10,3\n",
        "utf-8", {"capacity": 10}, 2, ("not used: Phone, Postcode",),
    ),
    "English, one pair swapped": (
        "name,lat,lon\nHub,51.50,-0.12\nAnn,51.51,-0.13\nBob,51.52,-0.10\nCy,51.53,-0.11\nDi,51.54,-0.12\nEd,-0.14,51.50\n",
        "utf-8", {}, 6, ("far from all others: 'Ed' (line 7); lat and lon may be swapped there",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SOLVED)
def test_a_file_is_solved_and_its_notes_say_what_is_not_used(case, tmp_path):
    text, encoding, options, visited, notes = SOLVED[case]
    (tmp_path / "tour.csv").write_bytes(text.encode(encoding))
    [stops] = read_stops(tmp_path / "tour.csv")
    solution = solve_stops(stops, seconds=0, policy=False, **options)
    assert sum(map(len, solution.routes)) == visited
    assert solution.notes == notes


REFUSED = {
    "German, its windows": (TOUR, "utf-8", f"line 2: 'Zeitfenster_von' states a time window, and {NO_WINDOWS}"),
    "German, cp1252": (TOUR, "cp1252", f"line 2: 'Zeitfenster_von' states a time window, and {NO_WINDOWS}"),
    "German, its service": (
        TOUR.replace("Zeitfenster_von;Zeitfenster_bis", "a;b").replace("08:00", "").replace("10:00", "")
        .replace("16:00", "").replace("09:00", "").replace("12:00", ""),
        "utf-8",
        "line 3: 'Servicezeit' states a service time, and service times are not supported; rename it, or remove it",
    ),
    "French, clock times by any name": (
        "Nom;Latitude;Longitude;Matin\nA;48,85;2,35;\nB;48,86;2,36;8h30\nC;48,87;2,31;9h15 - 10h\n",
        "utf-8",
        "line 3: 'Matin' holds clock times, so it states a time window, and time windows are not supported; remove it",
    ),
    "Spanish, the lorry": (
        "Nombre,Latitud,Longitud,Camión\nA,40.41,-3.70,\nB,40.42,-3.71,grande\n",
        "utf-8",
        "line 3: 'Camión' is not supported: all vehicles are alike, and there are as many as it takes; rename it",
    ),
    "English, two amounts": (
        "name,lat,lon,weight_kg,volume\nHub,51.50,-0.12,,\nAnn,51.51,-0.13,4,2\n",
        "utf-8",
        ": 'weight_kg' and 'volume' could both be the demand; name the one that counts 'demand'",
    ),
    "the list of vans": (
        "Fahrzeug;Kapazität;Schicht_von;Schicht_bis\nVan 1;100;08:00;16:00\n",
        "utf-8",
        "line 1: no coordinates; the columns are 'Fahrzeug', 'Kapazität', 'Schicht_von', 'Schicht_bis'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_with_a_rule_is_refused_with_its_line_and_column(case, tmp_path):
    text, encoding, told = REFUSED[case]
    (tmp_path / "tour.csv").write_bytes(text.encode(encoding))
    with pytest.raises(InputError) as caught:
        read_stops(tmp_path / "tour.csv")
    assert told in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "tour.csv"))
    assert "\n" not in str(caught.value)
