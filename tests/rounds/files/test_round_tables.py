"""Tables of stops and vehicles: names in four languages, dimensions, depots, options, and what is no round."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from round_samples import OSRM, workbook

from routelearn.errors import InputError
from routelearn.rounds.files import parse_round, round_from_document
from routelearn.rounds.files.columns import Column, column_of
from routelearn.rounds.model import ANY, FOREVER, Round, Stop, Vehicle
from routelearn.rounds.plan import Drive
from routelearn.rounds.timing import plan_of
from routelearn.rounds.units import told_apart

H = 3600.0


def read(text: str, vehicles: str | None = None, *, problem: str | None = None, **options: Any) -> Round:
    fleet = None if vehicles is None else (vehicles.encode(), "vans.csv")
    found = parse_round(text.encode(), "a.csv", vehicles=fleet, options=options, problem=problem)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("windows", Column("windows", own=True)),
        ("window_start", Column("windows", "1")),
        ("Time window to", Column("windows", "2")),
        ("Zeitfenster von", Column("windows", "1")),
        ("créneau début", Column("windows", "1")),
        ("ventana hasta", Column("windows", "2")),
        ("Servicezeit (min)", Column("service", unit=60.0)),
        ("service_minutes", Column("service", unit=60.0)),
        ("Standzeit in Sekunden", Column("service", unit=1.0)),
        ("durée de service", Column("service")),
        ("tiempo de servicio", Column("service")),
        ("demand_2", Column("delivery", "2", own=True)),
        ("Menge kg", Column("delivery", "kg")),
        ("Gewicht", Column("delivery")),
        ("enlèvement", Column("pickup")),
        ("compétences", Column("skills")),
        ("Priorität", Column("priority")),
        ("Breitengrad", Column("lat")),
        ("Servicio (min)", Column("service", unit=60.0)),
        ("Be-/Entladezeit", Column("service")),
        ("Fahrer", None),
    ],
)
def test_names_of_stops(name, column):
    assert column_of(name, Stop) == column


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        *(("Fahrzeug", "id"), ("véhicule", "id"), ("Kapazität", "capacity"), ("capacité", "capacity")),
        *(("Schicht von", "shift"), ("turno inicio", "shift"), ("Anzahl", "number"), ("Pausendauer", "break_duration")),
        *(("max tasks", "max_stops"), ("Überstunden", "overtime"), ("Fixkosten", "fixed_cost"), ("Touren", "trips")),
    ],
)
def test_names_of_vehicles(name, attribute):
    found = column_of(name, Vehicle)
    assert found is not None
    assert found.attribute == attribute


WINDOWS = "id,x,y,window_start,window_end\nd,0,0,,\na,3,4,08:00,10:00\nb,6,8,9:00,\n"


@pytest.mark.parametrize(
    "head",
    [
        "id,x,y,von,bis",
        "id,x,y,from,to",
        "id,x,y,ready time,due date",
        "id,x,y,Öffnungszeit von,Öffnungszeit bis",
        "id,x,y,heure ouverture,heure fermeture",
        "id,x,y,hora inicio,hora fin",
        "id,x,y,frühestens,spätestens",
    ],
)
def test_other_words_for_a_window(head):
    found = read(WINDOWS.replace("id,x,y,window_start,window_end", head), speed=36)
    assert [stop.windows for stop in found.stops] == [((8 * H, 10 * H),), ((9 * H, FOREVER),)]


def test_speed_makes_durations():
    found = read(WINDOWS, speed="36,0")
    assert found.legs[ANY].distance[0, 1] == 5
    assert found.legs[ANY].duration[0, 1] == pytest.approx(5 / 36 * H)


def test_a_speed_is_asked_for():
    with pytest.raises(InputError, match=r"a.csv: stops have windows, but no durations; give a speed \(--speed"):
        read(WINDOWS)


def test_a_plain_matrix_must_say_what_it_holds():
    matrix = (b"0,5,9\n5,0,5\n9,5,0\n", "m.csv")
    with pytest.raises(InputError, match="--matrix-unit seconds, minutes or hours"):
        parse_round(WINDOWS.encode(), "a.csv", matrix=matrix)
    found = parse_round(WINDOWS.encode(), "a.csv", matrix=matrix, options={"matrix_unit": "minutes"})
    assert found is not None
    assert found.legs[ANY].duration[0, 1] == 300
    found = parse_round(WINDOWS.encode(), "a.csv", matrix=matrix, options={"speed": 10})
    assert found is not None
    assert found.legs[ANY].duration[0, 1] == pytest.approx(1800)


def test_a_document_says_what_its_matrix_holds():
    document = {"stops": [{"id": "a"}, {"id": "b", "window": "8:00-10:00"}], "matrix": [[0, 5], [5, 0]]}
    found = round_from_document(document | {"matrix_unit": "minutes"})
    assert found.legs[ANY].duration[0, 1] == 300
    with pytest.raises(InputError, match="--matrix-unit 'days'; the choices are seconds, minutes, hours, lengths"):
        round_from_document(document | {"matrix_unit": "days"})


def test_a_unit_without_a_plain_matrix_is_refused():
    with pytest.raises(InputError, match="--matrix-unit says what a matrix holds, but there is none"):
        read(WINDOWS, speed=36, matrix_unit="minutes")
    with pytest.raises(InputError, match="its durations are seconds, its distances metres; leave --matrix-unit out"):
        parse_round(WINDOWS.encode(), "a.csv", matrix=(OSRM.encode(), "m.json"), options={"matrix_unit": "minutes"})


def test_a_speed_and_a_rounding_that_change_nothing_are_told():
    matrix = (json.dumps({"durations": [[0, 5, 9], [5, 0, 5], [9, 5, 0]]}).encode(), "m.json")
    found = parse_round(WINDOWS.encode(), "a.csv", matrix=matrix, options={"speed": 30, "round": "nearest"})
    assert found is not None
    assert "the speed is not used, since durations are given" in found.notes
    assert "the matrix is not rounded; --round nearest is for lengths between coordinates" in found.notes


def test_options_of_python_callers_may_be_arrays():
    found = read("id,x,y,demand\nd,0,0,\na,3,4,1\n", capacity=np.array([3, 4]), speed=np.float32(30))
    assert [vehicle.capacity for vehicle in found.vehicles] == [(3,), (4,)]


def test_options_that_no_vehicle_needs_are_told():
    table = (b"id,capacity,trips\nv,9,3\nw,9,2\n", "vans.csv")
    options = {"trips": 1, "capacity": 5, "max_stops": 2}
    found = parse_round(b"id,x,y\nd,0,0\na,3,4\n", "a.csv", vehicles=table, options=options)
    assert found is not None
    assert [van.trips for van in found.vehicles] == [3, 2]
    assert "not used, since every vehicle gives its own: capacity, trips" in found.notes


def test_what_is_said_of_a_depot_and_not_used_is_told():
    text = "id,x,y,demand,service,depot\nD1,0,0,7,10,1\nD2,9,9,0,,1\na,3,4,1,5,\n"
    found = read(text, capacity=9, speed=60)
    assert "of the depot not used: demand, service" in found.notes
    assert any(note.startswith("no vehicle starts or ends at the depot 'D2'; a table") for note in found.notes)
    with pytest.raises(InputError, match="line 2: a depot with 2 windows; give one, from the first to the last"):
        read("id,x,y,window\nd,0,0,8:00-12:00;14:00-18:00\na,3,4,\n", speed=60)


def test_a_capacity_that_is_blank_in_one_dimension_is_no_limit():
    text = "id,x,y,demand_kg,demand_m3\nd,0,0,,\na,3,4,100,2\n"
    for vans in (b"id,capacity_kg\nv,300\n", b"id,capacity_kg,capacity_m3\nv,300,\n"):
        found = parse_round(text.encode(), "a.csv", vehicles=(vans, "vans.csv"))
        assert found is not None
        assert found.vehicles[0].capacity == (300, FOREVER)
        assert "without a capacity in each dimension, so that they hold any amount: v" in found.notes


def test_limits_of_time_without_a_unit_are_told():
    found = read(WINDOWS, speed=36, max_duration="300")
    assert found.vehicles[0].max_duration == 300 * 60
    assert "in minutes, since times are clock times: --max-duration" in found.notes


def test_stops_with_the_same_coordinates_are_at_one_place():
    text = "id,x,y,setup,depot\na,3,4,5,\nd,0,0,,1\nb,3,4,5,\nc,0,0,5,\n"
    found = read(text, speed=36)
    assert [stop.place for stop in found.stops] == [0, 0, 1]
    (route,) = plan_of(found, (Drive(0, (2, 0, 1)),)).routes
    assert [visit.departure - visit.start for visit in route.visits if visit.stop is not None] == [0, 5, 0]


def test_a_place_far_from_all_others_is_told():
    rows = "".join(f"s{i},52.{i}1,4.{i}2,5\n" for i in range(9))
    found = read(f"id,lat,lon,service\nd,52.3,4.5,\n{rows}off,4.45,52.35,5\n")
    assert "far from all others: 'off' (line 12); lat and lon may be swapped there" in found.notes


def test_driving_that_takes_no_time_is_told():
    found = read("id,x,y,service\nd,0,0,\na,3,4,5\n")
    assert "no durations are known, so driving takes no time; a speed gives them (--speed)" in found.notes


def test_durations_are_not_said_to_be_the_cost_where_legs_have_costs():
    table = {"durations": [[0, 9], [9, 0]], "costs": [[0, 5], [5, 0]]}
    jobs = [{"id": 1, "location_index": 1}]
    vehicles = [{"id": 1, "start_index": 0}]
    found = round_from_document({"jobs": jobs, "vehicles": vehicles, "matrices": {"car": table}})
    assert found.notes == ("no distances are known",)


def test_durations_alone_are_the_cost():
    matrix = (json.dumps({"durations": [[0, 5, 9], [5, 0, 5], [9, 5, 0]]}).encode(), "m.json")
    found = parse_round(WINDOWS.encode(), "a.csv", matrix=matrix)
    assert found is not None
    (van,) = found.vehicles
    assert (van.driving_cost, van.distance_cost) == (1.0, 0.0)
    assert found.legs[ANY].distance[0, 1] == 5  # a straight line
    assert any("distances are straight lines" in note for note in found.notes)
    with pytest.raises(InputError, match="a longest distance, but no distances"):
        parse_round(WINDOWS.encode(), "a.csv", matrix=matrix, options={"max_distance": 10})


def test_several_windows_in_one_cell():
    text = 'id;x;y;Zeitfenster\nd;0;0;\na;3;4;"08:00-10:00; 12:00-13:00"\nb;1;1;\n'
    assert read(text, speed=36).stops[0].windows == ((8 * H, 10 * H), (12 * H, 13 * H))


def test_a_dispatchers_words_in_english():
    text = "Customer,Lat,Lng,Qty,Delivery window,Unload time\nDepot,51.5,-0.1,,,\nAnn,51.5,-0.12,3,9am - 11am,10\n"
    text += "Bob,51.52,-0.11,2,any time,15 min\n"
    found = read(text, speed=30, capacity=10, shift="8am-5pm")
    assert [(stop.windows, stop.service) for stop in found.stops] == [
        (((9 * H, 11 * H),), 600.0),
        (((-FOREVER, FOREVER),), 900.0),
    ]
    assert found.vehicles[0].shift == (8 * H, 17 * H)


def test_hours_of_the_day():
    found = read("id;x;y;Öffnungszeit\nd;0;0;\na;3;4;8-12\nb;1;1;9 - 12, 14-18\n", speed=36)
    assert [stop.windows for stop in found.stops] == [((8 * H, 12 * H),), ((9 * H, 12 * H), (14 * H, 18 * H))]
    assert found.day == ""
    assert "stretches such as 8-12 are read as hours of the day" in found.notes
    found = read("id;x;y;window\nd;0;0;\na;3;4;8-12\nb;1;1;9-120\n", speed=36000)
    assert [stop.windows for stop in found.stops] == [((8.0, 12.0),), ((9.0, 120.0),)]
    assert found.day is None


def test_one_amount_counts_where_it_is_named():
    found = read("id,x,y,demand,weight_kg,service\nd,0,0,,,\na,3,4,2,30,5\n", capacity=10)
    assert found.stops[0].delivery == (2.0,)
    assert "not used: weight_kg" in found.notes
    assert parse_round(b"id,x,y,weight_kg,volume\nd,0,0,,\na,3,4,2,30\n", "a.csv") is None


def test_several_windows_in_columns():
    two = ((8 * H, 10 * H), (12 * H, 13 * H))
    for head in ("von1,bis1,von2,bis2", "Zeitfenster_von,Zeitfenster_bis,Zeitfenster2_von,Zeitfenster2_bis"):
        text = f"id,x,y,{head}\nd,0,0,,,,\na,3,4,08:00,10:00,12:00,13:00\nb,1,1,09:00,,,\n"
        found = read(text, speed=36)
        assert [stop.windows for stop in found.stops] == [two, ((9 * H, FOREVER),)]
    for head in ("window_1,window_2", "window,window2"):
        text = f"id,x,y,{head}\nd,0,0,,\na,3,4,08:00-10:00,12:00-13:00\n"
        assert read(text, speed=36).stops[0].windows == two


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("Max km", Column("max_distance", unit=1000.0)),
        ("max_distance (mi)", Column("max_distance", unit=1609.344, own=True)),
        ("max distance miles", Column("max_distance", unit=1609.344)),
        ("max_duration (days)", Column("max_duration", unit=86_400.0, own=True)),
        ("reload_time (hrs)", Column("reload_time", unit=3600.0, own=True)),
        ("time_cost (\u20ac/h)", Column("time_cost", unit=3600.0, own=True)),
        ("time_cost (per hour)", Column("time_cost", unit=3600.0, own=True)),
        ("time_cost (\u20ac)", Column("time_cost", own=True)),
        ("overtime cost per hour", Column("overtime_cost", unit=3600.0)),
        ("distance_cost (\u20ac/km)", Column("distance_cost", unit=1000.0, own=True)),
        ("fixed_cost (\u20ac/day)", Column("fixed_cost", own=True)),
        ("max hours", Column("max_duration", unit=3600.0)),
        ("Kosten/km", Column("distance_cost", unit=1000.0)),
        ("Kosten je Stunde", Column("time_cost", unit=3600.0)),
        ("Ende", Column("end")),
        ("Startdepot", Column("start")),
        ("max. Stopps", Column("max_stops")),
        ("Touren pro Tag", Column("trips")),
    ],
)
def test_a_dispatchers_words_for_vehicles(name, column):
    assert column_of(name, Vehicle) == column


def test_prices_by_the_hour_and_the_kilometre():
    matrix = (
        json.dumps({"code": "Ok", "durations": [[0, 9], [9, 0]], "distances": [[0, 90], [90, 0]]}).encode(),
        "m.json",
    )
    fleet = (b"id,cost per hour,Kosten pro km\nv,36,0.5\n", "vans.csv")
    found = parse_round(b"id,service\nd,\na,5\n", "a.csv", matrix=matrix, vehicles=fleet)
    assert found is not None
    assert (found.vehicles[0].time_cost, found.vehicles[0].distance_cost) == (0.01, 0.0005)
    found = parse_round(b"id,lat,lon,service\nd,1,1,\na,2,2,5\n", "a.csv", vehicles=fleet, options={"speed": 30})
    assert found is not None
    assert found.vehicles[0].distance_cost == 0.5
    by_metre = (b"id,time_cost (EUR/h),distance_cost (per m)\nv,36,0.5\n", "vans.csv")
    found = parse_round(b"id,lat,lon,service\nd,1,1,\na,2,2,5\n", "a.csv", vehicles=by_metre, options={"speed": 30})
    assert found is not None
    assert (found.vehicles[0].time_cost, found.vehicles[0].distance_cost) == (0.01, 500)


def test_lateness_by_the_hour():
    for head in ("late_cost (per hour)", "late cost per hour"):
        found = read(f"id,x,y,window,{head}\nd,0,0,,\na,3,4,8:00-9:00,36\n", speed=30)
        assert found.stops[0].late_cost == 0.01


def test_a_negative_time_is_told_as_it_was_written():
    with pytest.raises(InputError, match=r"a\.csv, line 3: service is -5; it cannot be negative"):
        read("id,x,y,window,service\nd,0,0,,\na,3,4,8:00-9:00,-5\n", speed=30)


def test_a_point_before_three_digits_is_decimal_where_others_are():
    found = read("id;x;y;Menge;service\nd;0;0;;\na;3.5;4;1.200;5\n", capacity=10)
    assert found.stops[0].delivery == (1.2,)


def test_dimensions_by_number_and_by_unit():
    text = "id,x,y,demand_1,demand_2\nd,0,0,,\na,3,4,1,2\nb,6,8,3,\n"
    found = read(text, "id,capacity_1,capacity_2\nv,10,20\n")
    assert [stop.delivery for stop in found.stops] == [(1.0, 2.0), (3.0, 0.0)]
    assert found.vehicles[0].capacity == (10.0, 20.0)
    assert found.dimensions == ("1", "2")
    text = "id,x,y,Menge kg,Menge m3\nd,0,0,,\na,3,4,1,2\nb,6,8,3,\n"
    found = read(text, "id,Kapazität kg,Kapazität m3\nv,10,20\n")
    assert (found.stops[0].delivery, found.dimensions) == ((1.0, 2.0), ("kg", "m3"))
    text = 'id,x,y,demand\nd,0,0,\na,3,4,"1;2"\nb,6,8,"3;0"\n'
    pair = parse_round(text.encode(), "a.csv", options={"capacity": "10;20", "vehicles": 2})
    assert pair is not None
    assert (pair.vehicles[0].number, pair.vehicles[0].capacity) == (2, (10.0, 20.0))


def test_depots_are_marked_named_or_first():
    marked = "id,x,y,service,depot\na,3,4,5,0\nb,0,0,0,1\nc,9,9,5,1\n"
    found = read(marked)
    assert [stop.id for stop in found.stops] == ["a"]
    assert found.vehicles[0].start == 1
    named = "name,x,y,service\na,3,4,5\nDepot Süd,0,0,0\n"
    assert read(named).vehicles[0].start == 1
    busy = "name,x,y,service\nLager,0,0,\nHub Café,3,4,5\nLager Ost,1,1,\n"  # a customer may be called so, too
    found = read(busy)
    assert [stop.id for stop in found.stops] == ["Hub Café"]
    assert "the depot is 'Lager' (line 2) and 'Lager Ost' (line 4)" in found.notes
    first = "id,x,y,service\na,3,4,5\nb,0,0,1\n"
    assert [stop.id for stop in read(first).stops] == ["b"]
    assert [stop.id for stop in read(first, depot="b").stops] == ["a"]


def test_stops_of_one_name_are_told_apart():
    assert told_apart(["a", "b", "a", "a (2)", "a"]) == ("a", "b", "a (3)", "a (2)", "a (4)")
    text = "Name;x;y;von;bis\nLager;0;0;;\nCafé;1;0;8:00;9:00\nCafé;2;0;9:00;10:00\n"
    assert [stop.id for stop in read(text, speed=10).stops] == ["Café", "Café (2)"]


def test_minutes_that_may_be_seconds_are_pointed_out():
    text = "id,x,y,from,to,service\nd,0,0,,,\na,1,0,8:00,20:00,{}\n"
    for service, hint in (("300", " (up to 300; write 300 s where seconds are meant)"), ("5", "")):
        notes = read(text.format(service), speed=10).notes
        assert f"in minutes, since times are clock times: service{hint}" in notes


def test_where_vehicles_start_is_a_depot():
    stops = "id,x,y,service\na,3,4,5\nnorth,0,0,\nsouth,9,9,\nb,6,8,5\n"
    found = read(stops, "id,start,end\nv,north,\nw,south,north\n")
    assert [stop.id for stop in found.stops] == ["a", "b"]
    assert [(v.start, v.end) for v in found.vehicles] == [(1, 1), (2, 1)]
    found = read(stops, "id,start,end\nv,north,\nw,b,open\n")  # b is a stop, too
    assert [stop.id for stop in found.stops] == ["a", "south", "b"]
    found = read(stops, "id,start,reloads\nv,north,north;south\n")
    assert ([stop.id for stop in found.stops], found.vehicles[0].reloads) == (["a", "b"], (1, 2))
    found = read(stops, "id,start,end\nv,,\nw,b,open\n")  # the first row is the depot
    assert [stop.id for stop in found.stops] == ["north", "south", "b"]


def test_vehicles_of_a_table():
    fleet = (
        "vehicle,count,capacity,start,end,shift,max stops,break,break_duration,trips,reload_time,skills,fixed_cost\n"
        "small,2,10,,,08:00-16:00,5,12:00-13:00,30,,,,\n"
        "big,,50,b,open,,,,,3,15,cold;tall,7.5\n"
    )
    found = read("id,x,y,service\nd,0,0,\na,3,4,5\nb,6,8,5\n", fleet, speed=36)
    small, big = found.vehicles
    assert (small.number, small.start, small.end, small.shift, small.max_stops) == (2, 0, 0, (8 * H, 16 * H), 5)
    assert (small.breaks[0].windows, small.breaks[0].service) == (((12 * H, 13 * H),), 1800.0)
    assert (big.number, big.start, big.end, big.trips, big.reloads) == (None, 2, None, 3, (2,))
    assert (big.reload_time, big.skills, big.fixed_cost) == (900.0, {"cold", "tall"}, 7.5)


def test_capacities_without_amounts_are_told():
    words = "no stop has an amount, so that capacities bind nothing"
    assert words in read("id,x,y,boxes,service\nd,0,0,,\na,3,4,2,5\n", capacity=10).notes
    assert words not in read("id,x,y,demand,service\nd,0,0,,\na,3,4,2,5\n", capacity=10).notes


def test_start_and_end_that_are_clock_times_are_the_shift():
    found = read("id,x,y,service\nd,0,0,\na,3,4,5\n", "id,start,end\nv,7:00,15:00\n", speed=36)
    assert (found.vehicles[0].shift, found.vehicles[0].start, found.vehicles[0].end) == ((7 * H, 15 * H), 0, 0)


@pytest.mark.parametrize(
    ("head", "longest"),
    [("max_distance (km)", 5000), ("max distance km", 5000), ("max_distance (m)", 5), ("max_distance", 5)],
)
def test_a_longest_distance_in_the_unit_that_its_name_says(head, longest):
    table = {"code": "Ok", "durations": [[0, 9], [9, 0]], "distances": [[0, 2], [2, 0]]}
    matrix = json.dumps(table).encode(), "m.json"
    found = parse_round(
        b"id,service\nd,\na,5\n", "a.csv", matrix=matrix, vehicles=(f"id,{head}\nv,5\n".encode(), "v.csv")
    )
    assert found is not None
    assert found.vehicles[0].max_distance == longest
    fleet = f"id,{head}\nv,5000\n"
    found = read("id,lat,lon,service\nd,1,1,\na,1.01,1,5\n", fleet, speed=30)
    assert found.vehicles[0].max_distance == (5 if "(m)" in head else 5000)


def test_two_names_of_one_thing_count_together_in_a_document():
    stops = [{"id": "a", "x": 1, "y": 0, "window": [0, 50]}, {"id": "b", "x": 2, "y": 0, "windows": [[0, 9], [20, 30]]}]
    found = round_from_document({"depot": [0, 0], "stops": stops, "vehicles": 1, "speed": 3600})
    assert [stop.windows for stop in found.stops] == [((0, 50),), ((0, 9), (20, 30))]
    stops = [{"id": "a", "x": 1, "y": 0, "demand": 2}, {"id": "b", "x": 2, "y": 0, "delivery": 3}]
    found = round_from_document({"depot": [0, 0], "stops": stops, "vehicles": 1, "capacity": 5})
    assert [stop.delivery for stop in found.stops] == [(2.0,), (3.0,)]


def test_a_second_name_of_one_thing_is_no_typing_error():
    found = read("id,x,y,window,windows\nd,0,0,,\na,3,4,8:00-9:00,7:00-10:00\n", speed=36)
    assert found.stops[0].windows == ((7 * H, 10 * H),)
    assert "not used: window" in found.notes


def test_keys_of_a_document_that_nobody_reads_may_hold_anything():
    stop = {"id": "a", "x": 1, "y": 0, "vip": True, "address": {"street": "Hof"}}
    found = round_from_document({"depot": [0, 0], "stops": [stop], "vehicles": 1})
    assert found.stops[0].columns == {"vip": "true", "address": '{"street": "Hof"}'}


def test_the_depots_hours_bound_the_shift():
    text = "id,x,y,window\nd,0,0,09:00-15:00\na,3,4,10:00-11:00\n"
    found = read(text, "id,shift\nv,08:00-14:00\n", speed=36)
    assert found.vehicles[0].shift == (9 * H, 14 * H)


def test_shipments_share_a_name():
    text = "id,x,y,shipment,pickup,delivery\nd,0,0,,,\na,3,4,s1,4,\nb,6,8,s1,,4\nc,1,1,,,2\n"
    found = read(text, capacity=10)
    assert found.shipments == ((0, 1),)
    assert found.stops[0].pickup == (4.0,)


def test_names_of_allowed_and_forbidden_vehicles():
    text = 'id,x,y,only,forbidden vehicles,priority,penalty\nd,0,0,,,,\na,3,4,"v, w",,3,\nb,6,8,,v,,12\n'
    found = read(text, "id\nv\nw\n")
    assert [(s.only, s.forbidden, s.priority, s.penalty) for s in found.stops] == [
        (frozenset({"v", "w"}), frozenset(), 3, None),
        (None, frozenset({"v"}), 0, 12.0),
    ]


def test_settings():
    text = "id,x,y,pickup\nd,0,0,\na,3,4,5\n"
    found = read(text, capacity=10, backhauls="last", objective="vehicles", most_stops_apart=3, allow_unassigned=True)
    assert (found.backhauls, found.objective, found.most_stops_apart) == ("last", "vehicles", 3.0)
    assert found.allow_unassigned


@pytest.mark.parametrize(
    "text",
    [
        "id,x,y\na,0,0\nb,1,1\n",
        "id,x,y,demand\na,0,0,\nb,1,1,3\n",
        "id,x,y,prize\na,0,0,\nb,1,1,3\n",
        "id,x,y,prize,penalty\na,0,0,,\nb,1,1,3,2\n",
        "id,x,y,priority\na,0,0,\nb,1,1,3\n",
        "id,x,y,duration\na,0,0,\nb,1,1,3\n",
        "id,x,y,service\na,0,0,0\nb,1,1,0\n",
        "x y\n0 0\n1 1\n",
        "0,0\n1,1\n",
    ],
)
def test_older_problems_stay_what_they_are(text):
    assert parse_round(text.encode(), "a.csv") is None


def test_with_vrp_named_any_table_is_a_round():
    found = parse_round(b"id,x,y\na,0,0\nb,1,1\n", "a.csv", problem="vrp")
    assert found is not None
    assert [stop.id for stop in found.stops] == ["b"]
    assert parse_round(WINDOWS.encode(), "a.csv", problem="cvrp") is None


def test_own_json_by_places_of_a_matrix():
    document = {
        "stops": [
            {"id": "a", "place": 1, "service": 5},
            {"id": "b", "place": 1, "setup": 2},
            {"id": "c", "place": 2},
        ],
        "vehicles": [
            {
                "id": "v",
                "start": 0,
                "end": None,
                "kept": ["b"],
                "profile": "bike",
                "breaks": [{"id": "lunch", "windows": [[0, 50]], "service": 10}],
            }
        ],
        "profiles": {"bike": {"durations": [[0, 5, 9], [5, 0, 5], [9, 5, 0]]}},
    }
    found = round_from_document(document)
    assert [stop.place for stop in found.stops] == [1, 1, 2]
    (van,) = found.vehicles
    assert (van.start, van.end, van.kept, van.profile) == (0, None, (1,), "bike")
    assert (van.breaks[0].id, van.breaks[0].windows, van.breaks[0].service) == ("lunch", ((0.0, 50.0),), 10.0)
    assert found.legs_of(van).duration[0, 2] == 9
    assert found.day is None


def test_a_depot_beside_depots_is_refused():
    document = {"stops": [[3, 4]], "depot": {"x": 0, "y": 0}, "depots": [{"x": 1, "y": 0}]}
    with pytest.raises(InputError, match="request: both 'depot' and 'depots'; put all of them into 'depots'"):
        round_from_document(document)


@pytest.mark.parametrize("name", ["number", "count", "Anzahl"])
def test_a_vehicle_of_a_document_that_gives_no_number_is_one(name):
    vehicles: list[dict[str, Any]] = [{"id": "truck"}, {"id": "van", name: 5}, {"id": "bike", name: None}]
    found = round_from_document({"stops": [[0, 0], [3, 4]], "vehicles": vehicles})
    assert [vehicle.number for vehicle in found.vehicles] == [1, 5, None]


def test_excel_without_a_sheet_of_vehicles():
    pytest.importorskip("openpyxl")
    data = workbook(Stops=[["id", "x", "y", "service", None], ["d", 0, 0, None, None], [7, 3, 4, 5, None]])
    found = parse_round(data, "a.xlsx", options={})
    assert found is not None
    assert [(stop.id, stop.service) for stop in found.stops] == [("7", 5.0)]
    assert found.where == ("row 3",)
    assert parse_round(workbook(Stops=[["id", "x", "y"], ["d", 0, 0], ["a", 1, 1]]), "a.xlsx") is None


def test_the_sheet_of_stops_is_the_first_that_names_columns_and_the_others_are_told():
    pytest.importorskip("openpyxl")
    rows = [["id", "x", "y", "service"], ["d", 0, 0, None], ["a", 3, 4, 5]]
    fleet = [["id", "capacity"], ["v", 5]]
    found = parse_round(workbook(Info=[["Export", "Hof"]], Mo=rows, Di=rows, Vehicles_2026=fleet), "a.xlsx", options={})
    assert found is not None
    assert (found.where, found.vehicles[0].id) == (("sheet 'Mo', row 3",), "v")
    assert "the stops are those of the sheet 'Mo'; not used: Info, Di" in found.notes


def test_hours_beyond_a_day_in_excel():
    pytest.importorskip("openpyxl")
    rows = [["id", "x", "y", "bis", "service"], ["d", 0, 0, None, None]]
    rows.append(["a", 3, 4, timedelta(hours=30), timedelta(minutes=15)])
    found = parse_round(workbook(Stops=rows), "a.xlsx", options={"speed": 36})
    assert found is not None
    assert (found.stops[0].windows, found.stops[0].service) == (((-FOREVER, 30 * H),), 900.0)


def test_dates_in_excel_are_no_clock_times():
    """A workbook has a date as the midnight of a day."""
    pytest.importorskip("openpyxl")
    rows: list[list[Any]] = [["id", "x", "y", "service", "ordered"], ["d", 0, 0, None, None]]
    days = [["a", 3, 4, 5, datetime(2026, 11, 19)], ["b", 6, 8, 5, datetime(2026, 11, 20)]]
    found = parse_round(workbook(Stops=rows + days), "a.xlsx")
    assert found is not None
    assert "not used: ordered" in found.notes
    with pytest.raises(InputError, match="'ordered' holds clock times, and nothing says what they are"):
        parse_round(workbook(Stops=[*rows, *days, ["c", 1, 1, 5, datetime(2026, 11, 20, 8)]]), "a.xlsx")


def test_formulas_without_a_value_are_refused():
    pytest.importorskip("openpyxl")
    data = workbook(Stops=[["id", "x", "y", "service"], ["d", 0, 0, None], ["a", 3, 4, "=1+1"]])
    with pytest.raises(InputError, match=r"a\.xlsx, cell D3: a formula whose value is not in the file; open it in a"):
        parse_round(data, "a.xlsx", options={})


def test_times_that_are_seconds_are_told():
    words = "in seconds, since no times are clock times: von, bis"
    assert words in read("id,x,y,von,bis\nd,0,0,,\na,3,4,800,900\n", speed=3600).notes


def test_a_table_that_osrm_could_not_make_is_told():
    answer = json.dumps({"code": "NoTable", "message": "no route"}).encode()
    with pytest.raises(InputError, match=r"m\.json: OSRM answered 'NoTable': 'no route'"):
        parse_round(b"id,service\nd,\na,5\n", "a.csv", matrix=(answer, "m.json"))


def test_geojson_with_windows():
    point = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [10.0, 53.5]}, "properties": {"id": "d"}}
    stop = {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [10.1, 53.6]},
        "properties": {"id": "a", "window": "08:00-10:00"},
    }
    data = json.dumps({"type": "FeatureCollection", "features": [point, stop]}).encode()
    found = parse_round(data, "a.geojson", options={"speed": 30})
    assert found is not None
    assert (found.stops[0].windows, found.length_unit) == (((8 * H, 10 * H),), "km")
