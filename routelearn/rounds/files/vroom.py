"""VROOM's JSON: jobs, shipments, vehicles and matrices, in its units (seconds, metres) and with its defaults.

Its cost is driving time unless a vehicle's costs say otherwise, and it leaves out what it cannot serve.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from routelearn.data.names import not_used
from routelearn.data.numbers import real, shown
from routelearn.data.records import check_degrees
from routelearn.errors import InputError
from routelearn.rounds.files.lengths import Given, Unit, check_count, measured, of_document, rounding_of, speed_of
from routelearn.rounds.files.table import text_of, timed
from routelearn.rounds.model import (
    ALWAYS,
    ANY,
    FOREVER,
    PROBLEM,
    Amounts,
    Break,
    Legs,
    Matrix,
    Round,
    Stop,
    Vehicle,
    Window,
)

KEYS = ("jobs", "shipments", "vehicles", "matrices", "matrix", "description", "options", "problem", "name")
PER_TYPE = {"setup": "setup_per_type", "service": "service_per_type"}
OF_TASK = ("id", "description", "location", "location_index", "time_windows", *PER_TYPE, *PER_TYPE.values())
OF_JOB = (*OF_TASK, "delivery", "pickup", "amount", "skills", "priority")
OF_SHIPMENT = ("pickup", "delivery", "amount", "skills", "priority", "description")
OF_VEHICLE = (
    *("id", "profile", "description", "start", "start_index", "end", "end_index", "capacity", "costs", "skills"),
    *("time_window", "breaks", "speed_factor", "max_tasks", "max_travel_time", "max_distance", "steps", "type"),
)
OF_BREAK = ("id", "description", "time_windows", "service")
OF_STEP = ("type", "id", "description")
OF_COSTS = ("fixed", "per_hour", "per_km")
HOUR, KM = 3600.0, 1000.0
DEFAULT = "car"


def is_like(data: Any) -> bool:
    """Whether a decoded document is VROOM's: jobs, or shipments of whole tasks, and no stops."""
    if not isinstance(data, dict) or "stops" in data:
        return False
    shipments = data.get("shipments")
    whole = isinstance(shipments, list) and any(
        isinstance(s, dict) and isinstance(s.get("pickup"), dict) for s in shipments
    )
    return "jobs" in data or whole


def parse(data: Mapping[str, Any], source: str, options: Mapping[str, Any], given: Given | None = None) -> Round:
    return _Reader(data, source, options, given).round()


class _Reader:
    def __init__(self, data: Mapping[str, Any], source: str, options: Mapping[str, Any], given: Given | None) -> None:
        self.data, self.source, self.options, self.given = data, source, options, given
        self.unused: list[str] = []
        self.notes: list[str] = []
        self.at: dict[Any, int] = {}  # place by location or index
        self.locations: list[tuple[float, float] | None] = []
        self.names: list[str] = []
        self.by_index = False

    # --------------------------------------------------------------------------- values

    def _known(self, thing: Any, keys: tuple[str, ...], where: str) -> Mapping[str, Any]:
        if not isinstance(thing, dict):
            raise InputError(f"{where}: {shown(thing)}; an object is needed")
        for key in thing:
            if key not in keys:
                raise InputError(f"{where}: {shown(key)} is not supported; the keys are {', '.join(keys)}")
        return thing

    def _list(self, raw: Any, where: str, what: str) -> list[Any]:
        if raw is None:
            return []
        if not isinstance(raw, list):
            raise InputError(f"{where}: {what} is {shown(raw)}; a list is needed")
        return raw

    def _number(self, raw: Any, where: str, what: str, default: float = 0.0) -> float:
        return default if raw is None else real(raw, where, what)

    def _whole(self, raw: Any, where: str, what: str) -> int:
        value = real(raw, where, what)
        if value != int(value):
            raise InputError(f"{where}: {what} is {shown(raw)}; a whole number is needed")
        return int(value)

    def _amounts(self, raw: Any, where: str, what: str) -> Amounts:
        return tuple(real(one, where, what) for one in self._list(raw, where, what))

    def _windows(self, raw: Any, where: str) -> tuple[Window, ...]:
        if raw is None:
            return (ALWAYS,)
        return tuple(self._window(one, where, "a time window") for one in self._list(raw, where, "time_windows"))

    def _window(self, raw: Any, where: str, what: str) -> Window:
        if not isinstance(raw, list) or len(raw) != 2:
            raise InputError(f"{where}: {what} is {shown(raw)}; [start, end] is needed")
        return real(raw[0], where, what), real(raw[1], where, what)

    def _skills(self, raw: Any, where: str) -> frozenset[str]:
        return frozenset(text_of(one, where, "a skill") for one in self._list(raw, where, "skills"))

    def _id(self, thing: Mapping[str, Any], where: str) -> str:
        if thing.get("id") is None:
            raise InputError(f"{where}: no id")
        return text_of(thing["id"], where, "the id")

    # --------------------------------------------------------------------------- places

    def _place(self, location: Any, index: Any, where: str, name: str) -> int | None:
        """The place of a location ([longitude, latitude]) or of a row of the matrices."""
        at: tuple[float, float] | None = None
        if location is not None:
            if not isinstance(location, list) or len(location) != 2:
                raise InputError(f"{where}: the location is {shown(location)}; [longitude, latitude] is needed")
            lon, lat = (real(one, where, "the location") for one in location)
            at = lat, lon
        if index is not None and self.by_index:
            row = self._whole(index, where, "the index")
            if not 0 <= row < len(self.locations):
                raise InputError(f"{where}: index {row}, but the matrices have {len(self.locations)} rows, from 0")
            if at is not None and self.locations[row] is None:
                self.locations[row] = at
            if self.names[row] == str(row):
                self.names[row] = name
            return row
        if at is None:
            if index is not None:
                raise InputError(f"{where}: an index, but no matrices; add them, or a location")
            return None
        if self.by_index:
            raise InputError(f"{where}: a location without an index; with matrices each task gives its location_index")
        if at not in self.at:
            self.at[at] = len(self.locations)
            self.locations.append(at)
            self.names.append(name)
        return self.at[at]

    def _matrices(self) -> dict[str, Given]:
        """By profile; `matrix` is the durations of older versions."""
        raw, source = self.data.get("matrices"), self.source
        if raw is None and self.data.get("matrix") is not None:
            raw = {DEFAULT: {"durations": self.data["matrix"]}}
        if raw is None:
            return {}
        if not isinstance(raw, dict) or not raw:
            raise InputError(f"{source}: matrices is {shown(raw)}; an object of profiles is needed")
        found: dict[str, Given] = {}
        for profile, one in raw.items():
            where = f"{source}, matrices of {shown(profile)}"
            given = of_document(self._known(one, ("durations", "distances", "costs"), where), where)
            if given.durations is None:
                raise InputError(f"{where}: no durations")
            found[profile] = given._replace(unit="m" if given.distances is not None else "")
        sizes = {one.size for one in found.values()}
        if len(sizes) > 1:
            raise InputError(f"{source}: matrices of {' and '.join(map(str, sorted(sizes)))} rows; all need as many")
        return found

    # --------------------------------------------------------------------------- the whole

    def round(self) -> Round:
        data, source = self.data, self.source
        if stray := next((key for key in data if key not in KEYS), None):
            raise InputError(f"{source}: {shown(stray)} is not supported; the keys are {', '.join(KEYS)}")
        matrices = self._matrices()
        if matrices and self.given is not None:
            raise InputError(f"{self.source}: the file gives its matrices; leave --matrix out")
        if self.given is not None:
            given = self.given
            if given.plain is not None:
                given = Given(durations=given.plain)
            matrices = {DEFAULT: given}
        self.priced = {profile for profile, one in matrices.items() if one.costs is not None}
        if matrices:
            self.by_index = True
            size = next(iter(matrices.values())).size
            self.locations = [None] * size
            self.names = [str(i) for i in range(size)]
        vehicles = self._list(data.get("vehicles"), source, "vehicles")
        if not vehicles:
            raise InputError(f"{source}: no vehicles")
        self.types = {str(one.get("type", "")) for one in vehicles if isinstance(one, dict)}
        stops, shipments, where = self._tasks()
        self.number = {key: i for i, key in enumerate(self.keys)}
        fleet = [self._vehicle(one, f"{source}, vehicle {k}") for k, one in enumerate(vehicles, 1)]
        check_count(len(self.locations), source)
        found = [vehicle for vehicle, _, _ in fleet]
        legs, unit, notes = self._legs(matrices, fleet, timed(stops, found, {}))
        if unit == "km":  # distances come from places
            found = [replace(v, distance_cost=v.distance_cost * KM, max_distance=v.max_distance / KM) for v in found]
        latlon = self._latlon()
        for key in ("options", "problem"):
            if data.get(key) not in (None, {}, PROBLEM):
                self.unused.append(key)
        return Round(
            source=source,
            stops=tuple(stops),
            vehicles=tuple(found),
            shipments=tuple(shipments),
            legs=legs,
            places=tuple(self.names),
            latlon=latlon,
            allow_unassigned=True,
            rounding=rounding_of(self.options, "none"),
            length_unit=unit,
            where=tuple(where),
            vehicles_where=tuple(f"{source}, vehicle {k}" for k in range(1, len(found) + 1)),
            notes=(*notes, *self.notes, *([not_used(self.unused)] if self.unused else [])),
        )

    def _latlon(self) -> Matrix | None:
        known = [at for at in self.locations if at is not None]
        if not known or len(known) != len(self.locations):
            return None
        latlon = np.array(known)
        check_degrees(latlon, [f"place {name}" for name in self.names], self.source)
        return latlon

    def _tasks(self) -> tuple[list[Stop], list[tuple[int, int]], list[str]]:
        source = self.source
        self.keys: list[tuple[str, str]] = []  # (type, id) of each stop, as steps name them
        stops: list[Stop] = []
        where: list[str] = []
        shipments: list[tuple[int, int]] = []
        for k, raw in enumerate(self._list(self.data.get("jobs"), source, "jobs"), 1):
            at = f"{source}, job {k}"
            job = self._known(raw, OF_JOB, at)
            delivery = self._amounts(job.get("delivery", job.get("amount")), at, "delivery")
            stops.append(self._task(job, at, "job", delivery, self._amounts(job.get("pickup"), at, "pickup"), job))
            where.append(f"job {k}")
        for k, raw in enumerate(self._list(self.data.get("shipments"), source, "shipments"), 1):
            at = f"{source}, shipment {k}"
            shipment = self._known(raw, OF_SHIPMENT, at)
            amount = self._amounts(shipment.get("amount"), at, "amount")
            for half in ("pickup", "delivery"):
                if shipment.get(half) is None:
                    raise InputError(f"{at}: no {half}; a shipment needs both halves")
                task = self._known(shipment[half], OF_TASK, f"{at}, {half}")
                taken, brought = (amount, ()) if half == "pickup" else ((), amount)
                stops.append(self._task(task, f"{at}, {half}", half, brought, taken, shipment))
                where.append(f"shipment {k}, {half}")
            shipments.append((len(stops) - 2, len(stops) - 1))
        if not stops:
            raise InputError(f"{source}: neither jobs nor shipments")
        seen: set[tuple[str, str]] = set()
        for i, key in enumerate(self.keys):
            if key in seen:
                raise InputError(f"{source}, {where[i]}: the id {shown(key[1])} is used twice; rename one")
            seen.add(key)
        if len({name for _, name in self.keys}) < len(self.keys):  # a job and a pickup may share one
            stops = [
                stop if kind == "job" else replace(stop, id=f"{kind} {name}")
                for stop, (kind, name) in zip(stops, self.keys, strict=True)
            ]
        return stops, shipments, where

    def _task(
        self,
        task: Mapping[str, Any],
        where: str,
        kind: str,
        delivery: Amounts,
        pickup: Amounts,
        owner: Mapping[str, Any],
    ) -> Stop:
        name = self._id(task, where)
        self.keys.append((kind, name))
        place = self._place(task.get("location"), task.get("location_index"), where, name)
        if place is None:
            raise InputError(f"{where}: no location; give [longitude, latitude], or location_index with matrices")
        priority = owner.get("priority")
        said = task.get("description", owner.get("description"))
        return Stop(
            id=name,
            place=place,
            delivery=delivery,
            pickup=pickup,
            windows=self._windows(task.get("time_windows"), where),
            service=self._lasting(task, where, "service"),
            setup=self._lasting(task, where, "setup"),
            priority=0 if priority is None else self._whole(priority, where, "priority"),
            skills=self._skills(owner.get("skills"), where),
            columns={"description": str(said)} if said is not None else {},
        )

    def _lasting(self, task: Mapping[str, Any], where: str, what: str) -> float:
        """How long a task takes: by type of vehicle only where all that there are agree."""
        usual, key = self._number(task.get(what), where, what), PER_TYPE[what]
        if task.get(key) is None:
            return usual
        by_type = task[key]
        if not isinstance(by_type, dict):
            raise InputError(f"{where}: {key} is {shown(by_type)}; an object of types is needed")
        found = {self._number(by_type.get(kind), where, key, usual) for kind in self.types}
        if len(found) > 1:
            raise InputError(f"{where}: {shown(key)} that differs between the vehicles is not supported; give {what}")
        return found.pop() if found else usual

    def _vehicle(self, raw: Any, where: str) -> tuple[Vehicle, str, float]:
        """A vehicle with distances in metres, its profile's name in the file, and its speed factor."""
        one = self._known(raw, OF_VEHICLE, where)
        costs = self._known(one.get("costs") or {}, OF_COSTS, f"{where}, costs")
        name = self._id(one, where)
        start = self._place(one.get("start"), one.get("start_index"), where, f"start of {name}")
        end = self._place(one.get("end"), one.get("end_index"), where, f"end of {name}")
        profile = text_of(one.get("profile", DEFAULT), where, "the profile")
        own = profile in self.priced  # its matrix says what legs cost
        if own and (key := next((key for key in ("per_hour", "per_km") if costs.get(key) is not None), None)):
            raise InputError(f"{where}, costs: {key!r} beside the costs of the profile's matrix; leave one of them out")
        shift = ALWAYS if one.get("time_window") is None else self._window(one["time_window"], where, "time_window")
        kept, shift = self._steps(one.get("steps"), where, shift)
        factor = self._number(one.get("speed_factor"), where, "speed_factor", 1.0)
        if factor <= 0:
            raise InputError(f"{where}: speed_factor is {factor:g}; it must be positive")
        most = one.get("max_tasks")
        vehicle = Vehicle(
            id=name,
            capacity=self._amounts(one.get("capacity"), where, "capacity"),
            start=start,
            end=end,
            shift=shift,
            fixed_cost=self._number(costs.get("fixed"), where, "fixed"),
            distance_cost=self._number(costs.get("per_km"), where, "per_km") / KM,
            driving_cost=self._number(costs.get("per_hour"), where, "per_hour", 0.0 if own else HOUR) / HOUR,
            max_driving=self._number(one.get("max_travel_time"), where, "max_travel_time", FOREVER),
            max_distance=self._number(one.get("max_distance"), where, "max_distance", FOREVER),
            max_stops=None if most is None else self._whole(most, where, "max_tasks"),
            skills=self._skills(one.get("skills"), where),
            profile=profile if factor == 1 else f"{profile} x {factor:g}",
            breaks=self._breaks(one.get("breaks"), where),
            kept=kept,
        )
        return vehicle, profile, factor

    def _breaks(self, raw: Any, where: str) -> tuple[Break, ...]:
        found = []
        for k, one in enumerate(self._list(raw, where, "breaks"), 1):
            at = f"{where}, break {k}"
            self._known(one, OF_BREAK, at)
            service = self._number(one.get("service"), at, "service")
            found.append(
                Break(id=self._id(one, at), windows=self._windows(one.get("time_windows"), at), service=service)
            )
        return tuple(found)

    def _steps(self, raw: Any, where: str, shift: Window) -> tuple[tuple[int, ...], Window]:
        """The tasks that a vehicle begins with; the rest of what steps can say is refused by name."""
        kept: list[int] = []
        for k, step in enumerate(self._list(raw, where, "steps"), 1):
            at = f"{where}, step {k}"
            kind = step.get("type") if isinstance(step, dict) else None
            if kind == "start" and set(step) <= {*OF_STEP, "service_after"}:
                after = self._number(step.get("service_after"), at, "service_after", shift[0])
                shift = (max(shift[0], after), shift[1])
                continue
            self._known(step, OF_STEP, at)
            if kind == "break":
                self.notes.append(f"vehicle {shown(self._id(step, at))}: a break among the steps is placed anew")
            elif kind in ("job", "pickup", "delivery"):
                key = (kind, self._id(step, at))
                if key not in self.number:
                    raise InputError(f"{at}: no {kind} has the id {shown(key[1])}")
                kept.append(self.number[key])
            elif kind not in ("start", "end"):
                raise InputError(f"{at}: type {shown(kind)}; start, job, pickup, delivery, break or end is needed")
        return tuple(kept), shift

    def _legs(
        self, matrices: Mapping[str, Given], fleet: list[tuple[Vehicle, str, float]], needs: str | None
    ) -> tuple[dict[str, Legs], Unit, tuple[str, ...]]:
        """By profile and speed factor."""
        source, rounding = self.source, rounding_of(self.options, "none")
        speed = speed_of(self.options, source)
        latlon = self._latlon()
        unit: Unit = ""
        notes: tuple[str, ...] = ()
        base: dict[str, Legs] = {}
        for profile in list(matrices) or [DEFAULT]:
            given = matrices.get(profile)
            found = measured(
                source,
                given,
                None,
                latlon,
                speed=speed,
                timed=needs or "routes have times",
                clock=False,
                rounding=rounding,
            )
            base[profile], unit, notes = found.legs, found.unit, found.notes
            if found.only_durations:
                for k, (vehicle, _, _) in enumerate(fleet, 1):
                    if vehicle.distance_cost or vehicle.max_distance != FOREVER:
                        raise InputError(
                            f"{source}, vehicle {k}: per_km or max_distance, but no distances; add them to the matrices"
                        )
        legs: dict[str, Legs] = {}
        for k, (vehicle, profile, factor) in enumerate(fleet, 1):
            if matrices and profile not in base and self.given is None:
                known = ", ".join(map(shown, base))
                raise InputError(
                    f"{source}, vehicle {k}: no matrices of the profile {shown(profile)}; there is {known}"
                )
            of = base.get(profile) or next(iter(base.values()))
            legs.setdefault(vehicle.profile, of if factor == 1 else Legs(of.distance, of.duration / factor, of.cost))
        legs = {ANY: next(iter(legs.values())), **legs}
        return legs, unit, notes
