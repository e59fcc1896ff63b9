"""One round as CSV, Excel, VROOM's JSON, our JSON and over HTTP: equal seeds and iterations give equal plans."""

from __future__ import annotations

import io
import json
import random

import pytest

from routelearn.rounds.files import parse_round
from routelearn.rounds.solving import solve_round

httpx = pytest.importorskip("httpx")
openpyxl = pytest.importorskip("openpyxl")
pytestmark = pytest.mark.extra
STOPS, ITERATIONS, SEED = 40, 1500, 3
HEADER = ["id", "lat", "lon", "demand", "window_start", "window_end", "service (s)"]
FLEET = [["id", "capacity", "shift_start", "shift_end", "distance_cost"]]
FLEET += [[f"van {k}", holds, "08:00", "16:00", 1] for k, holds in enumerate((80, 80, 50), 1)]


def clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}"


@pytest.fixture(scope="module")
def formats() -> dict:
    """The round's table, its matrix as OSRM gives it, and the same as a document of ours and of VROOM's."""
    rng = random.Random(1)
    places = [(53.5, 10.0)] + [(53.5 + rng.uniform(-0.1, 0.1), 10 + rng.uniform(-0.1, 0.1)) for _ in range(STOPS)]
    distances = [[round(1e5 * ((a - c) ** 2 + (b - d) ** 2) ** 0.5) for c, d in places] for a, b in places]
    durations = [[round(metres / 9) for metres in row] for row in distances]
    stops = [(f"S{i}", *places[i], rng.randint(1, 8), 3600 * (early := rng.randint(8, 12)), 3600 * (early + 3),
              60 * rng.randint(2, 8)) for i in range(1, STOPS + 1)]  # fmt: skip
    table = [[*one[:4], clock(one[4]), clock(one[5]), one[6]] for one in stops]
    yard = {"id": "yard", "lat": places[0][0], "lon": places[0][1]}
    own = {
        "depot": yard,
        "stops": [
            {
                "id": name,
                "lat": lat,
                "lon": lon,
                "delivery": amount,
                "windows": [[clock(low), clock(high)]],
                "service": s,
            }
            for name, lat, lon, amount, low, high, s in stops
        ],
        "vehicles": [
            {"id": name, "capacity": holds, "shift": [low, high], "distance_cost": price}
            for name, holds, low, high, price in FLEET[1:]
        ],
        "durations": durations,
        "distances": distances,
    }
    vroom = {
        "jobs": [
            {"id": i, "description": one[0], "location_index": i, "delivery": [one[3]], "service": one[6],
             "time_windows": [[one[4], one[5]]]} for i, one in enumerate(stops, 1)
        ],
        "vehicles": [
            {"id": k, "start_index": 0, "end_index": 0, "capacity": [row[1]], "time_window": [8 * 3600, 16 * 3600],
             "costs": {"per_hour": 0, "per_km": 1000}} for k, row in enumerate(FLEET[1:], 1)
        ],
        "matrices": {"car": {"durations": durations, "distances": distances}},
    }  # fmt: skip
    matrix = json.dumps({"code": "Ok", "durations": durations, "distances": distances}).encode()
    rows = [HEADER, ["yard", *places[0], None, None, None, None], *table]
    return {"rows": rows, "own": own, "vroom": vroom, "matrix": (matrix, "osrm.json")}


def lines(rows: list) -> bytes:
    return "\n".join(",".join("" if cell is None else str(cell) for cell in row) for row in rows).encode()


def workbook(**sheets: list) -> bytes:
    book, out = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(out)
    return out.getvalue()


def planned(found) -> tuple:
    """What is compared: who visits what at which second, by number, since VROOM's ids are numbers."""
    assert found is not None
    plan = solve_round(found, iterations=ITERATIONS, seed=SEED).plan
    visits = [[(one.stop, one.arrival, one.departure) for one in route.visits] for route in plan.routes]
    return [route.vehicle for route in plan.routes], visits, plan.cost


def test_equal_plans_from_every_format_and_over_http(server, formats):
    matrix, rows = formats["matrix"], formats["rows"]
    csv = parse_round(lines(rows), "tour.csv", matrix=matrix, vehicles=(lines(FLEET), "vans.csv"))
    excel = parse_round(workbook(stops=rows, vehicles=FLEET), "tour.xlsx", matrix=matrix)
    expected = planned(csv)
    assert sum(stop is not None for route in expected[1] for stop, _, _ in route) == STOPS
    assert planned(excel) == expected
    assert planned(parse_round(json.dumps(formats["own"]).encode(), "own.json")) == expected
    assert planned(parse_round(json.dumps(formats["vroom"]).encode(), "vroom.json")) == expected
    for body in (formats["own"], formats["vroom"]):
        asked = {**body, "iterations": ITERATIONS, "seed": SEED}
        answer = httpx.post(server.url + "/solve", json=asked, timeout=300).json()
        assert answer["cost"] == pytest.approx(expected[2], rel=1e-12)
        stops = [[int(name.lstrip("S")) - 1 for name in route["stops"]] for route in answer["routes"]]
        assert stops == [[stop for stop, _, _ in route if stop is not None] for route in expected[1]]
