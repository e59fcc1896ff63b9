"""One round in every format, and small texts of the libraries."""

from __future__ import annotations

import io
import json
from typing import Any

STOPS_CSV = """\
Name;Straße;Lat;Lon;Menge;Zeitfenster_von;Zeitfenster_bis;Servicezeit;Fähigkeiten
Lager Nord;Kai 1;53,5;10,0;;08:00;16:00;;
Bäcker;Weg 1;53,51;10,01;5;08:00;10:00;5;
Apotheke;Weg 2;53,52;10,02;4;09:30;12:00;8;Kühlung
Blumen;Weg 3;53,48;9,99;3,5;;;10;
"""
VEHICLES_CSV = """\
Fahrzeug;Kapazität;Schicht_von;Schicht_bis;Fähigkeiten;cost per distance
Van 1;100;08:00;16:00;Kühlung;1
Van 2;60;08:30;15:00;;1
"""
DURATIONS = [[0, 100, 200, 300], [110, 0, 150, 250], [210, 160, 0, 350], [310, 260, 340, 0]]
DISTANCES = [[0, 1000, 2000, 3000], [1100, 0, 1500, 2500], [2100, 1600, 0, 3500], [3100, 2600, 3400, 0]]
OSRM = json.dumps({"code": "Ok", "durations": DURATIONS, "distances": DISTANCES})
H = 3600

OWN: dict[str, Any] = {
    "depot": {"id": "Lager Nord", "lat": 53.5, "lon": 10.0, "windows": "08:00-16:00"},
    "stops": [
        {"id": "Bäcker", "lat": 53.51, "lon": 10.01, "delivery": 5, "windows": ["08:00", "10:00"], "service": 300},
        {
            "id": "Apotheke",
            "lat": 53.52,
            "lon": 10.02,
            "delivery": [4],
            "windows": [["09:30", "12:00"]],
            "service": "8 min",
            "skills": ["Kühlung"],
        },
        {"id": "Blumen", "lat": 53.48, "lon": 9.99, "delivery": 3.5, "service": 600},
    ],
    "vehicles": [
        {"id": "Van 1", "capacity": 100, "shift": "08:00-16:00", "skills": ["Kühlung"], "distance_cost": 1},
        {"id": "Van 2", "capacity": 60, "shift": ["08:30", "15:00"], "distance_cost": 1},
    ],
    "durations": DURATIONS,
    "distances": DISTANCES,
}
VROOM: dict[str, Any] = {
    "jobs": [
        {
            "id": "Bäcker",
            "location": [10.01, 53.51],
            "location_index": 1,
            "delivery": [5],
            "service": 300,
            "time_windows": [[8 * H, 10 * H]],
        },
        {
            "id": "Apotheke",
            "location": [10.02, 53.52],
            "location_index": 2,
            "delivery": [4],
            "service": 480,
            "time_windows": [[9.5 * H, 12 * H]],
            "skills": ["Kühlung"],
        },
        {"id": "Blumen", "location": [9.99, 53.48], "location_index": 3, "delivery": [3.5], "service": 600},
    ],
    "vehicles": [
        {
            "id": "Van 1",
            "start": [10.0, 53.5],
            "start_index": 0,
            "end_index": 0,
            "capacity": [100],
            "time_window": [8 * H, 16 * H],
            "skills": ["Kühlung"],
            "costs": {"per_hour": 0, "per_km": 1000},
        },
        {
            "id": "Van 2",
            "start_index": 0,
            "end_index": 0,
            "capacity": [60],
            "time_window": [8.5 * H, 15 * H],
            "costs": {"per_hour": 0, "per_km": 1000},
        },
    ],
    "matrices": {"car": {"durations": DURATIONS, "distances": DISTANCES}},
}


def workbook(**sheets: list[list[Any]]) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


SOLOMON = """\
tiny

VEHICLE
NUMBER     CAPACITY
  2         20

CUSTOMER
CUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  DUE DATE   SERVICE   TIME

    0      0         0          0          0       1000          0
    1      3         4         10          5        100         10
    2     -1         1          7         40         70         10
"""
LI_LIM = """\
2\t20\t1
0\t0\t0\t0\t0\t1000\t0\t0\t0
1\t3\t4\t10\t5\t100\t10\t0\t2
2\t-1\t1\t-10\t40\t700\t10\t1\t0
"""
CORDEAU = """\
6 2 2 2
200 80
0 90
1 3 4 5 7 1 1 1 10 90
2 -1 1 6 8 1 1 1 20 80
3 0 0 0 0 0 0 0 500
4 9 9 0 0 0 0 0 600
"""
EVERYTHING = """\
NAME : everything
COMMENT : all sections of the dialect
TYPE : MDVRPTW
DIMENSION : 5
VEHICLES : 3
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 10 0
3 3 4
4 6 8
5 1 1
DEMAND_SECTION
1 0
2 0
3 5
4 0
5 2
BACKHAUL_SECTION
1 0
2 0
3 0
4 3
5 1
TIME_WINDOW_SECTION
1 0 900
2 5 800
3 0 400
4 10 500
5 0 600
SERVICE_TIME_SECTION
1 0
2 0
3 10
4 11
5 12
RELEASE_TIME_SECTION
1 0
2 0
3 7
4 8
5 9
PRIZE_SECTION
1 0
2 0
3 0
4 50
5 0
CAPACITY_SECTION
1 10
2 10
3 20
VEHICLES_DEPOT_SECTION
1 1
2 1
3 2
VEHICLES_RELOAD_DEPOT_SECTION
1 1
2 1
3 2
VEHICLES_MAX_RELOADS_SECTION
1 2
2 2
3 1
VEHICLES_MAX_DURATION_SECTION
1 300
2 300
3 400
VEHICLES_MAX_DISTANCE_SECTION
1 100
2 100
3 200
VEHICLES_FIXED_COST_SECTION
1 5
2 5
3 6
VEHICLES_UNIT_DISTANCE_COST_SECTION
1 1
2 1
3 2
VEHICLES_ALLOWED_CLIENTS_SECTION
1 3 5
2 3 5
3 3 4 5
DEPOT_SECTION
1
2
-1
EOF
"""
SHIPMENTS = """\
NAME : pairs
TYPE : PDPTW
DIMENSION : 3
VEHICLES : 1
CAPACITY : 10
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 3 4
3 6 8
PICKUP_AND_DELIVERY_SECTION
1 0 0 100 0 0 0
2 4 0 50 1 0 3
3 -4 0 90 2 2 0
DEPOT_SECTION
1
-1
EOF
"""
