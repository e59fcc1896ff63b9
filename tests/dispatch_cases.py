"""Files as dispatchers have them, in four languages; command line, HTTP and page must say the same of them."""

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

MORE_REFUSED = {
    "English, its windows": (
        "name,lat,lon,qty,tw_start,tw_end\nHub,51.50,-0.12,,08:00,16:00\nAnn,51.51,-0.13,4,08:00,10:00\n",
        "utf-8", f"line 2: 'tw_start' states a time window, and {NO_WINDOWS}",
    ),
    "English, ready and due in minutes": (
        "id,x,y,demand,Ready Time,Due Date\n0,0,0,0,0,230\n1,3,4,5,10,40\n",
        "utf-8", f"line 2: 'Due Date' states a time window, and {NO_WINDOWS}",
    ),
    "English, service": (
        "id;x;y;demand;Service Time\n0;0;0;0;0\n1;3;4;5;10\n",
        "utf-8", "line 3: 'Service Time' states a service time, and service times are not supported",
    ),
    "German, opening hours": (
        "Kunde;X;Y;Öffnungszeit\nA;0;0;\nB;3;4;8-12\n",
        "cp1252", f"line 3: 'Öffnungszeit' states a time window, and {NO_WINDOWS}",
    ),
    "German, skills": (
        "Kunde;X;Y;Fähigkeit\nA;0;0;\nB;3;4;Kran\n",
        "utf-8", "line 3: 'Fähigkeit' is not supported: every vehicle serves every stop",
    ),
    "German, what is fetched": (
        "Kunde;X;Y;Menge;Abholmenge\nA;0;0;;\nB;3;4;2;1\n",
        "utf-8", "line 3: 'Abholmenge' is not supported: stops are delivered to",
    ),
    "German, the shift": (
        "Kunde;X;Y;Schicht\nA;0;0;\nB;3;4;früh\n",
        "utf-8", "line 3: 'Schicht' states a shift, and working hours are not supported",
    ),
    "French, a slot": (
        "Nom;X;Y;Créneau horaire\nA;0;0;\nB;3;4;8h-10h\n",
        "utf-8", f"line 3: 'Créneau horaire' states a time window, and {NO_WINDOWS}",
    ),
    "French, the time at the door": (
        "Nom;X;Y;Durée de service\nA;0;0;\nB;3;4;5\n",
        "cp1252", "line 3: 'Durée de service' states a service time, and service times are not supported",
    ),
    "Spanish, hours": (
        "Nombre;X;Y;Horario de entrega\nA;0;0;\nB;3;4;8-10\n",
        "utf-8", f"line 3: 'Horario de entrega' states a time window, and {NO_WINDOWS}",
    ),
    "Spanish, what is fetched": (
        "Nombre;X;Y;Recogida\nA;0;0;\nB;3;4;5\n",
        "utf-8", "line 3: 'Recogida' is not supported: stops are delivered to",
    ),
    "German, a capacity for each stop": (
        "Kunde;X;Y;Menge;Kapazität\nA;0;0;;12\nB;3;4;5;12\n",
        "utf-8", "line 2: 'Kapazität' holds for all stops at once; give it as an option (--capacity",
    ),
}  # fmt: skip
REFUSED |= MORE_REFUSED
