"""Texts of the libraries: every section is read, and shared files agree with PyVRP's own reader and published costs."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from round_samples import CORDEAU, EVERYTHING, LI_LIM, SHIPMENTS, SOLOMON

from routelearn.errors import InputError
from routelearn.rounds.files import parse_round
from routelearn.rounds.model import ANY, FOREVER, Round

FOLDER = os.environ.get("ROUTELEARN_ROUNDS")
shared = pytest.mark.skipif(not FOLDER, reason="ROUTELEARN_ROUNDS does not name the folder of benchmark rounds")


def read(text: str, source: str = "a.vrp", **options: object) -> Round:
    found = parse_round(text.encode(), source, options=options)
    assert found is not None
    return found


def test_every_section_of_the_dialect():
    found = read(EVERYTHING)
    assert [stop.id for stop in found.stops] == ["3", "4", "5"]
    first, second, third = found.stops
    assert (first.delivery, first.pickup, second.pickup, third.delivery) == ((5.0,), (0.0,), (3.0,), (2.0,))
    assert (first.windows, first.service, first.release) == (((0.0, 400.0),), 10.0, 7.0)
    assert [stop.penalty for stop in found.stops] == [None, 50.0, None]
    assert [stop.only for stop in found.stops] == [None, frozenset({"3"}), None]
    pair, third_van = found.vehicles
    assert (pair.id, pair.number, pair.capacity, pair.start, pair.end) == ("1-2", 2, (10.0,), 0, 0)
    assert (pair.trips, pair.reloads, pair.max_duration, pair.max_distance) == (3, (0,), 300.0, 100.0)
    assert (third_van.id, third_van.number, third_van.start, third_van.fixed_cost) == ("3", 1, 1, 6.0)
    assert (third_van.distance_cost, third_van.shift, pair.shift) == (2.0, (5.0, 800.0), (0.0, 900.0))
    assert found.rounding == "exact"
    assert found.legs[ANY].distance[0, 4] == 1.414
    assert found.where == ("line 10", "line 11", "line 12")


def test_pairs():
    found = read(SHIPMENTS)
    assert found.shipments == ((0, 1),)
    pickup, delivery = found.stops
    assert (pickup.pickup, pickup.delivery, delivery.delivery) == ((4.0,), (0.0,), (4.0,))
    assert (delivery.windows, delivery.service) == (((0.0, 90.0),), 2.0)


@pytest.mark.parametrize(
    ("rounding", "leg"), [("nearest", 1.0), ("dimacs", 1.4), ("exact", 1.414), ("none", 2**0.5), (None, 1.4)]
)
def test_rounding(rounding, leg):
    found = read(SOLOMON, "a.txt", round=rounding)
    assert found.legs[ANY].distance[0, 2] == leg
    assert found.legs[ANY].duration[0, 2] == leg
    assert found.rounding == (rounding or "dimacs")


def test_times_are_rounded_alike():
    text = SOLOMON.replace("  5        100         10", "  5.27     100.99      10.55")
    assert read(text, "a.txt").stops[0].windows == ((5.2, 100.9),)
    assert read(text, "a.txt").stops[0].service == 10.5
    assert read(text, "a.txt", round="nearest").stops[0].windows == ((5.0, 101.0),)


def test_a_clock_beside_times_that_are_numbers():
    with pytest.raises(InputError, match="c101: its times are numbers; give --shift as numbers, too, such as 0-1000"):
        parse_round(SOLOMON.encode(), "c101", options={"shift": "8:00-16:00"})


def test_solomon():
    found = read(SOLOMON, "a.txt")
    assert [(s.id, s.delivery, s.windows, s.service) for s in found.stops] == [
        ("1", (10.0,), ((5.0, 100.0),), 10.0),
        ("2", (7.0,), ((40.0, 70.0),), 10.0),
    ]
    (van,) = found.vehicles
    assert (van.number, van.capacity, van.shift, van.start) == (2, (20.0,), (0.0, 1000.0), 0)
    assert found.objective == "cost"


def test_li_lim():
    found = read(LI_LIM, "a.txt")
    assert found.shipments == ((0, 1),)
    assert found.stops[0].pickup == found.stops[1].delivery == (10.0,)
    assert (found.objective, found.rounding) == ("vehicles", "none")


def test_cordeau():
    found = read(CORDEAU, "a.txt")
    assert [(v.id, v.number, v.start, v.max_duration, v.capacity, v.shift) for v in found.vehicles] == [
        ("depot 3", 2, 2, 200.0, (80.0,), (0.0, 500.0)),
        ("depot 4", 2, 3, FOREVER, (90.0,), (0.0, 600.0)),
    ]
    assert [(s.id, s.service, s.delivery, s.windows) for s in found.stops] == [
        ("1", 5.0, (7.0,), ((10.0, 90.0),)),
        ("2", 6.0, (8.0,), ((20.0, 80.0),)),
    ]
    assert found.rounding == "none"


CVRP = """\
NAME : plain
TYPE : CVRP
DIMENSION : 3
CAPACITY : 10
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 3 4
3 6 8
DEMAND_SECTION
1 0
2 4
3 5
DEPOT_SECTION
1
-1
EOF
"""


def test_plain_cvrp_stays_what_it_is():
    assert parse_round(CVRP.encode(), "a.vrp") is None
    assert parse_round(CVRP.replace("CAPACITY", "DISTANCE : 99999\nCAPACITY").encode(), "a.vrp") is None
    found = parse_round(CVRP.encode(), "a.vrp", problem="vrp")
    assert found is not None
    assert (found.rounding, found.vehicles[0].number, found.vehicles[0].capacity) == ("nearest", None, (10.0,))
    assert parse_round(CVRP.encode(), "a.vrp", problem="cvrp") is None
    assert parse_round(EVERYTHING.encode(), "a.vrp", problem="cvrp") is None


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (CVRP, {"vehicles": "0"}, "--vehicles '0'; a whole number between 1 and 10,000 is needed"),
        (CVRP, {"capacity": "3,4"}, "a.vrp: --capacity has 2 numbers, but the file has one kind of vehicles; give one"),
        (CORDEAU, {"vehicles": 3}, "a.vrp: the file gives 2 kinds of vehicles, and how many there are of each; leave"),
        (CORDEAU, {"capacity": "3,4,5"}, "the file has 2 kinds of vehicles; give one, or one for each kind"),
    ],
)
def test_options_that_do_not_fit_the_files_vehicles_are_told(text, options, words):
    with pytest.raises(InputError, match=re.escape(words)):
        parse_round(text.encode(), "a.vrp", options=options, problem="vrp")


def test_a_file_without_a_capacity_is_noted():
    words = "stops have amounts, but the file no CAPACITY, so that vehicles hold any (--capacity)"
    text = CVRP.replace("CAPACITY : 10\n", "")
    found = read(text, vehicles="2")
    assert (found.vehicles[0].capacity, found.notes) == ((FOREVER,), (words,))
    assert words not in read(CVRP, vehicles="2").notes
    assert words not in read(text, vehicles="2", capacity="9").notes
    assert words not in read(text.replace("2 4\n3 5", "2 0\n3 0"), vehicles="2").notes


@pytest.mark.parametrize("keyword", ["DIMENSION", "VEHICLES"])
def test_a_keyword_that_is_no_whole_number_is_named(keyword):
    text = CVRP.replace("DIMENSION : 3\n", "DIMENSION : 3\nVEHICLES : 2\n")
    with pytest.raises(InputError, match=rf"a\.vrp, line \d: {keyword} is '1\.5'; a whole number is needed"):
        read(re.sub(rf"{keyword} : \d", f"{keyword} : 1.5", text), vehicles="2")


def test_limits_of_older_files_make_a_round():
    found = read(CVRP.replace("CAPACITY", "DISTANCE : 30\nSERVICE_TIME : 2\nCAPACITY"))
    assert (found.vehicles[0].max_duration, found.stops[0].service) == (30.0, 2.0)


def test_a_short_shift_of_a_library_file_is_no_stretch_of_hours():
    assert read(SOLOMON, "a.txt", shift="5-20", allow_unassigned=True).vehicles[0].shift == (5.0, 20.0)


def test_options_change_the_vehicles_of_a_file():
    found = read(SOLOMON, "a.txt", vehicles=5, capacity="30", max_stops=1, objective="vehicles", allow_unassigned=True)
    (van,) = found.vehicles
    assert (van.number, van.capacity, van.max_stops) == (5, (30.0,), 1)
    assert (found.objective, found.allow_unassigned) == ("vehicles", True)
    with pytest.raises(InputError, match="durations are lengths in this format; leave --speed out"):
        read(SOLOMON, "a.txt", speed=30)


@pytest.mark.parametrize(
    ("text", "source", "words"),
    [
        (CORDEAU.replace("6 2 2 2", "1 2 2 2"), "a.txt", "a.txt, line 1: PVRP is not supported; VRP, MDVRP, VRPTW"),
        (CORDEAU.replace("6 2 2 2", "6 2 3 2"), "a.txt", "3 customers and 2 depots, but 4 lines"),
        (LI_LIM.replace("\t1\t0\n", "\t5\t0\n"), "a.txt", "a.txt, line 3: a shipment without its other half; task 2"),
        (SHIPMENTS.replace("3 -4 0 90 2 2 0", "3 -4 0 90 2 0 0"), "a.vrp", "line 13: a shipment without its other"),
        (SOLOMON.replace("    2     -1", "    1     -1"), "a.txt", "line 12: customer '1' is already given in line 11"),
        (
            SOLOMON.replace("5        100 ", "105      100 "),
            "a.txt",
            r"the window ends \(100\) before it begins \(105\)",
        ),
        (EVERYTHING.replace("PRIZE_SECTION", "MUTUALLY_EXCLUSIVE_GROUP_SECTION"), "a.vrp", "MUTUALLY_EXCLUSIVE_GROUP"),
        (EVERYTHING.replace("PRIZE_SECTION", "FLEET_SECTION"), "a.vrp", "'FLEET_SECTION' is not supported"),
        (EVERYTHING.replace("VEHICLES : 3", "VEHICLES : 2"), "a.vrp", "vehicle 3 is given twice, or there are only 2"),
        (EVERYTHING.replace("VEHICLES : 3", "VEHICLES : 4"), "a.vrp", "has no line for vehicle 4"),
        (EVERYTHING.replace("COMMENT :", "LUNCH :"), "a.vrp", "line 2: 'LUNCH' is not supported"),
        (EVERYTHING.replace("3 10\n", "3 -10\n"), "a.vrp", "a.vrp, line 10: service is -10; it cannot be negative"),
        (
            SOLOMON.replace("         20", "          5"),
            "a.txt",
            "line 11: '1' has an amount of 10, more than any vehicle",
        ),
    ],
)
def test_bad_library_files(text, source, words):
    with pytest.raises(InputError, match=words) as raised:
        parse_round(text.encode(), source)
    assert "\n" not in str(raised.value)


# ------------------------------------------------------------------------------- against independent readings


def pyvrp_agrees(text: str, found: Round, path: Path) -> None:
    pyvrp = pytest.importorskip("pyvrp")
    path.write_text(text, encoding="utf-8")
    names = {"nearest": "round", "none": "none", "dimacs": "dimacs", "exact": "exact"}
    scale = {"nearest": 1, "none": 1, "dimacs": 10, "exact": 1000}[found.rounding]
    theirs = pyvrp.read(path, round_func=names[found.rounding])
    whole = found.rounding != "none"
    tolerance = 1e-6 if whole else 1.0  # PyVRP cuts what is not rounded
    clients = theirs.clients()
    assert len(clients) == len(found.stops)
    for stop, client in zip(found.stops, clients, strict=True):
        low, high = stop.windows[0]
        assert client.location == stop.place
        assert np.allclose(client.delivery, np.array(stop.delivery) * scale, atol=tolerance)
        assert np.allclose(client.pickup, np.array(stop.pickup) * scale, atol=tolerance)
        assert client.service_duration == pytest.approx(stop.service * scale, abs=tolerance)
        assert low == -FOREVER or client.tw_early == pytest.approx(low * scale, abs=tolerance)
        assert high == FOREVER or client.tw_late == pytest.approx(high * scale, abs=tolerance)
        assert stop.release == -FOREVER or client.release_time == pytest.approx(stop.release * scale)
        assert client.required == (stop.penalty is None)
        assert client.required or client.prize == pytest.approx((stop.penalty or 0) * scale)
    kinds = theirs.vehicle_types()
    assert len(kinds) == len(found.vehicles)
    for mine, kind in zip(found.vehicles, kinds, strict=True):
        assert kind.num_available == (mine.number or len(found.stops))
        assert np.allclose(kind.capacity, np.array(mine.capacity) * scale)
        assert (kind.start_depot, kind.end_depot) == (mine.start, mine.end)
        assert kind.fixed_cost == pytest.approx(mine.fixed_cost * scale, abs=tolerance)
        assert kind.unit_distance_cost == pytest.approx(mine.distance_cost, abs=0.5)  # PyVRP cuts it to an integer
        assert tuple(kind.reload_depots) == mine.reloads
        if mine.max_duration != FOREVER:
            assert kind.shift_duration == pytest.approx(mine.max_duration * scale)
        if mine.max_distance != FOREVER:
            assert kind.max_distance == pytest.approx(mine.max_distance * scale)
        matrix = theirs.distance_matrix(kind.profile)
        allowed = [s.place for s in found.stops if found.serves(mine, s)]
        if found.backhauls == "mixed":
            inner = np.ix_(allowed, allowed)
            np.testing.assert_allclose(matrix[inner], found.legs[ANY].distance[inner] * scale, atol=tolerance)


@pytest.mark.extra
def test_small_files_as_pyvrp_reads_them(tmp_path: Path):
    pyvrp_agrees(EVERYTHING, read(EVERYTHING), tmp_path / "a.vrp")


@pytest.mark.extra
@shared
@pytest.mark.parametrize("path", sorted(Path(FOLDER or ".").glob("*.vrp")) if FOLDER else [], ids=lambda p: p.stem)
def test_shared_files_as_pyvrp_reads_them(path: Path, tmp_path: Path):
    text = path.read_text()
    pyvrp_agrees(text, read(text, path.name), tmp_path / path.name)


@shared
@pytest.mark.parametrize(
    ("name", "scale"),  # how many units of the .sol one of ours is
    [
        *(("C101", 1), ("R103", 1), ("RC201", 1), ("R1_2_6", 1), ("X-n524-50-k125", 1), ("site-PR03", 1000)),
        *(("C203R0.5", 10), ("PR11A", 1000), ("PC-R1_10_3", 10), ("X101-FSMFD", 0.01)),
        *(("X115-HVRP", 0.01), ("X148-HVRP", 1000), ("X200-HD", 0.01)),
    ],
)
def test_best_known_routes_cost_what_is_published(name: str, scale: float):
    folder = Path(FOLDER or ".")
    found = read((folder / f"{name}.vrp").read_text(), f"{name}.vrp")
    solution = (folder / f"{name}.sol").read_text()
    routes = [list(map(int, line.split(":")[1].split())) for line in solution.splitlines() if line.startswith("Route")]
    fleet = [vehicle for vehicle in found.vehicles for _ in range(vehicle.number or len(routes))]
    distance, cost = found.legs[ANY].distance, 0.0
    left = {stop.place for stop in found.stops}
    for vehicle, route in zip(fleet, routes, strict=False):
        if not route:
            continue
        assert vehicle.start is not None
        way = [vehicle.start, *route, vehicle.start]
        cost += vehicle.fixed_cost
        cost += vehicle.distance_cost * sum(distance[a, b] for a, b in pairwise(way))
        left -= set(route)
    cost += sum(stop.penalty or 0 for stop in found.stops if stop.place in left)
    published = float(re.search(r"Cost:?\s*(\S+)", solution)[1])  # type: ignore[index]
    assert cost * scale == pytest.approx(published, rel=1e-6)


@shared
@pytest.mark.parametrize(
    ("name", "stops", "pairs", "vehicles"),
    [
        ("solomon-R105", 100, 0, [25]),
        ("cordeau-p01", 50, 0, [4] * 4),
        ("cordeau-pr04", 192, 0, [4] * 4),
        ("lilim-lc101", 106, 53, [25]),
        ("lilim-lrc201", 102, 51, [25]),
    ],
)
def test_shared_texts(name: str, stops: int, pairs: int, vehicles: list[int]):
    found = read((Path(FOLDER or ".") / f"{name}.txt").read_text(), f"{name}.txt")
    assert (len(found.stops), len(found.shipments), [v.number for v in found.vehicles]) == (stops, pairs, vehicles)


@shared
def test_dispatcher():
    folder = Path(FOLDER or ".") / "dispatch"
    files = {
        name: (folder / name).read_bytes() for name in ("tour.csv", "tour_cp1252.csv", "vans.csv", "osrm_table.json")
    }
    rounds = [
        parse_round(
            files[name], name, matrix=(files["osrm_table.json"], "osrm.json"), vehicles=(files["vans.csv"], "vans.csv")
        )
        for name in ("tour.csv", "tour_cp1252.csv")
    ]
    first, second = rounds
    assert first is not None
    assert second is not None
    assert len(first.stops) == 60
    assert [(v.id, v.capacity) for v in first.vehicles] == [
        ("Van 1", (100.0,)),
        ("Van 2", (100.0,)),
        ("Van 3", (60.0,)),
    ]
    assert first.stops == second.stops
    assert first.vehicles == second.vehicles
    assert any("Straße" in note for note in first.notes)
