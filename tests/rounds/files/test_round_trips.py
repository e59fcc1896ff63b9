"""Random rounds, written as CSV, as our JSON and as VROOM's, are read as what they are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routelearn.rounds.files import parse_round, round_from_document
from routelearn.rounds.model import ALWAYS, ANY, FOREVER, Break, Round, Stop, Vehicle, attributes_of

SKILLS = st.frozensets(st.sampled_from(["cold", "lift", "7"]), max_size=2)
AMOUNT = st.integers(0, 9).map(float)
LENGTH = st.integers(0, 500).map(float)


@st.composite
def windows(draw: st.DrawFn, most: int = 2) -> tuple[tuple[float, float], ...]:
    """In order and apart; none at all is any time."""
    ends = sorted(draw(st.lists(st.integers(25, 5000), min_size=0, max_size=2 * most, unique=True)))
    found = tuple((float(a), float(b)) for a, b in zip(ends[::2], ends[1::2], strict=False))
    return found or (ALWAYS,)


@st.composite
def rounds(draw: st.DrawFn) -> tuple[list[Stop], list[Vehicle], np.ndarray, np.ndarray]:
    count, size = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    stops = [
        Stop(
            id=f"s{i}",
            place=i + 1,
            delivery=tuple(draw(AMOUNT) for _ in range(size)),
            pickup=tuple(draw(AMOUNT) for _ in range(size)),
            windows=draw(windows()),
            service=draw(LENGTH),
            setup=draw(LENGTH),
            release=draw(st.just(-FOREVER) | LENGTH),
            penalty=draw(st.none() | AMOUNT),
            priority=draw(st.integers(0, 9)),
            skills=draw(SKILLS),
            only=draw(st.none() | st.just(frozenset({"v0"}))),
            forbidden=draw(st.just(frozenset()) | st.just(frozenset({"v0"}))),
            late_cost=draw(st.none() | AMOUNT),
        )
        for i in range(count)
    ]
    vehicles = [
        Vehicle(
            id=f"v{k}",
            number=draw(st.integers(1, 3)),
            capacity=tuple(draw(AMOUNT) for _ in range(size)),
            start=0,
            end=draw(st.sampled_from([0, None, 1])),
            shift=draw(windows(1))[0],
            fixed_cost=draw(AMOUNT),
            distance_cost=draw(AMOUNT),
            driving_cost=draw(AMOUNT),
            time_cost=draw(AMOUNT),
            max_duration=draw(st.just(FOREVER) | LENGTH),
            max_distance=draw(st.just(FOREVER) | LENGTH),
            max_driving=draw(st.just(FOREVER) | LENGTH),
            max_stops=draw(st.none() | st.integers(0, 5)),
            overtime=draw(LENGTH),
            overtime_cost=draw(AMOUNT),
            skills=draw(SKILLS),
            breaks=draw(
                st.just(()) | st.builds(lambda w, s: (Break(id="1", windows=w, service=s),), windows(1), LENGTH)
            ),
            reload_time=draw(LENGTH),
        )
        for k in range(draw(st.integers(1, 2)))
    ]
    durations, distances = (
        np.array(
            [[draw(st.integers(0, 99)) * (i != j) for j in range(count + 1)] for i in range(count + 1)], dtype=float
        )
        for _ in range(2)
    )
    return stops, vehicles, durations, distances


def fields(thing: Stop | Vehicle, names: tuple[str, ...]) -> dict[str, Any]:
    """What differs from the defaults, as JSON has it."""
    found: dict[str, Any] = {"id": thing.id}
    for name in names:
        value = getattr(thing, name)
        if isinstance(value, frozenset):
            value = sorted(value)
        if value not in (None, FOREVER, -FOREVER, (), ALWAYS, (ALWAYS,)):
            found[name] = list(value) if isinstance(value, tuple) else value
    return found


OF_STOP = tuple(one.name for one in attributes_of(Stop))
OF_VEHICLE = tuple(one.name for one in attributes_of(Vehicle) if one.name not in ("profile", "trips"))


def own(stops: list[Stop], vehicles: list[Vehicle], durations: np.ndarray, distances: np.ndarray) -> dict[str, Any]:
    fleet = []
    for vehicle in vehicles:
        pauses = [{"id": b.id, "service": b.service, **fields_of_break(b)} for b in vehicle.breaks]
        end = None if vehicle.end is None else ["d", *(s.id for s in stops)][vehicle.end]
        fleet.append({**fields(vehicle, OF_VEHICLE), "start": "d", "end": end, "breaks": pauses})
    return {
        "stops": [{"id": "d", "depot": 1}, *(fields(stop, OF_STOP) for stop in stops)],
        "vehicles": fleet,
        "durations": durations.tolist(),
        "distances": distances.tolist(),
        "allow_unassigned": True,
    }


def fields_of_break(one: Break) -> dict[str, Any]:
    return {} if one.windows == (ALWAYS,) else {"windows": [list(window) for window in one.windows]}


def cell(value: Any) -> str:
    if value in (None, FOREVER, -FOREVER):
        return ""
    if isinstance(value, frozenset):
        return '"' + ", ".join(sorted(value)) + '"'
    return f"{value:g}" if isinstance(value, float) else str(value)


def csv_of(stops: list[Stop], vehicles: list[Vehicle]) -> tuple[str, str]:
    """Numbered columns for dimensions and for the ends of windows."""
    size = len(stops[0].delivery)
    dims = [str(d + 1) for d in range(size)]
    plain = ("service", "setup", "release", "penalty", "priority", "skills", "only", "forbidden", "late_cost")
    head = [
        "id",
        *(f"demand_{d}" for d in dims),
        *(f"pickup_{d}" for d in dims),
        "von1",
        "bis1",
        "von2",
        "bis2",
        *plain,
    ]
    lines = [",".join(head), "d" + "," * (len(head) - 1)]
    for stop in stops:
        ends = [*(end for window in stop.windows for end in window), None, None][:4]
        numbers = [*stop.delivery, *stop.pickup, *ends]
        lines.append(",".join([stop.id, *map(cell, numbers), *(cell(getattr(stop, name)) for name in plain)]))
    rest = tuple(name for name in OF_VEHICLE if name not in ("capacity", "shift"))
    head = ["id", *(f"capacity_{d}" for d in dims), "end", "shift_start", "shift_end", "break_start", "break_end"]
    fleet = [",".join([*head, "break_duration", *rest])]
    for vehicle in vehicles:
        end = "open" if vehicle.end is None else ["d", *(s.id for s in stops)][vehicle.end]
        pause = vehicle.breaks[0] if vehicle.breaks else None
        of_break = [None] * 3 if pause is None else [*pause.windows[0], pause.service]
        cells = [*map(cell, vehicle.capacity), end, *map(cell, vehicle.shift), *map(cell, of_break)]
        fleet.append(",".join([vehicle.id, *cells, *(cell(getattr(vehicle, name)) for name in rest)]))
    return "\n".join(lines), "\n".join(fleet)


def same(found: Round | None, stops: list[Stop], vehicles: list[Vehicle], given: tuple[np.ndarray, np.ndarray]) -> None:
    assert found is not None
    assert [replace(stop, columns={}) for stop in found.stops] == stops
    assert list(found.vehicles) == vehicles
    np.testing.assert_array_equal(found.legs[ANY].duration, given[0])
    np.testing.assert_array_equal(found.legs[ANY].distance, given[1])


often = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@often
@given(rounds())
def test_our_own_json(drawn: tuple[list[Stop], list[Vehicle], np.ndarray, np.ndarray]):
    stops, vehicles, durations, distances = drawn
    document = own(*drawn)
    same(round_from_document(document), stops, vehicles, (durations, distances))
    same(parse_round(json.dumps(document).encode(), "a.json"), stops, vehicles, (durations, distances))


@often
@given(rounds())
def test_csv(drawn: tuple[list[Stop], list[Vehicle], np.ndarray, np.ndarray]):
    stops, vehicles, durations, distances = drawn
    text, fleet = csv_of(stops, vehicles)
    matrix = json.dumps({"durations": durations.tolist(), "distances": distances.tolist()}).encode()
    found = parse_round(
        text.encode(),
        "a.csv",
        vehicles=(fleet.encode(), "v.csv"),
        matrix=(matrix, "m.json"),
        options={"allow_unassigned": True},
    )
    same(found, stops, vehicles, (durations, distances))


@often
@given(rounds())
def test_vroom(drawn: tuple[list[Stop], list[Vehicle], np.ndarray, np.ndarray]):
    """What VROOM's JSON can say of a round."""
    stops, vehicles, durations, distances = drawn
    none: dict[str, Any] = {
        "release": -FOREVER,
        "penalty": None,
        "only": None,
        "forbidden": frozenset(),
        "late_cost": None,
    }
    stops = [replace(stop, **none) for stop in stops]
    limits: dict[str, Any] = {"max_duration": FOREVER, "overtime": 0.0, "overtime_cost": 0.0, "reload_time": 0.0}
    vehicles = [replace(vehicle, **limits, number=1, time_cost=0.0, profile="car") for vehicle in vehicles]
    jobs = [
        {
            **fields(stop, ("delivery", "pickup", "service", "setup", "priority", "skills")),
            **({} if stop.windows == (ALWAYS,) else {"time_windows": [list(window) for window in stop.windows]}),
            "location_index": stop.place,
        }
        for stop in stops
    ]
    fleet = []
    for vehicle in vehicles:
        one = fields(vehicle, ("capacity", "max_distance", "skills"))
        one |= {"start_index": 0, "costs": {"fixed": vehicle.fixed_cost, "per_km": vehicle.distance_cost * 1000}}
        one["costs"]["per_hour"] = vehicle.driving_cost * 3600
        one |= {} if vehicle.end is None else {"end_index": vehicle.end}
        one |= {} if vehicle.shift == ALWAYS else {"time_window": list(vehicle.shift)}
        one |= {} if vehicle.max_stops is None else {"max_tasks": vehicle.max_stops}
        one |= {} if vehicle.max_driving == FOREVER else {"max_travel_time": vehicle.max_driving}
        pauses = [{"id": 1, "service": b.service, "time_windows": list(map(list, b.windows))} for b in vehicle.breaks]
        for pause, b in zip(pauses, vehicle.breaks, strict=True):
            if b.windows == (ALWAYS,):
                del pause["time_windows"]
        fleet.append({**one, "breaks": pauses})
    matrices = {"car": {"durations": durations.tolist(), "distances": distances.tolist()}}
    found = round_from_document({"jobs": jobs, "vehicles": fleet, "matrices": matrices})
    same(found, stops, vehicles, (durations, distances))
